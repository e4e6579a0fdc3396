//! `danlu tokens`: secrets for one's programs.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::{Cell, Table};
use danlu_client::Client;
use danlu_types::Span;
use danlu_types::account::{AccountName, Scope};
use danlu_types::api::{NewToken, TokenKind, TokenView, WithProof};
use jiff::Timestamp;

use crate::failure::CliError;
use crate::proof::proven;
use crate::{output, table};

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
    /// Create a token and print it; it is shown only once
    Add {
        /// Purpose of the token, e.g. `nightly`
        name: String,
        /// Scope: `read`, `jobs` (also submit and manage jobs) or `all` (everything you can do)
        #[arg(long, default_value = "jobs")]
        scope: Scope,
        /// Validity of the token, e.g. `90d` [default: no expiry]
        #[arg(long, value_name = "DURATION")]
        lasts: Option<Span>,
    },
    /// Replace the secret of a token and print the new one; the old one stops working
    Rotate {
        /// Id from `danlu tokens`
        id: String,
    },
    /// Revoke a token or end a session
    Revoke {
        /// Id from `danlu tokens`
        id: String,
    },
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    match arguments.action {
        None => {
            show(&client.tokens_list(&client.whoami().await?.account.name).await?.items, arguments.json)?;
        }
        Some(Action::Add { name, scope, lasts }) => {
            let new = NewToken { name, scope, lasts, proof: None };
            let made =
                proven(async |proof| client.token_make(&NewToken { proof, ..new.clone() }).await).await?;
            output::line(&made.secret)?;
            output::say("use it as DANLU_TOKEN, with DANLU_SERVER; it is shown this once");
        }
        Some(Action::Rotate { id }) => {
            let own = client.whoami().await?.account.name;
            let made =
                proven(async |proof| client.token_rotate(&own, &id, &WithProof { proof }).await).await?;
            output::line(&made.secret)?;
            output::say("this is the token from now on; it is shown this once");
        }
        Some(Action::Revoke { id }) => revoke(&client, &client.whoami().await?.account.name, &id).await?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show(tokens: &[TokenView], as_json: bool) -> Result<(), CliError> {
    if as_json { output::json(&tokens) } else { table::print(&mut tokens_table(tokens)) }
}

pub(super) async fn revoke(client: &Client, account: &AccountName, id: &str) -> Result<(), CliError> {
    client.token_revoke(account, id).await?;
    output::say(format!("token {id} is good for nothing now"));
    Ok(())
}

fn tokens_table(tokens: &[TokenView]) -> Table {
    let mut table = table::new(["id", "for", "kind", "scope", "made", "until", "last used"]);
    let time = |at: Option<Timestamp>| at.map_or("–".to_owned(), |at| format!("{at:.0}"));
    for token in tokens {
        let kind = match token.kind {
            TokenKind::Api => "token",
            TokenKind::Session => "session",
            TokenKind::PasswordLink => "password link",
            TokenKind::SignInLink => "sign-in link",
        };
        table.add_row([
            Cell::new(&token.id),
            Cell::new(output::printable(&token.name)),
            Cell::new(kind),
            Cell::new(token.scope.as_str()),
            Cell::new(time(Some(token.created_at))),
            Cell::new(time(token.expires_at)),
            Cell::new(time(token.last_used_at)),
        ]);
    }
    table
}
