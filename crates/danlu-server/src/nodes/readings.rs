//! What readings of devices change: ill ones, unknown ones and those that processes outside Danlu use get no new jobs.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use danlu_core::Job;
use danlu_core::node::{
    OwnUse, Readings, SETTLING, devices_held, devices_released, outside_use, with_readings, without_readings,
};
use danlu_types::api::DeviceView;
use danlu_types::{ForeignHold, Node, NodeName};
use jiff::Timestamp;

use super::NodeNotes;
use crate::app::App;

/// A list of devices is worth more soon than complete.
const PATIENCE: Duration = Duration::from_secs(3);

impl NodeNotes {
    /// Takes over how healthy devices are and who uses them without a job; all are unknown where they could not be read.
    /// Returns the names of the nodes where that has changed.
    fn read(
        &self,
        readings: Option<&Readings>,
        outside: BTreeMap<NodeName, Vec<ForeignHold>>,
    ) -> Vec<NodeName> {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        let read = match readings {
            Some(readings) => with_readings(offered.clone(), readings),
            None => without_readings(offered.clone()),
        };
        let mut known = self.outside.lock().unwrap_or_else(PoisonError::into_inner);
        let differs =
            |(old, new): &(&Node, &Node)| old != new || known.get(&old.name) != outside.get(&old.name);
        let changed = offered.iter().zip(&read).filter(differs).map(|(node, _)| node.name.clone()).collect();
        *known = outside;
        *offered = read;
        changed
    }

    pub(crate) fn has_outside_use(&self) -> bool {
        !self.outside.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn outside(
        &self,
        readings: &Readings,
        own: &OwnUse,
        now: Timestamp,
    ) -> BTreeMap<NodeName, Vec<ForeignHold>> {
        let offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        let of_node = |node: &Node| {
            let holds = outside_use(node, readings.get(&node.name)?, own, now);
            (!holds.is_empty()).then(|| (node.name.clone(), holds))
        };
        offered.iter().filter_map(of_node).collect()
    }

    pub(super) fn learn_released<'a>(&self, jobs: impl Iterator<Item = &'a Job>, now: Timestamp) {
        let mut released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
        released.retain(|_, at| now.duration_since(*at) < SETTLING);
        for (device, at) in devices_released(jobs) {
            if now.duration_since(at) < SETTLING {
                released.insert(device, at);
            }
        }
    }
}

impl App {
    /// The devices with how they are doing, where that can be told in time for whoever asks.
    pub(crate) async fn devices_read(&self) -> Vec<DeviceView> {
        let readings = match tokio::time::timeout(PATIENCE, self.engine.readings()).await {
            Ok(Ok(readings)) => readings,
            Ok(Err(error)) => {
                tracing::debug!("{}", crate::error_chain(&error));
                Readings::new()
            }
            Err(_) => Readings::new(),
        };
        let mut devices = self.devices();
        for view in &mut devices {
            view.reading = readings.get(&view.node).and_then(|node| node.get(&view.device.index)).cloned();
        }
        devices
    }

    /// Gives no new jobs to devices that have become ill, do not answer or are used by others, and does again to those that
    /// are well and free. False where the devices could not be read.
    pub(crate) async fn take_readings(&self) -> bool {
        let readings = match self.engine.readings().await {
            Ok(readings) => Some(readings),
            Err(error) => {
                tracing::warn!("{}", crate::error_chain(&error));
                None
            }
        };
        // Not while a note changes: each of the two would write its own view of the nodes over the other's.
        let _changing = self.nodes.changing.lock().await;
        let outside = match &readings {
            Some(readings) if !self.use_busy_devices => {
                // After the readings: what was placed meanwhile is held by now.
                self.nodes.outside(readings, &self.own_use(), Timestamp::now())
            }
            _ => BTreeMap::new(),
        };
        let changed = self.nodes.read(readings.as_ref(), outside);
        self.show_nodes(&changed);
        for name in &changed {
            tracing::info!("the health or the outside use of devices of {name} has changed");
        }
        readings.is_some()
    }

    fn own_use(&self) -> OwnUse {
        let pages = self.live_state.read();
        OwnUse {
            held: devices_held(pages.active().map(Arc::as_ref)),
            live: pages.active().map(|job| job.id).collect(),
            released: self.nodes.released.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
