//! Nodes and devices that go and come back: as the story says, or by chance.

use danlu_core::FailureCause;
use danlu_types::{Health, Node, NodeName};

use super::agenda::{Item, PlannedFault};
use super::{Simulation, after};
use crate::dice::Dice;
use crate::faults::Faults;

impl Simulation {
    pub(super) fn prepare_faults(&mut self) {
        let Some(faults) = self.faults else { return };
        let mut stream = 0;
        for node in 0..self.nodes.len() {
            let mut dice = Vec::new();
            // Position 0 is the node itself, the others are its devices.
            for position in 0..=self.nodes[node].devices.len() {
                dice.push(Dice::new(faults.seed, stream));
                stream += 1;
                let fault = PlannedFault { node, device: position.checked_sub(1) };
                self.draw(faults, fault, &mut dice[position]);
            }
            self.dice.push(dice);
        }
    }

    fn draw(&mut self, faults: Faults, fault: PlannedFault, dice: &mut Dice) {
        let mean = if fault.device.is_some() { faults.device_every } else { faults.node_every };
        if let Some(mean) = mean {
            self.agenda.put(after(self.now, dice.time_to_next(mean)), Item::Breaks(fault));
        }
    }

    pub(super) fn breaks(&mut self, fault: PlannedFault) {
        let Some(faults) = self.faults else { return };
        let (node, device) = self.named(fault);
        match device {
            None => self.lose_node(&node),
            Some(device) => self.fail_device(&node, device, true),
        }
        self.broken += 1;
        self.agenda.put(after(self.now, faults.repair), Item::Mended(fault));
    }

    pub(super) fn mended(&mut self, fault: PlannedFault) {
        let Some(faults) = self.faults else { return };
        let (node, device) = self.named(fault);
        match device {
            None => self.return_node(&node),
            Some(device) => self.mend_device(&node, device),
        }
        self.broken -= 1;
        let position = fault.device.map_or(0, |device| device + 1);
        let mut dice = self.dice[fault.node][position].clone();
        self.draw(faults, fault, &mut dice);
        self.dice[fault.node][position] = dice;
    }

    fn named(&self, fault: PlannedFault) -> (NodeName, Option<u32>) {
        let node = &self.nodes[fault.node];
        (node.name.clone(), fault.device.map(|device| node.devices[device].index))
    }

    pub(super) fn lose_node(&mut self, name: &NodeName) {
        if self.lost.insert(name.clone()) {
            self.fail_workers(name, None, FailureCause::NodeLost);
            self.node_changed(name);
        }
    }

    pub(super) fn return_node(&mut self, name: &NodeName) {
        if self.lost.remove(name) {
            self.node_changed(name);
        }
    }

    pub(super) fn fail_device(&mut self, node: &NodeName, device: u32, with_its_holder: bool) {
        self.set_health(node, device, Health::Failed);
        if with_its_holder {
            self.fail_workers(node, Some(device), FailureCause::DeviceError);
        }
    }

    pub(super) fn mend_device(&mut self, node: &NodeName, device: u32) {
        self.set_health(node, device, Health::Ok);
    }

    fn set_health(&mut self, name: &NodeName, index: u32, health: Health) {
        let Some(node) = self.node_mut(name) else { return };
        for device in node.devices.iter_mut().filter(|device| device.index == index) {
            device.health = health;
        }
        self.node_changed(name);
    }

    fn node_changed(&mut self, name: &NodeName) {
        self.nodes_changed = true;
        if let Some(ordinal) = self.meter.ordinal(name) {
            self.meter.node_changed(&self.nodes[ordinal], !self.lost.contains(name));
        }
    }

    fn node_mut(&mut self, name: &NodeName) -> Option<&mut Node> {
        let ordinal = self.meter.ordinal(name)?;
        self.nodes.get_mut(ordinal)
    }
}
