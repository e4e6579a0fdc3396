//! Registration, invitations, keys.

use danlu_types::account::AccountName;
use danlu_types::api::{
    AccountView, Applicant, IdentityView, InvitationView, MadeInvitation, MadeS3Key, MadeToken,
    NewInvitation, NewRegistration, NewS3Key, NewSshKey, NewTotp, Page, RecoveryCodes, S3KeyView, SshKeyView,
    TotpCode, TotpEnrolment, TotpRemoval, WithProof,
};
use reqwest::Method;

use crate::client::segment;
use crate::{Client, ClientError};

impl Client {
    pub async fn account_register(&self, new: &NewRegistration) -> Result<AccountView, ClientError> {
        self.answer(self.request(Method::POST, "/registration").json(new)).await
    }

    pub async fn invitations_list(&self, workspace: &str) -> Result<Page<InvitationView>, ClientError> {
        self.get(&format!("/workspaces/{}/invitations", segment(workspace))).await
    }

    pub async fn invitation_make(
        &self,
        workspace: &str,
        new: &NewInvitation,
    ) -> Result<MadeInvitation, ClientError> {
        let path = format!("/workspaces/{}/invitations", segment(workspace));
        self.answer(self.request(Method::POST, &path).json(new)).await
    }

    pub async fn invitation_revoke(&self, workspace: &str, id: &str) -> Result<(), ClientError> {
        let path = format!("/workspaces/{}/invitations/{}", segment(workspace), segment(id));
        self.done(self.request(Method::DELETE, &path)).await
    }

    pub async fn applicants_list(&self, workspace: &str) -> Result<Page<Applicant>, ClientError> {
        self.get(&format!("/workspaces/{}/applicants", segment(workspace))).await
    }

    pub async fn applicant_admit(
        &self,
        workspace: &str,
        account: &AccountName,
    ) -> Result<AccountView, ClientError> {
        let path = format!("/workspaces/{}/applicants/{account}", segment(workspace));
        self.answer(self.request(Method::POST, &path)).await
    }

    pub async fn applicant_turn_away(
        &self,
        workspace: &str,
        account: &AccountName,
    ) -> Result<(), ClientError> {
        let path = format!("/workspaces/{}/applicants/{account}", segment(workspace));
        self.done(self.request(Method::DELETE, &path)).await
    }

    pub async fn token_rotate(
        &self,
        name: &AccountName,
        id: &str,
        shown: &WithProof,
    ) -> Result<MadeToken, ClientError> {
        let path = format!("/accounts/{name}/tokens/{}/rotation", segment(id));
        self.answer(self.request(Method::POST, &path).json(shown)).await
    }

    pub async fn totp_enrol(&self, name: &AccountName, new: &NewTotp) -> Result<TotpEnrolment, ClientError> {
        self.answer(self.request(Method::POST, &format!("/accounts/{name}/totp")).json(new)).await
    }

    pub async fn totp_confirm(
        &self,
        name: &AccountName,
        code: &TotpCode,
    ) -> Result<RecoveryCodes, ClientError> {
        self.answer(self.request(Method::POST, &format!("/accounts/{name}/totp/confirmation")).json(code))
            .await
    }

    pub async fn totp_remove(&self, name: &AccountName, removal: &TotpRemoval) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &format!("/accounts/{name}/totp")).json(removal)).await
    }

    pub async fn identities_list(&self, name: &AccountName) -> Result<Page<IdentityView>, ClientError> {
        self.get(&format!("/accounts/{name}/identities")).await
    }

    pub async fn identity_unlink(&self, name: &AccountName, id: &str) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &format!("/accounts/{name}/identities/{}", segment(id)))).await
    }

    pub async fn ssh_keys_list(&self, name: &AccountName) -> Result<Page<SshKeyView>, ClientError> {
        self.get(&format!("/accounts/{name}/ssh_keys")).await
    }

    pub async fn ssh_key_add(&self, name: &AccountName, new: &NewSshKey) -> Result<SshKeyView, ClientError> {
        self.answer(self.request(Method::POST, &format!("/accounts/{name}/ssh_keys")).json(new)).await
    }

    pub async fn ssh_key_remove(&self, name: &AccountName, id: &str) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &format!("/accounts/{name}/ssh_keys/{}", segment(id)))).await
    }

    pub async fn s3_keys_list(&self, name: &AccountName) -> Result<Page<S3KeyView>, ClientError> {
        self.get(&format!("/accounts/{name}/s3_keys")).await
    }

    pub async fn s3_key_make(&self, name: &AccountName, new: &NewS3Key) -> Result<MadeS3Key, ClientError> {
        self.answer(self.request(Method::POST, &format!("/accounts/{name}/s3_keys")).json(new)).await
    }

    pub async fn s3_key_remove(&self, name: &AccountName, access_key: &str) -> Result<(), ClientError> {
        let path = format!("/accounts/{name}/s3_keys/{}", segment(access_key));
        self.done(self.request(Method::DELETE, &path)).await
    }
}
