//! `danlu devices`: accelerators, who holds them, and which are out of service.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::{Cell, Color, Table};
use danlu_client::Client;
use danlu_types::Health;
use danlu_types::api::DeviceView;
use danlu_types::device::WHOLE_DEVICE;

use crate::failure::Failure;
use crate::{output, table, words};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    /// Only devices that are free
    #[arg(long)]
    free: bool,
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

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, Failure> {
    if let Some(Action::Restore { node, index }) = arguments.action {
        client.device_restore(&node, index).await?;
        output::say(format!("device {index} of {node} is given out again"));
        return Ok(ExitCode::SUCCESS);
    }
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
                let share = if held.count.milli() < WHOLE_DEVICE {
                    format!(", {} of it", held.count)
                } else {
                    String::new()
                };
                format!("job {} ({}) of {}{share}", held.job, output::printable(&held.job_name), held.owner)
            }
            None if device.device.usable() => "free".to_owned(),
            None => "not given out".to_owned(),
        };
        let holder = match &device.out_of_service {
            Some(why) => format!("{holder}; out of service: {}", output::printable(why)),
            None => holder,
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
