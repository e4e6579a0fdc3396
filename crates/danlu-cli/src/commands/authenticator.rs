//! `danlu authenticator`: a second proof beside the password.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use danlu_client::{Client, ClientError};
use danlu_types::Problem;
use danlu_types::account::AccountName;
use danlu_types::api::{NewTotp, TotpCode, TotpRemoval};

use crate::failure::CliError;
use crate::output;
use crate::proof::proven;
use crate::terminal::ask_secret;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Set up MFA: print a key, ask for a code and print recovery codes
    Add,
    /// Turn off MFA
    Remove {
        /// Another account (administrators only)
        #[arg(long, value_name = "ACCOUNT")]
        of: Option<AccountName>,
    },
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    match arguments.action {
        Action::Add => {
            let own = client.whoami().await?.account.name;
            let enrolment = match client.totp_enrol(&own, &NewTotp::default()).await {
                Err(ClientError::Problem(problem)) if asks_for_password(&problem) => {
                    let password = Some(ask_secret("Present password: ")?);
                    client.totp_enrol(&own, &NewTotp { password }).await?
                }
                begun => begun?,
            };
            output::say("put this into your authenticator:");
            output::lines([enrolment.address, enrolment.secret])?;
            let code = ask_secret("Code that it shows: ")?;
            let recovery = client.totp_confirm(&own, &TotpCode { code }).await?;
            output::say(
                "from now on a code is asked for at sign-in; keep these for when the authenticator is lost:",
            );
            output::lines(recovery.codes)?;
        }
        Action::Remove { of: Some(name) } => {
            let remove = async |proof| client.totp_remove(&name, &TotpRemoval { code: None, proof }).await;
            proven(remove).await?;
            output::say(format!("{name} signs in without a code"));
        }
        Action::Remove { of: None } => {
            let own = client.whoami().await?.account.name;
            let code = Some(ask_secret("Code of your authenticator: ")?);
            client.totp_remove(&own, &TotpRemoval { code, proof: None }).await?;
            output::say("MFA codes are no longer required");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Accounts that are signed in to through a provider may have none.
fn asks_for_password(problem: &Problem) -> bool {
    problem.errors.iter().any(|error| error.field == "password")
}
