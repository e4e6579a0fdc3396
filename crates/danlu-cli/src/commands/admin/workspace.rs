//! `danlu admin workspace` and `danlu admin quota`: who shares the cluster, and how.

use std::path::PathBuf;

use clap::Subcommand;
use danlu_client::Client;
use danlu_types::api::SharingRules;
use danlu_types::{Span, Workspace};

use crate::commands::workspace::rules::RuleFlags;
use crate::commands::workspace::rules_table;
use crate::failure::CliError;
use crate::{output, table, workspaces_file};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Makes a workspace
    Create {
        name: String,
        #[command(flatten)]
        rules: Box<RuleFlags>,
    },
    /// Changes a workspace's rules
    Set {
        name: String,
        #[command(flatten)]
        rules: Box<RuleFlags>,
    },
    /// Takes a workspace away, with the roles of its people; refused while it has jobs
    Delete { name: String },
    /// Changes the rules of everybody's own workspace
    Personal {
        #[command(flatten)]
        rules: Box<RuleFlags>,
    },
    /// Makes and changes workspaces as a file says; those that it does not name stay
    Apply {
        /// As `danlu up --workspaces` takes it
        file: PathBuf,
    },
}

pub(crate) async fn run(client: &Client, action: Action) -> Result<(), CliError> {
    match action {
        Action::Create { name, rules } => {
            if client.workspace_show(&name).await.is_ok() {
                return Err(CliError::new(format!("there is a workspace `{name}` already"))
                    .hint(format!("change it with `danlu admin workspace set {name} …`")));
            }
            let made = client.workspace_set(&name, &rules.change(Workspace::default())).await?;
            table::print(&mut rules_table(&made))
        }
        Action::Set { name, rules } => {
            let before = client.workspace_show(&name).await?.rules;
            let after = client.workspace_set(&name, &rules.change(before)).await?;
            table::print(&mut rules_table(&after))
        }
        Action::Delete { name } => {
            client.workspace_delete(&name).await?;
            output::say(format!("workspace `{name}` is gone"));
            Ok(())
        }
        Action::Personal { rules } => {
            let mut sharing = client.sharing_show().await?;
            sharing.personal = rules.change(sharing.personal);
            client.sharing_set(&sharing).await?;
            output::say("everybody's own workspace has these rules now");
            Ok(())
        }
        Action::Apply { file } => {
            let sharing = workspaces_file::open(&file)?;
            client.sharing_set(&SharingRules::from(&sharing)).await?;
            for (name, rules) in &sharing.workspaces {
                client.workspace_set(name, rules).await?;
            }
            output::say(format!("{} workspaces are as the file says", sharing.workspaces.len()));
            Ok(())
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Quota {
    /// Changes what a workspace is guaranteed and may use
    Set {
        workspace: String,
        #[command(flatten)]
        rules: Box<RuleFlags>,
    },
    /// Says whether idle guarantees are lent, and how long a job runs before it may be preempted
    Lending {
        /// `on` or `off`
        #[arg(value_parser = on_or_off)]
        lending: Option<bool>,
        #[arg(long, value_name = "TIME")]
        minimum_run_time: Option<Span>,
    },
}

pub(crate) async fn quota(client: &Client, action: Quota) -> Result<(), CliError> {
    match action {
        Quota::Set { workspace, rules } => run(client, Action::Set { name: workspace, rules }).await,
        Quota::Lending { lending, minimum_run_time } => {
            let mut rules = client.sharing_show().await?;
            rules.lending = lending.unwrap_or(rules.lending);
            rules.minimum_run_time = minimum_run_time.unwrap_or(rules.minimum_run_time);
            client.sharing_set(&rules).await?;
            output::say(format!(
                "idle guarantees are {}; a job runs for {} before it may be preempted",
                if rules.lending { "lent" } else { "not lent" },
                rules.minimum_run_time
            ));
            Ok(())
        }
    }
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(format!("`{other}` is neither `on` nor `off`")),
    }
}
