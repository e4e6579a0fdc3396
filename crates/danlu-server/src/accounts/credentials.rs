//! What belongs to accounts beside their tokens: SSH keys, S3 keys, invitations that they made; and their names, for ever.

use std::collections::BTreeMap;

use danlu_store::DirectoryRow;
use danlu_types::account::{AccountName, WorkspaceRole};
use danlu_types::api::{InvitationView, S3KeyView, SshKeyView};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::cache::{hash, row};

const SSH_KEY: &str = "ssh_key";
const S3_KEY: &str = "s3_key";
const INVITATION: &str = "invitation";
const SUBJECT: &str = "subject";
const FORMER: &str = "former_account";
const FORMER_WORKSPACE: &str = "former_workspace";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SshKeyRecord {
    pub(crate) id: String,
    pub(crate) account: AccountName,
    pub(crate) name: String,
    /// The key's line, without a comment.
    pub(crate) key: String,
    pub(crate) created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct S3KeyRecord {
    pub(crate) account: AccountName,
    pub(crate) name: String,
    /// Sealed: signatures are checked with the secret itself, so a hash would not do.
    pub(crate) secret: String,
    pub(crate) created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InvitationRecord {
    pub(crate) id: String,
    pub(crate) workspace: String,
    pub(crate) role: WorkspaceRole,
    pub(crate) by: AccountName,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    /// The id of the program's token that made it, with which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made_with: Option<String>,
}

/// Whom a provider knows by another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExternalIdentityRecord {
    pub(crate) account: AccountName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) linked_at: Option<Timestamp>,
}

/// An account or a workspace that is deleted. Jobs, files and entries of the audit stay under its name, so nobody else gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FormerRecord {
    pub(crate) deleted_at: Timestamp,
}

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
    row(SSH_KEY, fingerprint.to_owned(), key)
}

pub(crate) fn s3_key_row(access_key: &str, key: Option<&S3KeyRecord>) -> DirectoryRow {
    row(S3_KEY, access_key.to_owned(), key)
}

pub(crate) fn invitation_row(secret: &str, invitation: &InvitationRecord) -> DirectoryRow {
    row(INVITATION, hash(secret), Some(invitation))
}

pub(crate) fn subject_row(key: &str, subject: Option<&ExternalIdentityRecord>) -> DirectoryRow {
    row(SUBJECT, key.to_owned(), subject)
}

pub(crate) fn former_row(name: &AccountName, deleted_at: Timestamp) -> DirectoryRow {
    row(FORMER, name.to_string(), Some(&FormerRecord { deleted_at }))
}

pub(crate) fn former_workspace_row(name: &str, deleted_at: Timestamp) -> DirectoryRow {
    row(FORMER_WORKSPACE, name.to_owned(), Some(&FormerRecord { deleted_at }))
}

/// By the key of its row.
pub(crate) fn no_invitation_row(key: &str) -> DirectoryRow {
    row::<InvitationRecord>(INVITATION, key.to_owned(), None)
}

impl Credentials {
    /// Takes in a row, or takes out what it takes away; `None` if it is not understood.
    pub(crate) fn file(&mut self, row: &DirectoryRow) -> Option<()> {
        match row.kind.as_str() {
            SSH_KEY => file(&mut self.ssh_keys, row),
            S3_KEY => file(&mut self.s3_keys, row),
            INVITATION => file(&mut self.invitations, row),
            SUBJECT => file(&mut self.subjects, row),
            FORMER => file(&mut self.former, row),
            FORMER_WORKSPACE => file(&mut self.former_workspaces, row),
            _ => None,
        }
    }

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

fn file<T: DeserializeOwned>(records: &mut BTreeMap<String, T>, row: &DirectoryRow) -> Option<()> {
    match &row.value {
        Some(value) => records.insert(row.key.clone(), serde_json::from_str(value).ok()?),
        None => records.remove(&row.key),
    };
    Some(())
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
