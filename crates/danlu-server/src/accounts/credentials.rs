//! What belongs to accounts beside their tokens: SSH keys, S3 keys, invitations that they made; and their names, for ever.

use std::collections::BTreeMap;

use danlu_store::{DirectoryRow, FormerRecord};
pub(crate) use danlu_store::{ExternalIdentityRecord, InvitationRecord, S3KeyRecord, SshKeyRecord};
use danlu_types::account::AccountName;
use danlu_types::api::{InvitationView, S3KeyView, SshKeyView};
use jiff::Timestamp;

use super::cache::hash;

#[derive(Debug, Default)]
pub(crate) struct Credentials {
    /// By fingerprint: one key is one person's.
    pub(crate) ssh_keys: BTreeMap<String, SshKeyRecord>,
    /// By access key.
    pub(crate) s3_keys: BTreeMap<String, S3KeyRecord>,
    /// By the hash of their secret.
    pub(crate) invitations: BTreeMap<String, InvitationRecord>,
    /// By issuer and subject.
    pub(crate) subjects: BTreeMap<String, ExternalIdentityRecord>,
    /// By name.
    pub(crate) former: BTreeMap<String, FormerRecord>,
    /// By name.
    pub(crate) former_workspaces: BTreeMap<String, FormerRecord>,
}

pub(crate) fn ssh_key_row(fingerprint: &str, key: Option<&SshKeyRecord>) -> DirectoryRow {
    DirectoryRow::SshKey(fingerprint.to_owned(), key.cloned())
}

pub(crate) fn s3_key_row(access_key: &str, key: Option<&S3KeyRecord>) -> DirectoryRow {
    DirectoryRow::S3Key(access_key.to_owned(), key.cloned())
}

pub(crate) fn invitation_row(secret: &str, invitation: &InvitationRecord) -> DirectoryRow {
    DirectoryRow::Invitation(hash(secret), Some(invitation.clone()))
}

pub(crate) fn subject_row(key: &str, subject: Option<&ExternalIdentityRecord>) -> DirectoryRow {
    DirectoryRow::ExternalIdentity(key.to_owned(), subject.cloned())
}

pub(crate) fn former_row(name: &AccountName, deleted_at: Timestamp) -> DirectoryRow {
    DirectoryRow::FormerAccount(name.to_string(), FormerRecord { deleted_at })
}

pub(crate) fn former_workspace_row(name: &str, deleted_at: Timestamp) -> DirectoryRow {
    DirectoryRow::FormerWorkspace(name.to_owned(), FormerRecord { deleted_at })
}

/// By the key of its row.
pub(crate) fn no_invitation_row(key: &str) -> DirectoryRow {
    DirectoryRow::Invitation(key.to_owned(), None)
}

impl Credentials {
    /// Rows that take away all that an account has.
    pub(crate) fn departures(&self, account: &AccountName) -> Vec<DirectoryRow> {
        let ssh = self.ssh_keys.iter().filter(|(_, key)| key.account == *account);
        let s3 = self.s3_keys.iter().filter(|(_, key)| key.account == *account);
        let invitations = self.invitations.iter().filter(|(_, invitation)| invitation.by == *account);
        let subjects = self.subjects.iter().filter(|(_, subject)| subject.account == *account);
        ssh.map(|(fingerprint, _)| ssh_key_row(fingerprint, None))
            .chain(s3.map(|(access_key, _)| s3_key_row(access_key, None)))
            .chain(invitations.map(|(key, _)| no_invitation_row(key)))
            .chain(subjects.map(|(key, _)| subject_row(key, None)))
            .collect()
    }

    /// The invitation behind a secret, if it is still good.
    pub(crate) fn invitation(&self, secret: &str, now: Timestamp) -> Option<(String, InvitationRecord)> {
        let key = hash(secret);
        let found = self.invitations.get(&key).filter(|invitation| invitation.expires_at > now)?;
        Some((key, found.clone()))
    }
}

pub(crate) fn ssh_key_view(fingerprint: &str, key: &SshKeyRecord) -> SshKeyView {
    SshKeyView {
        id: key.id.clone(),
        name: key.name.clone(),
        fingerprint: fingerprint.to_owned(),
        key: key.key.clone(),
        created_at: key.created_at,
    }
}

pub(crate) fn s3_key_view(access_key: &str, key: &S3KeyRecord) -> S3KeyView {
    let (name, created_at) = (key.name.clone(), key.created_at);
    S3KeyView { access_key: access_key.to_owned(), name, created_at }
}

pub(crate) fn invitation_view(invitation: &InvitationRecord) -> InvitationView {
    let InvitationRecord { id, workspace, role, by, created_at, expires_at, made_with: _ } =
        invitation.clone();
    InvitationView { id, workspace, role, by, created_at, expires_at }
}
