//! A campaign from its first job to its last: who submits, breaks and mends when.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use danlu_testkit::{Relay, SlurmRig, TestServer, eventually, spec};
use danlu_types::api::{JobState, JobView};
use danlu_types::{JobId, JobSpec, Retry, RetryCause};
use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep, sleep_until};

use super::cluster::{Cluster, is_halted, uptime};
use super::faults::{Dice, Fault, Repair, commit};
use super::judgement::{Found, judge};
use super::witness::Witness;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
/// From the last fault until all jobs have ended. Only what hangs takes as long.
const PATIENCE: Duration = Duration::from_mins(10);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) is_shared: bool,
    pub(crate) seed: u64,
    pub(crate) jobs: usize,
    pub(crate) faults: usize,
}

pub(crate) struct Course<'a> {
    plan: Plan,
    cluster: Cluster<'a>,
    server: TestServer,
    relay: Relay,
    is_up: bool,
    /// From when to when the server could be reached, by the clock of the marks.
    ups: Vec<(f64, f64)>,
    witness: Witness,
    dice: Dice,
    jobs: Vec<JobId>,
    repairs: Vec<(Instant, Repair)>,
    pub(crate) done: BTreeMap<Fault, usize>,
    pub(crate) story: Vec<String>,
}

impl<'a> Course<'a> {
    pub(crate) async fn begin(rig: &'a SlurmRig, plan: Plan) -> Self {
        let cluster = Cluster::of(rig);
        let prefix = "danlu-test-";
        let folder = if plan.is_shared {
            tempfile::Builder::new().prefix(prefix).tempdir().unwrap()
        } else {
            tempfile::Builder::new().prefix(prefix).tempdir_in(rig.hidden()).unwrap()
        };
        let witness = Witness::begin(cluster.folder().join("witness"));
        let relay = Relay::start().await;
        let mut text = format!("configuration: {}\npoll: 500ms\n", rig.configuration().display());
        if !plan.is_shared {
            let (server, work) = (relay.address(), rig.of_node().join("work"));
            let way = format!("server: {server}\nwork: {}\nprogram: {DANLU}\n", work.display());
            text.push_str("shared: false\n");
            text.push_str(&way);
        }
        let settings = folder.path().join("slurm.yaml");
        std::fs::write(&settings, text).unwrap();
        let settings = settings.to_str().unwrap().to_owned();
        let server =
            TestServer::start_in(DANLU, &["--engine", "slurm", "--slurm", &settings], folder, &[]).await;
        relay.lead_to(&server.client().address());
        let dice = Dice::new(plan.seed);
        Course {
            plan,
            cluster,
            server,
            relay,
            is_up: true,
            ups: vec![(uptime(), f64::INFINITY)],
            witness,
            dice,
            jobs: Vec::new(),
            repairs: Vec::new(),
            done: BTreeMap::new(),
            story: Vec::new(),
        }
    }

    fn tell(&mut self, what: &str) {
        self.story.push(format!("{:.1} {what}", uptime()));
    }

    /// Gangs within and over nodes, devices of both kinds, jobs without any; most may be tried again.
    fn spec_of(&self, index: usize) -> JobSpec {
        let retry = |limit, on: &[RetryCause]| Retry { limit, on: on.to_vec() };
        let lost = [RetryCause::NodeLost, RetryCause::StartFailed];
        let way = if index % 6 == 5 { "fails-once" } else { "works" };
        let steps = 3 + Dice::new(self.plan.seed ^ ((index as u64) << 32)).below(25);
        let job = JobSpec {
            checkpoint: Some("ckpt".to_owned()),
            retry: retry(3, &lost),
            name: format!("campaign-{index}"),
            ..spec(&self.witness.command(index, steps, way))
        };
        match index % 6 {
            // More than half of a node's, so that no node takes two workers.
            0 => JobSpec { workers: 2, devices: "nvidia:5".parse().unwrap(), ..job },
            1 => JobSpec { devices: "ascend:4".parse().unwrap(), ..job },
            2 => JobSpec { devices: "nvidia:1".parse().unwrap(), ..job },
            3 => JobSpec { retry: Retry::default(), ..job },
            4 => JobSpec { workers: 4, devices: "nvidia:2".parse().unwrap(), ..job },
            _ => JobSpec { retry: retry(3, &[lost[0], lost[1], RetryCause::Exit]), ..job },
        }
    }

    async fn submit_until(&mut self, count: usize) {
        while self.is_up && self.jobs.len() < count.min(self.plan.jobs) {
            let job = self.spec_of(self.jobs.len());
            match self.server.client().job_submit(&job, None).await {
                Ok(view) => self.jobs.push(view.id),
                // A server that was started while Slurm is away knows no nodes yet.
                Err(error) => {
                    self.tell(&format!("cannot submit: {error}"));
                    return;
                }
            }
        }
    }

    pub(crate) async fn go(&mut self) {
        self.submit_until(self.plan.jobs / 3).await;
        let mut count = 0;
        while count < self.plan.faults {
            let pause = self.dice.milliseconds(500, 5000);
            self.rest(Instant::now() + pause).await;
            let fault = Fault::draw(&mut self.dice, self.plan.is_shared);
            if self.break_something(fault).await {
                count += 1;
                *self.done.entry(fault).or_default() += 1;
            }
            self.submit_until(self.plan.jobs / 3 + (count * self.plan.jobs).div_ceil(self.plan.faults)).await;
        }
        while let Some(at) = self.repairs.iter().map(|(at, _)| *at).min() {
            // What is due may wait for something else to be mended.
            self.rest(at.max(Instant::now() + Duration::from_millis(50))).await;
        }
        self.tell("nothing is broken any more");
        eventually("all jobs to be accepted", || async {
            let ready = self.server.client().readiness().await;
            ready.is_ok().then_some(())
        })
        .await;
        self.submit_until(self.plan.jobs).await;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let jobs = self.views().await;
            if jobs.iter().all(|job| job.state == JobState::Ended) && self.cluster.jobs("all").is_empty() {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
        self.tell("all is over");
    }

    /// Until then, mending what is due.
    async fn rest(&mut self, until: Instant) {
        loop {
            self.repairs.sort_by_key(|(at, _)| *at);
            // What asks the controller waits for it.
            let (answers, now) = (self.controller_answers(), Instant::now());
            // A controller that starts while munge is away ends at once, and munge would not be mended while that is waited for.
            let has_munge = !self.repairs.iter().any(|(_, repair)| *repair == Repair::Munge);
            let can = |repair: &Repair| match repair {
                Repair::Release(_) | Repair::Resume(_) => answers,
                Repair::Controller => has_munge,
                _ => true,
            };
            let next = self.repairs.iter().position(|(at, repair)| *at <= now && can(repair));
            if let Some(place) = next {
                let (_, repair) = self.repairs.remove(place);
                self.mend(repair).await;
                continue;
            }
            if now >= until {
                return;
            }
            let due = self.repairs.iter().map(|(at, _)| *at).filter(|at| *at > now).min();
            sleep_until(due.map_or(until, |at| at.min(until))).await;
        }
    }

    fn controller_answers(&self) -> bool {
        let in_its_way = [Repair::Controller, Repair::ControllerGoesOn, Repair::Munge];
        !self.repairs.iter().any(|(_, repair)| in_its_way.contains(repair))
    }

    async fn break_something(&mut self, fault: Fault) -> bool {
        if fault.asks() && !self.controller_answers() {
            return false;
        }
        // A halted process cannot be killed and stay halted.
        if fault == Fault::Controller && !self.controller_answers() {
            return false;
        }
        let done = if fault == Fault::Danlu {
            if !self.is_up {
                return false;
            }
            self.relay.cut();
            self.server.kill();
            self.is_up = false;
            if let Some((_, until)) = self.ups.last_mut() {
                *until = uptime();
            }
            Some((String::new(), Some(Repair::Danlu)))
        } else {
            commit(fault, &self.cluster, &mut self.dice).await
        };
        let Some((what, repair)) = done else { return false };
        self.tell(&format!("{} {what}", fault.name()));
        if let Some(repair) = repair {
            let after = match &repair {
                Repair::Danlu => self.dice.milliseconds(10, 6000),
                Repair::ControllerGoesOn | Repair::LauncherGoesOn(_) => self.dice.milliseconds(2000, 25_000),
                Repair::NodeDaemon(_) => self.dice.milliseconds(500, 12_000),
                _ => self.dice.milliseconds(1000, 15_000),
            };
            self.repairs.push((Instant::now() + after, repair));
        }
        true
    }

    async fn mend(&mut self, repair: Repair) {
        self.tell(&format!("mends {repair:?}"));
        match repair {
            Repair::Danlu => {
                // While Slurm is away it is not ready.
                self.server.restart_unready().await;
                self.relay.lead_to(&self.server.client().address());
                self.is_up = true;
                self.ups.push((uptime(), f64::INFINITY));
            }
            Repair::NodeDaemon(node) => self.cluster.restart_node_daemon(&node).await,
            Repair::Controller => self.cluster.restart_controller().await,
            Repair::ControllerGoesOn => {
                self.cluster.signal("slurmctld", Signal::SIGCONT);
            }
            // Slurm may have ended it meanwhile.
            Repair::LauncherGoesOn(pid) => {
                if is_halted(pid) {
                    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGCONT);
                }
            }
            Repair::Munge => self.cluster.restart_munge().await,
            // The job may be gone.
            Repair::Release(job) => drop(self.cluster.ask("scontrol", &["release", &job])),
            Repair::Resume(node) => {
                let name = format!("NodeName={node}");
                let resumed = self.cluster.ask("scontrol", &["update", &name, "State=RESUME"]);
                if resumed.is_none() {
                    self.tell(&format!("{node} would not resume"));
                }
            }
        }
    }

    async fn views(&self) -> Vec<JobView> {
        let mut views = Vec::new();
        for id in &self.jobs {
            views.push(self.server.job(*id).await);
        }
        views
    }

    pub(crate) async fn judge(&mut self) -> Found {
        // What has ended in Danlu may have a moment to leave.
        let mut held = self.witness.held();
        for _ in 0..30 {
            if held.is_empty() {
                break;
            }
            sleep(Duration::from_secs(1)).await;
            held = self.witness.held();
        }
        let ups = if self.plan.is_shared { Vec::new() } else { self.ups.clone() };
        let mut found = Found::new(self.plan, &self.done, held, self.cluster.jobs("all"), ups);
        for (index, job) in self.views().await.into_iter().enumerate() {
            let lines = job.attempts.last().map(|attempt| attempt.number.0);
            let mut last_words = Vec::new();
            for (worker, number) in (0..job.spec.workers).zip(std::iter::repeat(lines.unwrap_or(0))) {
                let name = format!("runs/{}/{number}.{worker}/rank-{worker}.log", job.id);
                let text = std::fs::read_to_string(self.server.data().join(name)).unwrap_or_default();
                last_words.push(
                    text.lines().any(|line| line.ends_with(&format!("last word of {number}.{worker}"))),
                );
            }
            judge(&mut found, index, &job, &self.witness.marks(index), &last_words, self.plan.is_shared);
        }
        eventually("the queue to answer", || async { self.cluster.ask("squeue", &[]) }).await;
        found
    }

    /// Leaves in `out` what one needs to know what happened.
    pub(crate) fn keep(&self, out: &Path, report: &str, found: &Found) {
        let kind = if self.plan.is_shared { "shared" } else { "apart" };
        let out = out.join(format!("{kind}-{}", self.plan.seed));
        std::fs::create_dir_all(&out).unwrap();
        std::fs::write(out.join("report.txt"), report).unwrap();
        std::fs::write(out.join("story.txt"), self.story.join("\n")).unwrap();
        std::fs::write(out.join("server.log"), self.server.log()).unwrap();
        let copy = |from: &Path, to: &Path| {
            let _ = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
        };
        copy(&self.witness.folder().join("marks"), &out);
        copy(&self.cluster.folder().join("log"), &out.join("slurm"));
        for job in &found.noteworthy {
            copy(&self.server.data().join(format!("runs/{job}")), &out.join(format!("run-{job}")));
        }
    }
}
