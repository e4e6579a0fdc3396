//! What is known of people: a type for each table, and [`DirectoryRow`], which is a row of any of them.
//!
//! The text of a row ([`DirectoryRow::sealed`]) is what the proof of the audit covers, so its bytes are frozen: a new field is
//! left out of it where it says nothing, and a word that changes on the wire keeps its old form here.

mod tables;

use danlu_types::account::{AccountName, Scope, Standing, WorkspaceRole};
use danlu_types::api::{SharingRules, TokenKind};
use danlu_types::{Workspace, from_stored_json};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use tables::{Column, Form, PeopleTable, TABLES};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub name: AccountName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    pub admin: bool,
    pub standing: Standing,
    /// Argon2id, as a PHC string; an account without one has no sign-in by password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    pub created_at: Timestamp,
    /// The workspace whose owners may approve it, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_for: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_factor: Option<SecondFactor>,
    /// An administrator chose the name, or allows it to be that of a user of the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unix_user: bool,
    /// Grows by one with every change; 0 for one that is not stored yet.
    #[serde(skip)]
    pub generation: u64,
}

impl Account {
    pub fn is_administrator(&self) -> bool {
        self.admin && self.standing == Standing::Active
    }

    /// Whether a code is asked for besides the password.
    pub fn has_second_factor(&self) -> bool {
        self.second_factor.as_ref().is_some_and(|second| second.confirmed)
    }
}

/// The MFA device of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFactor {
    /// Sealed.
    pub secret: String,
    /// Until then no code is asked for.
    pub confirmed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_step: Option<u64>,
    /// Hashes of the recovery codes that are left.
    pub recovery: Vec<String>,
}

/// A token for programs, a session, or a one-time link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub id: String,
    pub account: AccountName,
    pub kind: TokenKind,
    pub name: String,
    pub scope: Scope,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Of a link to sign in: when the session ends that made it. The one that comes of it ends no later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_ends: Option<Timestamp>,
    /// Of a link that was made with a session, and of the session that comes of it: the session at the beginning of them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Of what does not outlive the token or session that it was made with: the id of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_with: Option<String>,
    /// Of a link to set a password: the administrator who made it. It ends with their rights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<AccountName>,
}

impl Token {
    /// The id of the session from which this one comes, over however many links: its own, where it comes from none.
    pub fn root(&self) -> &str {
        self.root.as_deref().unwrap_or(&self.id)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub role: WorkspaceRole,
    /// Given by a group of the provider, and taken away with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_group: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshKeyRecord {
    pub id: String,
    pub account: AccountName,
    pub name: String,
    /// The key's line, without a comment.
    pub key: String,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct S3KeyRecord {
    pub account: AccountName,
    pub name: String,
    /// Sealed: signatures are checked with the secret itself, so a hash would not do.
    pub secret: String,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvitationRecord {
    pub id: String,
    pub workspace: String,
    pub role: WorkspaceRole,
    pub by: AccountName,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// The id of the program's token that made it, with which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_with: Option<String>,
}

/// Whom a provider knows by another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalIdentityRecord {
    pub account: AccountName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked_at: Option<Timestamp>,
}

/// A deleted account or workspace. Jobs, files and entries of the audit keep its name, so it is not given again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerRecord {
    pub deleted_at: Timestamp,
}

/// The number of the user that an account's jobs run as. It is never given to another account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnixUserRecord {
    pub uid: u32,
}

/// A secret of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSecret {
    pub sealed: String,
    pub changed_at: Timestamp,
    pub changed_by: String,
}

/// The proof of the last entry of the audit, and of all other rows as they are after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditHead {
    pub number: u64,
    pub entry: String,
    pub directory: String,
}

/// A value that is stored as one JSON text, and the text itself: the proof of the audit covers what was written, not what a
/// later version would write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document<T> {
    value: T,
    text: String,
}

impl<T: Serialize + DeserializeOwned> Document<T> {
    pub fn of(value: T) -> Self {
        let text = serde_json::to_string(&value).expect("plain values");
        Document { value, text }
    }

    pub(crate) fn read(text: String) -> Result<Self, serde_json::Error> {
        Ok(Document { value: from_stored_json(&text)?, text })
    }

    pub fn value(&self) -> &T {
        &self.value
    }
}

/// A row of one of the tables of people, by its key. In a change, a row without a value is taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryRow {
    Account(AccountName, Option<Account>),
    /// By the hash of its secret.
    Token(String, Option<Token>),
    /// By workspace and account.
    Member(String, AccountName, Option<Member>),
    Workspace(String, Option<Document<Workspace>>),
    SchedulingPolicy(Document<SharingRules>),
    /// What has happened once and for all.
    Milestone(String),
    /// By its fingerprint: one key belongs to one account.
    SshKey(String, Option<SshKeyRecord>),
    /// By its access key.
    S3Key(String, Option<S3KeyRecord>),
    /// By the hash of its secret.
    Invitation(String, Option<InvitationRecord>),
    /// By issuer and subject, with a space between them.
    ExternalIdentity(String, Option<ExternalIdentityRecord>),
    FormerAccount(String, FormerRecord),
    FormerWorkspace(String, FormerRecord),
    /// By its account, which may be gone.
    UnixUser(String, UnixUserRecord),
    /// By workspace and name.
    Secret(String, String, Option<StoredSecret>),
    AuditHead(AuditHead),
}

/// The text of a row that the proof of the audit covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedText {
    pub kind: &'static str,
    pub key: String,
    pub value: Option<String>,
}

impl DirectoryRow {
    pub fn sealed(&self) -> SealedText {
        let (table, keys, value) = self.parts();
        SealedText { kind: table.kind, key: keys.join(table.between_keys), value }
    }

    /// Where the row is, the values of its key columns, and its text.
    pub(crate) fn parts(&self) -> (&'static PeopleTable, Vec<String>, Option<String>) {
        use DirectoryRow as Row;
        let one = |key: &str| vec![key.to_owned()];
        match self {
            Row::Account(name, account) => (&TABLES.accounts, one(name.as_str()), text(account.as_ref())),
            Row::Token(hash, token) => (&TABLES.tokens, one(hash), text(token.as_ref())),
            Row::Member(workspace, account, member) => {
                (&TABLES.memberships, vec![workspace.clone(), account.to_string()], text(member.as_ref()))
            }
            Row::Workspace(name, rules) => {
                (&TABLES.workspaces, one(name), rules.as_ref().map(|rules| rules.text.clone()))
            }
            Row::SchedulingPolicy(rules) => (&TABLES.scheduling_policy, Vec::new(), Some(rules.text.clone())),
            Row::Milestone(name) => (&TABLES.milestones, one(name), Some("{}".to_owned())),
            Row::SshKey(fingerprint, key) => (&TABLES.ssh_keys, one(fingerprint), text(key.as_ref())),
            Row::S3Key(access_key, key) => (&TABLES.access_keys, one(access_key), text(key.as_ref())),
            Row::Invitation(hash, invitation) => (&TABLES.invitations, one(hash), text(invitation.as_ref())),
            Row::ExternalIdentity(key, identity) => {
                let (issuer, subject) = key.split_once(' ').unwrap_or((key, ""));
                let keys = vec![issuer.to_owned(), subject.to_owned()];
                (&TABLES.external_identities, keys, text(identity.as_ref()))
            }
            Row::FormerAccount(name, former) => (&TABLES.former_accounts, one(name), text(Some(former))),
            Row::FormerWorkspace(name, former) => (&TABLES.former_workspaces, one(name), text(Some(former))),
            Row::UnixUser(account, user) => (&TABLES.unix_users, one(account), text(Some(user))),
            Row::Secret(workspace, name, secret) => {
                (&TABLES.secrets, vec![workspace.clone(), name.clone()], text(secret.as_ref()))
            }
            Row::AuditHead(head) => (&TABLES.audit_head, Vec::new(), text(Some(head))),
        }
    }

    /// The row that a table holds under these keys; the error says what in it is not as this version writes it.
    pub(crate) fn read(kind: &str, keys: &[String], stored: Stored) -> Result<Self, String> {
        use DirectoryRow as Row;
        let Stored { fields, document, generation } = stored;
        let document = document.unwrap_or_default();
        Ok(match (kind, keys) {
            ("account", [name]) => {
                let account = Account { generation, ..of(fields)? };
                Row::Account(account_name(name)?, Some(account))
            }
            ("token", [hash]) => Row::Token(hash.clone(), Some(of(fields)?)),
            ("member", [workspace, account]) => {
                Row::Member(workspace.clone(), account_name(account)?, Some(of(fields)?))
            }
            ("workspace", [name]) => Row::Workspace(name.clone(), Some(read_document(document)?)),
            ("sharing", []) => Row::SchedulingPolicy(read_document(document)?),
            ("milestone", [name]) => Row::Milestone(name.clone()),
            ("ssh_key", [fingerprint]) => Row::SshKey(fingerprint.clone(), Some(of(fields)?)),
            ("s3_key", [access_key]) => Row::S3Key(access_key.clone(), Some(of(fields)?)),
            ("invitation", [hash]) => Row::Invitation(hash.clone(), Some(of(fields)?)),
            ("subject", [issuer, subject]) => {
                Row::ExternalIdentity(format!("{issuer} {subject}"), Some(of(fields)?))
            }
            ("former_account", [name]) => Row::FormerAccount(name.clone(), of(fields)?),
            ("former_workspace", [name]) => Row::FormerWorkspace(name.clone(), of(fields)?),
            ("unix_user", [account]) => Row::UnixUser(account.clone(), of(fields)?),
            ("secret", [workspace, name]) => Row::Secret(workspace.clone(), name.clone(), Some(of(fields)?)),
            ("audit_head", []) => Row::AuditHead(of(fields)?),
            _ => return Err(format!("this version knows no {kind} with {} parts of a key", keys.len())),
        })
    }

    /// The generation that a row was made from, for kinds that have one.
    pub(crate) fn generation(&self) -> Option<u64> {
        match self {
            DirectoryRow::Account(_, account) => account.as_ref().map(|account| account.generation),
            _ => None,
        }
    }
}

/// The values of a row beside its key.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) fields: Value,
    /// Of tables whose rows are one JSON text.
    pub(crate) document: Option<String>,
    pub(crate) generation: u64,
}

fn text<T: Serialize>(value: Option<&T>) -> Option<String> {
    value.map(|value| serde_json::to_string(value).expect("plain values"))
}

fn of<T: DeserializeOwned>(fields: Value) -> Result<T, String> {
    serde_json::from_value(fields).map_err(|error| error.to_string())
}

fn read_document<T: Serialize + DeserializeOwned>(text: String) -> Result<Document<T>, String> {
    Document::read(text).map_err(|error| error.to_string())
}

fn account_name(text: &str) -> Result<AccountName, String> {
    text.parse().map_err(|error: danlu_types::account::AccountNameError| error.to_string())
}
