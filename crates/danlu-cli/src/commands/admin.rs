//! `danlu admin`: accounts, workspaces, and what was done by whom.

mod workspace;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::{Cell, Table};
use danlu_client::Client;
use danlu_types::account::{AccountName, Standing};
use danlu_types::api::{
    AccountChange, AccountView, AuditEntry, AuditQuery, AuditVerification, Invitation, JobsOfAccount,
    NewAccount, VerificationQuery,
};
use danlu_types::link::password_page;

use super::tokens;
use crate::failure::CliError;
use crate::{output, table};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists accounts, or changes them
    #[command(subcommand)]
    User(User),
    /// Makes, changes and deletes workspaces
    #[command(subcommand)]
    Workspace(workspace::Action),
    /// Says what workspaces are guaranteed and may use
    #[command(subcommand)]
    Quota(workspace::Quota),
    /// Lists the tokens and sessions of an account, or ends them
    #[command(subcommand)]
    Token(Token),
    /// Lists what was done by whom, oldest first, or checks that nothing of it was changed
    #[command(args_conflicts_with_subcommands = true)]
    Audit {
        /// Only what this account did
        #[arg(long, value_name = "ACCOUNT")]
        by: Option<String>,
        /// Only what was done to this account or workspace
        #[arg(long, value_name = "NAME")]
        of: Option<String>,
        /// Prints JSON
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        action: Option<Audit>,
    },
}

#[derive(Debug, Subcommand)]
enum Audit {
    /// Checks the seals of all entries and prints the last one, to be kept elsewhere
    ///
    /// The server also looks whether the end was cut off, and whether accounts, tokens, roles or rules were changed in the database
    /// without an entry.
    Verify {
        /// Leaves out what entries up to this one tell of having been found at a start
        #[arg(long, value_name = "NUMBER")]
        known: Option<u64>,
    },
}

#[derive(Debug, Subcommand)]
enum Token {
    /// Lists what somebody may sign in with, and when it was last used
    List {
        account: AccountName,
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// Revokes a token or ends a session
    Revoke {
        account: AccountName,
        /// As `danlu admin token list` shows it
        id: String,
    },
}

#[derive(Debug, Subcommand)]
enum User {
    /// Lists accounts
    List {
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// Makes an account, and prints the link by which its owner sets a password
    Add {
        name: AccountName,
        #[arg(long, value_name = "TEXT")]
        display_name: Option<String>,
        #[arg(long, value_name = "ADDRESS")]
        email: Option<String>,
    },
    /// Lets a new or disabled account be used
    Approve { name: AccountName },
    /// Keeps an account, and lets nobody use it
    Disable {
        name: AccountName,
        /// Stops what it has waiting and running
        #[arg(long)]
        stop_jobs: bool,
    },
    /// Makes an account an administrator's
    Promote { name: AccountName },
    /// Takes that back
    Demote { name: AccountName },
    /// Say whether an account's jobs may run as this machine's user of the same name
    ///
    /// Matters where the server runs with `--unix-users same-name`. Accounts that an administrator made may.
    #[command(name = "unix-user")]
    RunsAs {
        name: AccountName,
        /// They may
        #[arg(long, required_unless_present = "deny", conflicts_with = "deny")]
        allow: bool,
        /// They may not
        #[arg(long)]
        deny: bool,
    },
    /// Prints a link by which the account's owner sets a new password
    Reset { name: AccountName },
    /// Deletes an account with its tokens and roles; its jobs stay
    Delete {
        name: AccountName,
        /// Stops what it has waiting and running
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
        client.account_change(name, &change).await?;
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
        User::Reset { name } => tell_link(client, &client.password_link(&name).await?)?,
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
