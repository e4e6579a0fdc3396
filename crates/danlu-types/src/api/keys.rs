//! Bodies about keys, invitations and those who ask to be let in.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Proof;
use crate::Span;
use crate::account::{AccountName, WorkspaceRole};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSshKey {
    /// One line of a `.pub` file.
    pub key: String,
    /// What it is called; by default its own comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SshKeyView {
    pub id: String,
    pub name: String,
    /// As `ssh-keygen -l` shows it.
    pub fingerprint: String,
    pub key: String,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewS3Key {
    /// What it is for, in its owner's words.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct S3KeyView {
    /// The access key (AK).
    pub access_key: String,
    pub name: String,
    pub created_at: Timestamp,
}

/// An S3 key that has just been made. Its secret key is shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeS3Key {
    pub key: S3KeyView,
    /// The secret key (SK).
    pub secret_key: String,
}

/// An account that its future owner asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRegistration {
    pub name: AccountName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// At least 10 characters.
    pub password: String,
    /// The secret of an invitation: the account needs no approval then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invitation: Option<String>,
    /// A workspace whose owners may let them in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInvitation {
    /// What the invited will be in the workspace.
    pub role: WorkspaceRole,
    /// How long it is good for, 30 days at most; a week when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InvitationView {
    pub id: String,
    pub workspace: String,
    pub role: WorkspaceRole,
    /// Who invites.
    pub by: AccountName,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// An invitation that has just been made; the page for it is `/register#link=SECRET`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeInvitation {
    pub invitation: InvitationView,
    pub secret: String,
}

/// Somebody who registered and asks to be let into a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Applicant {
    pub account: AccountName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    pub created_at: Timestamp,
}
