//! Watching the processes of a worker to their end, and making sure that it is the end.

use std::future::pending;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::time::sleep_until;

use super::Worker;
use crate::children::{Wake, signal_all};
use crate::course::{Action, Course};

/// How often what was killed and is still there is killed again: it may have forked meanwhile.
const KILL_AGAIN: Duration = Duration::from_millis(50);
/// A process that outlives its kill this long hangs in the kernel; waiting longer would not help the worker.
const LONGEST_SWEEP: Duration = Duration::from_secs(30);

impl Worker<'_> {
    /// Until all `pids` have ended, and, where they were told to, what they started has too.
    pub(super) async fn supervise(&mut self, course: &mut Course, pids: &[i32], deadline: Option<Instant>) {
        let mut any_left = self.reap(course, pids);
        while !course.is_over() || (course.waits_for_leftovers() && any_left) {
            let tick = course.next_tick();
            let status_due = self.unsaid.as_ref().map(|(_, due)| *due);
            let report_due = self.reports.due();
            let time_limit = deadline.filter(|_| course.why().is_none());
            tokio::select! {
                biased;
                wake = self.signals.next() => match wake {
                    Wake::Reap => any_left = self.reap(course, pids),
                    Wake::Order => {
                        // Without a file someone else wants us to end, such as a machine that shuts down.
                        let grace = self.order().unwrap_or(self.launch.grace.to_duration());
                        self.act(course.on_order(grace, Instant::now()));
                    }
                },
                () = at(tick) => self.act(course.on_tick(Instant::now())),
                () = at(time_limit) => self.act(course.on_time_limit(Instant::now())),
                () = at(report_due) => self.pass_on_reports(),
                () = at(status_due) => {
                    if let Some((phase, _)) = self.unsaid.take() {
                        self.say(phase);
                    }
                }
            }
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
                self.journal.note("a log's writer broke: its last lines may be missing");
            }
        }
        self.reports.write();
        if let Err(error) = self.group.remove() {
            // Whoever releases the worker tries again.
            let busy = error.kind() == ErrorKind::ResourceBusy;
            self.journal.note(format_args!("the cgroup is left behind (in use: {busy}): {error}"));
        }
    }

    /// What the program says of itself, and a word to the server that there is something new.
    fn pass_on_reports(&self) {
        if self.reports.write() && self.unsaid.is_none() {
            self.status.poke();
        }
    }

    fn reap(&self, course: &mut Course, pids: &[i32]) -> bool {
        let census = self.children.reap();
        for (pid, exit) in census.ended {
            // Orphans come to us, too; their end says nothing.
            if let Some(index) = pids.iter().position(|own| *own == pid) {
                self.act(course.on_exit(index, exit, Instant::now()));
            } else if self.server == Some(pid) {
                self.act(course.on_server_exit(exit, Instant::now()));
            }
        }
        census.any_left
    }

    fn act(&self, action: Action) {
        match action {
            Action::Nothing => {}
            Action::Terminate => {
                // First, because an interactive shell does not heed the polite signal.
                if let Some(sessions) = &self.sessions {
                    sessions.hang_up();
                }
                signal_all(&self.group, Signal::SIGTERM);
            }
            Action::Kill => signal_all(&self.group, Signal::SIGKILL),
        }
    }

    async fn sweep(&mut self) {
        let begun = Instant::now();
        while self.children.reap().any_left {
            if begun.elapsed() > LONGEST_SWEEP {
                self.journal.note("processes of this worker do not end although they were killed");
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
