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
use danlu_types::{Bytes, DeviceProcess, ForeignKind, Health, Reading, Wiring};
use jiff::Timestamp;

use super::nodes;
use crate::failure::CliError;
use crate::{output, table, words};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    /// List only free devices
    #[arg(long)]
    free: bool,
    /// List the devices of this machine, without a server
    #[arg(long)]
    local: bool,
    /// Show more columns: physical number, PCI bus, card and chip, NUMA node, network address, super-pod number or UUID
    #[arg(long)]
    wide: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Enable a disabled device
    Restore {
        /// Name of the node
        node: String,
        /// Index of the device on the node, from 0
        index: u32,
    },
}

pub(crate) async fn run(
    client: Result<Client, ClientError>,
    arguments: Arguments,
) -> Result<ExitCode, CliError> {
    if let Some(Action::Restore { node, index }) = arguments.action {
        client?.device_restore(&node, index).await?;
        output::say(format!("device {index} of {node} is given out again"));
        return Ok(ExitCode::SUCCESS);
    }
    let (mut devices, notices) =
        if arguments.local { (this_machine(), Vec::new()) } else { served(client).await? };
    if arguments.free {
        devices.retain(is_free);
    }
    if arguments.json {
        output::json(&devices)?;
    } else if devices.is_empty() {
        output::say(match (arguments.free, notices.is_empty()) {
            (true, _) => "no device is free",
            (false, true) => "no devices; jobs can use CPUs",
            (false, false) => "no devices are offered",
        });
    } else {
        let free = devices.iter().filter(|device| is_free(device)).count();
        table::print(&mut devices_table(&devices, arguments.wide))?;
        output::say(format!("{free} of {} free", devices.len()));
    }
    for notice in notices {
        output::say(notice);
    }
    Ok(ExitCode::SUCCESS)
}

/// The server's, or this machine's where no server runs; and why there may be more.
async fn served(client: Result<Client, ClientError>) -> Result<(Vec<DeviceView>, Vec<String>), CliError> {
    let answer = match client {
        Ok(client) => both(&client).await,
        Err(error) => Err(error),
    };
    match answer {
        Err(ClientError::NoServer(_) | ClientError::Unreachable { .. }) => {
            output::say("no server runs; these are the devices of this machine");
            Ok((this_machine(), Vec::new()))
        }
        answer => Ok(answer?),
    }
}

async fn both(client: &Client) -> Result<(Vec<DeviceView>, Vec<String>), ClientError> {
    let devices = client.devices_list().await?.items;
    Ok((devices, nodes::notices(&client.nodes_list().await?.items)))
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

/// What [`wiring`] fills in.
const WIRING: [&str; 6] = ["physical", "bus", "card.chip", "numa", "address", "id"];

pub(crate) fn devices_table(devices: &[DeviceView], wide: bool) -> Table {
    let mut columns = vec!["node", "index", "model", "health", "use", "memory", "temp", "power", "island"];
    columns.extend(WIRING.iter().filter(|_| wide));
    columns.push("used by");
    let mut table = table::of_columns(&columns);
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
        let mut row = vec![
            Cell::new(&view.node),
            Cell::new(view.device.index),
            Cell::new(words::device_label(view.device.kind, &view.device.model)),
            Cell::new(health).fg(color),
            Cell::new(or_dash(reading.utilisation_percent.map(|percent| format!("{percent} %")))),
            Cell::new(memory(reading.memory_used, view.device.memory)),
            Cell::new(or_dash(reading.temperature_celsius.map(|celsius| format!("{celsius} °C")))),
            Cell::new(or_dash(reading.power_watts.map(|watts| format!("{watts} W")))),
            Cell::new(view.device.island),
        ];
        if wide {
            row.extend(wiring(&view.device.wiring).map(|text| Cell::new(or_dash(text))));
        }
        row.push(Cell::new(used_by(view, &reading.processes)));
        table.add_row(row);
    }
    table
}

/// The numbers by which other tools know a device, as far as its machine says.
fn wiring(wiring: &Wiring) -> [Option<String>; 6] {
    let card = match (wiring.card, wiring.chip) {
        (Some(card), Some(chip)) => Some(format!("{card}.{chip}")),
        (card, _) => card.map(|card| card.to_string()),
    };
    let super_device = wiring.super_device.map(|number| format!("SDID {number}"));
    [
        wiring.physical.map(|number| number.to_string()),
        wiring.bus.as_deref().map(output::printable),
        card,
        wiring.numa.map(|node| node.to_string()),
        wiring.address.map(|address| address.to_string()),
        super_device.or_else(|| wiring.uuid.as_deref().map(output::printable)),
    ]
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
