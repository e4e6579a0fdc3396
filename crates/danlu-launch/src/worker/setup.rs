//! What runs before the ranks, and beside them.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use danlu_core::job::{FailureCause, WorkerFailure};
use danlu_core::launch::{Rendezvous, scheduler_environment};
use danlu_core::log::{SCHEDULER_LOG, rank_log_name};

use super::{Worker, pid_of};
use crate::compat;
use crate::error::{StartAborted, StartError};
use crate::rank::{Surroundings, setup_arguments};
use crate::termination::{Termination, TerminationCause};

/// Reads a file and removes it: an environment may hold secrets.
fn take_file(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::read(path)?;
    fs::remove_file(path)?;
    Ok(bytes)
}

impl Worker<'_> {
    /// ModelArts' script of the code, if there is one.
    pub(super) async fn pre_start(
        &mut self,
        surroundings: &Surroundings,
        rendezvous: &Rendezvous,
        deadline: Option<Instant>,
    ) -> Result<(), StartAborted> {
        let launch = self.launch;
        let (true, Some(first)) =
            (surroundings.working_directory.join(compat::PRE_START).is_file(), launch.ranks.first())
        else {
            return Ok(());
        };
        let script = compat::pre_start_script(launch);
        let arguments = compat::pre_start_arguments(&script);
        self.run_before(compat::PRE_START, &arguments, surroundings, rendezvous, deadline).await?;
        let path = launch.folders.run.join(compat::SOURCED);
        // The script wrote it, where it may have laid a link instead.
        let environ = self
            .user
            .act(|| take_file(&path))
            .flatten()
            .map_err(|source| StartError::File { path, source })?;
        self.sourced = compat::sourced(&environ, &self.environment(first, rendezvous));
        Ok(())
    }

    pub(super) async fn set_up(
        &mut self,
        setup: &str,
        surroundings: &Surroundings,
        rendezvous: &Rendezvous,
        deadline: Option<Instant>,
    ) -> Result<(), StartAborted> {
        let arguments = setup_arguments(&surroundings.working_directory, setup);
        self.run_before(setup, &arguments, surroundings, rendezvous, deadline).await
    }

    /// Runs something once in this worker, to its end, with the environment and in the log of the first rank.
    async fn run_before(
        &mut self,
        name: &str,
        arguments: &[&str],
        surroundings: &Surroundings,
        rendezvous: &Rendezvous,
        deadline: Option<Instant>,
    ) -> Result<(), StartAborted> {
        let Some(first) = self.launch.ranks.first() else { return Ok(()) };
        let env = self.environment(first, rendezvous);
        let child = surroundings.start_logged(arguments, &env).map_err(StartError::Setup)?;
        let pid = pid_of(&child);
        self.capture(rank_log_name(first.rank), child, None)
            .map_err(|source| StartError::Log { rank: first.rank, source })?;
        let mut termination = Termination::new(1, self.launch.grace.to_duration());
        self.supervise(&mut termination, &[pid], deadline).await;
        match termination.why() {
            None => Ok(()),
            Some(TerminationCause::Ordered | TerminationCause::Hang) => Err(StartAborted::Stopped),
            Some(TerminationCause::TimeLimit) => Err(StartAborted::Failed(self.time_limit())),
            Some(
                TerminationCause::Failed { exit, .. }
                | TerminationCause::ServerFailed { exit }
                | TerminationCause::BackgroundFailed { exit, .. },
            ) => Err(StartAborted::Failed(WorkerFailure {
                cause: FailureCause::SetupFailed,
                rank: None,
                exit: Some(exit),
                detail: format!("`{name}` failed; what it printed is in the log of rank {}", first.rank),
            })),
        }
    }

    /// What serves the ranks of the first worker, with a log of its own.
    pub(super) fn start_server(
        &mut self,
        surroundings: &Surroundings,
        rendezvous: &Rendezvous,
    ) -> Result<(), StartError> {
        let Some(mut env) = scheduler_environment(self.launch, rendezvous) else { return Ok(()) };
        env.extend(self.secrets.variables.clone());
        env.extend(self.sourced.clone());
        let child =
            surroundings.start_logged(&["-c", &self.launch.command], &env).map_err(StartError::Scheduler)?;
        self.server = Some(pid_of(&child));
        self.capture(SCHEDULER_LOG.to_owned(), child, None).map_err(StartError::Scheduler)
    }
}
