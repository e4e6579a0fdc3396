//! People whom a provider vouches for: which account is theirs, and what their groups make them.
//!
//! An account is found by the provider's subject and nothing else. A name proves nothing: whoever calls themselves `ada`
//! elsewhere does not get ada's account here, and neither does whoever comes back from the provider with something of hers.
//! She links the two herself (`identities`).

use std::collections::BTreeMap;
use std::net::IpAddr;

use danlu_store::DirectoryRow;
use danlu_types::account::{AccountName, Standing, WorkspaceRole};
use danlu_types::api::{Membership, NewAccount};
use danlu_types::{Problem, ProblemCode};
use jiff::Timestamp;

use super::cache::{Account, member_of_group_row, member_row};
use super::credentials::{ExternalIdentityRecord, subject_row};
use super::hashing::For;
use super::manage::AccountOrigin;
use super::{Caller, Directory};
use crate::oidc::ExternalIdentity;

const LONGEST_NAME: usize = 32;

impl Directory {
    /// The secret of a new session of whom the provider vouches for, whoever was signed in here before.
    pub(crate) async fn sign_in_by_subject(
        &self,
        identity: ExternalIdentity,
        groups: &BTreeMap<String, Vec<Membership>>,
        from: IpAddr,
    ) -> Result<(String, Caller), Problem> {
        let key = identity.key();
        let known = self.register().credentials.subjects.get(&key).map(|subject| subject.account.clone());
        let name = match known {
            Some(name) => name,
            None => self.create_for(&key, &identity, from).await?,
        };
        let _one_at_a_time = self.changing.lock().await;
        let account = self.register().account(&name).cloned();
        let Some(account) = account.filter(|account| account.standing == Standing::Active) else {
            return Err(Problem::new(ProblemCode::Unauthenticated, "this account cannot be used now"));
        };
        // Meanwhile its owner may have taken the link back.
        let is_linked = |subject: &ExternalIdentityRecord| subject.account == name;
        if !self.register().credentials.subjects.get(&key).is_some_and(is_linked) {
            return Err(Problem::new(
                ProblemCode::Unauthenticated,
                "this identity is linked to no account now",
            ));
        }
        let rows = self.memberships(&account, &identity.groups, groups);
        self.begin_session(&account, "provider", rows, from, None).await
    }

    async fn create_for(
        &self,
        key: &str,
        identity: &ExternalIdentity,
        from: IpAddr,
    ) -> Result<AccountName, Problem> {
        let name = account_name(identity.username.as_deref().unwrap_or_default()).ok_or_else(|| {
            Problem::new(ProblemCode::WrongState, "the provider gives no name that an account could have")
                .with_hint(
                    "ask an administrator for an account, sign in, and link the two on your account's page",
                )
        })?;
        let account = NewAccount {
            name: name.clone(),
            display_name: identity.display_name.clone(),
            email: identity.email.clone(),
            password: None,
        };
        let record = ExternalIdentityRecord { account: name.clone(), linked_at: Some(Timestamp::now()) };
        let subject = subject_row(key, Some(&record));
        let whose = For { name: name.to_string(), place: None, is_known: true };
        let made =
            self.create(account, AccountOrigin::VouchedFor { subject }, name.as_str(), from, whose).await;
        made.map_err(|problem| match problem.code {
            ProblemCode::WrongState => problem.with_hint(
                "if it is yours, sign in to it with its password and link the two on your account's page",
            ),
            _ => problem,
        })?;
        Ok(name)
    }

    /// Rows that give what groups give and take what they no longer give. What was given by hand is left alone.
    fn memberships(
        &self,
        account: &Account,
        of: &[String],
        groups: &BTreeMap<String, Vec<Membership>>,
    ) -> Vec<DirectoryRow> {
        let mut given: BTreeMap<&str, WorkspaceRole> = BTreeMap::new();
        for membership in of.iter().filter_map(|group| groups.get(group)).flatten() {
            let role = given.entry(membership.workspace.as_str()).or_insert(membership.role);
            *role = membership.role.max(*role);
        }
        let register = self.register();
        // A workspace that is gone, or does not exist yet, gives nothing.
        given.retain(|workspace, _| register.has_workspace(workspace));
        let mut rows = Vec::new();
        for (workspace, from_group) in register.roles_of(&account.name) {
            if from_group && !given.contains_key(workspace) {
                rows.push(member_row(workspace, &account.name, None));
            } else if !from_group {
                given.remove(workspace);
            }
        }
        rows.extend(
            given.into_iter().map(|(workspace, role)| member_of_group_row(workspace, &account.name, role)),
        );
        rows
    }
}

/// `Ada.L@lab.example` becomes `ada-l`.
fn account_name(username: &str) -> Option<AccountName> {
    let local = username.split('@').next().unwrap_or_default().to_lowercase();
    let plain = |letter: char| {
        if letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_' { letter } else { '-' }
    };
    let name: String = local.chars().map(plain).take(LONGEST_NAME).collect();
    name.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_elsewhere_become_names_of_accounts() {
        let name = |username: &str| account_name(username).map(|name| name.to_string());
        assert_eq!(name("Ada.L@lab.example").as_deref(), Some("ada-l"));
        assert_eq!(name("grace").as_deref(), Some("grace"));
        assert_eq!(name("1st"), None);
        assert_eq!(name("丹"), None);
        assert_eq!(name(""), None);
    }
}
