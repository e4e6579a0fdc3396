//! The nodes of the local engine: this machine, or simulated ones.
//!
//! Devices do not come and go while a server runs, so this machine is looked at once. Where a vendor's tool did not answer then, it
//! is looked at again whenever an inventory is taken, until it does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use danlu_device::inventory;
use danlu_device::machine::Machine;
use danlu_device::simulate::SimulateError;
use danlu_types::{Node, NodeName};

use super::readings::Sensors;

/// A look at a tool that hangs keeps a thread for ten seconds and more.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Nodes to begin with.
#[derive(Debug, Clone, Default)]
pub struct Offered {
    pub nodes: Vec<Node>,
    /// Why this machine may have devices that are not among them.
    pub incomplete: Option<String>,
}

/// The nodes to offer: those that `simulate` describes, or this machine.
pub fn offered_nodes(simulate: Option<&str>) -> Result<Offered, SimulateError> {
    if let Some(text) = simulate {
        return Ok(Offered { nodes: danlu_device::simulate::parse(text)?, incomplete: None });
    }
    let found = inventory::look(Machine::this());
    for remark in found.remarks {
        tracing::warn!("{remark}");
    }
    Ok(Offered { nodes: vec![found.node], incomplete: found.incomplete })
}

#[derive(Debug)]
pub(super) struct LocalInventory {
    was_incomplete: bool,
    sensors: Arc<Sensors>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    offered: Offered,
    /// When the last look ended, or the one that goes on began.
    looked_at: Instant,
}

impl LocalInventory {
    pub(super) fn of(offered: Offered, sensors: Arc<Sensors>) -> Self {
        let was_incomplete = offered.incomplete.is_some();
        LocalInventory {
            was_incomplete,
            sensors,
            state: Mutex::new(State { offered, looked_at: Instant::now() }),
        }
    }

    pub(super) fn was_incomplete(&self) -> bool {
        self.was_incomplete
    }

    pub(super) fn notices(&self) -> BTreeMap<NodeName, String> {
        let state = self.state();
        let notice = state.offered.incomplete.clone();
        state.offered.nodes.first().map(|node| node.name.clone()).zip(notice).into_iter().collect()
    }

    /// Blocks while this machine is looked at.
    pub(super) fn nodes(&self) -> Vec<Node> {
        {
            let mut state = self.state();
            if state.offered.incomplete.is_none() || state.looked_at.elapsed() < LOOK_AGAIN_AFTER {
                return state.offered.nodes.clone();
            }
            // Whoever asks meanwhile gets what is known.
            state.looked_at = Instant::now();
        }
        let found = inventory::look(Machine::this());
        let mut state = self.state();
        if found.node.devices.len() > state.offered.nodes.first().map_or(0, |node| node.devices.len()) {
            tracing::info!("this machine shows {} devices now", found.node.devices.len());
            self.sensors.watch(found.node.name.clone(), found.reader);
            state.offered.nodes = vec![found.node];
        }
        state.offered.incomplete = found.incomplete;
        state.looked_at = Instant::now();
        state.offered.nodes.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
