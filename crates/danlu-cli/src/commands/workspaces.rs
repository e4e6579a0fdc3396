//! `danlu workspaces`: who shares the cluster, and what of it each uses.

use std::process::ExitCode;

use clap::Args;
use comfy_table::{Cell, Table};
use danlu_client::Client;
use danlu_types::api::{AmountsUsed, WorkspaceView};
use danlu_types::{Amounts, HeadOfLine};

use crate::failure::Failure;
use crate::{output, table, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, Failure> {
    let workspaces = client.workspaces_list().await?.items;
    if arguments.json {
        output::json(&workspaces)?;
    } else if workspaces.is_empty() {
        output::say("no workspaces; `danlu up --workspaces FILE` says who shares the cluster, and how");
    } else {
        table::print(&mut workspaces_table(&workspaces))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn workspaces_table(workspaces: &[WorkspaceView]) -> Table {
    let mut table = table::new([
        "workspace",
        "guaranteed",
        "limit",
        "per user",
        "used",
        "borrowed",
        "lent",
        "head of line",
    ]);
    for workspace in workspaces {
        table.add_row([
            Cell::new(output::printable(&workspace.name)),
            Cell::new(amounts(&workspace.guaranteed)),
            Cell::new(amounts(&workspace.limit)),
            Cell::new(amounts(&workspace.per_user)),
            Cell::new(used(&workspace.used)),
            Cell::new(used(&workspace.borrowed)),
            Cell::new(used(&workspace.lent)),
            Cell::new(policy(workspace.head_of_line)),
        ]);
    }
    table
}

fn amounts(amounts: &Amounts) -> String {
    joined([
        amounts.nvidia.map(|count| format!("{count} NVIDIA")),
        amounts.ascend.map(|count| format!("{count} Ascend")),
        amounts.cpus.map(words::cpus),
        amounts.memory.map(|memory| words::size(memory.0)),
    ])
}

/// Without what is not used at all.
fn used(used: &AmountsUsed) -> String {
    joined([
        (used.nvidia > 0.0).then(|| format!("{} NVIDIA", used.nvidia)),
        (used.ascend > 0.0).then(|| format!("{} Ascend", used.ascend)),
        (used.cpus.milli > 0).then(|| words::cpus(used.cpus)),
        (used.memory.0 > 0).then(|| words::size(used.memory.0)),
    ])
}

fn joined(parts: [Option<String>; 4]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "–".to_owned() } else { parts.join(", ") }
}

fn policy(policy: HeadOfLine) -> &'static str {
    match policy {
        HeadOfLine::Backfill => "backfill",
        HeadOfLine::Strict => "strict",
        HeadOfLine::Skip => "skip",
        HeadOfLine::Balance => "balance",
    }
}
