//! `danlu workspace members`: who is in it.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::Cell;
use danlu_client::Client;
use danlu_types::account::{AccountName, WorkspaceRole};
use danlu_types::api::NewRole;

use crate::failure::CliError;
use crate::{output, table};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the workspace
    workspace: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add a member, or change the role of a member
    Add {
        /// Name of the account
        account: AccountName,
        /// Role: `viewer` (read), `member` (submit jobs) or `owner` (manage the workspace)
        #[arg(long, default_value = "member")]
        role: WorkspaceRole,
    },
    /// Remove a member
    Remove {
        /// Name of the account
        account: AccountName,
    },
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let workspace = &arguments.workspace;
    match arguments.action {
        None => {
            let members = client.members_list(workspace).await?.items;
            if arguments.json {
                output::json(&members)?;
            } else {
                let mut table = table::new(["account", "role"]);
                for member in &members {
                    table.add_row([Cell::new(&member.account), Cell::new(member.role.as_str())]);
                }
                table::print(&mut table)?;
            }
        }
        Some(Action::Add { account, role }) => {
            client.member_set(workspace, &account, &NewRole { role }).await?;
            output::say(format!("{account} is {} of `{workspace}`", role.as_str()));
        }
        Some(Action::Remove { account }) => {
            client.member_remove(workspace, &account).await?;
            output::say(format!("{account} is out of `{workspace}`"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
