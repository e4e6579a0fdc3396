//! Bodies about people: accounts, sign-in, tokens, members, and what was done by whom.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Span;
use crate::account::{AccountName, Registration, Scope, Standing, WorkspaceRole};

/// The asker's own account, and what they are where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Whoami {
    pub account: AccountView,
    /// What the token of this request may be used for.
    pub scope: Scope,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountView {
    pub name: AccountName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// May do everything, and leaves a trail.
    pub admin: bool,
    pub standing: Standing,
    /// Whether a code is asked for at sign-in.
    #[serde(default)]
    pub second_factor: bool,
    /// Whether its jobs may run as the machine's user of the same name, where jobs run so. An administrator chose the name, or
    /// has allowed it.
    #[serde(default)]
    pub unix_user: bool,
    pub created_at: Timestamp,
    /// The workspace that they ask to be let into, while they wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_for: Option<String>,
    /// Workspaces that they were put into; their own, of their name, is not listed.
    pub workspaces: Vec<Membership>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Membership {
    pub workspace: String,
    pub role: WorkspaceRole,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberView {
    pub account: AccountName,
    pub role: WorkspaceRole,
}

/// A new account, made by an administrator or asked for by its future owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAccount {
    pub name: AccountName,
    #[serde(default)]
    pub display_name: Option<String>,
    #[serde(default)]
    pub email: Option<String>,
    /// At least 10 characters. Left out by an administrator, the person sets one with the link that is answered.
    #[serde(default)]
    pub password: Option<String>,
}

/// What to change of an account; what is left out stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// Whether its jobs may run as the machine's user of the same name (`--unix-users same-name`). For administrators to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_user: Option<bool>,
    /// What becomes of its jobs when it is disabled; they run on when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobsOfAccount>,
    /// Asked for where the account becomes an administrator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// What becomes of the jobs of an account that is disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobsOfAccount {
    /// Those that wait and run are stopped.
    Stop,
    /// They run to their end.
    Keep,
}

/// An account, and a secret by which its owner sets a password, once and within two days. The page for it is
/// `/set-password#account=NAME&link=SECRET`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Invitation {
    pub account: AccountView,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_link: Option<String>,
}

/// Who wants to come in: with a name and a password, or with the secret of a link.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Of a sign-in link; works once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Of the account's authenticator, or a recovery code, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// How one comes in here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaysIn {
    pub registration: Registration,
    /// Whether one may sign in through a provider: a browser goes to `/api/v1/oidc/start`.
    pub oidc: bool,
}

/// What a person shows beside their session before it makes what does not end with it. Tokens for programs show nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The present password of the caller's account; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Of its authenticator, or a recovery code, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// A proof and no more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WithProof {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// Begins to use an authenticator.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTotp {
    /// The present one. Left out where the account has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// What an authenticator needs to make codes. Nothing is asked for until one of them was confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TotpEnrolment {
    /// In base 32, for typing.
    pub secret: String,
    /// `otpauth://…`, for a QR code.
    pub address: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TotpCode {
    pub code: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TotpRemoval {
    /// Of the authenticator that goes. Administrators leave it out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Of an administrator who takes another's away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// Codes for when the authenticator is lost: each works once. They are shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecoveryCodes {
    pub codes: Vec<String>,
}

/// A secret by which its account signs in, once. The page for it is `/sign-in#link=SECRET`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignInLink {
    pub secret: String,
    pub expires_at: Timestamp,
}

/// A new password: with the present one, or with the secret of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    pub password: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// With the present password, where the account has an authenticator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Keep the account's tokens for programs; without it they end, like its sessions.
    #[serde(default)]
    pub keep_tokens: bool,
}

/// Who begins to link their account to an identity at the provider.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewIdentity {
    /// The account's present password.
    pub password: String,
    /// Where the account has an authenticator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Where the browser goes to show which identity it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IdentityDeparture {
    pub address: String,
}

/// An identity at the provider by which an account signs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IdentityView {
    pub id: String,
    pub issuer: String,
    /// As the provider calls it; not a name for people.
    pub subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What it is for, in its owner's words.
    pub name: String,
    pub scope: Scope,
    /// How long it is good for; for ever when absent, but never longer than the token that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// A token that has just been made. The secret is shown this once and kept nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeToken {
    pub token: TokenView,
    pub secret: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenView {
    pub id: String,
    pub name: String,
    pub kind: TokenKind,
    pub scope: Scope,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Since this server started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
}

/// What a secret is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// For programs.
    Api,
    /// Of somebody who signed in.
    Session,
    /// For setting a password, once.
    PasswordLink,
    /// For signing in, once.
    SignInLink,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRole {
    pub role: WorkspaceRole,
}

/// Something that was done, sealed against change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    pub number: u64,
    pub at: Timestamp,
    /// The account; `-` where nobody was signed in.
    pub by: String,
    /// The address that the request came from.
    pub from: String,
    /// Such as `account.change`.
    pub action: String,
    /// What it was done to.
    pub subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<serde_json::Value>,
    /// SHA-256 over the seal of the entry before, and this entry without its own.
    pub seal: String,
}

/// Whether the audit, and what it is about, are as the server wrote them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditVerification {
    pub entries: u64,
    /// The last entry's; to be kept elsewhere and compared.
    pub seal: String,
    /// What was changed behind the server's back; nothing, where all is well.
    pub findings: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct VerificationQuery {
    /// Findings that entries up to this one tell of are known and not told again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<u64>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// Only what this account did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Only what was done to this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Where the page before ended.
    #[param(pattern = "^[0-9]{1,18}$")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[param(minimum = 1, maximum = 1000)]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::within::<_, 1, 1000>"
    )]
    pub limit: Option<u32>,
}
