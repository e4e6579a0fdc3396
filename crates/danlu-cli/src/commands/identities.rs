//! `danlu identities`: identities at the provider by which one's account signs in.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::Cell;
use danlu_client::Client;
use danlu_types::account::AccountName;

use crate::failure::CliError;
use crate::{output, table};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List linked identities
    ///
    /// To link an identity, open your account page in the console.
    List {
        /// Another account (administrators only)
        #[arg(long, value_name = "ACCOUNT")]
        of: Option<AccountName>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Unlink an identity so that it can no longer sign in to the account
    Unlink {
        /// Id from `danlu identities list`
        id: String,
        /// Another account (administrators only)
        #[arg(long, value_name = "ACCOUNT")]
        of: Option<AccountName>,
    },
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let (Action::List { of, .. } | Action::Unlink { of, .. }) = &arguments.action;
    let name = match of {
        Some(name) => name.clone(),
        None => client.whoami().await?.account.name,
    };
    match arguments.action {
        Action::List { json, .. } => {
            let identities = client.identities_list(&name).await?.items;
            if json {
                output::json(&identities)?;
                return Ok(ExitCode::SUCCESS);
            }
            let mut table = table::new(["id", "issuer", "subject", "linked"]);
            for identity in &identities {
                table.add_row([
                    Cell::new(&identity.id),
                    Cell::new(output::printable(&identity.issuer)),
                    Cell::new(output::printable(&identity.subject)),
                    Cell::new(identity.linked_at.map_or("–".to_owned(), |at| format!("{at:.0}"))),
                ]);
            }
            table::print(&mut table)?;
        }
        Action::Unlink { id, .. } => {
            client.identity_unlink(&name, &id).await?;
            output::say(format!(
                "identity {id} is unlinked from {name}; sessions that it began go on until they are revoked"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}
