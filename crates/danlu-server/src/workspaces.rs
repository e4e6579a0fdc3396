//! The use-cases of workspaces beyond their rules: what they use, what they may, how they end.

use std::collections::BTreeMap;
use std::sync::Arc;

use danlu_core::quota;
use danlu_types::api::{QuotaView, WorkspaceView};
use danlu_types::{JobId, Problem, ProblemCode};
use jiff::Timestamp;

use crate::accounts::{Caller, no_workspace};
use crate::app::App;

impl App {
    /// Those that the caller may know of.
    pub(crate) fn workspaces_seen_by(&self, caller: &Caller) -> Vec<WorkspaceView> {
        let mut views = self.workspaces();
        views.retain(|view| self.directory.may_see_workspace(caller, &view.name));
        views
    }

    fn workspaces(&self) -> Vec<WorkspaceView> {
        let sharing = self.directory.sharing();
        let pages = self.live_state.read();
        quota::views(&sharing, &pages.nodes, pages.active().map(Arc::as_ref))
    }

    pub(crate) fn workspace(&self, caller: &Caller, name: &str) -> Result<WorkspaceView, Problem> {
        if !self.directory.has_workspace(name) || !self.directory.may_see_workspace(caller, name) {
            return Err(no_workspace(name));
        }
        let known = self.workspaces().into_iter().find(|workspace| workspace.name == name);
        Ok(known.unwrap_or_else(|| WorkspaceView {
            name: name.to_owned(),
            rules: self.directory.sharing().workspace(name).clone(),
            ..WorkspaceView::default()
        }))
    }

    /// Has the scheduler take the rules as they are now, and plan by them.
    pub(crate) async fn share_anew(&self) {
        let sharing = self.directory.sharing();
        for warning in quota::overpromised(&sharing, &self.live_state.nodes()) {
            tracing::warn!("{warning}; not all guarantees can be kept at once");
        }
        self.planner.set_sharing(sharing).await;
        self.wake.schedule.notify_one();
    }

    pub(crate) async fn delete_workspace(&self, caller: &Caller, name: &str) -> Result<(), Problem> {
        let busy = self.live_state.read().jobs().filter(|job| job.spec.workspace == name).count();
        if busy > 0 && self.directory.has_workspace(name) && caller.person.admin {
            let detail = format!("workspace `{name}` has {busy} jobs that have not ended");
            let hint = format!("stop them first; `danlu jobs --workspace {name}` lists them");
            return Err(Problem::new(ProblemCode::WrongState, detail).with_hint(hint));
        }
        self.directory.delete_workspace(caller, name).await?;
        self.share_anew().await;
        Ok(())
    }

    /// Where a workspace, or every one, stands.
    pub(crate) async fn quota(
        &self,
        caller: &Caller,
        workspace: Option<&str>,
    ) -> Result<Vec<QuotaView>, Problem> {
        if let Some(name) = workspace
            && (!self.directory.has_workspace(name) || !self.directory.may_see_workspace(caller, name))
        {
            return Err(no_workspace(name));
        }
        let now = Timestamp::now();
        let ends: BTreeMap<JobId, Timestamp> = {
            let scheduler = self.planner.lock().await;
            let pages = self.live_state.read();
            pages.active().filter_map(|job| Some((job.id, scheduler.expected_end(job.id, now)?))).collect()
        };
        let sharing = self.directory.sharing();
        let pages = self.live_state.read();
        let mut views = quota::standings(&sharing, &pages.nodes, pages.active().map(Arc::as_ref), &ends);
        views.retain(|view| workspace.is_none_or(|name| view.workspace == name));
        views.retain(|view| self.directory.may_see_workspace(caller, &view.workspace));
        Ok(views)
    }
}
