//! Watching the processes of a worker to their end, and making sure that it is the end.

use std::future::pending;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use danlu_core::job::ProcessExit;
use danlu_types::{Compat, OnHang};
use nix::sys::signal::Signal;
use tokio::time::sleep_until;

use super::{Audience, Confinement, Worker};
use crate::children::{SignalEvent, signal_all};
use crate::sampling::Sampling;
use crate::termination::{SignalAction, Termination};
use crate::{secrets, steps};

/// How often what was killed and is still there is killed again: it may have forked meanwhile.
const KILL_AGAIN: Duration = Duration::from_millis(50);
/// A process that outlives its kill this long hangs in the kernel; waiting longer would not help the worker.
const LONGEST_SWEEP: Duration = Duration::from_secs(30);
/// Within what time one who signals all processes of a worker has signalled all.
const TOGETHER: Duration = Duration::from_millis(500);
/// For a signal that is there already to be seen: a good end is not to wait.
const AT_ONCE: Duration = Duration::from_millis(1);
/// How often, and for how long, an order is looked for that somebody says is there: NFS remembers for up to a minute that
/// there was no such file.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
const LONGEST_LOOK: Duration = Duration::from_secs(90);

impl Worker<'_> {
    /// Until all `pids` have ended, and, where they were told to, what they started has too.
    pub(super) async fn supervise(
        &mut self,
        termination: &mut Termination,
        pids: &[i32],
        deadline: Option<Instant>,
    ) {
        let mut any_left = self.reap(termination, pids).await;
        self.follow_background(termination, any_left);
        while !termination.is_over() || (termination.waits_for_leftovers() && any_left) {
            let tick = termination.next_tick();
            let status_due = self.unsaid.as_ref().map(|(_, due)| *due);
            let report_due = self.reports.due();
            let sample_due =
                self.sampling.as_ref().map(Sampling::due).filter(|_| termination.why().is_none());
            let time_limit = deadline.filter(|_| termination.why().is_none());
            let look_due = self.looking.map(|(next, _)| next);
            let background_due = self.background.next_look().filter(|_| termination.why().is_none());
            tokio::select! {
                biased;
                wake = self.signals.next() => match wake {
                    SignalEvent::Reap => {
                        any_left = self.reap(termination, pids).await;
                        self.follow_background(termination, any_left);
                    }
                    SignalEvent::Order => {
                        // Without a file someone else wants us to end, such as a machine that shuts down.
                        // Whoever asks twice at a terminal does not want to wait.
                        let again = self.audience == Audience::Terminal && termination.why().is_some();
                        let own = if again { Duration::ZERO } else { self.launch.grace.to_duration() };
                        let grace = self.order().unwrap_or(own);
                        self.act(termination.on_order(grace, Instant::now()));
                    }
                    SignalEvent::Look => {
                        self.looking = Some((Instant::now(), Instant::now() + LONGEST_LOOK));
                        self.look(termination);
                    }
                },
                () = at(look_due) => self.look(termination),
                () = at(background_due) => {
                    any_left = self.reap(termination, pids).await;
                    self.follow_background(termination, any_left);
                }
                () = at(tick) => self.act(termination.on_tick(Instant::now())),
                () = at(time_limit) => self.act(termination.on_time_limit(Instant::now())),
                () = at(sample_due) => self.take_sample(termination),
                () = at(report_due) => self.pass_on_reports(),
                () = self.reports.became_due() => {}
                () = at(status_due) => {
                    if let Some((phase, _)) = self.unsaid.take() {
                        self.say(phase);
                    }
                }
            }
        }
    }

    /// Follows an order that somebody says is there. A network disk may show it only seconds later.
    fn look(&mut self, termination: &mut Termination) {
        let (grace, now) = (self.order(), Instant::now());
        let goes_on = |(_, until): &(Instant, Instant)| grace.is_none() && now < *until;
        self.looking = self.looking.filter(goes_on).map(|(_, until)| (now + LOOK_AGAIN, until));
        if let Some(grace) = grace {
            self.act(termination.on_order(grace, Instant::now()));
        }
    }

    /// Nothing of the worker is left after this, and all that it printed is in its logs.
    pub(super) async fn clean_up(&mut self) {
        self.sweep().await;
        if let Some(sessions) = self.sessions.take() {
            sessions.end().await;
        }
        self.finish.send_replace(true);
        for capture in self.captures.drain(..) {
            if capture.await.is_err() {
                self.launcher_log.note("a log's writer broke: its last lines may be missing");
            }
        }
        self.reports.write();
        if let Err(error) = secrets::remove(self.launch) {
            self.launcher_log.note(format_args!("secrets are left in the run folder: {error}"));
        }
        if let Err(error) = self.group.remove() {
            // Whoever releases the worker tries again.
            let busy = error.kind() == ErrorKind::ResourceBusy;
            self.launcher_log.note(format_args!("the cgroup is left behind (in use: {busy}): {error}"));
        }
    }

    fn take_sample(&mut self, termination: &mut Termination) {
        // A cluster that has lost this node cannot call us, and the worker may have been given up.
        if self.confinement == Confinement::Theirs {
            self.look(termination);
        }
        let silent_for = self.reports.last_output().elapsed();
        let hung = self.sampling.as_ref().is_some_and(Sampling::hangs);
        let hangs = self
            .sampling
            .as_mut()
            .is_some_and(|sampling| sampling.take(self.launch, &self.group, silent_for));
        if hung && !self.sampling.as_ref().is_some_and(Sampling::hangs) && termination.why().is_none() {
            self.announce("the worker goes on: it printed something, or works again");
            self.reports.set_hang(None);
            self.pass_on_reports();
        }
        if !hangs {
            return;
        }
        let sentence = self.hang_sentence();
        match self.launch.options.on_hang {
            OnHang::Notify => {
                self.announce(&format!("the worker seems to hang: {sentence}; nothing is done about it"));
                self.reports.set_hang(Some(sentence));
                self.pass_on_reports();
            }
            OnHang::Restart => {
                self.launcher_log.note(format_args!("ending the worker, which hangs: {sentence}"));
                self.act(termination.on_hang(Instant::now()));
            }
        }
    }

    /// What the program says of itself, and a word to the server that there is something new.
    fn pass_on_reports(&self) {
        if self.reports.write() && self.unsaid.is_none() {
            self.status.poke();
        }
    }

    async fn reap(&mut self, termination: &mut Termination, pids: &[i32]) -> bool {
        let census = self.children.reap();
        // A cluster's scheduler signals all processes at once; ranks that end before we have heard of it neither failed nor came to
        // their end. Of a kill we do not hear: we are gone before we could say anything, and the cluster is asked why.
        if self.confinement == Confinement::Theirs
            && termination.why().is_none()
            && let Some(patience) =
                census.ended.iter().filter_map(|end| self.may_have_been_told(end, pids)).max()
            && self.signals.is_told_within(patience).await
        {
            let grace = self.order().unwrap_or(self.launch.grace.to_duration());
            self.act(termination.on_order(grace, Instant::now()));
        }
        for (pid, exit) in census.ended {
            // Orphans come to us, too; their end says nothing unless they are the work.
            if let Some(index) = pids.iter().position(|own| *own == pid) {
                self.act(termination.on_exit(index, exit, Instant::now()));
            } else if self.server == Some(pid) {
                self.act(termination.on_server_exit(exit, Instant::now()));
            } else if self.background.is_awaited(pid) {
                self.act(termination.on_background_exit(pid, exit, Instant::now()));
            }
        }
        census.any_left
    }

    /// How long to wait for the signal of which a process may have ended.
    fn may_have_been_told(&self, (pid, exit): &(i32, ProcessExit), ranks: &[i32]) -> Option<Duration> {
        let ends = [Signal::SIGTERM, Signal::SIGKILL].map(|signal| ProcessExit::Signal(signal as i32));
        let counts = ranks.contains(pid) || self.background.is_awaited(*pid);
        match exit {
            ProcessExit::Code(0) if counts => Some(AT_ONCE),
            // Programs that heed a signal end with a code of their own.
            ProcessExit::Code(code) if *code != 0 && counts => Some(TOGETHER),
            exit if ends.contains(exit) => Some(TOGETHER),
            _ => None,
        }
    }

    fn act(&self, action: SignalAction) {
        match action {
            SignalAction::Nothing => {}
            SignalAction::Terminate => {
                // First, because an interactive shell does not heed the polite signal.
                if let Some(sessions) = &self.sessions {
                    sessions.hang_up();
                }
                if self.launch.options.is_compatible_with(Compat::Slurm)
                    && let Err(error) = steps::announce_end(self.launch, &self.user)
                {
                    self.launcher_log
                        .note(format!("`srun` cannot be told that the worker is ended: {error}"));
                }
                signal_all(&self.group, Signal::SIGTERM);
            }
            SignalAction::Kill => signal_all(&self.group, Signal::SIGKILL),
        }
    }

    async fn sweep(&mut self) {
        let begun = Instant::now();
        while self.children.reap().any_left {
            if begun.elapsed() > LONGEST_SWEEP {
                self.launcher_log.note("processes of this worker do not end although they were killed");
                return;
            }
            signal_all(&self.group, Signal::SIGKILL);
            let again = Instant::now() + KILL_AGAIN;
            loop {
                tokio::select! {
                    biased;
                    _ = self.signals.next() => if !self.children.reap().any_left { return },
                    () = at(Some(again)) => break,
                }
            }
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time.into()).await,
        None => pending().await,
    }
}
