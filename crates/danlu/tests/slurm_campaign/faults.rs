//! What breaks, chosen by dice, and when it is mended.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use danlu_testkit::SlurmRig;
use nix::sys::signal::Signal;

use super::cluster::{Cluster, Part, children, is_halted, slurmd};

/// Steele, Lea, Flood: `SplitMix`, 2014.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed)
    }

    pub(crate) fn any_seed() -> u64 {
        RandomState::new().hash_one(0) % 1_000_000
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }

    pub(crate) fn one_of<'a, T>(&mut self, among: &'a [T]) -> Option<&'a T> {
        let place = self.below(among.len() as u64);
        among.get(usize::try_from(place).unwrap_or(0))
    }

    pub(crate) fn milliseconds(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most - least))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Danlu,
    Launcher,
    LauncherHalts,
    Guard,
    Sidecar,
    NodeDaemon,
    Controller,
    ControllerHalts,
    Munge,
    Cancel,
    Requeue,
    Hold,
    Drain,
    Down,
    Reconfigure,
}

impl Fault {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Fault::Danlu => "danlu -9",
            Fault::Launcher => "launcher -9",
            Fault::LauncherHalts => "launcher SIGSTOP",
            Fault::Guard => "guard -9",
            Fault::Sidecar => "sidecar -9",
            Fault::NodeDaemon => "slurmd -9",
            Fault::Controller => "slurmctld -9",
            Fault::ControllerHalts => "slurmctld SIGSTOP",
            Fault::Munge => "munged -9",
            Fault::Cancel => "scancel",
            Fault::Requeue => "requeue",
            Fault::Hold => "hold",
            Fault::Drain => "drain",
            Fault::Down => "down",
            Fault::Reconfigure => "reconfigure",
        }
    }

    /// By how often each is drawn.
    pub(crate) fn draw(dice: &mut Dice, is_shared: bool) -> Self {
        use Fault::{
            Cancel, Controller, ControllerHalts, Danlu, Down, Drain, Guard, Hold, Launcher, LauncherHalts,
            Munge, NodeDaemon, Reconfigure, Requeue, Sidecar,
        };
        let mut among = vec![
            Danlu,
            Danlu,
            Danlu,
            Danlu,
            Launcher,
            Launcher,
            Launcher,
            LauncherHalts,
            LauncherHalts,
            Guard,
            NodeDaemon,
            NodeDaemon,
            NodeDaemon,
            Controller,
            Controller,
            ControllerHalts,
            ControllerHalts,
            Munge,
            Munge,
            Cancel,
            Cancel,
            Requeue,
            Requeue,
            Hold,
            Drain,
            Drain,
            Down,
            Down,
            Reconfigure,
        ];
        if !is_shared {
            among.extend([Sidecar, Sidecar, Sidecar]);
        }
        *dice.one_of(&among).unwrap()
    }

    /// Whether it is done by asking the controller.
    pub(crate) fn asks(self) -> bool {
        use Fault::{Cancel, Down, Drain, Hold, Reconfigure, Requeue};
        matches!(self, Cancel | Requeue | Hold | Drain | Down | Reconfigure)
    }
}

/// What is to be done again later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Repair {
    Danlu,
    NodeDaemon(String),
    Controller,
    ControllerGoesOn,
    LauncherGoesOn(i32),
    Munge,
    Release(String),
    Resume(String),
}

/// Below a sidecar's guard are the sidecar, the launcher's guard and the launcher.
fn has_halted_below(pid: i32) -> bool {
    let mut below = children(pid);
    while let Some(pid) = below.pop() {
        if is_halted(pid) {
            return true;
        }
        below.extend(children(pid));
    }
    false
}

/// What was done, and how it is mended; `None` where there was nothing to do it to.
pub(crate) async fn commit(
    fault: Fault,
    cluster: &Cluster<'_>,
    dice: &mut Dice,
) -> Option<(String, Option<Repair>)> {
    let nodes: Vec<String> = SlurmRig::nodes().collect();
    let mut signalled = |part, signal| {
        let mut parts = cluster.parts(part);
        // Two at once are another matter: what ends while its launcher stands still is told by nobody, if that is then killed with
        // its guard or its sidecar.
        parts.retain(|pid| !has_halted_below(*pid));
        let pid = *dice.one_of(&parts)?;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).ok()?;
        Some(pid)
    };
    let mut killed = |part| Some((signalled(part, Signal::SIGKILL)?.to_string(), None));
    match fault {
        Fault::Danlu => None,
        Fault::Launcher => killed(Part::Launcher),
        Fault::LauncherHalts => {
            let pid = signalled(Part::Launcher, Signal::SIGSTOP)?;
            Some((pid.to_string(), Some(Repair::LauncherGoesOn(pid))))
        }
        Fault::Guard => killed(Part::Guard),
        Fault::Sidecar => killed(Part::Sidecar),
        Fault::NodeDaemon => {
            let node = dice.one_of(&nodes)?.clone();
            cluster.kill(&slurmd(&node)).await.then_some((node.clone(), Some(Repair::NodeDaemon(node))))
        }
        Fault::Controller => {
            cluster.kill("slurmctld").await.then_some((String::new(), Some(Repair::Controller)))
        }
        Fault::ControllerHalts => {
            let is_done = cluster.signal("slurmctld", Signal::SIGSTOP);
            is_done.then_some((String::new(), Some(Repair::ControllerGoesOn)))
        }
        Fault::Munge => cluster.kill("munged").await.then_some((String::new(), Some(Repair::Munge))),
        Fault::Cancel => {
            let job = dice.one_of(&cluster.jobs("pending,running"))?.clone();
            cluster.ask("scancel", &[&job])?;
            Some((job, None))
        }
        Fault::Requeue => {
            let job = dice.one_of(&cluster.jobs("running"))?.clone();
            cluster.ask("scontrol", &["update", &format!("JobId={job}"), "Requeue=1"])?;
            cluster.ask("scontrol", &["requeue", &job])?;
            Some((job, None))
        }
        Fault::Hold => {
            let job = dice.one_of(&cluster.jobs("pending"))?.clone();
            cluster.ask("scontrol", &["hold", &job])?;
            Some((job.clone(), Some(Repair::Release(job))))
        }
        Fault::Drain | Fault::Down => {
            let node = dice.one_of(&nodes)?.clone();
            let state = if fault == Fault::Drain { "State=DRAIN" } else { "State=DOWN" };
            let name = format!("NodeName={node}");
            cluster.ask("scontrol", &["update", &name, state, "Reason=campaign"])?;
            Some((node.clone(), Some(Repair::Resume(node))))
        }
        Fault::Reconfigure => {
            cluster.ask("scontrol", &["reconfigure"])?;
            Some((String::new(), None))
        }
    }
}
