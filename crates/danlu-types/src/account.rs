//! People: their accounts, what they are in a workspace, and what their tokens may be used for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

/// An account's name. It is also the name of the person's own workspace and of a Unix user, so it obeys the rules of both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String)]
pub struct AccountName(String);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "invalid account name `{0}`: use up to 32 lowercase letters, digits, `_` and `-`, starting with a letter"
)]
pub struct AccountNameError(String);

const LONGEST_NAME: usize = 32;

impl AccountName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AccountName {
    type Err = AccountNameError;

    fn from_str(text: &str) -> Result<Self, AccountNameError> {
        let starts = text.starts_with(|first: char| first.is_ascii_lowercase());
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
        if starts && text.len() <= LONGEST_NAME && text.bytes().all(allowed) {
            Ok(AccountName(text.to_owned()))
        } else {
            Err(AccountNameError(text.chars().take(40).collect()))
        }
    }
}

impl TryFrom<String> for AccountName {
    type Error = AccountNameError;

    fn try_from(text: String) -> Result<Self, AccountNameError> {
        text.parse()
    }
}

impl From<AccountName> for String {
    fn from(name: AccountName) -> String {
        name.0
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether an account may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Registered, and not yet approved by anybody.
    Waiting,
    Active,
    /// Kept, with all that belongs to it; signs in nowhere.
    Disabled,
}

impl Standing {
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Waiting => "waiting",
            Standing::Active => "active",
            Standing::Disabled => "disabled",
        }
    }
}

/// What a person is in a workspace; each may do what the ones before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceRole {
    /// Sees its jobs and what they print.
    Viewer,
    /// Submits jobs, and changes their own.
    Member,
    /// Changes everybody's jobs, and who is in the workspace.
    Owner,
}

impl WorkspaceRole {
    pub const ALL: [WorkspaceRole; 3] = [WorkspaceRole::Viewer, WorkspaceRole::Member, WorkspaceRole::Owner];

    pub fn as_str(self) -> &'static str {
        match self {
            WorkspaceRole::Viewer => "viewer",
            WorkspaceRole::Member => "member",
            WorkspaceRole::Owner => "owner",
        }
    }
}

impl FromStr for WorkspaceRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("invalid role `{text}`: write `viewer`, `member` or `owner`"))
    }
}

/// What a token may be used for; each scope holds the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// To look, and nothing else: for dashboards.
    Read,
    /// To work with jobs: for scripts that submit.
    Jobs,
    /// For everything its account may do.
    All,
}

impl Scope {
    pub const ALL: [Scope; 3] = [Scope::Read, Scope::Jobs, Scope::All];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Jobs => "jobs",
            Scope::All => "all",
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| format!("invalid scope `{text}`: write `read`, `jobs` or `all`"))
    }
}

/// How accounts come to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Registration {
    /// Administrators make them.
    #[default]
    Closed,
    /// Whoever was invited makes their own.
    Invitation,
    /// Anybody may ask for one; it waits until somebody approves it.
    Open,
}

impl Registration {
    pub const ALL: [Registration; 3] = [Registration::Closed, Registration::Invitation, Registration::Open];

    pub fn as_str(self) -> &'static str {
        match self {
            Registration::Closed => "closed",
            Registration::Invitation => "invitation",
            Registration::Open => "open",
        }
    }
}

impl FromStr for Registration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|registration| registration.as_str() == text).ok_or_else(|| {
            format!("invalid registration mode `{text}`: write `closed`, `invitation` or `open`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_workspaces_and_unix() {
        for good in ["ada", "grace-h", "x1_", "a"] {
            assert_eq!(good.parse::<AccountName>().unwrap().as_str(), good);
        }
        for bad in ["", "Ada", "1st", "-x", "a b", "a/b", "..", "ä", "root\0", &"a".repeat(33)] {
            assert!(bad.parse::<AccountName>().is_err(), "{bad}");
        }
        insta::assert_snapshot!("Ada".parse::<AccountName>().unwrap_err(), @"invalid account name `Ada`: use up to 32 lowercase letters, digits, `_` and `-`, starting with a letter");
    }
}
