//! `danlu devices`: accelerators and who holds them.

use std::process::ExitCode;

use clap::Args;
use comfy_table::{Cell, Color, Table};
use danlu_client::Client;
use danlu_types::Health;
use danlu_types::api::DeviceView;

use crate::failure::Failure;
use crate::{output, table, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only devices that are free
    #[arg(long)]
    free: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, Failure> {
    let mut devices = client.devices_list().await?.items;
    if arguments.free {
        devices.retain(|device| device.held_by.is_none() && device.device.usable());
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
        let free = devices.iter().filter(|device| device.held_by.is_none() && device.device.usable()).count();
        table::print(&mut devices_table(&devices))?;
        output::say(format!("{free} of {} free", devices.len()));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn devices_table(devices: &[DeviceView]) -> Table {
    let mut table = table::new(["node", "index", "model", "memory", "island", "health", "held by"]);
    for device in devices {
        let (health, color) = match device.device.health {
            Health::Ok => ("ok", Color::Green),
            Health::Warning => ("warning", Color::Yellow),
            Health::Failed => ("failed", Color::Red),
            Health::Unknown => ("unknown", Color::Yellow),
        };
        let holder = match &device.held_by {
            Some(held) => {
                format!("job {} ({}) of {}", held.job, output::printable(&held.job_name), held.owner)
            }
            None if device.device.usable() => "free".to_owned(),
            None => "not given out".to_owned(),
        };
        table.add_row([
            Cell::new(&device.node),
            Cell::new(device.device.index),
            Cell::new(words::device_label(device.device.kind, &device.device.model)),
            Cell::new(words::size(device.device.memory.0)),
            Cell::new(device.device.island),
            Cell::new(health).fg(color),
            Cell::new(holder),
        ]);
    }
    table
}
