//! Nodes as people and the scheduler see them: what the engine offers, with what is known beyond that laid over it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use danlu_core::node::{DeviceFailure, WITHIN, device_failures, devices_held, keep_apart, renewed, worn_out};
use danlu_core::transition::{DANLU, EventKind};
use danlu_core::{HistoryEvent, Job, NodeOverride, Trigger};
use danlu_store::{NodeChange, StoreError};
use danlu_types::api::{DeviceView, DrainView, HeldDevice, JobOnNode, NodeView};
use danlu_types::device::WHOLE_DEVICE;
use danlu_types::{Bytes, Cpus, DeviceCount, FieldError, ForeignHold, Node, NodeName, Problem, ProblemCode};
use jiff::Timestamp;

use crate::app::{App, store_problem};

mod readings;

/// Why nothing starts on nodes of an engine that cannot be asked.
const NO_ANSWER: &str = "the cluster's controller does not answer";

const LONGEST_REASON: usize = 500;
/// What is known of nodes beyond what their engine says. Written through [`App::note`] only, after the store has it.
#[derive(Debug)]
pub(crate) struct NodeNotes {
    offered: Mutex<Vec<Node>>,
    notes: Mutex<BTreeMap<NodeName, NodeOverride>>,
    /// Who uses devices without a job, by node.
    outside: Mutex<BTreeMap<NodeName, Vec<ForeignHold>>>,
    /// When jobs gave devices back, as far as that still matters.
    released: Mutex<BTreeMap<(NodeName, u32), Timestamp>>,
    /// Device errors of the last day, to tell when a device has had enough of them.
    failures: Mutex<Vec<DeviceFailure>>,
    /// Changes of notes come one after the other: each starts from what the one before it has left.
    changing: tokio::sync::Mutex<()>,
}

impl NodeNotes {
    pub(crate) fn new(offered: Vec<Node>, notes: BTreeMap<NodeName, NodeOverride>) -> Self {
        NodeNotes {
            offered: Mutex::new(offered),
            notes: Mutex::new(notes),
            outside: Mutex::default(),
            released: Mutex::default(),
            failures: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
        }
    }

    /// The nodes as schedulers are to see them.
    pub(crate) fn noted(&self) -> Vec<Node> {
        let notes = self.all();
        let outside = self.outside.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut nodes = self.offered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for node in &mut nodes {
            if let Some(note) = notes.get(&node.name) {
                note.lay_over(node);
            }
            node.foreign.extend(outside.get(&node.name).into_iter().flatten().cloned());
        }
        nodes
    }

    /// Takes over which nodes are open, and those that have come. Returns the names of those that have changed. One that is
    /// missing from the inventory starts nothing new; it is not forgotten, because jobs may run there.
    pub(crate) fn renew(&self, inventory: Vec<Node>) -> Vec<NodeName> {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        let (renewed, changed) = renewed(&offered, inventory);
        *offered = renewed;
        changed
    }

    /// Closes all nodes of an engine that does not answer, until its next inventory. Says whether any was open.
    fn close_all(&self) -> bool {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        let mut was_open = false;
        for node in offered.iter_mut().filter(|node| node.cordoned.is_none()) {
            node.cordoned = Some(NO_ANSWER.to_owned());
            was_open = true;
        }
        was_open
    }

    /// The nodes that the engine itself starts nothing on.
    pub(crate) fn closed_by_engine(&self) -> HashSet<NodeName> {
        let offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        offered.iter().filter(|node| node.cordoned.is_some()).map(|node| node.name.clone()).collect()
    }

    /// Remembers the device errors of jobs, each once, and when they gave their devices back. Says whether there were any that it did not know.
    pub(crate) fn learn<'a>(&self, jobs: impl Iterator<Item = &'a Job>, now: Timestamp) -> bool {
        let jobs: Vec<&Job> = jobs.collect();
        self.learn_released(jobs.iter().copied(), now);
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.checked_sub(WITHIN).unwrap_or(Timestamp::MIN);
        let mut is_news = false;
        for failure in jobs.into_iter().flat_map(device_failures).filter(|failure| failure.at >= since) {
            if !failures.contains(&failure) {
                failures.retain(|known| known.at >= since);
                failures.push(failure);
                is_news = true;
            }
        }
        is_news
    }

    fn worn_out(&self, now: Timestamp) -> Vec<(NodeName, u32, String)> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        worn_out(&failures, &self.all(), &offered, now)
    }

    fn note(&self, name: &NodeName) -> NodeOverride {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.get(name).cloned().unwrap_or_default()
    }

    fn all(&self) -> BTreeMap<NodeName, NodeOverride> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Nodes on which what others hold and what these jobs hold are not the same devices.
pub(crate) fn beside_ours<'a>(mut nodes: Vec<Node>, jobs: impl Iterator<Item = &'a Job>) -> Vec<Node> {
    let held = devices_held(jobs);
    let none = BTreeSet::new();
    for node in nodes.iter_mut().filter(|node| !node.foreign.is_empty()) {
        let ours = held.get(&node.name).unwrap_or(&none);
        keep_apart(node, ours);
    }
    nodes
}

impl App {
    pub(crate) fn node_views(&self) -> Vec<NodeView> {
        self.views_of(|_| true)
    }

    fn views_of(&self, which: impl Fn(&Node) -> bool) -> Vec<NodeView> {
        let mut notices = self.engine.notices();
        let pages = self.live_state.read();
        let view = |node: &Node| NodeView {
            notice: notices.remove(&node.name),
            node: node.clone(),
            used_cpus: Cpus { milli: node.foreign.iter().map(|hold| hold.cpus.milli).sum() },
            used_memory: Bytes(node.foreign.iter().map(|hold| hold.memory.0).fold(0, u64::saturating_add)),
            held: Vec::new(),
        };
        let mut views: Vec<NodeView> = pages.nodes.iter().filter(|node| which(node)).map(view).collect();
        let order: HashMap<_, _> =
            views.iter().enumerate().map(|(at, view)| (view.node.name.clone(), at)).collect();
        for job in pages.active() {
            for worker in job.active().iter().flat_map(|attempt| &attempt.workers) {
                let grant = &worker.grant;
                let Some(view) = order.get(&grant.node).map(|at| &mut views[*at]) else { continue };
                view.used_cpus.milli += grant.cpus.milli;
                view.used_memory.0 = view.used_memory.0.saturating_add(grant.memory.0);
                view.held.extend(grant.devices.iter().map(|index| HeldDevice {
                    index: *index,
                    count: DeviceCount::from_milli(grant.share.min(WHOLE_DEVICE)).unwrap_or_default(),
                    job: Some(job.id),
                    job_name: job.spec.name.clone(),
                    owner: job.owner.clone(),
                }));
            }
        }
        views
    }

    /// Nodes on which nothing new starts.
    pub(crate) fn closed_nodes(&self) -> HashSet<NodeName> {
        let nodes = self.live_state.nodes();
        nodes.iter().filter(|node| node.cordoned.is_some()).map(|node| node.name.clone()).collect()
    }

    pub(crate) fn devices(&self) -> Vec<DeviceView> {
        let notes = self.nodes.all();
        let mut devices = Vec::new();
        for NodeView { node, held, .. } in self.node_views() {
            let note = notes.get(&node.name);
            for device in node.devices {
                let foreign = node.foreign.iter().find(|hold| hold.devices.contains(&device.index));
                let mut holders: Vec<HeldDevice> =
                    held.iter().filter(|held| held.index == device.index).cloned().collect();
                holders.sort_by_key(|held| (Reverse(held.count), held.job));
                devices.push(DeviceView {
                    node: node.name.clone(),
                    out_of_service: note.and_then(|note| note.out_of_service.get(&device.index)).cloned(),
                    held_by: holders.first().cloned(),
                    holders,
                    foreign: foreign.cloned(),
                    reading: None,
                    device,
                });
            }
        }
        devices
    }

    /// Starts nothing new on nodes that the engine has closed since, and does again on those that it has opened.
    /// False where the engine did not say.
    pub(crate) async fn take_inventory(&self) -> bool {
        let inventory = match self.engine.inventory().await {
            Ok(inventory) => inventory,
            Err(error) => {
                tracing::warn!("{}", crate::error_chain(&error));
                let _changing = self.nodes.changing.lock().await;
                if let Some(trouble) = self.engine.trouble().filter(|_| self.nodes.close_all()) {
                    self.live_state.write().set_nodes(self.nodes.noted());
                    tracing::warn!("nothing new starts: {trouble}");
                }
                return false;
            }
        };
        // As for readings.
        let _changing = self.nodes.changing.lock().await;
        let displaced = self.displaced(&inventory);
        let inventory = {
            let pages = self.live_state.read();
            // What others have taken is theirs, whatever was planned there.
            let holding = pages.active().filter(|job| !displaced.contains(&job.id));
            beside_ours(inventory, holding.map(Arc::as_ref))
        };
        let changed = self.nodes.renew(inventory);
        self.show_nodes(&changed);
        match &*changed {
            [] => {}
            [name] => tracing::info!("the engine says something new of {name}"),
            [first, ..] => {
                tracing::info!("the engine says something new of {} nodes, such as {first}", changed.len());
            }
        }
        self.leave_closed_nodes().await;
        self.reports.note_inventory();
        self.take_back(&displaced).await;
        true
    }

    /// Whether any worker has devices that exist.
    pub(crate) fn holds_real_devices(&self) -> bool {
        let pages = self.live_state.read();
        let real = |name: &NodeName| pages.nodes.iter().any(|node| node.name == *name && !node.simulated);
        let workers = pages.active().filter_map(|job| job.active()).flat_map(|attempt| &attempt.workers);
        workers.map(|worker| &worker.grant).any(|grant| !grant.devices.is_empty() && real(&grant.node))
    }

    /// Has nothing new start on a node. What runs there, runs on.
    pub(crate) async fn cordon(&self, by: &str, name: &NodeName, why: &str) -> Result<NodeView, Problem> {
        let why = why.trim();
        if why.is_empty() || why.len() > LONGEST_REASON || why.contains(char::is_control) {
            let message = format!("must be a line of 1 to {LONGEST_REASON} bytes, such as `new fans`");
            return Err(Problem::invalid_fields(vec![FieldError::new("why", message)]));
        }
        self.note(name, by, EventKind::NodeCordoned, format!("cordoned {name}: {why}"), |note| {
            note.cordoned = Some(why.to_owned());
        })
        .await?;
        self.node_view(name)
    }

    pub(crate) async fn uncordon(&self, by: &str, name: &NodeName) -> Result<NodeView, Problem> {
        self.note(name, by, EventKind::NodeUncordoned, format!("uncordoned {name}"), |note| {
            note.cordoned = None;
        })
        .await?;
        self.node_view(name)
    }

    /// Cordons a node and has its preemptible jobs leave it; the others run to their end.
    pub(crate) async fn drain(&self, by: &str, name: &NodeName, why: &str) -> Result<DrainView, Problem> {
        self.cordon(by, name, why).await?;
        let here: Vec<Arc<Job>> = {
            let pages = self.live_state.read();
            let on_node = |job: &&Arc<Job>| {
                job.active()
                    .is_some_and(|attempt| attempt.workers.iter().any(|worker| worker.grant.node == *name))
            };
            pages.active().filter(on_node).cloned().collect()
        };
        let (leaving, staying): (Vec<_>, Vec<_>) = here.iter().partition(|job| job.spec.preemptible);
        let event = || Trigger::Drain { node: name.clone(), by: by.to_owned() };
        let events = leaving.iter().map(|job| (job.id, event(), Timestamp::now())).collect();
        for answer in self.job_writer.apply_all(events).await {
            crate::app::done(answer)?;
        }
        let shown = |job: &&Arc<Job>| JobOnNode {
            job: job.id,
            name: job.spec.name.clone(),
            owner: job.owner.clone(),
        };
        Ok(DrainView {
            node: name.clone(),
            preempted: leaving.iter().map(shown).collect(),
            running_on: staying.iter().map(shown).collect(),
        })
    }

    /// Gives a device out again that was taken out of service.
    pub(crate) async fn restore_device(&self, by: &str, name: &NodeName, index: u32) -> Result<(), Problem> {
        let device = self.devices().into_iter().find(|view| view.node == *name && view.device.index == index);
        let Some(device) = device else {
            let detail = format!("device {index} of node `{name}` not found");
            return Err(Problem::new(ProblemCode::NotFound, detail).with_hint("`danlu devices` lists them"));
        };
        if device.out_of_service.is_none() {
            let detail = format!("device {index} of {name} was not taken out of service");
            return Err(Problem::new(ProblemCode::WrongState, detail));
        }
        let message = format!("put device {index} of {name} back into service");
        self.note(name, by, EventKind::DeviceRestored, message, |note| {
            note.out_of_service.remove(&index);
            note.restored.insert(index, Timestamp::now());
        })
        .await
    }

    /// Takes devices out of service that keep failing the jobs they are given to.
    pub(crate) async fn take_out_worn_devices(&self) {
        for (node, device, why) in self.nodes.worn_out(Timestamp::now()) {
            tracing::error!("device {device} of {node} is taken out of service: {why}");
            let message = format!("took device {device} of {node} out of service: {why}");
            let taken = self
                .note(&node, DANLU, EventKind::DeviceTakenOut, message, |note| {
                    note.out_of_service.insert(device, why.clone());
                })
                .await;
            if let Err(problem) = taken {
                tracing::warn!("could not take device {device} of {node} out of service: {}", problem.detail);
            }
        }
    }

    /// Changes what is known of a node: durable first, then shown.
    async fn note(
        &self,
        name: &NodeName,
        actor: &str,
        kind: EventKind,
        message: String,
        change: impl FnOnce(&mut NodeOverride),
    ) -> Result<(), Problem> {
        let _changing = self.nodes.changing.lock().await;
        self.node_view(name)?;
        let old = self.nodes.note(name);
        let mut note = old.clone();
        change(&mut note);
        if note == old {
            return Ok(());
        }
        let record = HistoryEvent { kind, attempt: None, actor: actor.to_owned(), message };
        let at = Timestamp::now();
        let change = NodeChange { node: name.clone(), note: note.clone(), at, records: vec![record] };
        self.store.node_note_set(&change).await.map_err(store_problem)?;
        self.nodes.notes.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), note);
        self.show_nodes(std::slice::from_ref(name));
        Ok(())
    }

    /// Takes what the database has of nodes for what is so, after a change that it may have taken without saying so.
    pub(crate) async fn read_notes_again(&self) -> Result<(), StoreError> {
        let _changing = self.nodes.changing.lock().await;
        let notes = self.store.node_notes().await?;
        let changed: Vec<NodeName> = {
            let mut known = self.nodes.notes.lock().unwrap_or_else(PoisonError::into_inner);
            let names: BTreeSet<&NodeName> = known.keys().chain(notes.keys()).collect();
            let differs = |name: &&&NodeName| known.get(**name) != notes.get(**name);
            let changed = names.iter().filter(differs).map(|name| (*name).clone()).collect();
            *known = notes;
            changed
        };
        self.show_nodes(&changed);
        Ok(())
    }

    /// Has schedulers see the nodes as they are known by now, and clients look at those that have changed.
    fn show_nodes(&self, changed: &[NodeName]) {
        if changed.is_empty() {
            return;
        }
        self.live_state.write().set_nodes(self.nodes.noted());
        for name in changed {
            self.wake.node_changed(name);
        }
    }

    fn node_view(&self, name: &NodeName) -> Result<NodeView, Problem> {
        self.views_of(|node| node.name == *name).pop().ok_or_else(|| {
            Problem::new(ProblemCode::NotFound, format!("node `{name}` not found"))
                .with_hint("`danlu nodes` lists them")
        })
    }
}
