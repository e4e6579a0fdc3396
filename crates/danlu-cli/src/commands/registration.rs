//! `danlu register`, `danlu invitations`, `danlu applicants`: how people come in.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::Cell;
use danlu_client::{Client, ClientError};
use danlu_types::Span;
use danlu_types::account::{AccountName, Standing, WorkspaceRole};
use danlu_types::api::{NewInvitation, NewRegistration};
use danlu_types::fingerprint::Fingerprint;
use danlu_types::link::{Link, registration_page};

use crate::failure::CliError;
use crate::terminal::ask_secret;
use crate::{output, table};

#[derive(Debug, Args)]
pub(crate) struct RegisterArguments {
    /// Name of the new account, e.g. `ada`
    #[arg(value_name = "ACCOUNT")]
    name: AccountName,
    /// Invitation link; with it, the account is active at once
    #[arg(long, value_name = "URL")]
    link: Option<String>,
    /// Workspace to join, if one of its owners approves
    #[arg(long, value_name = "WORKSPACE", conflicts_with = "link")]
    workspace: Option<String>,
    /// Full name to show, e.g. `Ada Lovelace`
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// Email address, e.g. `ada@lab.example`
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// URL of the server [default: that of the invitation, or the server on this machine]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// SHA-256 fingerprint of the server's certificate, as `danlu up --tls` prints it
    #[arg(long, value_name = "FINGERPRINT")]
    fingerprint: Option<Fingerprint>,
}

#[derive(Debug, Args)]
pub(crate) struct InvitationsArguments {
    /// Name of the workspace
    workspace: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<InvitationsAction>,
}

#[derive(Debug, Subcommand)]
enum InvitationsAction {
    /// Create an invitation and print its link, which creates one account
    Add {
        /// Role in the workspace: `viewer`, `member` or `owner`
        #[arg(long, default_value = "member")]
        role: WorkspaceRole,
        /// Validity of the invitation, at most `30d`
        #[arg(long, value_name = "DURATION", default_value = "7d")]
        lasts: Span,
    },
    /// Revoke an invitation
    Revoke {
        /// Id from `danlu invitations`
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ApplicantsArguments {
    /// Name of the workspace
    workspace: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<ApplicantsAction>,
}

#[derive(Debug, Subcommand)]
enum ApplicantsAction {
    /// Approve a request and add the account as a member
    Approve {
        /// Name of the account
        #[arg(value_name = "ACCOUNT")]
        name: AccountName,
    },
    /// Decline a request
    Decline {
        /// Name of the account
        #[arg(value_name = "ACCOUNT")]
        name: AccountName,
    },
}

pub(crate) async fn register(
    client: impl FnOnce() -> Result<Client, ClientError>,
    arguments: RegisterArguments,
) -> Result<ExitCode, CliError> {
    let link = arguments.link.as_deref().map(Link::read);
    let server = link.as_ref().and_then(|link| link.server.clone());
    let client = match arguments.server.or(server) {
        Some(address) => Client::trusting(&address, "", arguments.fingerprint),
        None => client()?,
    };
    let new = NewRegistration {
        name: arguments.name,
        display_name: arguments.display_name,
        email: arguments.email,
        password: ask_secret("Password: ")?,
        invitation: link.map(|link| link.secret),
        workspace: arguments.workspace,
    };
    let account = client.account_register(&new).await?;
    output::say(match account.standing {
        Standing::Active => format!("{} may sign in: `danlu login {}`", account.name, account.name),
        _ => format!("{} waits for approval", account.name),
    });
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn invitations(
    client: Client,
    arguments: InvitationsArguments,
) -> Result<ExitCode, CliError> {
    let workspace = &arguments.workspace;
    match arguments.action {
        None => {
            let invitations = client.invitations_list(workspace).await?.items;
            if arguments.json {
                output::json(&invitations)?;
                return Ok(ExitCode::SUCCESS);
            }
            let mut table = table::new(["id", "role", "by", "until"]);
            for invitation in &invitations {
                table.add_row([
                    Cell::new(&invitation.id),
                    Cell::new(invitation.role.as_str()),
                    Cell::new(&invitation.by),
                    Cell::new(format!("{:.0}", invitation.expires_at)),
                ]);
            }
            table::print(&mut table)?;
        }
        Some(InvitationsAction::Add { role, lasts }) => {
            let made = client.invitation_make(workspace, &NewInvitation { role, lasts: Some(lasts) }).await?;
            output::line(registration_page(&client.address(), &made.secret))?;
            output::say(format!(
                "this link creates one account, as {} of `{workspace}`: open it in a browser, or use `danlu register NAME --link LINK`",
                role.as_str()
            ));
        }
        Some(InvitationsAction::Revoke { id }) => {
            client.invitation_revoke(workspace, &id).await?;
            output::say(format!("invitation {id} is good for nothing now"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn applicants(client: Client, arguments: ApplicantsArguments) -> Result<ExitCode, CliError> {
    let workspace = &arguments.workspace;
    match arguments.action {
        None => {
            let applicants = client.applicants_list(workspace).await?.items;
            if arguments.json {
                output::json(&applicants)?;
                return Ok(ExitCode::SUCCESS);
            }
            let mut table = table::new(["account", "name", "email", "since"]);
            for applicant in &applicants {
                table.add_row([
                    Cell::new(&applicant.account),
                    Cell::new(output::printable(applicant.display_name.as_deref().unwrap_or("–"))),
                    Cell::new(output::printable(applicant.email.as_deref().unwrap_or("–"))),
                    Cell::new(format!("{:.0}", applicant.created_at)),
                ]);
            }
            table::print(&mut table)?;
        }
        Some(ApplicantsAction::Approve { name }) => {
            client.applicant_admit(workspace, &name).await?;
            output::say(format!("{name} is a member of `{workspace}` and may sign in"));
        }
        Some(ApplicantsAction::Decline { name }) => {
            client.applicant_turn_away(workspace, &name).await?;
            output::say(format!("{name} is turned away"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
