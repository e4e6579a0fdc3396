//! How a set of processes comes to its end: a pure account of who has ended, what was ordered, and what to do next.
//!
//! The first thing that goes wrong, or the first order, is the reason of the end and stays it; what comes later can only
//! hurry it. Every ending has the same two steps: a polite signal, then, when the grace is over, a kill.

use std::time::{Duration, Instant};

use danlu_core::job::ProcessExit;

#[derive(Debug)]
pub(crate) struct Termination {
    exits: Vec<Option<ProcessExit>>,
    grace: Duration,
    ending: Option<Ending>,
    /// They left something running that counts as theirs.
    background: bool,
}

#[derive(Debug)]
struct Ending {
    why: TerminationCause,
    /// When politeness ends; `None` where there was nobody left to be polite to, or it has ended.
    kill_at: Option<Instant>,
    /// Someone was sent a signal.
    signalled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminationCause {
    /// An order to stop.
    Ordered,
    TimeLimit,
    /// The process at this place failed first.
    Failed {
        index: usize,
        exit: ProcessExit,
    },
    /// It does nothing any more.
    Hang,
    /// All ended well, and something failed that they had left running and that counts as theirs.
    BackgroundFailed {
        pid: i32,
        exit: ProcessExit,
    },
    /// The process that serves the ranks, such as MindSpore's scheduler, failed.
    ServerFailed {
        exit: ProcessExit,
    },
}

/// What to do to all processes of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalAction {
    Nothing,
    Terminate,
    Kill,
}

impl Termination {
    /// `grace`: for the others when one fails, and for all when time is up.
    pub(crate) fn new(processes: usize, grace: Duration) -> Self {
        Termination { exits: vec![None; processes], grace, ending: None, background: false }
    }

    pub(crate) fn on_exit(&mut self, index: usize, exit: ProcessExit, now: Instant) -> SignalAction {
        self.exits[index] = Some(exit);
        if exit == ProcessExit::Code(0) || self.ending.is_some() {
            return SignalAction::Nothing;
        }
        self.end(TerminationCause::Failed { index, exit }, self.grace, now)
    }

    /// A process has ended that is none of those counted. Its good end means nothing: it may be done before they are.
    pub(crate) fn on_server_exit(&mut self, exit: ProcessExit, now: Instant) -> SignalAction {
        if exit == ProcessExit::Code(0) || self.ending.is_some() {
            return SignalAction::Nothing;
        }
        self.end(TerminationCause::ServerFailed { exit }, self.grace, now)
    }

    /// Something has ended that the ranks left running and that counts as theirs.
    pub(crate) fn on_background_exit(&mut self, pid: i32, exit: ProcessExit, now: Instant) -> SignalAction {
        if exit == ProcessExit::Code(0) || self.ending.is_some() {
            return SignalAction::Nothing;
        }
        self.end(TerminationCause::BackgroundFailed { pid, exit }, self.grace, now)
    }

    pub(crate) fn on_order(&mut self, grace: Duration, now: Instant) -> SignalAction {
        match &mut self.ending {
            None => self.end(TerminationCause::Ordered, grace, now),
            Some(ending) => {
                ending.kill_at = ending.kill_at.map(|at| at.min(now + grace));
                SignalAction::Nothing
            }
        }
    }

    pub(crate) fn on_time_limit(&mut self, now: Instant) -> SignalAction {
        if self.ending.is_some() {
            SignalAction::Nothing
        } else {
            self.end(TerminationCause::TimeLimit, self.grace, now)
        }
    }

    pub(crate) fn on_hang(&mut self, now: Instant) -> SignalAction {
        if self.ending.is_some() {
            SignalAction::Nothing
        } else {
            self.end(TerminationCause::Hang, self.grace, now)
        }
    }

    /// Time has passed.
    pub(crate) fn on_tick(&mut self, now: Instant) -> SignalAction {
        match &mut self.ending {
            Some(Ending { kill_at: kill_at @ Some(_), .. }) if *kill_at <= Some(now) => {
                *kill_at = None;
                SignalAction::Kill
            }
            _ => SignalAction::Nothing,
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
    pub(crate) fn why(&self) -> Option<TerminationCause> {
        self.ending.as_ref().map(|ending| ending.why)
    }

    fn end(&mut self, why: TerminationCause, grace: Duration, now: Instant) -> SignalAction {
        if self.is_over() {
            // An order that comes when all have ended well changes nothing.
            if let TerminationCause::Failed { .. } | TerminationCause::BackgroundFailed { .. } = why {
                self.ending = Some(Ending { why, kill_at: None, signalled: false });
            }
            return SignalAction::Nothing;
        }
        self.ending = Some(Ending { why, kill_at: Some(now + grace), signalled: true });
        SignalAction::Terminate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(30);
    const OK: ProcessExit = ProcessExit::Code(0);

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn all_well_is_no_reason() {
        let start = Instant::now();
        let mut termination = Termination::new(2, GRACE);
        assert_eq!(termination.on_exit(1, OK, start), SignalAction::Nothing);
        assert!(!termination.is_over());
        assert_eq!(termination.on_exit(0, OK, start), SignalAction::Nothing);
        assert!(termination.is_over() && !termination.waits_for_leftovers());
        assert_eq!(termination.on_order(GRACE, start), SignalAction::Nothing);
        assert_eq!(termination.why(), None);
    }

    #[test]
    fn what_was_left_running_can_still_be_stopped() {
        let start = Instant::now();
        let mut termination = Termination::new(1, GRACE);
        assert_eq!(termination.on_exit(0, OK, start), SignalAction::Nothing);
        termination.set_background(true);
        assert!(termination.has_everyone_exited() && !termination.is_over());
        assert_eq!(termination.on_time_limit(start), SignalAction::Terminate);
        assert!(termination.is_over() && termination.waits_for_leftovers());
        assert_eq!(termination.why(), Some(TerminationCause::TimeLimit));
    }

    #[test]
    fn the_first_failure_is_the_culprit_and_ends_the_others() {
        let start = Instant::now();
        let mut termination = Termination::new(3, GRACE);
        let failed = ProcessExit::Code(3);
        assert_eq!(termination.on_exit(1, failed, start), SignalAction::Terminate);
        assert_eq!(termination.on_exit(0, ProcessExit::Signal(15), start), SignalAction::Nothing);
        assert_eq!(termination.on_tick(after(start, 29)), SignalAction::Nothing);
        assert_eq!(termination.on_tick(after(start, 30)), SignalAction::Kill);
        assert_eq!(termination.on_tick(after(start, 31)), SignalAction::Nothing);
        assert_eq!(termination.on_exit(2, ProcessExit::Signal(9), after(start, 31)), SignalAction::Nothing);
        assert_eq!(termination.why(), Some(TerminationCause::Failed { index: 1, exit: failed }));
    }

    #[test]
    fn a_lone_failure_waits_for_nobody() {
        let mut termination = Termination::new(1, GRACE);
        assert_eq!(termination.on_exit(0, ProcessExit::Code(1), Instant::now()), SignalAction::Nothing);
        assert!(termination.is_over() && !termination.waits_for_leftovers());
    }

    #[test]
    fn ranks_do_not_outlive_the_failure_of_who_serves_them() {
        let start = Instant::now();
        let mut termination = Termination::new(2, GRACE);
        assert_eq!(termination.on_server_exit(OK, start), SignalAction::Nothing);
        let exit = ProcessExit::Signal(11);
        assert_eq!(termination.on_server_exit(exit, start), SignalAction::Terminate);
        assert_eq!(termination.on_exit(0, ProcessExit::Signal(15), start), SignalAction::Nothing);
        assert_eq!(termination.why(), Some(TerminationCause::ServerFailed { exit }));
    }

    #[test]
    fn a_later_order_can_only_hurry() {
        let start = Instant::now();
        let mut termination = Termination::new(1, GRACE);
        assert_eq!(termination.on_order(GRACE, start), SignalAction::Terminate);
        termination.on_order(GRACE * 2, after(start, 1));
        assert_eq!(termination.next_tick(), Some(after(start, 30)));
        termination.on_order(Duration::from_secs(2), after(start, 1));
        assert_eq!(termination.next_tick(), Some(after(start, 3)));
        assert_eq!(termination.on_time_limit(after(start, 2)), SignalAction::Nothing);
        assert_eq!(termination.on_exit(0, ProcessExit::Code(1), after(start, 2)), SignalAction::Nothing);
        assert_eq!(termination.why(), Some(TerminationCause::Ordered));
        assert!(termination.waits_for_leftovers());
    }

    #[test]
    fn time_is_up_only_once() {
        let start = Instant::now();
        let mut termination = Termination::new(1, Duration::ZERO);
        assert_eq!(termination.on_time_limit(start), SignalAction::Terminate);
        assert_eq!(termination.on_tick(start), SignalAction::Kill);
        assert_eq!(termination.on_time_limit(start), SignalAction::Nothing);
        assert_eq!(termination.why(), Some(TerminationCause::TimeLimit));
    }
}
