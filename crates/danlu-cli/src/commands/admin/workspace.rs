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
    /// Create a workspace
    Create {
        /// Name of the workspace
        #[arg(value_name = "WORKSPACE")]
        name: String,
        #[command(flatten)]
        rules: Box<RuleFlags>,
    },
    /// Change the rules and quota of a workspace
    Set {
        /// Name of the workspace
        #[arg(value_name = "WORKSPACE")]
        name: String,
        #[command(flatten)]
        rules: Box<RuleFlags>,
    },
    /// Delete a workspace that has no jobs, with its memberships
    Delete {
        /// Name of the workspace
        #[arg(value_name = "WORKSPACE")]
        name: String,
    },
    /// Change the rules and quota of all personal workspaces
    Personal {
        #[command(flatten)]
        rules: Box<RuleFlags>,
    },
    /// Create and change the workspaces in a file; leave others unchanged
    Apply {
        /// File of workspaces and quotas (YAML or JSON), as for `danlu up --workspaces`
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
    /// Change the quota and rules of a workspace
    Set {
        /// Name of the workspace
        workspace: String,
        #[command(flatten)]
        rules: Box<RuleFlags>,
    },
    /// Set whether idle guarantees are lent and when jobs can be preempted
    Lending {
        /// Whether idle guarantees are lent: `on` or `off`
        #[arg(value_parser = on_or_off)]
        lending: Option<bool>,
        /// Time that a job runs before it can be preempted, e.g. `10m`
        #[arg(long, value_name = "DURATION")]
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
