//! Forty jobs on a Slurm cluster, and in the middle of them one thing breaks: the server, Slurm's controller, a node's
//! daemon, a whole node; or an administrator drains a node. Nothing is lost, nothing is run twice, every end is explained.
//!
//! Each rank leaves a mark with its attempt when it begins and when it ends. Half of the jobs are there before the fault and
//! cannot end before a gate is opened, so they are surely under way when it comes.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use danlu_testkit::{SlurmRig, TestServer, eventually, eventually_within, spec};
use danlu_types::api::{JobOutcome, JobState, JobView, WorkerPhase};
use danlu_types::{JobId, JobSpec, Retry, RetryCause};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const JOBS: usize = 40;
/// Slurm needs a while to miss a node, and we to hear of it.
const PATIENCE: Duration = Duration::from_mins(3);

struct Forty {
    server: TestServer,
    jobs: Vec<JobId>,
}

/// What a job's ranks did: by attempt and rank, how often it began and how often it came to its end.
type Marks = BTreeMap<(u32, u32), (u32, u32)>;

impl Forty {
    /// The first twenty are submitted, and as many of them run as can.
    async fn begin(rig: &SlurmRig) -> Self {
        let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
        let settings = folder.path().join("slurm.yaml");
        let text = format!("configuration: {}\npoll: 200ms\n", rig.configuration().display());
        std::fs::write(&settings, text).unwrap();
        let flags = ["--engine", "slurm", "--slurm", settings.to_str().unwrap()];
        let flags = flags.map(str::to_owned);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let server = TestServer::start_in(DANLU, &flags, folder, &[]).await;
        std::fs::create_dir(server.folder().join("marks")).unwrap();
        let mut forty = Forty { server, jobs: Vec::new() };
        forty.submit_until(JOBS / 2).await;
        eventually("enough jobs to run, among them gangs", || async {
            let jobs = forty.views().await;
            let running = jobs.iter().filter(|job| job.state == JobState::Running);
            let gangs = running.clone().filter(|job| job.spec.workers > 1).count();
            let none_starts = jobs.iter().all(|job| job.state != JobState::Starting);
            (running.count() >= 10 && gangs >= 1 && none_starts).then_some(())
        })
        .await;
        forty
    }

    /// Gangs over two nodes, devices of both kinds, jobs without any; three of four may be tried again.
    fn spec_of(&self, index: usize) -> JobSpec {
        let folder = self.server.folder().display();
        let command = format!(
            "echo $DANLU_ATTEMPT.$RANK begins >> {folder}/marks/{index}; \
             until [ -e {folder}/gate ]; do sleep 0.2; done; \
             echo $DANLU_ATTEMPT.$RANK ends >> {folder}/marks/{index}"
        );
        let retry = Retry { limit: 3, on: vec![RetryCause::NodeLost] };
        let job = JobSpec { retry, ..spec(&command) };
        match index % 4 {
            // More than half of a node's, so that no node takes two workers.
            0 => JobSpec { workers: 2, devices: "nvidia:5".parse().unwrap(), ..job },
            1 => JobSpec { devices: "ascend:4".parse().unwrap(), ..job },
            2 => JobSpec { devices: "nvidia:1".parse().unwrap(), ..job },
            _ => JobSpec { retry: Retry::default(), ..job },
        }
    }

    async fn submit_until(&mut self, count: usize) {
        for index in self.jobs.len()..count {
            let job = self.spec_of(index);
            self.jobs.push(self.server.submit(&job).await);
        }
    }

    async fn views(&self) -> Vec<JobView> {
        let mut views = Vec::new();
        for id in &self.jobs {
            views.push(self.server.job(*id).await);
        }
        views
    }

    /// Those that run now, and a node on which one worker of a gang does, with most others.
    async fn busiest_node(&self) -> (String, BTreeSet<JobId>) {
        let jobs = self.views().await;
        let on = |name: &str| -> BTreeSet<JobId> {
            let here = jobs.iter().filter(|job| job.state == JobState::Running).filter(|job| {
                let attempt = job.attempts.last().unwrap();
                attempt.workers.iter().any(|it| it.node.0 == name && it.phase == WorkerPhase::Running)
            });
            here.map(|job| job.id).collect()
        };
        let is_gang = |id: &JobId| jobs.iter().any(|job| job.id == *id && job.spec.workers > 1);
        let nodes = SlurmRig::nodes().map(|name| (on(&name), name));
        let with_gangs = nodes.filter(|(here, _)| here.iter().any(is_gang));
        let (here, name) = with_gangs.max_by_key(|(here, _)| here.len()).unwrap();
        (name, here)
    }

    fn open_gate(&self) {
        std::fs::write(self.server.folder().join("gate"), "").unwrap();
    }

    fn marks(&self, index: usize) -> Marks {
        let path: PathBuf = self.server.folder().join("marks").join(index.to_string());
        let mut marks = Marks::new();
        for line in std::fs::read_to_string(path).unwrap_or_default().lines() {
            let (who, what) = line.split_once(' ').unwrap();
            let (attempt, rank) = who.split_once('.').unwrap();
            let (begun, ended) = marks.entry((attempt.parse().unwrap(), rank.parse().unwrap())).or_default();
            *(if what == "begins" { begun } else { ended }) += 1;
        }
        marks
    }

    /// Submits the rest, waits for all, and holds what became of them against their marks.
    async fn end(mut self) -> Vec<JobView> {
        self.submit_until(JOBS).await;
        self.open_gate();
        let what = "all jobs to end";
        eventually_within(PATIENCE, what, || async {
            let jobs = self.views().await;
            let open: Vec<_> = jobs.iter().filter(|job| job.state != JobState::Ended).collect();
            open.is_empty().then_some(())
        })
        .await;
        let jobs = self.views().await;
        assert_eq!(jobs.len(), JOBS);
        for (index, job) in jobs.iter().enumerate() {
            let marks = self.marks(index);
            let told =
                || format!("job {} ({index}): {:#?}\n{marks:?}\n{}", job.id, job.attempts, self.server.log());
            for ((attempt, _), (begun, ended)) in &marks {
                assert_eq!(*begun, 1, "a rank began twice: {}", told());
                assert!(*ended <= 1, "a rank ended twice: {}", told());
                assert!(
                    job.attempts.iter().any(|it| it.number.0 == *attempt),
                    "nobody ordered this: {}",
                    told()
                );
            }
            let last = job.attempts.last().unwrap().number.0;
            let done = marks.iter().filter(|((attempt, _), (_, ended))| *attempt == last && *ended == 1);
            let expected =
                if job.outcome == Some(JobOutcome::Succeeded) { job.spec.workers as usize } else { 0 };
            assert_eq!(done.count(), expected, "work is missing: {}", told());
        }
        jobs
    }
}

fn assert_all_succeeded_at_once(jobs: &[JobView]) {
    for job in jobs {
        let codes: Vec<&str> = job.attempts.iter().map(|attempt| attempt.reason.word()).collect();
        assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "job {}: {:?}", job.id, job.reason);
        assert_eq!(codes, ["succeeded"], "job {}: {:#?}", job.id, job.attempts);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_jobs_survive_their_server() {
    let Some(rig) = SlurmRig::start() else { return };
    let mut forty = Forty::begin(&rig).await;
    forty.server.kill();
    forty.open_gate();
    // Launchers need no server to come to their end.
    let first = forty.server.folder().join("marks/3");
    eventually("a job to end meanwhile", || async {
        std::fs::read_to_string(&first).unwrap_or_default().contains("ends").then_some(())
    })
    .await;
    forty.server.restart().await;
    assert_all_succeeded_at_once(&forty.end().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_jobs_survive_slurms_controller() {
    let Some(rig) = SlurmRig::start() else { return };
    let mut forty = Forty::begin(&rig).await;
    rig.kill_controller();
    forty.submit_until(30).await;
    forty.open_gate();
    let first = forty.jobs[3];
    forty.server.wait_for_end(first).await;
    rig.restart_controller();
    assert_all_succeeded_at_once(&forty.end().await);
    // Launchers have ended before Slurm has cleaned up after them.
    eventually("Slurm to be done with all of them", || async {
        rig.ask("squeue", &["--noheader", "--format=%i"]).trim().is_empty().then_some(())
    })
    .await;
}

/// Those who watch over steps outlive their daemon, and so does what they watch over.
#[tokio::test(flavor = "multi_thread")]
async fn forty_jobs_survive_the_daemon_of_a_node() {
    let Some(rig) = SlurmRig::start() else { return };
    let mut forty = Forty::begin(&rig).await;
    let (node, here) = forty.busiest_node().await;
    rig.kill_node_daemon(&node);
    forty.submit_until(30).await;
    for id in &here {
        assert_eq!(forty.server.job(*id).await.state, JobState::Running, "job {id} on {node}");
    }
    rig.restart_node_daemon(&node);
    for id in &here {
        assert_eq!(forty.server.job(*id).await.state, JobState::Running, "job {id} on {node}");
    }
    assert_all_succeeded_at_once(&forty.end().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_forty_jobs_those_on_a_lost_node_say_so_and_are_tried_elsewhere() {
    let Some(rig) = SlurmRig::start_that_misses_nodes_after(Duration::from_secs(10)) else { return };
    let mut forty = Forty::begin(&rig).await;
    let (node, here) = forty.busiest_node().await;
    rig.lose_node(&node);
    forty.submit_until(30).await;
    // As long as nobody has told that they are lost they must not end any other way.
    eventually_within(PATIENCE, "Slurm to give up the node", || async {
        let states = rig.ask("sinfo", &["--noheader", "--nodes", &node, "--format=%T"]);
        states.contains("down").then_some(())
    })
    .await;
    for job in forty.end().await {
        let codes: Vec<&str> = job.attempts.iter().map(|attempt| attempt.reason.word()).collect();
        let told = format!("job {}: {:?} {:#?}", job.id, job.reason, job.attempts);
        if !here.contains(&job.id) {
            assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{told}");
            // One that came too late to know may have been sent to the node, and taken back before it began.
            assert!(codes.iter().all(|code| ["succeeded", "drained"].contains(code)), "{told}");
            continue;
        }
        let lost = &job.attempts[0];
        assert_eq!(lost.reason.word(), "node_lost", "{told}");
        assert!(lost.reason.to_string().contains(&format!("its node {node}")), "{told}");
        if job.spec.retry.limit == 0 {
            assert_eq!((job.outcome, codes.len()), (Some(JobOutcome::Failed), 1), "{told}");
            assert_eq!(job.reason.word(), "node_lost", "{told}");
        } else {
            assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{told}");
            assert_eq!(codes, ["node_lost", "succeeded"], "{told}");
            let again = job.attempts.last().unwrap();
            assert!(again.workers.iter().all(|worker| worker.node.0 != node), "{told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_forty_jobs_those_on_a_drained_node_run_on_and_none_comes_after() {
    let Some(rig) = SlurmRig::start() else { return };
    let mut forty = Forty::begin(&rig).await;
    let (node, here) = forty.busiest_node().await;
    rig.ask("scontrol", &["update", &format!("NodeName={node}"), "State=DRAIN", "Reason=new fans"]);
    forty.submit_until(30).await;
    for job in forty.end().await {
        let told = format!("job {}: {:?} {:#?}", job.id, job.reason, job.attempts);
        assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{told}");
        let last = job.attempts.last().unwrap();
        let is_there = last.workers.iter().any(|worker| worker.node.0 == node);
        assert_eq!(is_there, here.contains(&job.id), "{told}");
        for before in &job.attempts[..job.attempts.len() - 1] {
            assert_eq!(before.reason.word(), "drained", "{told}");
            assert!(before.reason.to_string().contains(&node), "{told}");
        }
        assert!(!here.contains(&job.id) || job.attempts.len() == 1, "{told}");
    }
}

/// Whoever kills all that a step has started kills ranks and launchers alike, in no particular order: what ranks died of is
/// then not what the job failed of.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_slurm_kills_is_not_the_programs_fault() {
    let Some(rig) = SlurmRig::start() else { return };
    let forty = Forty::begin(&rig).await;
    let jobs = forty.views().await;
    let gangs = jobs.iter().filter(|job| job.state == JobState::Running && job.spec.workers > 1);
    for gang in gangs {
        let submitted = forty.server.data().join(format!("runs/{}/1.slurm.0/submitted", gang.id));
        let number = std::fs::read_to_string(submitted).unwrap();
        rig.ask("scancel", &["--signal=KILL", &format!("{}.0", number.trim())]);
        let job = eventually("the attempt to end", || async {
            let job = forty.server.job(gang.id).await;
            job.attempts[0].ended_at.is_some().then_some(job)
        })
        .await;
        assert_eq!(job.attempts[0].reason.word(), "launcher_lost", "{job:#?}");
    }
    forty.end().await;
}
