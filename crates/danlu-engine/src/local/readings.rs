//! How this machine's devices are doing, asked of the vendors' tools at most every few seconds however many ask us.
//!
//! Each answer is also laid down for launchers, who ask nobody: see [`danlu_core::sample`].

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use danlu_core::launch::RunLayout;
use danlu_core::node::Readings;
use danlu_core::sample::{DeviceUse, NodeReadings};
use danlu_device::inventory;
use danlu_device::machine::Machine;
use danlu_device::readings::Reader;
use danlu_types::{Node, NodeName, Reading};
use jiff::Timestamp;

use crate::{EngineError, files};

/// `npu-smi` takes a good part of a second, and so does the eye.
const FRESH: Duration = Duration::from_secs(2);

/// The devices of the one node that is real, if it has any.
#[derive(Debug)]
pub(super) struct Sensors {
    layout: RunLayout,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    node: Option<NodeName>,
    /// Opened when first asked: a server that nobody asks need not look twice.
    reader: Option<Reader>,
    last: Option<Answer>,
}

/// When it came, and what it was: readings by device number, or why there are none.
type Answer = (Instant, Result<BTreeMap<u32, Reading>, String>);

impl State {
    /// A look that finds no devices, where there were some, is not kept: the tools did not answer.
    fn ask(&mut self) -> Result<BTreeMap<u32, Reading>, String> {
        if let Some(reader) = &self.reader {
            return reader.read();
        }
        let found = inventory::look(Machine::this());
        if found.node.devices.is_empty() {
            let gone = || "this machine no longer shows any of its devices".to_owned();
            return Err(found.remarks.into_iter().next().unwrap_or_else(gone));
        }
        self.reader.insert(found.reader).read()
    }
}

impl Sensors {
    pub(super) fn of(nodes: &[Node], layout: RunLayout) -> Self {
        let host = nodes.iter().find(|node| !node.simulated && !node.devices.is_empty());
        let state = State { node: host.map(|node| node.name.clone()), ..State::default() };
        Sensors { layout, state: Mutex::new(state) }
    }

    /// Reads the devices of this node from now on.
    pub(super) fn watch(&self, node: NodeName, reader: Reader) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { node: Some(node), reader: Some(reader), last: None };
    }

    /// Blocks. Who asks while another waits for the tools gets that answer.
    pub(super) fn read(&self) -> Result<Readings, EngineError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(node) = state.node.clone() else { return Ok(Readings::new()) };
        let fresh = state.last.as_ref().is_some_and(|(at, _)| at.elapsed() < FRESH);
        if !fresh {
            let answer = state.ask();
            if let Ok(readings) = &answer
                && let Err(error) = lay_down(&self.layout.readings_file(&node), readings)
            {
                tracing::warn!("could not lay down for launchers what the devices of {node} do: {error}");
            }
            state.last = Some((Instant::now(), answer));
        }
        match state.last.as_ref().map(|(_, answer)| answer) {
            Some(Ok(readings)) => Ok(Readings::from([(node, readings.clone())])),
            Some(Err(why)) => {
                let source = io::Error::other(why.clone());
                Err(EngineError::Host { doing: "read the devices of this machine", source })
            }
            None => Ok(Readings::new()),
        }
    }
}

/// Called with the lock in hand: there is one writer at a time.
fn lay_down(path: &Path, readings: &BTreeMap<u32, Reading>) -> io::Result<()> {
    let in_use = |reading: &Reading| DeviceUse {
        percent: reading.utilisation_percent,
        memory: reading.memory_used.map(|bytes| bytes.0),
        watts: reading.power_watts,
        celsius: reading.temperature_celsius,
    };
    let devices = readings.iter().map(|(index, reading)| (*index, in_use(reading))).collect();
    let bytes = serde_json::to_vec(&NodeReadings { at: Timestamp::now(), devices })?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(io::Error::other("its path names no file"));
    };
    files::make_folder(folder)?;
    files::replace(folder, name, &bytes)
}
