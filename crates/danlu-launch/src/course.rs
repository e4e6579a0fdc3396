//! How a set of processes comes to its end: a pure account of who has ended, what was ordered, and what to do next.
//!
//! The first thing that goes wrong, or the first order, is the reason of the end and stays it; what comes later can only
//! hurry it. Every ending has the same two steps: a polite signal, then, when the grace is over, a kill.

use std::time::{Duration, Instant};

use danlu_core::job::Exit;

#[derive(Debug)]
pub(crate) struct Course {
    exits: Vec<Option<Exit>>,
    grace: Duration,
    ending: Option<Ending>,
    /// They left something running that counts as theirs.
    background: bool,
}

#[derive(Debug)]
struct Ending {
    why: Why,
    /// When politeness ends; `None` where there was nobody left to be polite to, or it has ended.
    kill_at: Option<Instant>,
    /// Someone was sent a signal.
    signalled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// An order to stop.
    Ordered,
    TimeLimit,
    /// The process at this place failed first.
    Failed {
        index: usize,
        exit: Exit,
    },
    /// It does nothing any more.
    Hang,
    /// All ended well, and something failed that they had left running and that counts as theirs.
    BackgroundFailed {
        pid: i32,
        exit: Exit,
    },
    /// The process that serves the ranks, such as MindSpore's scheduler, failed.
    ServerFailed {
        exit: Exit,
    },
}

/// What to do to all processes of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Terminate,
    Kill,
}

impl Course {
    /// `grace`: for the others when one fails, and for all when time is up.
    pub(crate) fn new(processes: usize, grace: Duration) -> Self {
        Course { exits: vec![None; processes], grace, ending: None, background: false }
    }

    pub(crate) fn on_exit(&mut self, index: usize, exit: Exit, now: Instant) -> Action {
        self.exits[index] = Some(exit);
        if exit == Exit::Code(0) || self.ending.is_some() {
            return Action::Nothing;
        }
        self.end(Why::Failed { index, exit }, self.grace, now)
    }

    /// A process has ended that is none of those counted. Its good end means nothing: it may be done before they are.
    pub(crate) fn on_server_exit(&mut self, exit: Exit, now: Instant) -> Action {
        if exit == Exit::Code(0) || self.ending.is_some() {
            return Action::Nothing;
        }
        self.end(Why::ServerFailed { exit }, self.grace, now)
    }

    /// Something has ended that the ranks left running and that counts as theirs.
    pub(crate) fn on_background_exit(&mut self, pid: i32, exit: Exit, now: Instant) -> Action {
        if exit == Exit::Code(0) || self.ending.is_some() {
            return Action::Nothing;
        }
        self.end(Why::BackgroundFailed { pid, exit }, self.grace, now)
    }

    pub(crate) fn on_order(&mut self, grace: Duration, now: Instant) -> Action {
        match &mut self.ending {
            None => self.end(Why::Ordered, grace, now),
            Some(ending) => {
                ending.kill_at = ending.kill_at.map(|at| at.min(now + grace));
                Action::Nothing
            }
        }
    }

    pub(crate) fn on_time_limit(&mut self, now: Instant) -> Action {
        if self.ending.is_some() { Action::Nothing } else { self.end(Why::TimeLimit, self.grace, now) }
    }

    pub(crate) fn on_hang(&mut self, now: Instant) -> Action {
        if self.ending.is_some() { Action::Nothing } else { self.end(Why::Hang, self.grace, now) }
    }

    /// Time has passed.
    pub(crate) fn on_tick(&mut self, now: Instant) -> Action {
        match &mut self.ending {
            Some(Ending { kill_at: kill_at @ Some(_), .. }) if *kill_at <= Some(now) => {
                *kill_at = None;
                Action::Kill
            }
            _ => Action::Nothing,
        }
    }

    /// When [`Self::on_tick`] wants to be called.
    pub(crate) fn next_tick(&self) -> Option<Instant> {
        self.ending.as_ref().and_then(|ending| ending.kill_at)
    }

    /// Everyone has ended, and so has what they left running, as far as it counts as theirs.
    pub(crate) fn is_over(&self) -> bool {
        self.has_everyone_exited() && (!self.background || self.ending.is_some())
    }

    pub(crate) fn has_everyone_exited(&self) -> bool {
        self.exits.iter().all(Option::is_some)
    }

    pub(crate) fn set_background(&mut self, runs: bool) {
        self.background = runs;
    }

    /// Processes that these left behind may go on until the grace is over. A shell dies of the signal at once while the
    /// program it started still writes its checkpoint; without a signal, what is left behind was left on purpose or
    /// by mistake, and nobody waits for it.
    pub(crate) fn waits_for_leftovers(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.signalled && ending.kill_at.is_some())
    }

    /// Why it ended; `None` where all ended well by themselves.
    pub(crate) fn why(&self) -> Option<Why> {
        self.ending.as_ref().map(|ending| ending.why)
    }

    fn end(&mut self, why: Why, grace: Duration, now: Instant) -> Action {
        if self.is_over() {
            // An order that comes when all have ended well changes nothing.
            if let Why::Failed { .. } | Why::BackgroundFailed { .. } = why {
                self.ending = Some(Ending { why, kill_at: None, signalled: false });
            }
            return Action::Nothing;
        }
        self.ending = Some(Ending { why, kill_at: Some(now + grace), signalled: true });
        Action::Terminate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(30);
    const OK: Exit = Exit::Code(0);

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn all_well_is_no_reason() {
        let start = Instant::now();
        let mut course = Course::new(2, GRACE);
        assert_eq!(course.on_exit(1, OK, start), Action::Nothing);
        assert!(!course.is_over());
        assert_eq!(course.on_exit(0, OK, start), Action::Nothing);
        assert!(course.is_over() && !course.waits_for_leftovers());
        assert_eq!(course.on_order(GRACE, start), Action::Nothing);
        assert_eq!(course.why(), None);
    }

    #[test]
    fn what_was_left_running_can_still_be_stopped() {
        let start = Instant::now();
        let mut course = Course::new(1, GRACE);
        assert_eq!(course.on_exit(0, OK, start), Action::Nothing);
        course.set_background(true);
        assert!(course.has_everyone_exited() && !course.is_over());
        assert_eq!(course.on_time_limit(start), Action::Terminate);
        assert!(course.is_over() && course.waits_for_leftovers());
        assert_eq!(course.why(), Some(Why::TimeLimit));
    }

    #[test]
    fn the_first_failure_is_the_culprit_and_ends_the_others() {
        let start = Instant::now();
        let mut course = Course::new(3, GRACE);
        let failed = Exit::Code(3);
        assert_eq!(course.on_exit(1, failed, start), Action::Terminate);
        assert_eq!(course.on_exit(0, Exit::Signal(15), start), Action::Nothing);
        assert_eq!(course.on_tick(after(start, 29)), Action::Nothing);
        assert_eq!(course.on_tick(after(start, 30)), Action::Kill);
        assert_eq!(course.on_tick(after(start, 31)), Action::Nothing);
        assert_eq!(course.on_exit(2, Exit::Signal(9), after(start, 31)), Action::Nothing);
        assert_eq!(course.why(), Some(Why::Failed { index: 1, exit: failed }));
    }

    #[test]
    fn a_lone_failure_waits_for_nobody() {
        let mut course = Course::new(1, GRACE);
        assert_eq!(course.on_exit(0, Exit::Code(1), Instant::now()), Action::Nothing);
        assert!(course.is_over() && !course.waits_for_leftovers());
    }

    #[test]
    fn ranks_do_not_outlive_the_failure_of_who_serves_them() {
        let start = Instant::now();
        let mut course = Course::new(2, GRACE);
        assert_eq!(course.on_server_exit(OK, start), Action::Nothing);
        let exit = Exit::Signal(11);
        assert_eq!(course.on_server_exit(exit, start), Action::Terminate);
        assert_eq!(course.on_exit(0, Exit::Signal(15), start), Action::Nothing);
        assert_eq!(course.why(), Some(Why::ServerFailed { exit }));
    }

    #[test]
    fn a_later_order_can_only_hurry() {
        let start = Instant::now();
        let mut course = Course::new(1, GRACE);
        assert_eq!(course.on_order(GRACE, start), Action::Terminate);
        course.on_order(GRACE * 2, after(start, 1));
        assert_eq!(course.next_tick(), Some(after(start, 30)));
        course.on_order(Duration::from_secs(2), after(start, 1));
        assert_eq!(course.next_tick(), Some(after(start, 3)));
        assert_eq!(course.on_time_limit(after(start, 2)), Action::Nothing);
        assert_eq!(course.on_exit(0, Exit::Code(1), after(start, 2)), Action::Nothing);
        assert_eq!(course.why(), Some(Why::Ordered));
        assert!(course.waits_for_leftovers());
    }

    #[test]
    fn time_is_up_only_once() {
        let start = Instant::now();
        let mut course = Course::new(1, Duration::ZERO);
        assert_eq!(course.on_time_limit(start), Action::Terminate);
        assert_eq!(course.on_tick(start), Action::Kill);
        assert_eq!(course.on_time_limit(start), Action::Nothing);
        assert_eq!(course.why(), Some(Why::TimeLimit));
    }
}
