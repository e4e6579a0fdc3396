//! `danlu nodes`: machines and what is taken of them.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use comfy_table::{Cell, Table};
use danlu_client::Client;
use danlu_types::api::NodeView;

use crate::failure::Failure;
use crate::{output, table, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, Failure> {
    let nodes = client.nodes_list().await?.items;
    if arguments.json {
        output::json(&nodes)?;
    } else if nodes.is_empty() {
        output::say("the engine offers no nodes");
    } else {
        table::print(&mut nodes_table(&nodes))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn nodes_table(nodes: &[NodeView]) -> Table {
    let mut table = table::new(["node", "devices", "used", "cpus", "memory", "arch"]);
    for node in nodes {
        let mut models: BTreeMap<String, usize> = BTreeMap::new();
        for device in &node.node.devices {
            *models.entry(words::device_label(device.kind, &device.model)).or_default() += 1;
        }
        let devices: Vec<String> = models.iter().map(|(model, count)| format!("{count} {model}")).collect();
        let broken = node.node.devices.iter().filter(|device| !device.usable()).count();
        let broken = if broken == 0 { String::new() } else { format!(", {broken} broken") };
        let capacity = &node.node.capacity;
        let simulated = if node.node.simulated { " (simulated)" } else { "" };
        table.add_row([
            Cell::new(format!("{}{simulated}", node.node.name)),
            Cell::new(if devices.is_empty() { "–".to_owned() } else { devices.join(", ") }),
            Cell::new(format!("{} of {}{broken}", node.held.len(), node.node.devices.len())),
            Cell::new(format!("{} of {}", node.used_cpus, capacity.cpus)),
            Cell::new(format!("{} of {}", words::size(node.used_memory.0), words::size(capacity.memory.0))),
            Cell::new(&node.node.architecture),
        ]);
    }
    table
}
