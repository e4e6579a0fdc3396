//! Identities at a provider that people link to their accounts, and take back.
//!
//! A link is a way in for good, so it is asked for by its owner alone: in the browser in which they have signed in, with their
//! password, and it ends in that same session. Nothing else makes one.

use danlu_core::authorization::Action;
use danlu_types::account::AccountName;
use danlu_types::api::{IdentityView, NewIdentity};
use danlu_types::{Problem, ProblemCode};
use jiff::Timestamp;

use super::cache::{account_row, hash};
use super::credentials::{ExternalIdentityRecord, subject_row};
use super::manage::{no_account, require_of_account};
use super::proof::Shown;
use super::{Caller, Deed, Directory, Visitor, json};
use crate::app::store_problem;
use crate::oidc::{ExternalIdentity, LinkTo};

/// More would be a mistake.
const MOST_IDENTITIES: usize = 10;

impl Directory {
    /// Whether the caller may link an identity to their account: what to remember of them until they come back.
    pub(crate) async fn begin_link(
        &self,
        caller: &Caller,
        new: NewIdentity,
        visitor: &Visitor,
    ) -> Result<LinkTo, Problem> {
        let name = &caller.person.name;
        require_of_account(caller, name, Action::ChangeAccount)?;
        caller.require_in_person()?;
        if !caller.in_browser {
            let detail = "an identity is linked in the browser in which you have signed in";
            let problem = Problem::new(ProblemCode::Forbidden, detail);
            return Err(problem.with_hint("use the page of your account in the console"));
        }
        let has_password = self.register().account(name).ok_or_else(|| no_account(name))?.password.is_some();
        if !has_password {
            let detail =
                format!("`{name}` has no password, which is asked for before another identity is linked");
            let problem = Problem::new(ProblemCode::WrongState, detail);
            return Err(
                problem.with_hint("an administrator makes a link to set one: `danlu admin user reset`")
            );
        }
        let shown = Shown { password: Some(new.password), code: new.code, within: "" };
        let (_one_at_a_time, account) = self.prove(caller, shown, visitor).await?;
        if account.has_second_factor() {
            let by = caller.name();
            let deed = Deed {
                by: &by,
                from: caller.from,
                action: "totp.use",
                subject: by.clone(),
                before: None,
                after: Some(serde_json::json!({ "for": "account.link" })),
            };
            // A code that was used is not good again.
            self.write(vec![account_row(&account)], deed).await.map_err(store_problem)?;
        }
        Ok(LinkTo { account: name.clone(), session: caller.key.clone() })
    }

    /// Links what the provider says to whom this was begun by, if it is still them who come back.
    pub(crate) async fn end_link(
        &self,
        identity: &ExternalIdentity,
        link_to: &LinkTo,
        caller: Option<&Caller>,
    ) -> Result<(), Problem> {
        let is_the_same = |caller: &&Caller| caller.in_browser && caller.key == link_to.session;
        let Some(caller) = caller.filter(is_the_same) else {
            let detail = "this was begun by a session that is over, or is another one than yours";
            return Err(
                Problem::new(ProblemCode::Unauthenticated, detail).with_hint("sign in and begin again")
            );
        };
        let _one_at_a_time = self.changing.lock().await;
        let key = identity.key();
        let name = &link_to.account;
        {
            let register = self.register();
            // It may have been ended while the provider was asked.
            if register.expiry(&caller.key, Timestamp::now()).is_none() {
                return Err(Problem::new(ProblemCode::Unauthenticated, "this session is over"));
            }
            match register.credentials.subjects.get(&key) {
                Some(other) if other.account != *name => {
                    let detail = "this identity is linked to another account";
                    return Err(Problem::new(ProblemCode::WrongState, detail)
                        .with_hint("sign in through the provider to that account, and unlink it there"));
                }
                Some(_) => return Ok(()),
                None => {}
            }
            let own = register.credentials.subjects.values().filter(|subject| subject.account == *name);
            if own.count() >= MOST_IDENTITIES {
                let detail = format!("`{name}` is linked to {MOST_IDENTITIES} identities already");
                return Err(Problem::new(ProblemCode::WrongState, detail).with_hint("unlink one first"));
            }
        }
        let record = ExternalIdentityRecord { account: name.clone(), linked_at: Some(Timestamp::now()) };
        let deed = Deed {
            by: name.as_str(),
            from: caller.from,
            action: "account.link",
            subject: name.to_string(),
            before: None,
            after: json(&view(&key, &record)),
        };
        self.write(vec![subject_row(&key, Some(&record))], deed).await.map_err(store_problem)
    }

    pub(crate) fn identities(
        &self,
        caller: &Caller,
        name: &AccountName,
    ) -> Result<Vec<IdentityView>, Problem> {
        require_of_account(caller, name, Action::SeeAccount)?;
        self.view(name)?;
        let register = self.register();
        let own = register.credentials.subjects.iter().filter(|(_, subject)| subject.account == *name);
        Ok(own.map(|(key, subject)| view(key, subject)).collect())
    }

    /// Takes a link back. Sessions go on: whoever is not their owner is ended by a new password.
    pub(crate) async fn unlink(&self, caller: &Caller, name: &AccountName, id: &str) -> Result<(), Problem> {
        require_of_account(caller, name, Action::ChangeAccount)?;
        let _one_at_a_time = self.changing.lock().await;
        let (key, before) = {
            let register = self.register();
            let account = register.account(name).ok_or_else(|| no_account(name))?;
            let mut subjects = register.credentials.subjects.iter();
            let own: Vec<_> = subjects.by_ref().filter(|(_, subject)| subject.account == *name).collect();
            let Some((key, subject)) = own.iter().find(|(key, _)| id_of(key) == id) else {
                let id: String = id.chars().take(64).collect();
                let detail = format!("`{name}` is linked to no identity `{id}`");
                return Err(Problem::new(ProblemCode::NotFound, detail));
            };
            if own.len() == 1 && account.password.is_none() && !caller.person.admin {
                let detail = "this is the only way in to this account: it has no password";
                let problem = Problem::new(ProblemCode::WrongState, detail);
                return Err(problem.with_hint("an administrator can make a link to set one, or unlink it"));
            }
            ((*key).clone(), view(key, subject))
        };
        let by = caller.name();
        let deed = Deed {
            by: &by,
            from: caller.from,
            action: "account.unlink",
            subject: name.to_string(),
            before: json(&before),
            after: None,
        };
        self.write(vec![subject_row(&key, None)], deed).await.map_err(store_problem)
    }
}

fn view(key: &str, subject: &ExternalIdentityRecord) -> IdentityView {
    let (issuer, called) = key.split_once(' ').unwrap_or((key, ""));
    IdentityView {
        id: id_of(key),
        issuer: issuer.to_owned(),
        subject: called.to_owned(),
        linked_at: subject.linked_at,
    }
}

/// The row's key may hold anything that a provider says, so it is no part of a path.
fn id_of(key: &str) -> String {
    hash(key)[..16].to_owned()
}
