//! The time by which jobs are forgotten: what is deleted by a clock that was wrong is gone for good.
//!
//! It is the wall clock's unless that is more than [`MOST_AHEAD`] before the time at which this server last looked, and the time that
//! it has measured since. A server that was off for longer, and a clock that was set ahead, look the same from here; then time goes on from
//! where it was, `/readyz` and `danlu doctor` say so, and a person decides (`danlu up --trust-clock`).

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

const FILE: &str = "retention-clock";
/// Servers are switched off over holidays.
const MOST_AHEAD: SignedDuration = SignedDuration::from_hours(7 * 24);

#[derive(Debug)]
pub(crate) struct RetentionClock {
    file: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What it said last, and when that was.
    last: Option<(Timestamp, Instant)>,
    /// A person has said that the wall clock is right: good for one reading.
    is_trusted: bool,
}

/// What time it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClockReading {
    pub(crate) now: Timestamp,
    /// How far the wall clock is before that, where it is not believed.
    pub(crate) ahead: Option<SignedDuration>,
}

impl RetentionClock {
    pub(crate) fn new(data: &Path, is_trusted: bool) -> Self {
        RetentionClock { file: data.join(FILE), state: Mutex::new(State { last: None, is_trusted }) }
    }

    /// `newest_end`: of a job, for data folders that have no such clock yet; it may lie as far back as jobs are kept.
    pub(crate) fn read(
        &self,
        wall: Timestamp,
        steady: Instant,
        newest_end: Option<Timestamp>,
        keep: SignedDuration,
    ) -> ClockReading {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = || std::fs::read_to_string(&self.file).ok()?.trim().parse::<Timestamp>().ok();
        let zero = SignedDuration::ZERO;
        let reading = match (std::mem::take(&mut state.is_trusted), state.last) {
            (true, _) => ClockReading { now: wall, ahead: None },
            (false, Some((time, at))) => {
                let passed = SignedDuration::try_from(steady.duration_since(at)).unwrap_or(zero);
                step(time, passed, wall, MOST_AHEAD)
            }
            (false, None) => match (noted(), newest_end) {
                (Some(time), _) => step(time, zero, wall, MOST_AHEAD),
                (None, Some(end)) => step(end, zero, wall, MOST_AHEAD.max(keep)),
                (None, None) => ClockReading { now: wall, ahead: None },
            },
        };
        state.last = Some((reading.now, steady));
        // Where this fails, the time of before stands, and jobs are kept for longer.
        if let Err(error) = std::fs::write(&self.file, format!("{}\n", reading.now)) {
            tracing::debug!("could not write {}: {error}", self.file.display());
        }
        reading
    }
}

fn step(
    last: Timestamp,
    passed: SignedDuration,
    wall: Timestamp,
    most_ahead: SignedDuration,
) -> ClockReading {
    let own = last.saturating_add(passed).unwrap_or(Timestamp::MAX);
    let ahead = wall.duration_since(own);
    if ahead <= most_ahead {
        ClockReading { now: wall, ahead: None }
    } else {
        ClockReading { now: own, ahead: Some(ahead) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HOUR: SignedDuration = SignedDuration::from_hours(1);
    const YEAR: i64 = 24 * 365;

    fn start() -> Timestamp {
        "2026-03-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_clock_that_was_set_ahead_is_not_followed_until_it_is_right_or_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let (start, steady) = (start(), Instant::now());
        let clock = RetentionClock::new(folder.path(), false);
        let believed = |now| ClockReading { now, ahead: None };
        assert_eq!(clock.read(start, steady, None, HOUR), believed(start));
        let later = |hours: i64| start + SignedDuration::from_hours(hours);
        let after = |hours: u64| steady + Duration::from_hours(hours);
        let reading = clock.read(later(YEAR), after(2), None, HOUR);
        assert_eq!(
            reading,
            ClockReading { now: later(2), ahead: Some(SignedDuration::from_hours(YEAR - 2)) }
        );
        assert_eq!(clock.read(later(3), after(3), None, HOUR), believed(later(3)));

        // After a few days off, a server believes it; after a year it does not.
        let again = |trusted| RetentionClock::new(folder.path(), trusted);
        assert_eq!(again(false).read(later(2), steady, None, HOUR), believed(later(2)));
        assert_eq!(again(false).read(later(24 * 6), steady, None, HOUR), believed(later(24 * 6)));
        assert_eq!(again(false).read(later(YEAR), steady, None, HOUR).now, later(24 * 6));
        assert_eq!(again(true).read(later(YEAR), steady, None, HOUR), believed(later(YEAR)));
    }

    #[test]
    fn the_first_time_goes_by_what_ended_last() {
        let folder = tempfile::tempdir().unwrap();
        let read = |hours, keep: i64| {
            let wall = start() + SignedDuration::from_hours(hours);
            let _ = std::fs::remove_file(folder.path().join(FILE));
            let clock = RetentionClock::new(folder.path(), false);
            let keep = SignedDuration::from_hours(keep);
            clock.read(wall, Instant::now(), Some(start()), keep).ahead.is_none()
        };
        assert!(read(24 * 20, 24 * 30) && read(24 * 6, 1));
        assert!(!read(24 * 40, 24 * 30) && !read(24 * 8, 1));
    }
}
