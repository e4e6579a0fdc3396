//! What lies below a site: how programs get there, what they leave, how time passes.

use std::fs;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use danlu_core::launch::{LauncherStatus, RunLayout, STATUS_FILE};
use danlu_core::log;
use danlu_device::cgroup::{self, Groups};
use danlu_device::process;
use danlu_types::api::LogStream;
use danlu_types::{AttemptNumber, JobId, Rank, WorkerId, WorkerIndex};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{TestFolder, TestProgram};

const PAUSE: Duration = Duration::from_millis(3);

#[async_trait]
pub trait Ground: Send + Sync {
    /// A program as a launch file has it.
    fn command(&self, program: &TestProgram) -> String;

    /// A program as a session is asked for it.
    fn session_command(&self, program: &TestProgram) -> Vec<String>;

    /// A little time goes by.
    async fn pass(&self);

    fn is_alive(&self, process: i32) -> bool;

    fn file(&self, job: JobId, place: TestFolder, name: &str) -> Option<String>;

    fn write_file(&self, job: JobId, place: TestFolder, name: &str, text: &str);

    /// The lines that a rank printed; none where it has not been started.
    fn printed(&self, worker: WorkerId, rank: u32) -> Vec<String>;

    /// Kills a worker's launcher, and nothing else.
    fn lose_launcher(&self, worker: WorkerId);

    /// Leaves nothing behind, also after a failed test.
    fn clear(&self) {}
}

/// Processes and files of this machine.
#[derive(Debug)]
pub struct LocalGround {
    pub layout: RunLayout,
}

impl LocalGround {
    fn path(&self, job: JobId, place: TestFolder, name: &str) -> std::path::PathBuf {
        match place {
            TestFolder::Output => self.layout.output_folder(job).join(name),
            TestFolder::Checkpoint | TestFolder::Resume => self.layout.checkpoint_folder(job).join(name),
        }
    }

    fn launcher(&self, worker: WorkerId) -> Option<i32> {
        let status = fs::read(self.layout.run_folder(worker).join(STATUS_FILE)).unwrap_or_default();
        let launcher = LauncherStatus::last_in(&status)?.launcher;
        (launcher.pid > 1 && process::is_alive(launcher)).then_some(launcher.pid)
    }
}

#[async_trait]
impl Ground for LocalGround {
    fn command(&self, program: &TestProgram) -> String {
        program.shell()
    }

    fn session_command(&self, program: &TestProgram) -> Vec<String> {
        vec!["sh".to_owned(), "-c".to_owned(), program.shell()]
    }

    async fn pass(&self) {
        tokio::time::sleep(PAUSE).await;
    }

    fn is_alive(&self, process: i32) -> bool {
        process::identity(process).is_some()
    }

    fn file(&self, job: JobId, place: TestFolder, name: &str) -> Option<String> {
        fs::read_to_string(self.path(job, place, name)).ok()
    }

    fn write_file(&self, job: JobId, place: TestFolder, name: &str, text: &str) {
        fs::write(self.path(job, place, name), text).expect("folders of jobs can be written");
    }

    fn printed(&self, worker: WorkerId, rank: u32) -> Vec<String> {
        let path = self.layout.run_folder(worker).join(log::rank_log_name(Rank(rank)));
        let Ok(bytes) = fs::read(&path) else { return Vec::new() };
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let decoded = lines.map(|line| log::decode(line).expect("every line is a record"));
        decoded
            .filter(|(_, stream, _)| *stream != LogStream::Danlu)
            .map(|(_, _, text)| String::from_utf8_lossy(text).into_owned())
            .collect()
    }

    fn lose_launcher(&self, worker: WorkerId) {
        let pid = self.launcher(worker).expect("a worker that runs has a launcher");
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it is ours to kill");
    }

    fn clear(&self) {
        let live = fs::read_dir(self.layout.live_folder()).into_iter().flatten().flatten();
        let workers = live.filter_map(|entry| entry.file_name().to_str()?.parse::<WorkerId>().ok());
        for pid in workers.filter_map(|worker| self.launcher(worker)) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let worker = WorkerId { job: JobId(0), attempt: AttemptNumber(0), worker: WorkerIndex(0) };
        let name = cgroup::worker_group_name(&self.layout.data, worker);
        let all_of_the_site = name.split('/').next().and_then(|all| cgroup::open(&Groups::detect(), all));
        if let Some(group) = all_of_the_site {
            let deadline = Instant::now() + Duration::from_secs(1);
            while group.kill().and_then(|()| group.remove()).is_err() && Instant::now() < deadline {
                std::thread::sleep(PAUSE);
            }
        }
    }
}
