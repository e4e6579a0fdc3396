//! `danlu secrets`: values that jobs get and nobody reads.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::Cell;
use danlu_client::Client;
use danlu_types::api::NewSecret;

use crate::failure::CliError;
use crate::{output, table, terminal};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Args)]
struct Workspace {
    /// Name of the workspace [default: your personal workspace]
    #[arg(long, short, value_name = "WORKSPACE")]
    workspace: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the names of the secrets
    List {
        #[command(flatten)]
        of: Workspace,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Set a secret to a value from a prompt or from standard input
    Set {
        /// Name of the secret
        name: String,
        #[command(flatten)]
        of: Workspace,
    },
    /// Delete a secret
    Delete {
        /// Name of the secret
        name: String,
        #[command(flatten)]
        of: Workspace,
    },
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    match arguments.action {
        Action::List { of, json } => {
            let secrets = client.secrets_list(&workspace(&client, of).await?).await?.items;
            if json {
                output::json(&secrets)?;
            } else {
                let mut table = table::new(["secret", "changed", "by"]);
                for secret in &secrets {
                    table.add_row([
                        Cell::new(&secret.name),
                        Cell::new(format!("{:.0}", secret.changed_at)),
                        Cell::new(&secret.changed_by),
                    ]);
                }
                table::print(&mut table)?;
            }
        }
        Action::Set { name, of } => {
            let workspace = workspace(&client, of).await?;
            let value = value(&name)
                .map_err(|error| CliError::new("cannot read the secret's value").caused_by(&error))?;
            client.secret_set(&workspace, &name, &NewSecret { value }).await?;
            output::say(format!(
                "jobs of the workspace `{workspace}` can use the secret `{name}` from now on"
            ));
        }
        Action::Delete { name, of } => {
            let workspace = workspace(&client, of).await?;
            client.secret_delete(&workspace, &name).await?;
            output::say(format!("deleted secret `{name}` of workspace `{workspace}`"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn workspace(client: &Client, of: Workspace) -> Result<String, CliError> {
    match of.workspace {
        Some(name) => Ok(name),
        None => Ok(client.whoami().await?.account.name.to_string()),
    }
}

/// A line from a terminal; from a pipe all of it, less the line feed at its end that `echo` adds.
fn value(name: &str) -> std::io::Result<String> {
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return terminal::ask_secret(&format!("value of `{name}`: "));
    }
    let mut value = String::new();
    stdin.read_to_string(&mut value)?;
    if value.ends_with('\n') {
        value.pop();
    }
    Ok(value)
}
