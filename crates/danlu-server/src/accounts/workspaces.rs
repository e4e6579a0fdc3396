//! Workspaces: who there is to share the cluster, and by which rules.

use std::net::IpAddr;

use danlu_core::admission::{Excess, apply_workspace_rules, excesses};
use danlu_core::authorization::Action;
use danlu_store::StoreError;
use danlu_types::api::SharingRules;
use danlu_types::spec::is_name;
use danlu_types::{FieldError, JobSpec, Problem, Sharing, Workspace};
use jiff::Timestamp;

use super::cache::{sharing_row, workspace_row};
use super::credentials::former_workspace_row;
use super::roles::no_workspace;
use super::{Caller, Deed, Directory, json, require_of_platform};
use crate::app::store_problem;

/// Whose rules are changed, for the audit, when they hold for every workspace.
const ALL: &str = "all workspaces";

impl Directory {
    /// All rules by which the cluster is shared.
    pub(crate) fn sharing(&self) -> Sharing {
        self.register().sharing().clone()
    }

    pub(crate) fn has_workspace(&self, name: &str) -> bool {
        self.register().has_workspace(name)
    }

    /// Whether it is somebody's own.
    pub(crate) fn is_personal(&self, workspace: &str) -> bool {
        self.register().is_personal(workspace)
    }

    /// Whether the jobs of an account may run as the machine's user of its name.
    pub(crate) fn may_be_unix_user(&self, account: &str) -> bool {
        let register = self.register();
        account.parse().is_ok_and(|name| register.account(&name).is_some_and(|account| account.unix_user))
    }

    /// Whether somebody may know that there is this workspace. That somebody has one of their own would tell their name.
    pub(crate) fn may_see_workspace(&self, caller: &Caller, workspace: &str) -> bool {
        let register = self.register();
        let person = &caller.person;
        person.admin || !register.is_personal(workspace) || register.role(&person.name, workspace).is_some()
    }

    /// Where the people of a workspace keep what they share, as its jobs find it in their environment.
    pub(crate) fn shared_places(&self, workspace: &str) -> impl Iterator<Item = (String, String)> + use<> {
        let register = self.register();
        let rules = register.sharing().workspace(workspace);
        let places =
            [("DANLU_SHARED_DIR", &rules.shared_folder), ("DANLU_SHARED_BUCKET", &rules.shared_bucket)];
        places.map(|(name, place)| place.clone().map(|place| (name.to_owned(), place))).into_iter().flatten()
    }

    /// The job as its workspace takes it, and all for which it needs approval.
    pub(crate) fn settle(&self, spec: JobSpec) -> Result<(JobSpec, Vec<Excess>), FieldError> {
        let register = self.register();
        let rules = register.sharing().workspace(&spec.workspace);
        let spec = apply_workspace_rules(spec, rules)?;
        let excesses = excesses(&spec, rules);
        Ok((spec, excesses))
    }

    /// Makes a workspace, or gives it other rules. What it may take of the cluster is for administrators to say.
    pub(crate) async fn set_workspace(
        &self,
        caller: &Caller,
        name: &str,
        rules: Workspace,
    ) -> Result<Workspace, Problem> {
        let _one_at_a_time = self.changing.lock().await;
        let (exists, is_personal, before) = {
            let register = self.register();
            let before = register.sharing().workspace(name).clone();
            (register.has_workspace(name), register.is_personal(name), before)
        };
        if exists {
            self.require_of_workspace(caller, name, Action::ChangeWorkspace)?;
        } else if !caller.person.admin {
            // As for one that is hidden: that it could be made would say that there is none.
            return Err(no_workspace(name));
        }
        if !exists || takes_other_share(&before, &rules) {
            require_of_platform(caller, Action::RunWorkspaces)?;
        }
        if is_personal && takes_other_share(&before, &rules) {
            let message = "of a personal workspace is what `personal` says for all of them; create a workspace for more";
            return Err(Problem::invalid_fields(vec![FieldError::new("", format!("the share {message}"))])
                .with_hint("`danlu admin workspace personal` sets it for all"));
        }
        if !is_name(name) {
            let message =
                "must start with a letter or digit and hold at most 63 letters, digits, `.`, `_` and `-`";
            return Err(Problem::invalid_fields(vec![FieldError::new("name", message)]));
        }
        if !exists {
            self.refuse_former(name)?;
        }
        let errors = rules.check("");
        if !errors.is_empty() {
            return Err(Problem::invalid_fields(errors));
        }
        let by = caller.name();
        let deed = Deed {
            by: &by,
            from: caller.from,
            action: if exists { "workspace.change" } else { "workspace.create" },
            subject: name.to_owned(),
            before: exists.then(|| json(&before)).flatten(),
            after: json(&rules),
        };
        // Of somebody's own, what holds for all is not kept: it may be another thing tomorrow.
        let kept = if is_personal {
            rules.clone().beyond(&self.register().sharing().personal)
        } else {
            rules.clone()
        };
        self.write(vec![workspace_row(name, Some(&kept))], deed).await.map_err(store_problem)?;
        Ok(rules)
    }

    /// Takes a workspace away with its roles, invitations and secrets, in one change.
    pub(crate) async fn delete_workspace(&self, caller: &Caller, name: &str) -> Result<(), Problem> {
        require_of_platform(caller, Action::RunWorkspaces)?;
        let _one_at_a_time = self.changing.lock().await;
        let Some(before) = self.register().sharing().workspaces.get(name).cloned() else {
            return Err(no_workspace(name));
        };
        // Somebody's own loses its rules and stays.
        let (rows, told) = if self.is_personal(name) {
            (vec![workspace_row(name, None)], json(&before))
        } else {
            let mut rows = self.register().dismissals(name);
            // Its jobs, their logs and their history stay under the name, so nobody else gets it.
            rows.push(former_workspace_row(name, Timestamp::now()));
            (rows, self.with_secrets(json(&before), name))
        };
        let by = caller.name();
        let deed = Deed {
            by: &by,
            from: caller.from,
            action: "workspace.delete",
            subject: name.to_owned(),
            before: told,
            after: None,
        };
        self.write(rows, deed).await.map_err(store_problem)
    }

    /// What holds for all workspaces.
    pub(crate) async fn set_sharing(&self, caller: &Caller, rules: SharingRules) -> Result<(), Problem> {
        require_of_platform(caller, Action::RunWorkspaces)?;
        let SharingRules { lending, minimum_run_time, personal } = rules.clone();
        let errors = Sharing { lending, minimum_run_time, personal, ..Sharing::default() }.check();
        if !errors.is_empty() {
            return Err(Problem::invalid_fields(errors));
        }
        let _one_at_a_time = self.changing.lock().await;
        let before = json(&SharingRules::from(&self.sharing()));
        let by = caller.name();
        let deed = Deed {
            by: &by,
            from: caller.from,
            action: "sharing.change",
            subject: ALL.to_owned(),
            before,
            after: json(&rules),
        };
        self.write(vec![sharing_row(&rules)], deed).await.map_err(store_problem)
    }

    /// Takes over what a file says; workspaces that it does not name stay as they are.
    pub(crate) async fn take_sharing(&self, file: &Sharing) -> Result<(), StoreError> {
        let _one_at_a_time = self.changing.lock().await;
        let known = self.sharing();
        let deed = |action, subject: &str, before, after| Deed {
            by: "the workspaces file",
            from: IpAddr::from([127, 0, 0, 1]),
            action,
            subject: subject.to_owned(),
            before,
            after,
        };
        let (before, after) = (SharingRules::from(&known), SharingRules::from(file));
        if before != after {
            let deed = deed("sharing.change", ALL, json(&before), json(&after));
            self.write(vec![sharing_row(&after)], deed).await?;
        }
        for (name, rules) in &file.workspaces {
            let is_personal = self.is_personal(name);
            let is_former = !self.has_workspace(name) && self.refuse_former(name).is_err();
            if is_former {
                tracing::error!(
                    "`{name}` was deleted, so the file does not make it: jobs stay under its name"
                );
                continue;
            }
            if is_personal {
                tracing::warn!("`{name}` is a personal workspace: its share in the file is ignored");
            }
            let before = known.workspaces.get(name);
            if before == Some(rules) {
                continue;
            }
            let action = if before.is_some() { "workspace.change" } else { "workspace.create" };
            let deed = deed(action, name, before.and_then(json), json(rules));
            self.write(vec![workspace_row(name, Some(rules))], deed).await?;
        }
        Ok(())
    }
}

/// Whether a change gives a workspace more or less of what belongs to all, or another say in it.
fn takes_other_share(before: &Workspace, after: &Workspace) -> bool {
    let share = |rules: &Workspace| {
        (
            rules.guaranteed,
            rules.limit,
            rules.approve_above,
            rules.highest_priority,
            rules.shared_folder.clone(),
            rules.shared_bucket.clone(),
        )
    };
    share(before) != share(after)
}
