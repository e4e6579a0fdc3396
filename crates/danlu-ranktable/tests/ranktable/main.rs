//! Rank tables: those that others wrote are read, those that we write are read back, and what is wrong is named.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod conversions;
mod faults;
mod generated;
mod joined;
mod properties;
mod samples;

use std::fmt::Write as _;

use danlu_ranktable::{RankTable, RankedDevice, Server, TableContent, TableIssue, numbered};

/// Machines as a cluster of `servers` with `devices` each would have them: addresses by server and card.
fn cluster(servers: u32, devices: u32) -> Vec<Server> {
    let server = |number: u32| {
        let device = |card: u32| {
            let address = format!("192.168.{}.{}", 10 * (card % 4 + 1), number * 2 + card / 4 + 1);
            RankedDevice::new(card, Some(address))
        };
        Server::new(format!("10.0.0.{}", number + 1), (0..devices).map(device))
    };
    numbered((0..servers).map(server).collect())
}

fn super_pods(pods: u32, servers: u32, dies: u32) -> Vec<Server> {
    let mut all = cluster(pods * servers, dies);
    for (server, number) in all.iter_mut().zip(0..) {
        server.super_pod = Some((number / servers).to_string());
        server.host = Some(format!("172.16.0.{}", 100 + number));
        for device in &mut server.devices {
            device.super_device = Some(u64::from(number % servers * dies + device.device));
            device.address = Some(format!("192.168.{number}.{}", device.device + 1));
        }
    }
    all
}

/// One line per device, for tables too long to read as JSON.
fn outline(table: &RankTable) -> String {
    let mut text = format!("version {}, {} ranks\n", table.version, table.ranks());
    match &table.content {
        TableContent::Servers(servers) => {
            for server in servers {
                let Server { id, host, pod, super_pod, devices, extra } = server;
                let _ = write!(text, "{id}");
                for (name, value) in [("host", host), ("pod", pod), ("super-pod", super_pod)] {
                    if let Some(value) = value {
                        let _ = write!(text, "  {name} {value}");
                    }
                }
                let _ = writeln!(text, "{}", extras(extra));
                for RankedDevice { device, address, super_device, rank, extra } in devices {
                    let address = address.as_deref().unwrap_or("-");
                    let _ = write!(text, "  rank {rank:<3} device {device:<2} {address}");
                    if let Some(id) = super_device {
                        let _ = write!(text, "  super-device {id}");
                    }
                    let _ = writeln!(text, "{}", extras(extra));
                }
            }
        }
        TableContent::Ranks(ranks) => {
            for rank in ranks {
                let _ = writeln!(text, "  rank {} device {} local {}", rank.rank, rank.device, rank.local);
                for level in &rank.levels {
                    let addresses: Vec<_> =
                        level.addresses.iter().map(|address| address.address.as_str()).collect();
                    let _ = writeln!(
                        text,
                        "    layer {} {} {}: {}",
                        level.layer,
                        level.kind,
                        level.instance,
                        addresses.join(" ")
                    );
                }
            }
        }
    }
    let _ = write!(text, "{}", extras(&table.extra));
    text
}

fn extras(extra: &danlu_ranktable::Extra) -> String {
    extra.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = write!(text, "  {name}={value}");
        text
    })
}

fn listed(findings: &[TableIssue]) -> String {
    if findings.is_empty() {
        return "nothing is wrong".to_owned();
    }
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
