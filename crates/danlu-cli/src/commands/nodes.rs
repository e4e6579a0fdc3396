//! `danlu nodes`: machines, what is taken of them, and which are kept free of jobs.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::{Cell, Color, Table};
use danlu_client::Client;
use danlu_types::api::{DrainView, JobOnNode, NodeView};
use jiff::Timestamp;

use super::adopt;
use crate::failure::CliError;
use crate::{output, table, words};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Keep new jobs off a node; running jobs continue
    Cordon {
        /// Name of the node
        #[arg(value_name = "NODE")]
        name: String,
        /// Reason to show with the node, e.g. "replacing a fan"
        #[arg(long, value_name = "TEXT")]
        why: String,
    },
    /// Let jobs start on a node again
    Uncordon {
        /// Name of the node
        #[arg(value_name = "NODE")]
        name: String,
    },
    /// Cordon a node and move its preemptible jobs away
    Drain {
        /// Name of the node
        #[arg(value_name = "NODE")]
        name: String,
        /// Reason to show with the node, e.g. "replacing a fan"
        #[arg(long, value_name = "TEXT", default_value = "being drained")]
        why: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    match arguments.action {
        None => list(&client, arguments.json).await?,
        Some(Action::Cordon { name, why }) => {
            client.node_cordon(&name, &why).await?;
            output::say(format!(
                "{name} is cordoned: nothing new starts there until `danlu nodes uncordon {name}`"
            ));
        }
        Some(Action::Uncordon { name }) => {
            client.node_uncordon(&name).await?;
            output::say(format!("jobs may start on {name} again"));
        }
        Some(Action::Drain { name, why, json }) => {
            let drained = client.node_drain(&name, &why).await?;
            if json {
                output::json(&drained)?;
            } else {
                output::lines(drain_lines(&drained))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(client: &Client, json: bool) -> Result<(), CliError> {
    let nodes = client.nodes_list().await?.items;
    if json {
        output::json(&nodes)?;
    } else if nodes.is_empty() {
        output::say("the engine offers no nodes");
    } else {
        table::print(&mut nodes_table(&nodes))?;
        output::lines(notices(&nodes))?;
        output::lines(adopt::sentences(&adopt::jobs(&nodes), Timestamp::now()))?;
    }
    Ok(())
}

/// Why nodes may have devices that are not offered.
pub(crate) fn notices(nodes: &[NodeView]) -> Vec<String> {
    let notice =
        |node: &NodeView| Some(format!("{}: {}", node.node.name, output::printable(node.notice.as_deref()?)));
    nodes.iter().filter_map(notice).collect()
}

/// Who leaves, and who has to be waited for.
pub(crate) fn drain_lines(drained: &DrainView) -> Vec<String> {
    let job = |job: &JobOnNode| {
        format!("  job {} ({}) of {}", job.job, output::printable(&job.name), output::printable(&job.owner))
    };
    let node = &drained.node;
    let mut lines = Vec::new();
    if !drained.preempted.is_empty() {
        lines.push(format!("asked to leave {node}, and queued again in their old places:"));
        lines.extend(drained.preempted.iter().map(job));
    }
    if !drained.running_on.is_empty() {
        lines.push(format!(
            "not preemptible, so they run on {node} to their end (`danlu stop JOB` ends one):"
        ));
        lines.extend(drained.running_on.iter().map(job));
    }
    if lines.is_empty() {
        lines.push(format!("nothing runs on {node}"));
    }
    lines
}

pub(crate) fn nodes_table(nodes: &[NodeView]) -> Table {
    let mut table = table::new(["node", "devices", "used", "cpus", "memory", "arch", "labels", "takes jobs"]);
    for node in nodes {
        let mut models: BTreeMap<String, usize> = BTreeMap::new();
        for device in &node.node.devices {
            *models.entry(words::device_label(device.kind, &device.model)).or_default() += 1;
        }
        let devices: Vec<String> = models.iter().map(|(model, count)| format!("{count} {model}")).collect();
        let capacity = &node.node.capacity;
        let simulated = if node.node.simulated { " (simulated)" } else { "" };
        let labels: Vec<String> = node
            .node
            .labels
            .iter()
            .map(|(name, value)| output::printable(&format!("{name}={value}")))
            .collect();
        let takes_jobs = match &node.node.cordoned {
            None => Cell::new("yes"),
            Some(why) => Cell::new(format!("no: {}", output::printable(why))).fg(Color::Yellow),
        };
        table.add_row([
            Cell::new(format!("{}{simulated}", node.node.name)),
            Cell::new(or_dash(&devices, ", ")),
            Cell::new(used(node)),
            Cell::new(format!("{} of {}", node.used_cpus, capacity.cpus)),
            Cell::new(format!("{} of {}", words::size(node.used_memory.0), words::size(capacity.memory.0))),
            Cell::new(&node.node.architecture),
            Cell::new(or_dash(&labels, " ")),
            takes_jobs,
        ]);
    }
    table
}

/// Devices of which anything is held count as used.
fn used(node: &NodeView) -> String {
    let mut held: Vec<u32> = node.held.iter().map(|held| held.index).collect();
    let others = node.node.foreign.iter().flat_map(|hold| &hold.devices);
    held.extend(others.clone());
    held.sort_unstable();
    held.dedup();
    let others = others.count();
    let others = if others == 0 { String::new() } else { format!(", {others} outside Danlu") };
    let broken = node.node.devices.iter().filter(|device| !device.usable()).count();
    let broken = if broken == 0 { String::new() } else { format!(", {broken} broken") };
    format!("{} of {}{others}{broken}", held.len(), node.node.devices.len())
}

fn or_dash(parts: &[String], between: &str) -> String {
    if parts.is_empty() { "–".to_owned() } else { parts.join(between) }
}
