//! `danlu adopt`: the jobs that hold nodes of the cluster and are none of Danlu's. Nothing of them changes hands: they are
//! counted, so that what is called free is free.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use danlu_client::Client;
use danlu_types::api::NodeView;
use danlu_types::{Bytes, Cpus, NodeName};
use jiff::Timestamp;
use serde::Serialize;

use crate::failure::CliError;
use crate::{output, table, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A job with all that it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ForeignJob {
    job: String,
    name: String,
    user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    nodes: Vec<OnNode>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct OnNode {
    node: NodeName,
    devices: Vec<u32>,
    cpus: Cpus,
    memory: Bytes,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let jobs = jobs(&client.nodes_list().await?.items);
    if arguments.json {
        output::json(&jobs)?;
    } else if jobs.is_empty() {
        output::say("no jobs but Danlu's hold anything of the nodes");
        output::say(
            "hint: only a cluster has such jobs; on one machine, `danlu devices` shows programs that are no jobs, \
             and `danlu sweep` those that were left behind",
        );
    } else {
        table::print(&mut jobs_table(&jobs, Timestamp::now()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Those of all nodes, in the order of their numbers.
pub(crate) fn jobs(nodes: &[NodeView]) -> Vec<ForeignJob> {
    let mut jobs: BTreeMap<(usize, &str), ForeignJob> = BTreeMap::new();
    for view in nodes {
        for hold in &view.node.foreign {
            let job = jobs.entry((hold.job.len(), &hold.job)).or_insert_with(|| ForeignJob {
                job: hold.job.clone(),
                name: hold.name.clone(),
                user: hold.user.clone(),
                until: hold.until,
                nodes: Vec::new(),
            });
            job.nodes.push(OnNode {
                node: view.node.name.clone(),
                devices: hold.devices.clone(),
                cpus: hold.cpus,
                memory: hold.memory,
            });
        }
    }
    jobs.into_values().collect()
}

pub(crate) fn jobs_table(jobs: &[ForeignJob], now: Timestamp) -> comfy_table::Table {
    let mut table = table::new(["job", "name", "user", "node", "devices", "cpus", "memory", "until"]);
    for job in jobs {
        for on in &job.nodes {
            table.add_row([
                output::printable(&job.job),
                output::printable(&job.name),
                output::printable(&job.user),
                on.node.to_string(),
                numbers(&on.devices),
                on.cpus.to_string(),
                words::size(on.memory.0),
                until(job.until, now),
            ]);
        }
    }
    table
}

/// A line for each, for whoever looks at nodes.
pub(crate) fn sentences(jobs: &[ForeignJob], now: Timestamp) -> Vec<String> {
    let sentence = |job: &ForeignJob| {
        let held: Vec<String> = job
            .nodes
            .iter()
            .map(|on| match on.devices.len() {
                0 => format!("{} CPUs of {}", on.cpus, on.node),
                1 => format!("1 device of {}", on.node),
                count => format!("{count} devices of {}", on.node),
            })
            .collect();
        let (name, user) = (output::printable(&job.name), output::printable(&job.user));
        let until = match job.until {
            Some(_) => format!(", {}", until(job.until, now)),
            None => String::new(),
        };
        format!(
            "held by Slurm job {} ({name}) of {user}: {}{until}",
            output::printable(&job.job),
            held.join(", ")
        )
    };
    jobs.iter().map(sentence).collect()
}

fn until(at: Option<Timestamp>, now: Timestamp) -> String {
    match at {
        Some(at) if at > now => format!("for {} at most", words::between(now, at)),
        Some(_) => "its time is over".to_owned(),
        None => "without a limit".to_owned(),
    }
}

/// `0-3,6`, as everybody writes them.
fn numbers(devices: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for device in devices {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*device) => *last = *device,
            _ => ranges.push((*device, *device)),
        }
    }
    let written = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    match &ranges[..] {
        [] => "–".to_owned(),
        ranges => ranges.iter().map(written).collect::<Vec<_>>().join(","),
    }
}
