//! `danlu devices`: accelerators of all vendors in one table, how they are doing, who uses them.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::{Cell, Color, Table};
use danlu_client::{Client, ClientError};
use danlu_core::node::{OwnUse, outside_use};
use danlu_device::inventory;
use danlu_device::machine::Machine;
use danlu_types::api::DeviceView;
use danlu_types::device::WHOLE_DEVICE;
use danlu_types::{Bytes, DeviceProcess, ForeignKind, Health, Reading};
use jiff::Timestamp;

use crate::failure::Failure;
use crate::{output, table, words};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    /// Only devices that are free
    #[arg(long)]
    free: bool,
    /// The devices of this machine, without asking a server
    #[arg(long)]
    local: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Gives a device out again that was taken out of service
    Restore {
        /// The machine's name
        node: String,
        /// The device's index on it
        index: u32,
    },
}

pub(crate) async fn run(
    client: Result<Client, ClientError>,
    arguments: Arguments,
) -> Result<ExitCode, Failure> {
    if let Some(Action::Restore { node, index }) = arguments.action {
        client?.device_restore(&node, index).await?;
        output::say(format!("device {index} of {node} is given out again"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut devices = if arguments.local { this_machine() } else { served(client).await? };
    if arguments.free {
        devices.retain(is_free);
    }
    if arguments.json {
        output::json(&devices)?;
    } else if devices.is_empty() {
        output::say(if arguments.free {
            "no device is free"
        } else {
            "there are no devices; jobs can use CPUs"
        });
    } else {
        let free = devices.iter().filter(|device| is_free(device)).count();
        table::print(&mut devices_table(&devices))?;
        output::say(format!("{free} of {} free", devices.len()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The server's, or this machine's where no server runs.
async fn served(client: Result<Client, ClientError>) -> Result<Vec<DeviceView>, Failure> {
    let answer = match client {
        Ok(client) => client.devices_list().await.map(|page| page.items),
        Err(error) => Err(error),
    };
    match answer {
        Err(ClientError::NoServer(_) | ClientError::Unreachable { .. }) => {
            output::say("no server runs; these are the devices of this machine");
            Ok(this_machine())
        }
        answer => Ok(answer?),
    }
}

fn this_machine() -> Vec<DeviceView> {
    let found = inventory::look(Machine::this());
    for remark in &found.remarks {
        output::say(remark);
    }
    let mut readings = found.reader.read().unwrap_or_else(|remark| {
        output::say(remark);
        BTreeMap::new()
    });
    // Nobody here holds anything: what uses a device is outside.
    let outside = outside_use(&found.node, &readings, &OwnUse::default(), Timestamp::now());
    let name = found.node.name;
    let view = |device: danlu_types::Device| DeviceView {
        node: name.clone(),
        reading: readings.remove(&device.index),
        out_of_service: None,
        held_by: None,
        holders: Vec::new(),
        foreign: outside.iter().find(|hold| hold.devices.contains(&device.index)).cloned(),
        device,
    };
    found.node.devices.into_iter().map(view).collect()
}

/// Held by no job, and used by nobody else either, as the scheduler sees it.
fn is_free(view: &DeviceView) -> bool {
    view.held_by.is_none() && view.foreign.is_none() && view.device.usable()
}

pub(crate) fn devices_table(devices: &[DeviceView]) -> Table {
    let columns = ["node", "index", "model", "health", "use", "memory", "temp", "power", "island", "used by"];
    let mut table = table::new(columns);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    for view in devices {
        let none = Reading { health: view.device.health, ..Reading::default() };
        let reading = view.reading.as_ref().unwrap_or(&none);
        // A device that an administrator or a failure has taken out is ill whatever its vendor says.
        let (health, color) = match (view.device.health, reading.health) {
            (Health::Failed, _) | (_, Health::Failed) => ("failed", Color::Red),
            (Health::Unknown, _) | (_, Health::Unknown) => ("unknown", Color::Yellow),
            (Health::Warning, _) | (_, Health::Warning) => ("warning", Color::Yellow),
            (Health::Ok, Health::Ok) => ("ok", Color::Green),
        };
        table.add_row([
            Cell::new(&view.node),
            Cell::new(view.device.index),
            Cell::new(words::device_label(view.device.kind, &view.device.model)),
            Cell::new(health).fg(color),
            Cell::new(or_dash(reading.utilisation_percent.map(|percent| format!("{percent} %")))),
            Cell::new(memory(reading.memory_used, view.device.memory)),
            Cell::new(or_dash(reading.temperature_celsius.map(|celsius| format!("{celsius} °C")))),
            Cell::new(or_dash(reading.power_watts.map(|watts| format!("{watts} W")))),
            Cell::new(view.device.island),
            Cell::new(used_by(view, &reading.processes)),
        ]);
    }
    table
}

fn memory(used: Option<Bytes>, total: Bytes) -> String {
    match used {
        Some(used) => format!("{} of {}", words::size(used.0), words::size(total.0)),
        None => words::size(total.0),
    }
}

/// Who holds it, then whoever uses it beside them: nobody should have to look twice to find out whose program is in the way.
fn used_by(view: &DeviceView, processes: &[DeviceProcess]) -> String {
    let mut users = Vec::new();
    for held in &view.holders {
        let whole = held.count.milli() >= WHOLE_DEVICE;
        let share = if whole { String::new() } else { format!(", {} of it", held.count) };
        let name = output::printable(&held.job_name);
        users.push(match held.job {
            Some(job) => format!("job {job} ({name}) of {}{share}", held.owner),
            None => format!("{name}{share}"),
        });
    }
    match &view.foreign {
        Some(hold) if hold.kind == ForeignKind::ClusterJob => {
            let (name, user) = (output::printable(&hold.name), output::printable(&hold.user));
            users.push(format!("the cluster's job {} ({name}) of {user}", output::printable(&hold.job)));
        }
        Some(hold) if hold.kind == ForeignKind::UnknownProcess => {
            users.push("in use by an unknown process".to_owned());
        }
        // Told below, with all others.
        Some(_) | None => {}
    }
    for process in processes {
        match process.job {
            Some(job) if view.holders.iter().any(|held| held.job == Some(job)) => {}
            Some(job) => users.push(format!("pid {} of job {job}", process.pid)),
            None => users.push(format!(
                "pid {} of {}: {}, no job",
                process.pid,
                process.user.as_deref().unwrap_or("another container"),
                output::printable(&process.name)
            )),
        }
    }
    if users.is_empty() {
        users.push(if view.device.usable() { "free".to_owned() } else { "not given out".to_owned() });
    }
    if let Some(why) = &view.out_of_service {
        users.push(format!("out of service: {}", output::printable(why)));
    }
    users.join("; ")
}
