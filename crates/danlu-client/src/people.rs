//! Accounts, tokens, members, secrets, the audit.

use danlu_types::account::AccountName;
use danlu_types::api::{
    AccountChange, AccountView, AuditEntry, AuditQuery, AuditVerification, Invitation, MadeToken, MemberView,
    NewAccount, NewPassword, NewRole, NewSecret, NewToken, Page, SecretView, SignIn, SignInLink, TokenView,
    VerificationQuery, Whoami, WithProof,
};
use reqwest::Method;
use serde_json::json;

use crate::client::segment;
use crate::{Client, ClientError};

impl Client {
    /// The secret of a new session.
    pub async fn sign_in(&self, request: &SignIn) -> Result<String, ClientError> {
        #[derive(serde::Deserialize)]
        struct SignedIn {
            secret: String,
        }
        let signed_in: SignedIn = self.answer(self.request(Method::POST, "/session").json(request)).await?;
        Ok(signed_in.secret)
    }

    pub async fn sign_out(&self) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, "/session")).await
    }

    /// A link by which the asker signs in elsewhere, once.
    pub async fn sign_in_link(&self) -> Result<SignInLink, ClientError> {
        self.answer(self.request(Method::POST, "/sign_in_link")).await
    }

    pub async fn password_set(&self, account: &AccountName, new: &NewPassword) -> Result<(), ClientError> {
        let mut body = json!(new);
        body["account"] = json!(account);
        self.done(self.request(Method::POST, "/password").json(&body)).await
    }

    pub async fn whoami(&self) -> Result<Whoami, ClientError> {
        self.get("/whoami").await
    }

    pub async fn accounts_list(&self) -> Result<Page<AccountView>, ClientError> {
        self.get("/accounts").await
    }

    pub async fn account_create(&self, new: &NewAccount) -> Result<Invitation, ClientError> {
        self.answer(self.request(Method::POST, "/accounts").json(new)).await
    }

    pub async fn account_change(
        &self,
        name: &AccountName,
        change: &AccountChange,
    ) -> Result<AccountView, ClientError> {
        self.answer(self.request(Method::PATCH, &format!("/accounts/{name}")).json(change)).await
    }

    pub async fn account_delete(&self, name: &AccountName, stop_jobs: bool) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &format!("/accounts/{name}?stop_jobs={stop_jobs}"))).await
    }

    pub async fn password_link(
        &self,
        name: &AccountName,
        shown: &WithProof,
    ) -> Result<Invitation, ClientError> {
        self.answer(self.request(Method::POST, &format!("/accounts/{name}/password_link")).json(shown)).await
    }

    pub async fn tokens_list(&self, name: &AccountName) -> Result<Page<TokenView>, ClientError> {
        self.get(&format!("/accounts/{name}/tokens")).await
    }

    pub async fn token_make(&self, new: &NewToken) -> Result<MadeToken, ClientError> {
        self.answer(self.request(Method::POST, "/tokens").json(new)).await
    }

    pub async fn token_revoke(&self, name: &AccountName, id: &str) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &format!("/accounts/{name}/tokens/{}", segment(id)))).await
    }

    pub async fn members_list(&self, workspace: &str) -> Result<Page<MemberView>, ClientError> {
        self.get(&format!("/workspaces/{}/members", segment(workspace))).await
    }

    pub async fn member_set(
        &self,
        workspace: &str,
        account: &AccountName,
        role: &NewRole,
    ) -> Result<(), ClientError> {
        let path = format!("/workspaces/{}/members/{account}", segment(workspace));
        self.done(self.request(Method::PUT, &path).json(role)).await
    }

    pub async fn member_remove(&self, workspace: &str, account: &AccountName) -> Result<(), ClientError> {
        self.done(
            self.request(Method::DELETE, &format!("/workspaces/{}/members/{account}", segment(workspace))),
        )
        .await
    }

    /// Their names only; nobody is told a value.
    pub async fn secrets_list(&self, workspace: &str) -> Result<Page<SecretView>, ClientError> {
        self.get(&format!("/workspaces/{}/secrets", segment(workspace))).await
    }

    pub async fn secret_set(&self, workspace: &str, name: &str, new: &NewSecret) -> Result<(), ClientError> {
        let path = format!("/workspaces/{}/secrets/{}", segment(workspace), segment(name));
        self.done(self.request(Method::PUT, &path).json(new)).await
    }

    pub async fn secret_delete(&self, workspace: &str, name: &str) -> Result<(), ClientError> {
        let path = format!("/workspaces/{}/secrets/{}", segment(workspace), segment(name));
        self.done(self.request(Method::DELETE, &path)).await
    }

    pub async fn audit_list(&self, query: &AuditQuery) -> Result<Page<AuditEntry>, ClientError> {
        self.answer(self.request(Method::GET, "/audit").query(query)).await
    }

    pub async fn audit_verify(&self, query: &VerificationQuery) -> Result<AuditVerification, ClientError> {
        self.answer(self.request(Method::GET, "/audit/verification").query(query)).await
    }
}
