//! Workspaces, their rules, and where they stand.

use danlu_types::Workspace;
use danlu_types::api::{Page, QuotaQuery, QuotaView, SharingRules, WorkspaceView};
use reqwest::Method;

use crate::client::segment;
use crate::{Client, ClientError};

impl Client {
    pub async fn workspaces_list(&self) -> Result<Page<WorkspaceView>, ClientError> {
        self.get("/workspaces").await
    }

    pub async fn workspace_show(&self, name: &str) -> Result<WorkspaceView, ClientError> {
        self.get(&format!("/workspaces/{}", segment(name))).await
    }

    pub async fn workspace_set(&self, name: &str, rules: &Workspace) -> Result<WorkspaceView, ClientError> {
        self.answer(self.request(Method::PUT, &format!("/workspaces/{}", segment(name))).json(rules)).await
    }

    pub async fn workspace_delete(&self, name: &str) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &format!("/workspaces/{}", segment(name)))).await
    }

    pub async fn quota(&self, workspace: Option<&str>) -> Result<Page<QuotaView>, ClientError> {
        let query = QuotaQuery { workspace: workspace.map(str::to_owned) };
        self.answer(self.request(Method::GET, "/quota").query(&query)).await
    }

    pub async fn sharing_show(&self) -> Result<SharingRules, ClientError> {
        self.get("/sharing").await
    }

    pub async fn sharing_set(&self, rules: &SharingRules) -> Result<(), ClientError> {
        self.done(self.request(Method::PUT, "/sharing").json(rules)).await
    }
}
