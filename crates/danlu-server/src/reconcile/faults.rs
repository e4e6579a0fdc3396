//! The passes over a simulated engine, with random faults between any two of them: calls that fail before or after they
//! had their effect, hints that get lost, launchers and nodes that go away, servers that are killed. Whatever comes,
//! nothing is lost, nothing is run twice, and every end has a reason that can be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use danlu_core::Trigger;
use danlu_core::job::{FailureCause, Job, JobEnd, JobLifecycle, ProcessExit};
use danlu_engine::Engine;
use danlu_engine::conformance::{ProgramStep, TestFolder, TestProgram};
use danlu_engine::sim::{Call, CallFault, SimCluster};
use danlu_types::account::Registration;
use danlu_types::{
    Bytes, Cpus, Device, DeviceKind, Health, JobId, JobSpec, Node, NodeCapacity, NodeName, Retry, RetryCause,
    Span, Topology, Wiring, WorkerIndex,
};
use futures::FutureExt;
use jiff::Timestamp;
use proptest::prelude::*;
use tempfile::TempDir;

use super::{dispatch, observe, schedule};
use crate::app::App;
use crate::attempt_tokens::AttemptTokens;
use crate::folder::DataFolder;
use crate::job_writer::WriteResult;
use crate::listener::{ListenConfig, Tls};
use crate::serve::{EngineChoice, ServeOptions, open};

const NODES: u8 = 3;
const DEVICES: u32 = 4;
const TESTER: &str = "tester";
/// How many rounds of all passes bring everything to its end once nothing fails any more.
const ENOUGH: usize = 400;

/// A job that somebody submits.
#[derive(Debug, Clone)]
pub(super) struct TestSubmission {
    pub(super) workers: u32,
    pub(super) devices: u32,
    pub(super) seconds: u64,
    pub(super) retries: u32,
    pub(super) code: i32,
}

#[derive(Debug, Clone)]
pub(super) enum FaultStep {
    Submit(TestSubmission),
    /// Somebody stops one of the jobs.
    Stop(prop::sample::Index),
    Schedule,
    Launch,
    SignalStops,
    Hints,
    Observe,
    Inventory,
    /// So many seconds.
    Wait(u64),
    LoseNode(u8),
    RestoreNode(u8),
    LoseLauncher(prop::sample::Index),
    /// To somebody else, or back.
    GiveAway(u8, bool),
    Hold(bool),
    Requeue(prop::sample::Index),
    Fail(Call, Vec<CallFault>),
    LoseHints,
    KillServer,
}

fn wish() -> impl Strategy<Value = TestSubmission> {
    let code = prop_oneof![9 => Just(0), 1 => Just(3)];
    let parts = (1..=2_u32, 0..=3_u32, 0..40_u64, 0..=2_u32, code);
    parts.prop_map(|(workers, devices, seconds, retries, code)| TestSubmission {
        workers,
        devices,
        seconds,
        retries,
        code,
    })
}

fn deed() -> impl Strategy<Value = FaultStep> {
    let call = prop_oneof![
        Just(Call::Inventory),
        Just(Call::Launch),
        Just(Call::Observe),
        Just(Call::Signal),
        Just(Call::Release),
    ];
    let fault = prop_oneof![Just(CallFault::Refused), Just(CallFault::Unanswered), Just(CallFault::NotNow)];
    prop_oneof![
        6 => wish().prop_map(FaultStep::Submit),
        1 => any::<prop::sample::Index>().prop_map(FaultStep::Stop),
        6 => Just(FaultStep::Schedule),
        6 => Just(FaultStep::Launch),
        3 => Just(FaultStep::SignalStops),
        4 => Just(FaultStep::Hints),
        3 => Just(FaultStep::Observe),
        2 => Just(FaultStep::Inventory),
        6 => (1..20_u64).prop_map(FaultStep::Wait),
        1 => (0..NODES).prop_map(FaultStep::LoseNode),
        1 => (0..NODES).prop_map(FaultStep::RestoreNode),
        1 => any::<prop::sample::Index>().prop_map(FaultStep::LoseLauncher),
        2 => (0..NODES, any::<bool>()).prop_map(|(node, is_given)| FaultStep::GiveAway(node, is_given)),
        1 => any::<bool>().prop_map(FaultStep::Hold),
        1 => any::<prop::sample::Index>().prop_map(FaultStep::Requeue),
        2 => (call, prop::collection::vec(fault, 1..4)).prop_map(|(call, faults)| FaultStep::Fail(call, faults)),
        1 => Just(FaultStep::LoseHints),
        2 => Just(FaultStep::KillServer),
    ]
}

pub(super) struct FaultWorld {
    cluster: Arc<SimCluster>,
    folder: DataFolder,
    options: ServeOptions,
    pub(super) app: Arc<App>,
    memory: dispatch::DispatchMemory,
    jobs: BTreeMap<JobId, TestSubmission>,
    stopped: BTreeSet<JobId>,
    lost: BTreeSet<FailureCause>,
    _kept: TempDir,
}

fn node_name(number: u8) -> NodeName {
    NodeName(format!("n{number}"))
}

fn node(number: u8) -> Node {
    let device = |index| Device {
        index,
        kind: DeviceKind::Nvidia,
        model: "A100".to_owned(),
        memory: Bytes(80 << 30),
        island: 0,
        health: Health::Ok,
        wiring: Wiring::default(),
    };
    Node {
        name: node_name(number),
        architecture: "x86_64".to_owned(),
        capacity: NodeCapacity { cpus: Cpus::whole(16), memory: Bytes(64 << 30) },
        devices: (0..DEVICES).map(device).collect(),
        labels: BTreeMap::new(),
        cordoned: None,
        address: "127.0.0.1".to_owned(),
        topology: Topology::default(),
        simulated: true,
        foreign: Vec::new(),
    }
}

fn options(data: PathBuf) -> ServeOptions {
    let listen = ([127, 0, 0, 1], 0).into();
    let patience = Duration::from_secs(1);
    ServeOptions {
        data,
        listen_config: ListenConfig { listen, tls: Tls::Off, proxies: None, public_address: None, patience },
        database: None,
        engine: EngineChoice::Local,
        simulate: None,
        sharing: None,
        fork_server: Vec::new(),
        registration: Registration::Closed,
        oidc: None,
        unix_users: None,
        keep_ended: None,
        trust_clock: false,
        restored: false,
        use_busy_devices: false,
        sandbox: crate::sandbox::SandboxOptions::default(),
    }
}

impl FaultWorld {
    /// The cluster may be one that `places` workers itself.
    pub(super) async fn new(places: bool) -> Self {
        Self::with(places, None).await
    }

    /// One that forgets jobs so long after their end.
    pub(super) async fn keeping_ended(keep: &str) -> Self {
        Self::with(false, Some(keep.parse().unwrap())).await
    }

    async fn with(places: bool, keep_ended: Option<Span>) -> Self {
        let kept = tempfile::tempdir().unwrap();
        let make = if places { SimCluster::that_places } else { SimCluster::new };
        // Not before now: what the server notes by its own clock must not lie in the future.
        let cluster = make((0..NODES).map(node).collect(), Timestamp::now());
        let options = ServeOptions { keep_ended, ..options(kept.path().join("data")) };
        let folder = DataFolder::open(&options.data, false).unwrap();
        let app = Arc::new(open(&options, &folder, |_| Ok(engine(&cluster)), tokens(&folder)).await.unwrap());
        FaultWorld {
            cluster,
            folder,
            options,
            app,
            memory: dispatch::DispatchMemory::default(),
            jobs: BTreeMap::new(),
            stopped: BTreeSet::new(),
            lost: BTreeSet::new(),
            _kept: kept,
        }
    }

    /// The secret of whoever owns the data folder.
    pub(super) fn folder_token(&self) -> String {
        self.folder.token().unwrap()
    }

    pub(super) async fn act(&mut self, deed: FaultStep) {
        match deed {
            FaultStep::Submit(wish) => self.submit(wish).await,
            FaultStep::Stop(which) => {
                if self.jobs.is_empty() {
                    return;
                }
                let id = *which.get(&self.jobs.keys().copied().collect::<Vec<_>>());
                let stop = Trigger::Stop { by: TESTER.to_owned(), grace: Some(Span::from_seconds(5)) };
                self.app.job_writer.apply(id, stop).await.unwrap();
                self.stopped.insert(id);
            }
            FaultStep::Schedule => {
                schedule::reconcile_schedule(&self.app, || self.cluster.now()).await;
            }
            FaultStep::Launch => dispatch::reconcile_launch(&self.app, &mut self.memory).await,
            FaultStep::SignalStops => dispatch::reconcile_stop(&self.app, &mut self.memory).await,
            FaultStep::Hints => {
                let hinted = self.app.engine.changed().now_or_never();
                observe::reconcile_some(&self.app, &hinted.unwrap_or_default()).await;
            }
            FaultStep::Observe => observe::reconcile_all(&self.app).await,
            FaultStep::Inventory => drop(self.app.take_inventory().await),
            FaultStep::Wait(seconds) => self.cluster.advance(Span::from_seconds(seconds)),
            FaultStep::LoseNode(number) => {
                self.lost.insert(FailureCause::NodeLost);
                self.cluster.lose_node(&node_name(number));
            }
            FaultStep::RestoreNode(number) => self.cluster.restore_node(&node_name(number)),
            FaultStep::LoseLauncher(which) => {
                let live = self.cluster.live();
                if !live.is_empty() {
                    self.lost.insert(FailureCause::LauncherLost);
                    self.cluster.lose_launcher(*which.get(&live));
                }
            }
            FaultStep::GiveAway(number, is_given) => self.cluster.give_away(&node_name(number), is_given),
            FaultStep::Hold(is_held) => self.cluster.hold(is_held),
            FaultStep::Requeue(which) => {
                let live = self.cluster.live();
                (!live.is_empty()).then(|| self.cluster.requeue(*which.get(&live)));
            }
            FaultStep::Fail(call, faults) => {
                // Half a gang that waits for the other half gives up at last.
                if call == Call::Launch {
                    self.lost.insert(FailureCause::GangTimeout);
                }
                self.cluster.plan_faults(call, faults);
            }
            FaultStep::LoseHints => self.cluster.lose_hints(),
            FaultStep::KillServer => self.restart().await,
        }
    }

    async fn submit(&mut self, wish: TestSubmission) {
        let program = TestProgram::new([
            ProgramStep::append("marks", "$DANLU_ATTEMPT.$RANK begins"),
            ProgramStep::Sleep(Span::from_seconds(wish.seconds)),
            ProgramStep::append("marks", "$DANLU_ATTEMPT.$RANK ends"),
            ProgramStep::Exit(wish.code),
        ]);
        let mut spec = JobSpec::of_command(program.text());
        spec.workers = wish.workers;
        spec.retry = Retry { limit: wish.retries, on: vec![RetryCause::NodeLost] };
        if wish.devices > 0 {
            spec.devices = format!("nvidia:{}", wish.devices).parse().unwrap();
        }
        match self.app.job_writer.submit(spec, TESTER.to_owned(), None, None).await.unwrap() {
            WriteResult::Done(job) => drop(self.jobs.insert(job.id, wish)),
            other => panic!("a submission was answered with {other:?}"),
        }
    }

    /// As after `kill -9`: what was in memory is gone.
    async fn restart(&mut self) {
        self.app.store.close().await;
        self.memory = dispatch::DispatchMemory::default();
        self.cluster.clear_faults_of(Call::Inventory);
        self.app = Arc::new(
            open(&self.options, &self.folder, |_| Ok(engine(&self.cluster)), tokens(&self.folder))
                .await
                .unwrap(),
        );
    }

    /// Nothing fails any more, and all passes go on until there is nothing left to do.
    async fn heal(&mut self) -> Result<(), String> {
        self.cluster.clear_faults();
        for node in (0..NODES).map(node_name) {
            self.cluster.restore_node(&node);
            self.cluster.give_away(&node, false);
        }
        self.cluster.hold(false);
        for _ in 0..ENOUGH {
            use FaultStep::{Hints, Inventory, Launch, Observe, Schedule, SignalStops};
            for deed in [Inventory, Schedule, Launch, SignalStops, Hints, Observe] {
                self.act(deed).await;
            }
            let is_idle = self.app.live_state.read().jobs().next().is_none();
            if is_idle && self.cluster.known().is_empty() {
                return Ok(());
            }
            self.compare_places()?;
            self.cluster.advance_to_next(Span::from_seconds(1));
        }
        let open: Vec<String> =
            self.app.live_state.read().jobs().map(|job| format!("{:?}", job.life)).collect();
        Err(format!("still open: {open:#?}; the engine still knows {:?}", self.cluster.known()))
    }

    /// Whether those that run are where the live state has them, which has been told of all of them.
    pub(super) fn compare_places(&self) -> Result<(), String> {
        let pages = self.app.live_state.read();
        for job in pages.active() {
            let Some(attempt) = job.active() else { continue };
            for (worker, index) in attempt.workers.iter().zip(0..) {
                let id = job.worker_id(attempt.number, WorkerIndex(index));
                let (booked, Some(found)) = (&worker.grant, self.cluster.whereabouts(id)) else { continue };
                if booked.node != found.node || booked.devices != found.devices {
                    return Err(format!("worker {id} is on {found:?}, and by the book on {booked:?}"));
                }
            }
        }
        Ok(())
    }

    async fn judge(&self) -> Result<(), String> {
        let offences = self.cluster.offences();
        if !offences.is_empty() {
            return Err(offences.join("; "));
        }
        for (id, wish) in &self.jobs {
            let job = self.app.store.job_fetch(*id).await.unwrap().ok_or(format!("job {id} is gone"))?;
            let marks = self.cluster.file(*id, TestFolder::Output, "marks").unwrap_or_default();
            self.judge_job(&job, wish, &marks)
                .map_err(|why| format!("job {id}: {why}: {job:#?}\n{marks}"))?;
        }
        Ok(())
    }

    /// Whether its end can be, by what it wished for, what was done to it and what it did.
    fn judge_job(&self, job: &Job, wish: &TestSubmission, marks: &str) -> Result<(), String> {
        let JobLifecycle::Ended { outcome, .. } = &job.life else { return Err("has not ended".to_owned()) };
        let lines: Vec<&str> = marks.lines().collect();
        let distinct: BTreeSet<&str> = lines.iter().copied().collect();
        if distinct.len() != lines.len() {
            return Err("a rank did something twice".to_owned());
        }
        let last = job.past.last().map_or(0, |past| past.attempt.number.0);
        let count = |what: &str| {
            let own =
                lines.iter().filter(|line| line.starts_with(&format!("{last}.")) && line.ends_with(what));
            u32::try_from(own.count()).unwrap_or_default()
        };
        match outcome {
            JobEnd::Succeeded if wish.code != 0 => Err("a program that fails has succeeded".to_owned()),
            JobEnd::Succeeded if (count("begins"), count("ends")) != (wish.workers, wish.workers) => {
                Err("its work is not done".to_owned())
            }
            JobEnd::Stopped { who } if who != TESTER || !self.stopped.contains(&job.id) => {
                Err("nobody stopped it".to_owned())
            }
            JobEnd::Failed { failure, .. } if failure.cause == FailureCause::Exit => {
                let is_own = wish.code != 0 && failure.exit == Some(ProcessExit::Code(wish.code));
                is_own.then_some(()).ok_or("it did not fail so".to_owned())
            }
            JobEnd::Failed { failure, .. } if !self.lost.contains(&failure.cause) => {
                Err("nothing of the kind happened".to_owned())
            }
            JobEnd::Failed { failure, .. }
                if failure.cause != FailureCause::GangTimeout && job.failures() <= wish.retries =>
            {
                Err("it was not tried again".to_owned())
            }
            JobEnd::Succeeded | JobEnd::Stopped { .. } | JobEnd::Failed { .. } => Ok(()),
        }
    }
}

fn tokens(folder: &DataFolder) -> Arc<AttemptTokens> {
    Arc::new(AttemptTokens::new(&folder.attempt_key().unwrap()))
}

fn engine(cluster: &Arc<SimCluster>) -> Arc<dyn Engine> {
    Arc::new(cluster.engine())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_nothing_is_run_twice(
        places: bool,
        deeds in prop::collection::vec(deed(), 20..120),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let judged = runtime.block_on(async {
            let mut world = FaultWorld::new(places).await;
            for deed in deeds {
                world.act(deed).await;
            }
            world.heal().await?;
            world.judge().await
        });
        prop_assert_eq!(judged, Ok(()));
    }
}
