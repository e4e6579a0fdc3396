//! Starting a launcher, once: in a fork server, or as a program.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use danlu_core::launch::{LAUNCH_FILE, SECRETS_FILE, UnixUser, is_passed_on};
use danlu_types::WorkerId;

use super::Workers;
use super::fork_server_client::ForkServerClient;
use super::lock::{Hold, Taken};
use crate::files;

impl Workers {
    /// Starts the worker's launcher unless that was done before. Must be called within a tokio runtime.
    ///
    /// The order survives death at any line: the lock is held from before anything is written until the launcher has
    /// it, and the marker comes after the launch file, so whoever finds a marker finds what to launch. Dying before
    /// the start leaves a free lock and an empty note, and the next call begins again.
    pub(super) fn launch(
        &self,
        worker: WorkerId,
        launch_file: &[u8],
        secrets: Option<&[u8]>,
        user: Option<&UnixUser>,
    ) -> io::Result<()> {
        if let StartedBy::ForkServer(fork_server) = &self.launchers {
            fork_server.end_if_silent();
        }
        let _guard = self.guard(worker);
        let run = self.layout.run_folder(worker);
        files::make_folder(&run)?;
        if let Some(user) = user {
            self.let_in(user, worker)?;
        }
        let marker = self.marker(worker);
        let lock = match Hold::take(&run)? {
            Hold::Taken(lock) if !self.was_launched(worker, &lock)? => lock,
            _ if marker.try_exists()? => return Ok(()),
            // Run once more, it would mix its logs with those of the worker that had this name before.
            _ => return self.tell_again(worker, &run, launch_file),
        };
        files::replace(&run, LAUNCH_FILE, launch_file)?;
        // Made again where a person removed it.
        files::make_folder(&self.layout.live_folder())?;
        files::mark(&run.join(LAUNCH_FILE), &marker)?;
        // After the marker: whatever becomes of us, whoever releases the worker finds them.
        if let Some(secrets) = secrets {
            files::replace(&run, SECRETS_FILE, secrets)?;
        }
        self.start(worker, &run, lock)
    }

    /// Where a database was restored from before the worker ran, it is to run what it has run already. That it did is told instead: with
    /// its marker it is looked at again, and what lies in its folder says how it ended, or that it was lost.
    fn tell_again(&self, worker: WorkerId, run: &Path, launch_file: &[u8]) -> io::Result<()> {
        if !files::is_of_same_work(run, launch_file)? {
            let text = "its run folder was used before, to run something else; submit the job again, which gives it another one";
            return Err(io::Error::new(ErrorKind::AlreadyExists, text));
        }
        files::make_folder(&self.layout.live_folder())?;
        files::mark(&run.join(LAUNCH_FILE), &self.marker(worker))?;
        self.hints.add(worker);
        Ok(())
    }

    /// Another user than ours comes through to its run folder, sees nothing on the way, and has a home.
    fn let_in(&self, user: &UnixUser, worker: WorkerId) -> io::Result<()> {
        let job = self.layout.job_folder(worker.job);
        for folder in job.parent().into_iter().chain([&*job, &self.layout.run_folder(worker)]) {
            files::set_mode(folder, 0o711)?;
        }
        let homes = self.layout.homes_folder();
        // Elsewhere it is the machine's affair.
        if user.home.parent() != Some(&homes) {
            return Ok(());
        }
        if !homes.try_exists()? {
            files::make_folder(&homes)?;
            files::set_mode(&homes, 0o711)?;
        }
        files::make_folder(&user.home)?;
        if fs::symlink_metadata(&user.home)?.uid() != user.uid {
            chown(&user.home, Some(user.uid), Some(user.gid))?;
        }
        Ok(())
    }

    fn was_launched(&self, worker: WorkerId, lock: &Taken) -> io::Result<bool> {
        Ok(lock.was_started()? || self.status(worker)?.is_some() || self.verdict(worker)?.is_some())
    }

    fn start(&self, worker: WorkerId, run: &Path, lock: Taken) -> io::Result<()> {
        match &self.launchers {
            StartedBy::ForkServer(fork_server) => {
                fork_server.launch(worker, run, &lock)?;
                lock.leave();
                Ok(())
            }
            StartedBy::Program { program, environment } => {
                self.start_program(detached(program, environment)?, worker, run, lock)
            }
        }
    }

    fn start_program(
        &self,
        mut command: Command,
        worker: WorkerId,
        run: &Path,
        lock: Taken,
    ) -> io::Result<()> {
        command
            .arg(run)
            .stdin(Stdio::from(lock.for_launcher()?))
            .stdout(Stdio::from(lock.for_launcher()?))
            .stderr(Stdio::from(lock.for_launcher()?));
        let mut launcher = tokio::process::Command::from(command).spawn()?;
        // Gone already where it ended within the last microseconds; then it was started all the same.
        lock.hand_over(launcher.id().unwrap_or_default());
        let hints = Arc::clone(&self.hints);
        tokio::spawn(async move {
            // Reaps it. How it ended does not matter: the lock is free, and whoever follows the hint looks.
            let _ = launcher.wait().await;
            hints.add(worker);
        });
        Ok(())
    }
}

/// How the launchers of an engine come to be.
#[derive(Debug)]
pub(super) enum StartedBy {
    ForkServer(ForkServerClient),
    Program { program: Vec<OsString>, environment: Vec<String> },
}

/// A program that outlives the terminal it was started from, and knows nothing of the server's configuration.
pub(super) fn detached(program: &[OsString], environment: &[String]) -> io::Result<Command> {
    let (program, arguments) = program.split_first().ok_or(ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir("/")
        // Out of the reach of the terminal's Ctrl-C. A session of its own would also spare it the hangup when the
        // terminal closes, which the launcher ignores instead: `setsid` here means code between fork and exec,
        // which makes every start copy the server's page tables.
        .process_group(0);
    // What configures the server may be secret. Ranks inherit what launchers have, and whoever is of the same user reads it in
    // `/proc`: so it is left out here.
    let passed_on = std::env::vars_os().filter(|(name, value)| {
        name.to_str().is_some_and(|name| is_passed_on(name, &value.to_string_lossy(), environment))
    });
    let passed_on: Vec<_> = passed_on.collect();
    command.env_clear().envs(passed_on);
    Ok(command)
}
