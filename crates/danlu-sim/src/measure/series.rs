//! The cluster over time, averaged over equal stretches of it.

use danlu_types::Span;
use jiff::Timestamp;
use serde::Serialize;

use crate::measure::seconds;
use crate::simulation::after;
use crate::simulation::meter::Point;

const STRETCHES: u64 = 240;

/// Means over consecutive stretches of time, the first from the start on.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Series {
    pub step_seconds: f64,
    pub utilisation_percent: Vec<f64>,
    /// Jobs that wait.
    pub queued: Vec<f64>,
}

/// Means over a whole run, as parts of 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Used {
    pub(crate) utilisation: f64,
    pub(crate) unallocated_while_waiting: Option<f64>,
    pub(crate) fragmented: Option<f64>,
}

/// Amounts times milliseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    held: f64,
    capacity: f64,
    queued: f64,
    held_while_waiting: f64,
    capacity_while_waiting: f64,
    fragmented: f64,
    fragmented_time: f64,
}

impl Sums {
    fn add(&mut self, point: &Point, milliseconds: f64) {
        // A device that failed in somebody's hands is held, but no capacity any more.
        let held = point.held.min(point.capacity) as f64 * milliseconds;
        let capacity = point.capacity as f64 * milliseconds;
        self.held += held;
        self.capacity += capacity;
        self.queued += point.queued as f64 * milliseconds;
        if point.queued > 0 {
            self.held_while_waiting += held;
            self.capacity_while_waiting += capacity;
        }
        if let Some(part) = point.fragmented {
            self.fragmented += part * milliseconds;
            self.fragmented_time += milliseconds;
        }
    }

    fn utilisation(&self) -> f64 {
        if self.capacity > 0.0 { self.held / self.capacity } else { 0.0 }
    }
}

pub(crate) fn used(points: &[Point], makespan: Span) -> Used {
    let mut sums = Sums::default();
    for (point, until) in stretches(points, makespan) {
        sums.add(point, milliseconds(point.at, until));
    }
    let waiting = sums.capacity_while_waiting;
    let time = sums.fragmented_time;
    Used {
        utilisation: sums.utilisation(),
        unallocated_while_waiting: (waiting > 0.0).then(|| 1.0 - sums.held_while_waiting / waiting),
        fragmented: (time > 0.0).then(|| sums.fragmented / time),
    }
}

impl Series {
    pub(crate) fn of(points: &[Point], makespan: Span) -> Self {
        let step = makespan.milliseconds.div_ceil(STRETCHES).max(1);
        let count = usize::try_from(makespan.milliseconds.div_ceil(step)).unwrap_or(0);
        let mut sums = vec![Sums::default(); count];
        for (point, until) in stretches(points, makespan) {
            let mut from = offset(point.at);
            let until = offset(until);
            while from < until {
                let bucket = from / step;
                let end = until.min((bucket + 1) * step);
                if let Some(sums) = usize::try_from(bucket).ok().and_then(|bucket| sums.get_mut(bucket)) {
                    sums.add(point, (end - from) as f64);
                }
                from = end;
            }
        }
        // The last stretch may be shorter than the others.
        let length = |bucket: usize| step.min(makespan.milliseconds - bucket as u64 * step) as f64;
        Series {
            step_seconds: seconds(step),
            utilisation_percent: sums.iter().map(|sums| sums.utilisation() * 100.0).collect(),
            queued: sums.iter().enumerate().map(|(bucket, sums)| sums.queued / length(bucket)).collect(),
        }
    }
}

/// Each point with the time until which it holds.
fn stretches(points: &[Point], makespan: Span) -> impl Iterator<Item = (&Point, Timestamp)> {
    let end = after(Timestamp::UNIX_EPOCH, makespan);
    let until = points.iter().skip(1).map(|next| next.at).chain([end]);
    points.iter().zip(until).map(move |(point, until)| (point, until.min(end)))
}

fn offset(at: Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or(0)
}

fn milliseconds(from: Timestamp, to: Timestamp) -> f64 {
    offset(to).saturating_sub(offset(from)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(second: i64, held: u64, queued: u64) -> Point {
        let at = Timestamp::from_second(second).unwrap();
        Point { at, held, capacity: 1000, queued, fragmented: None }
    }

    #[test]
    fn means_weigh_each_state_by_how_long_it_held() {
        let points = [point(0, 0, 0), point(10, 1000, 2), point(40, 500, 0)];
        let makespan = Span::from_seconds(60);
        let used = used(&points, makespan);
        assert!((used.utilisation - 40.0 / 60.0).abs() < 1e-9);
        assert_eq!(used.unallocated_while_waiting, Some(0.0));
        let series = Series::of(&points, makespan);
        assert_eq!((series.queued.len(), series.step_seconds), (240, 0.25));
        assert!((series.utilisation_percent[39], series.utilisation_percent[40]) == (0.0, 100.0));
        let mean: f64 = series.queued.iter().sum::<f64>() / 240.0;
        assert!((mean - 1.0).abs() < 1e-9);
    }
}
