//! `danlu admin`: accounts, workspaces, and what was done by whom.

mod workspace;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::{Cell, Table};
use danlu_client::Client;
use danlu_types::account::{AccountName, Standing};
use danlu_types::api::{
    AccountChange, AccountView, AuditEntry, AuditQuery, AuditVerification, Invitation, JobsOfAccount,
    NewAccount, VerificationQuery, WithProof,
};
use danlu_types::link::password_page;

use super::tokens;
use crate::failure::CliError;
use crate::proof::proven;
use crate::{output, table};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List and manage accounts
    #[command(subcommand)]
    User(User),
    /// Create, change and delete workspaces
    #[command(subcommand)]
    Workspace(workspace::Action),
    /// Set quotas and the lending of idle guarantees
    #[command(subcommand)]
    Quota(workspace::Quota),
    /// List and revoke the tokens and sessions of an account
    #[command(subcommand)]
    Token(Token),
    /// List the audit log, oldest entry first, or verify it
    #[command(args_conflicts_with_subcommands = true)]
    Audit {
        /// Only actions of this account
        #[arg(long, value_name = "ACCOUNT")]
        by: Option<String>,
        /// Only actions on this account or workspace
        #[arg(long, value_name = "NAME")]
        of: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        action: Option<Audit>,
    },
}

#[derive(Debug, Subcommand)]
enum Audit {
    /// Verify the hash chain of the audit log and print its last hash
    ///
    /// Keep the printed hash outside the server to compare it later. The server also checks that no entries are missing at the end, and
    /// that no accounts, tokens, roles or rules were changed in the database without an entry.
    Verify {
        /// Number of the entry up to which findings of earlier server starts are skipped, e.g. `1200`
        #[arg(long, value_name = "NUMBER")]
        known: Option<u64>,
    },
}

#[derive(Debug, Subcommand)]
enum Token {
    /// List the tokens and sessions of an account with their last use
    List {
        /// Name of the account
        account: AccountName,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token or end a session
    Revoke {
        /// Name of the account
        account: AccountName,
        /// Id from `danlu admin token list`
        id: String,
    },
}

#[derive(Debug, Subcommand)]
enum User {
    /// List accounts
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Create an account and print a link for setting its password
    Add {
        /// Name of the account, e.g. `ada`
        #[arg(value_name = "ACCOUNT")]
        name: AccountName,
        /// Full name to show, e.g. `Ada Lovelace`
        #[arg(long, value_name = "TEXT")]
        display_name: Option<String>,
        /// Email address, e.g. `ada@lab.example`
        #[arg(long, value_name = "ADDRESS")]
        email: Option<String>,
    },
    /// Activate a pending or disabled account
    Approve {
        /// Name of the account
        #[arg(value_name = "ACCOUNT")]
        name: AccountName,
    },
    /// Disable an account without deleting it
    Disable {
        /// Name of the account
        #[arg(value_name = "ACCOUNT")]
        name: AccountName,
        /// Stop the account's queued and running jobs
        #[arg(long)]
        stop_jobs: bool,
    },
    /// Grant administrator rights
    Promote {
        /// Name of the account
        #[arg(value_name = "ACCOUNT")]
        name: AccountName,
    },
    /// Revoke administrator rights
    Demote {
        /// Name of the account
        #[arg(value_name = "ACCOUNT")]
        name: AccountName,
    },
    /// Allow or deny an account's jobs to run as the Unix user of the same name
    ///
    /// This applies only if the server runs with `--unix-users same-name`. Accounts that an administrator created are allowed by
    /// default.
    #[command(name = "unix-user")]
    RunsAs {
        /// Name of the account
        #[arg(value_name = "ACCOUNT")]
        name: AccountName,
        /// Allow the jobs to run as this user
        #[arg(long, required_unless_present = "deny", conflicts_with = "deny")]
        allow: bool,
        /// Forbid it for workers that start from now on
        #[arg(long)]
        deny: bool,
    },
    /// Print a link for setting a new password
    Reset {
        /// Name of the account
        #[arg(value_name = "ACCOUNT")]
        name: AccountName,
    },
    /// Delete an account with its tokens and roles, but keep its jobs
    Delete {
        /// Name of the account
        #[arg(value_name = "ACCOUNT")]
        name: AccountName,
        /// Stop the account's queued and running jobs
        #[arg(long)]
        stop_jobs: bool,
    },
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    match arguments.action {
        Action::User(action) => user(&client, action).await?,
        Action::Workspace(action) => workspace::run(&client, action).await?,
        Action::Quota(action) => workspace::quota(&client, action).await?,
        Action::Token(action) => token(&client, action).await?,
        Action::Audit { action: Some(Audit::Verify { known }), .. } => return check(&client, known).await,
        Action::Audit { by, of, json, action: None } => {
            let entries =
                all_entries(&client, AuditQuery { by, subject: of, ..AuditQuery::default() }).await?;
            if json {
                output::json(&entries)?;
            } else {
                table::print(&mut audit_table(&entries))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn user(client: &Client, action: User) -> Result<(), CliError> {
    let change = async |name: &AccountName, change: AccountChange, what: &str| {
        proven(async |proof| client.account_change(name, &AccountChange { proof, ..change.clone() }).await)
            .await?;
        output::say(format!("{name} {what}"));
        Ok::<_, CliError>(())
    };
    let standing = |standing| AccountChange { standing: Some(standing), ..AccountChange::default() };
    let admin = |admin| AccountChange { admin: Some(admin), ..AccountChange::default() };
    match action {
        User::List { json } => {
            let accounts = client.accounts_list().await?.items;
            if json {
                output::json(&accounts)?;
            } else {
                table::print(&mut accounts_table(&accounts))?;
            }
        }
        User::Add { name, display_name, email } => {
            let new = NewAccount { name, display_name, email, password: None };
            tell_link(client, &client.account_create(&new).await?)?;
        }
        User::Approve { name } => change(&name, standing(Standing::Active), "may sign in").await?,
        User::Disable { name, stop_jobs } => {
            let jobs = Some(if stop_jobs { JobsOfAccount::Stop } else { JobsOfAccount::Keep });
            change(&name, AccountChange { jobs, ..standing(Standing::Disabled) }, "is disabled").await?;
        }
        User::Promote { name } => change(&name, admin(true), "is an administrator").await?,
        User::Demote { name } => change(&name, admin(false), "is no administrator any more").await?,
        User::RunsAs { name, allow, .. } => {
            let unix_user = AccountChange { unix_user: Some(allow), ..AccountChange::default() };
            let what = if allow { "may run jobs" } else { "may not run jobs" };
            change(&name, unix_user, &format!("{what} as the machine's user `{name}`")).await?;
        }
        User::Reset { name } => {
            let link = proven(async |proof| client.password_link(&name, &WithProof { proof }).await).await?;
            tell_link(client, &link)?;
        }
        User::Delete { name, stop_jobs } => {
            client.account_delete(&name, stop_jobs).await?;
            output::say(format!("{name} is deleted"));
        }
    }
    Ok(())
}

async fn token(client: &Client, action: Token) -> Result<(), CliError> {
    match action {
        Token::List { account, json } => tokens::show(&client.tokens_list(&account).await?.items, json),
        Token::Revoke { account, id } => tokens::revoke(client, &account, &id).await,
    }
}

fn tell_link(client: &Client, invitation: &Invitation) -> Result<(), CliError> {
    let name = &invitation.account.name;
    if let Some(secret) = &invitation.password_link {
        output::line(password_page(&client.address(), name, secret))?;
        output::say(format!(
            "give this to {name}, who sets a password with it within two days: in a browser, or with `danlu password --link LINK`"
        ));
    }
    Ok(())
}

fn accounts_table(accounts: &[AccountView]) -> Table {
    let mut table = table::new(["account", "name", "standing", "admin", "workspaces"]);
    for account in accounts {
        let roles = account.workspaces.iter().map(|at| format!("{} ({})", at.workspace, at.role.as_str()));
        table.add_row([
            Cell::new(&account.name),
            Cell::new(output::printable(account.display_name.as_deref().unwrap_or("–"))),
            Cell::new(account.standing.as_str()),
            Cell::new(if account.admin { "yes" } else { "" }),
            Cell::new(output::printable(&roles.collect::<Vec<_>>().join(", "))),
        ]);
    }
    table
}

fn audit_table(entries: &[AuditEntry]) -> Table {
    let mut table = table::new(["number", "at", "by", "from", "did", "to", "now"]);
    for entry in entries {
        let after = entry.after.as_ref().map_or(String::new(), ToString::to_string);
        table.add_row([
            Cell::new(entry.number),
            Cell::new(format!("{:.0}", entry.at)),
            Cell::new(output::printable(&entry.by)),
            Cell::new(&entry.from),
            Cell::new(&entry.action),
            Cell::new(output::printable(&entry.subject)),
            Cell::new(output::printable(&after.chars().take(60).collect::<String>())),
        ]);
    }
    table
}

async fn all_entries(client: &Client, mut query: AuditQuery) -> Result<Vec<AuditEntry>, CliError> {
    query.limit = Some(1000);
    let mut entries = Vec::new();
    loop {
        let page = client.audit_list(&query).await?;
        entries.extend(page.items);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(entries),
        }
    }
}

async fn check(client: &Client, known: Option<u64>) -> Result<ExitCode, CliError> {
    let AuditVerification { entries, seal, findings } =
        client.audit_verify(&VerificationQuery { known }).await?;
    if findings.is_empty() {
        output::line(&seal)?;
        output::say(format!("all {entries} entries are as they were written; this is the last one's seal"));
        return Ok(ExitCode::SUCCESS);
    }
    for finding in &findings {
        output::say(format!("- {}", output::printable(finding)));
    }
    let (count, what) = match findings.len() {
        1 => (1, "thing was"),
        many => (many, "things were"),
    };
    Err(CliError::new(format!("{count} {what} changed behind the server's back")).hint(format!(
        "compare with a back-up; once the cause is known and mended, `danlu admin audit verify --known {entries}` leaves out \
         what was found at earlier starts"
    )))
}
