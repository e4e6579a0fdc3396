//! `danlu workspace`: who shares the cluster, by which rules, and who is in it.

pub(crate) mod members;
pub(crate) mod rules;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::{Cell, Table};
use danlu_client::Client;
use danlu_types::api::{AmountsUsed, WorkspaceView};
use danlu_types::spec::OnHang;
use danlu_types::{Amounts, HeadOfLine};

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
    /// List workspaces with their quotas and use
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the rules of a workspace
    Show {
        /// Name of the workspace
        #[arg(value_name = "WORKSPACE")]
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change the rules of a workspace (quota: administrators only)
    Set {
        /// Name of the workspace
        #[arg(value_name = "WORKSPACE")]
        name: String,
        #[command(flatten)]
        rules: Box<rules::RuleFlags>,
    },
    /// List, add and remove the members of a workspace
    Members(members::Arguments),
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    match arguments.action {
        None => list(&client, arguments.json).await?,
        Some(Action::List { json }) => list(&client, json).await?,
        Some(Action::Show { name, json }) => {
            let workspace = client.workspace_show(&name).await?;
            if json {
                output::json(&workspace)?;
            } else {
                table::print(&mut rules_table(&workspace))?;
            }
        }
        Some(Action::Set { name, rules }) => {
            let before = client.workspace_show(&name).await?.rules;
            let after = client.workspace_set(&name, &rules.change(before)).await?;
            table::print(&mut rules_table(&after))?;
        }
        Some(Action::Members(arguments)) => return members::run(client, arguments).await,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(client: &Client, json: bool) -> Result<(), CliError> {
    let workspaces = client.workspaces_list().await?.items;
    if json {
        output::json(&workspaces)?;
    } else if workspaces.is_empty() {
        output::say(
            "no workspaces beside everybody's own and `default`; `danlu admin workspace create NAME` makes one",
        );
    } else {
        table::print(&mut workspaces_table(&workspaces))?;
    }
    Ok(())
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
            Cell::new(amounts(&workspace.rules.guaranteed)),
            Cell::new(amounts(&workspace.rules.limit)),
            Cell::new(amounts(&workspace.rules.per_user)),
            Cell::new(used(&workspace.used)),
            Cell::new(used(&workspace.borrowed)),
            Cell::new(used(&workspace.lent)),
            Cell::new(policy(workspace.rules.head_of_line)),
        ]);
    }
    table
}

/// One rule a line, those that say something.
pub(crate) fn rules_table(workspace: &WorkspaceView) -> Table {
    let rules = &workspace.rules;
    let number = |priority: Option<u8>| priority.map(|priority| priority.to_string());
    let said = |amounts: &Amounts| (!amounts.says_nothing()).then(|| self::amounts(amounts));
    let idle = rules.idle.map(|idle| match idle.then {
        OnHang::Notify => format!("said in their log after {}", idle.after),
        OnHang::Restart => format!("started again after {}", idle.after),
    });
    let lines = [
        ("workspace", Some(workspace.name.clone())),
        ("guaranteed", said(&rules.guaranteed)),
        ("limit", said(&rules.limit)),
        ("per user", said(&rules.per_user)),
        ("approval above", said(&rules.approve_above)),
        ("head of line", Some(policy(rules.head_of_line).to_owned())),
        ("default priority", number(rules.default_priority)),
        ("highest priority", number(rules.highest_priority)),
        ("images", (!rules.images.is_empty()).then(|| rules.images.join(", "))),
        ("idle jobs", idle),
        ("shared folder", rules.shared_folder.clone()),
        ("shared bucket", rules.shared_bucket.clone()),
        ("used", Some(used(&workspace.used))),
    ];
    let mut table = table::new(["rule", "value"]);
    for (what, value) in lines {
        if let Some(value) = value {
            table.add_row([Cell::new(what), Cell::new(output::printable(&value))]);
        }
    }
    table
}

fn amounts(amounts: &Amounts) -> String {
    joined([
        amounts.nvidia.map(|count| format!("{count} NVIDIA")),
        amounts.ascend.map(|count| format!("{count} Ascend")),
        amounts.cpus.map(danlu_types::format::cpus),
        amounts.memory.map(|memory| words::size(memory.0)),
    ])
}

/// Without what is not used at all.
fn used(used: &AmountsUsed) -> String {
    joined([
        (used.nvidia > 0.0).then(|| format!("{} NVIDIA", used.nvidia)),
        (used.ascend > 0.0).then(|| format!("{} Ascend", used.ascend)),
        (used.cpus.milli > 0).then(|| danlu_types::format::cpus(used.cpus)),
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
