//! Submitting an allocation, once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use danlu_core::launch::LaunchFile;
use danlu_slurm::{
    ALLOCATION_FILE, AllocationRequest, Delegated, GresNeed, GresSlot, ORDER_FILE, QUEUE_FORMAT,
    RequestedWorker, SCRIPT_FILE, SUBMITTED_FILE, SlurmJobState, allocation_folder_name, batch_script,
    order_comment, order_name, parse_queue, parse_submitted, parts, remote_script, submission,
};
use danlu_types::{NodeName, WorkerId};

use super::SlurmEngine;
use super::commands::With;
use super::folders::{AllocationFolders, read_order, submitted};
use super::remote::Remote;
use crate::{ClusterAnswer, EngineError, files};

/// How long a controller is left alone that could not take a job.
const AWAY: Duration = Duration::from_secs(5);

const LOOKING: &str = "look for a job that may have been submitted";

/// Which scripts orders get.
#[derive(Debug)]
enum Scripts {
    /// Starts launchers by this program.
    Shared(String),
    Remote(Arc<Remote>),
}

/// An allocation that may have to be submitted.
#[derive(Debug)]
struct PendingAllocation {
    folder: PathBuf,
    order: AllocationRequest,
    /// The order lay there already: it may have been submitted.
    is_old: bool,
}

impl SlurmEngine {
    /// Submits the allocation of a worker that was accepted, once its whole gang was. The caller has the job's lock.
    pub(super) async fn submit(&self, worker: WorkerId) -> Result<(), EngineError> {
        let failed = move |source| EngineError::Worker { doing: "launch", worker, source };
        let gang = self.blocking(move |folders, _| folders.gang_to_submit(worker).map_err(failed)).await?;
        let Some(gang) = gang else { return Ok(()) };
        let mut slots = BTreeMap::new();
        for launch in &gang {
            slots.insert(launch.node.clone(), self.slots_of(&launch.node).await?);
        }
        if let Some(said) = gang.iter().find_map(|launch| missing_resource(launch, &slots)) {
            let (doing, answer) = ("submit a job to Slurm", ClusterAnswer::NotNow);
            return Err(EngineError::Cluster { doing, program: "scontrol", said, answer });
        }
        let scripts = match &self.remote {
            None => Scripts::Shared(self.program.clone()),
            Some(remote) => Scripts::Remote(Arc::clone(remote)),
        };
        let delegated = self.delegated(&gang);
        let parts = self
            .blocking(move |folders, _| folders.orders(&gang, &slots, delegated, &scripts).map_err(failed))
            .await?;
        for part in parts {
            self.refuse_while_away()?;
            let submitted = self.submit_part(&part, worker).await;
            let is_away = submitted.as_ref().is_err_and(EngineError::is_transient);
            *self.away.lock().unwrap_or_else(PoisonError::into_inner) = is_away.then(Instant::now);
            let job = submitted?;
            let folder = part.folder.clone();
            let write = move |_: &AllocationFolders, _: &_| {
                files::replace(&folder, SUBMITTED_FILE, format!("{job}\n").as_bytes()).map_err(failed)
            };
            self.blocking(write).await?;
        }
        Ok(())
    }

    /// What Slurm is told where it chooses the nodes.
    fn delegated(&self, gang: &[LaunchFile]) -> Option<Delegated> {
        let devices: Vec<Vec<u32>> =
            gang.iter().map(|launch| launch.devices.iter().map(|device| device.index).collect()).collect();
        let places = gang.iter().zip(&devices).map(|(launch, devices)| (&launch.node, devices.as_slice()));
        let unsuitable = gang.iter().flat_map(|launch| &launch.unsuitable);
        let unsuitable: BTreeSet<String> = unsuitable.map(|node| node.0.clone()).collect();
        self.may_place(places).then(|| Delegated {
            unsuitable: unsuitable.into_iter().collect(),
            addresses: self.known.addresses(),
        })
    }

    /// `sbatch` waits long for a controller that is away, and stops wait behind launches.
    fn refuse_while_away(&self) -> Result<(), EngineError> {
        let away = *self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if away.is_none_or(|since| since.elapsed() > AWAY) {
            return Ok(());
        }
        let said = "nothing a moment ago; it is asked again shortly".to_owned();
        let (doing, answer) = ("submit a job to Slurm", ClusterAnswer::Away);
        Err(EngineError::Cluster { doing, program: "sbatch", said, answer })
    }

    async fn submit_part(&self, part: &PendingAllocation, worker: WorkerId) -> Result<u64, EngineError> {
        if part.is_old
            && let Some(job) = self.find(&part.order).await?
        {
            return Ok(job);
        }
        let arguments = submission(&part.order, &self.settings, &part.folder);
        // Read here: another user could not.
        let script = File::open(part.folder.join(SCRIPT_FILE));
        let failed = |source| EngineError::Worker { doing: "launch", worker, source };
        let with = With {
            user: part.order.user.as_ref(),
            secret: self.remote.as_ref().map(|remote| remote.secret(worker)),
            input: Some(script.map_err(failed)?),
        };
        let text = self.programs.ask_with("submit a job to Slurm", "sbatch", &arguments, with).await?;
        // An answer without a number is no refusal: the next pass looks for the job by its name.
        parse_submitted(&text).ok_or_else(|| EngineError::Cluster {
            doing: "submit a job to Slurm",
            program: "sbatch",
            said: format!("`{}`, which names no job", text.trim().chars().take(200).collect::<String>()),
            answer: ClusterAnswer::Away,
        })
    }

    /// A job of this name that waits or runs: an earlier server submitted it and did not live to write that down. One
    /// that has ended ran nothing, or there were a claim.
    pub(super) async fn find(&self, order: &AllocationRequest) -> Result<Option<u64>, EngineError> {
        let name = &order.name;
        let arguments = [
            "--me".to_owned(),
            "--states=all".to_owned(),
            "--noheader".to_owned(),
            format!("--format={QUEUE_FORMAT}"),
            format!("--name={name}"),
        ];
        let user = With::user(order.user.as_ref());
        let text = self.programs.ask_with(LOOKING, "squeue", &arguments, user).await?;
        let is_live = |state: &SlurmJobState| {
            matches!(state, SlurmJobState::Waiting | SlurmJobState::Alive | SlurmJobState::Suspended)
        };
        let found = parse_queue(&text).into_iter().find(|job| job.name == *name && is_live(&job.state));
        Ok(found.map(|job| job.id))
    }
}

impl AllocationFolders {
    /// The launch files of a worker's gang, where something of it is still to be submitted.
    fn gang_to_submit(&self, worker: WorkerId) -> io::Result<Option<Vec<LaunchFile>>> {
        if let Some(folder) = self.allocation(worker)?
            && (Self::is_claimed(&folder)? || submitted(&folder)?.is_some())
        {
            return Ok(None);
        }
        let mut gang = Vec::new();
        for other in self.gang(worker)? {
            let is_over =
                || Ok::<_, io::Error>(self.status(other)?.is_some() || self.verdict(other)?.is_some());
            if !self.marker(other).try_exists()? || self.is_told_to_stop(other)? || is_over()? {
                return Ok(None);
            }
            let Some(launch) = self.launch_file(other)? else { return Ok(None) };
            gang.push(launch);
        }
        Ok(Some(gang))
    }

    /// Writes the orders of a gang, each with its script, and says which are not known to be submitted. The order comes
    /// after the script, and workers are told where it lies after that; what is there already stays.
    fn orders(
        &self,
        gang: &[LaunchFile],
        slots: &BTreeMap<NodeName, Vec<GresSlot>>,
        delegated: Option<Delegated>,
        scripts: &Scripts,
    ) -> io::Result<Vec<PendingAllocation>> {
        let Some(first) = gang.first() else { return Ok(Vec::new()) };
        let workers: io::Result<Vec<RequestedWorker>> =
            gang.iter().map(|launch| ordered(launch, slots)).collect();
        let job_folder = self.layout.job_folder(first.worker.job);
        let mut found = Vec::new();
        let parts = parts(workers?);
        let delegated = delegated.filter(|_| parts.len() == 1);
        for (number, workers) in parts.into_iter().enumerate() {
            let name = allocation_folder_name(first.worker.attempt, number);
            let folder = job_folder.join(&name);
            files::make_folder(&folder)?;
            let old = read_order(&folder)?;
            let is_old = old.is_some();
            let order = match old {
                Some(order) => order,
                None => {
                    write_order(self.identity(), first, number, workers, delegated.clone(), &folder, scripts)?
                }
            };
            for worker in &order.workers {
                files::replace(&self.run(worker.worker), ALLOCATION_FILE, name.as_bytes())?;
            }
            if submitted(&folder)?.is_none() && !Self::is_claimed(&folder)? {
                found.push(PendingAllocation { folder, order, is_old });
            }
        }
        Ok(found)
    }
}

/// Fixes what is submitted, and under which name.
fn write_order(
    identity: Option<&str>,
    first: &LaunchFile,
    number: usize,
    workers: Vec<RequestedWorker>,
    delegated: Option<Delegated>,
    folder: &Path,
    scripts: &Scripts,
) -> io::Result<AllocationRequest> {
    let unique = RandomState::new().build_hasher().finish();
    let order = AllocationRequest {
        name: order_name(first.worker.job, first.worker.attempt, number, unique),
        comment: order_comment(first.worker.job, &first.job_name, &first.owner, &first.workspace),
        identity: identity.map(str::to_owned),
        workspace: first.workspace.clone(),
        user: first.user.clone(),
        workers,
        delegated,
        cpus: first.limits.cpus,
        memory: first.limits.memory,
        max_time: first.max_time,
    };
    let script = match scripts {
        Scripts::Shared(program) => {
            batch_script(&order, folder, &[program.clone(), "slurm-worker".to_owned()])
        }
        Scripts::Remote(remote) => {
            let name = allocation_folder_name(first.worker.attempt, number);
            remote_script(&order, &name, &remote.sidecar_of(order.user.as_ref()))
        }
    };
    files::replace(folder, SCRIPT_FILE, script.as_bytes())?;
    files::replace(folder, ORDER_FILE, &serde_json::to_vec(&order)?)?;
    Ok(order)
}

/// What of a plan the node no longer has: its administrators have changed it since.
fn missing_resource(launch: &LaunchFile, slots: &BTreeMap<NodeName, Vec<GresSlot>>) -> Option<String> {
    let own = slots.get(&launch.node).map_or(&[][..], Vec::as_slice);
    let is_there =
        |index: u32| own.iter().any(|it| (it.first..it.first.saturating_add(it.count)).contains(&index));
    let missing = launch.devices.iter().find(|device| !is_there(device.index))?;
    Some(format!("`{}` no longer has device {}", launch.node, missing.index))
}

fn ordered(launch: &LaunchFile, slots: &BTreeMap<NodeName, Vec<GresSlot>>) -> io::Result<RequestedWorker> {
    let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
    let slots =
        slots.get(&launch.node).ok_or_else(|| invalid(format!("Slurm has no node `{}`", launch.node)))?;
    let mut needs: Vec<GresNeed> = Vec::new();
    for device in &launch.devices {
        let holds =
            |slot: &&GresSlot| (slot.first..slot.first.saturating_add(slot.count)).contains(&device.index);
        let slot = slots.iter().find(holds).ok_or_else(|| {
            invalid(format!("device {} of `{}` is not a Slurm resource (GRES)", device.index, launch.node))
        })?;
        match needs.iter_mut().find(|need| need.label == slot.label) {
            Some(need) => need.devices.push(device.clone()),
            None => needs.push(GresNeed {
                label: slot.label.clone(),
                devices: vec![device.clone()],
                first: slot.first,
            }),
        }
    }
    let (worker, node, run) = (launch.worker, launch.node.0.clone(), launch.folders.run.clone());
    Ok(RequestedWorker { worker, node, run, needs })
}
