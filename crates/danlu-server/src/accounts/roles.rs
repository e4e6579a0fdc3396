//! What people give: tokens to their programs, roles to each other.

use danlu_core::authorization::Action;
use danlu_types::account::{AccountName, WorkspaceRole};
use danlu_types::api::{MadeToken, MemberView, NewToken, Proof, TokenKind, TokenView};
use danlu_types::{FieldError, Problem, ProblemCode};
use jiff::{SignedDuration, Timestamp};

use super::cache::{AccountCache, Token, member_row, no_token_row, token_row};
use super::keys::only_own;
use super::manage::{LONGEST_TEXT, new_id, no_account, require_of_account};
use super::{Caller, Deed, Directory, Visitor, json, new_secret, require};
use crate::app::store_problem;

/// More would be a mistake in a script.
const MOST_TOKENS: usize = 100;

impl Directory {
    pub(crate) fn tokens(&self, caller: &Caller, name: &AccountName) -> Result<Vec<TokenView>, Problem> {
        require_of_account(caller, name, Action::SeeAccount)?;
        self.view(name)?;
        let register = self.register();
        let mut tokens: Vec<_> =
            register.tokens_of(name).map(|(_, token)| register.token_view(token)).collect();
        tokens.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(tokens)
    }

    /// A token for the caller's programs, that may do no more than the one that asks.
    pub(crate) async fn make_token(
        &self,
        caller: &Caller,
        new: NewToken,
        visitor: &Visitor,
    ) -> Result<MadeToken, Problem> {
        let name = caller.person.name.clone();
        require_of_account(caller, &name, Action::ChangeAccount)?;
        if new.name.is_empty()
            || new.name.chars().count() > LONGEST_TEXT
            || new.name.contains(char::is_control)
        {
            let message = format!("must have 1 to {LONGEST_TEXT} visible characters");
            return Err(Problem::invalid_fields(vec![FieldError::new("name", message)]));
        }
        let (_one_at_a_time, mut rows) = self.prove_to_outlast(caller, new.proof, visitor).await?;
        if self.register().tokens_of(&name).count() >= MOST_TOKENS {
            let detail = format!("`{name}` has {MOST_TOKENS} tokens already");
            return Err(Problem::new(ProblemCode::WrongState, detail).with_hint("revoke those not in use"));
        }
        let now = Timestamp::now();
        let lasts =
            new.lasts.map(|span| SignedDuration::try_from(span.to_duration()).unwrap_or(SignedDuration::MAX));
        let token = Token {
            id: new_id(),
            account: name,
            kind: TokenKind::Api,
            name: new.name,
            scope: new.scope,
            created_at: now,
            expires_at: ends(caller, now, lasts),
            session_ends: None,
            root: None,
            made_with: caller.ends_with(),
            made_by: None,
        };
        let secret = new_secret();
        let view = self.register().token_view(&token);
        let by = caller.name();
        let subject = token.account.to_string();
        let deed = Deed {
            by: &by,
            from: caller.from,
            action: "token.create",
            subject,
            before: None,
            after: json(&view),
        };
        rows.push(token_row(&secret, &token));
        self.write(rows, deed).await.map_err(store_problem)?;
        Ok(MadeToken { token: view, secret })
    }

    /// The same token with another secret; the old one ends. Programs may do so with their own.
    pub(crate) async fn rotate(
        &self,
        caller: &Caller,
        name: &AccountName,
        id: &str,
        proof: Option<Proof>,
        visitor: &Visitor,
    ) -> Result<MadeToken, Problem> {
        let itself = caller.person.name == *name && caller.token == id;
        let action = if itself { Action::SeeAccount } else { Action::ChangeAccount };
        require_of_account(caller, name, action)?;
        only_own(caller, name)?;
        let find = || {
            let register = self.register();
            let mut tokens = register.tokens_of(name).map(|(_, token)| token);
            let found = tokens
                .find(|token| token.id == id && token.kind == TokenKind::Api && id != super::LOCAL_TOKEN);
            found.cloned().ok_or_else(|| no_token(name, id))
        };
        // What is not there costs no code.
        find()?;
        let (_one_at_a_time, mut rows) = self.prove_to_outlast(caller, proof, visitor).await?;
        let old = find()?;
        let now = Timestamp::now();
        // As long as it was good for when it was made, if its owner says so; a program does not renew its own.
        let lasts = old.expires_at.map(|end| end.duration_since(old.created_at));
        let expires_at = ends(caller, now, lasts);
        // Another token that rotates this one has its secret from now on: this one ends with that one.
        let made_with = if itself { old.made_with.clone() } else { caller.ends_with() };
        let token = Token { created_at: now, expires_at, made_with, ..old };
        let secret = new_secret();
        if itself {
            rows.push(no_token_row(caller.key.clone()));
        } else {
            // With the old secret ends what others made with it.
            rows.extend(self.register().revocations(name, |token| token.id == id));
        }
        rows.push(token_row(&secret, &token));
        let view = self.register().token_view(&token);
        let by = caller.name();
        let subject = name.to_string();
        let after = json(&view);
        let deed = Deed { by: &by, from: caller.from, action: "token.rotate", subject, before: None, after };
        self.write(rows, deed).await.map_err(store_problem)?;
        Ok(MadeToken { token: view, secret })
    }

    pub(crate) async fn revoke(&self, caller: &Caller, name: &AccountName, id: &str) -> Result<(), Problem> {
        // Whoever may look may also end the session that they look with.
        let own = caller.person.name == *name && caller.token == id;
        let action = if own { Action::SeeAccount } else { Action::ChangeAccount };
        require_of_account(caller, name, action)?;
        let _one_at_a_time = self.changing.lock().await;
        let rows = self.register().revocations(name, |token| token.id == id && id != super::LOCAL_TOKEN);
        if rows.is_empty() {
            return Err(no_token(name, id));
        }
        let by = caller.name();
        let subject = name.to_string();
        let before = Some(serde_json::json!({ "token": id }));
        let deed = Deed { by: &by, from: caller.from, action: "token.revoke", subject, before, after: None };
        self.write(rows, deed).await.map_err(store_problem)
    }

    pub(crate) fn members(&self, caller: &Caller, workspace: &str) -> Result<Vec<MemberView>, Problem> {
        self.require_of_workspace(caller, workspace, Action::SeeMembers)?;
        Ok(self.register().members(workspace))
    }

    pub(crate) fn require_of_workspace(
        &self,
        caller: &Caller,
        workspace: &str,
        action: Action,
    ) -> Result<(), Problem> {
        let relation = self.to_workspace(&caller.person, workspace);
        require(caller, relation, action, Action::SeeMembers, || no_workspace(workspace))?;
        if !self.has_workspace(workspace) {
            return Err(no_workspace(workspace).with_hint(format!(
                "an administrator makes it with `danlu admin workspace create {workspace}`"
            )));
        }
        Ok(())
    }

    /// Gives somebody a role, or takes it away.
    pub(crate) async fn set_role(
        &self,
        caller: &Caller,
        workspace: &str,
        name: &AccountName,
        role: Option<WorkspaceRole>,
    ) -> Result<(), Problem> {
        self.require_of_workspace(caller, workspace, Action::ChangeMembers)?;
        let _one_at_a_time = self.changing.lock().await;
        let (before, is_known) = {
            let register = self.register();
            let before = register.members(workspace).into_iter().find(|member| member.account == *name);
            let is_known = register.account(name).is_some() && may_know(caller, &register, name);
            (before, is_known)
        };
        if role.is_some() && before.is_none() && !is_known {
            // The same answer whether there is such an account: else a workspace of one's own finds out every name.
            return Err(no_account(name).with_hint(
                "or it is in no workspace with you; who answers for a workspace of more than one person can put anybody there",
            ));
        }
        if role.is_none() && before.is_none() {
            let detail = format!("`{name}` was not put into `{workspace}`");
            return Err(Problem::new(ProblemCode::NotFound, detail));
        }
        let by = caller.name();
        let deed = Deed {
            by: &by,
            from: caller.from,
            action: "member.change",
            subject: workspace.to_owned(),
            before: before.as_ref().and_then(json),
            after: role.and_then(|role| json(&MemberView { account: name.clone(), role })),
        };
        self.write(vec![member_row(workspace, name, role)], deed).await.map_err(store_problem)
    }
}

/// Whether somebody may learn that there is an account of this name.
fn may_know(caller: &Caller, register: &AccountCache, name: &AccountName) -> bool {
    let own = &caller.person.name;
    caller.person.admin
        || own == name
        || register.answers_for_others(own)
        || register.work_together(own, name)
}

/// When a token ends that is to last so long.
fn ends(caller: &Caller, now: Timestamp, lasts: Option<SignedDuration>) -> Option<Timestamp> {
    let end = lasts.map_or(Timestamp::MAX, |lasts| now.checked_add(lasts).unwrap_or(Timestamp::MAX));
    Some(caller.bounded(end)).filter(|end| lasts.is_some() || *end < Timestamp::MAX)
}

fn no_token(name: &AccountName, id: &str) -> Problem {
    let id: String = id.chars().take(64).collect();
    Problem::new(ProblemCode::NotFound, format!("`{name}` has no token `{id}`"))
}

pub(crate) fn no_workspace(name: &str) -> Problem {
    let name: String = name.chars().take(63).collect();
    Problem::new(ProblemCode::NotFound, format!("workspace `{name}` not found"))
}
