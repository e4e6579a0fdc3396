//! What somebody shows beside their session, before anything that would outlast it: that the session is theirs.
//!
//! Whoever found a session open, or stole it, should not make of it an account that is theirs. So they are asked for the password
//! and a code, may guess as often as anybody else, in all sessions of the account together, and lose the session for it, with
//! those that were made with it and those that it was made with.

use danlu_store::DirectoryRow;
use danlu_types::api::{Proof, TokenKind};
use danlu_types::{FieldError, Problem, ProblemCode};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::MutexGuard;

use super::cache::{Account, Token, account_row};
use super::guesses::TRIES_OF_A_SESSION;
use super::manage::no_account;
use super::{Caller, Deed, Directory, LOCAL_TOKEN, Visitor};
use crate::app::store_problem;

/// Where an account has neither a password nor an authenticator, signing in is all that its owner can show: so recently.
const RECENT_SIGN_IN: SignedDuration = SignedDuration::from_mins(15);

#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) password: Option<String>,
    pub(super) code: Option<String>,
    /// What precedes the names of these fields in the body.
    pub(super) within: &'static str,
}

impl Shown {
    fn of(proof: Option<Proof>) -> Self {
        let Proof { password, code } = proof.unwrap_or_default();
        Shown { password, code, within: "proof." }
    }
}

impl Directory {
    /// The next change is this caller's, who makes something that does not end with their session: so a session is not enough.
    /// With it, rows to write together with the change: a code that was used is not good again.
    ///
    /// What a program's token makes ends with it, and the token of the data folder is the machine's: neither is asked.
    pub(super) async fn prove_to_outlast(
        &self,
        caller: &Caller,
        proof: Option<Proof>,
        visitor: &Visitor,
    ) -> Result<(MutexGuard<'_, ()>, Vec<DirectoryRow>), Problem> {
        if caller.kind != TokenKind::Session {
            return Ok((self.change_by(caller).await?, Vec::new()));
        }
        let (one_at_a_time, account) = self.prove(caller, Shown::of(proof), visitor).await?;
        let spent = account.has_second_factor().then(|| account_row(&account));
        Ok((one_at_a_time, spent.into_iter().collect()))
    }

    /// Asks for the caller's password, if their account has one, and for a code, if it has an authenticator. The account as it
    /// is now: whoever asks for a code writes it, because the code is spent in it, before they let go of the guard.
    pub(super) async fn prove(
        &self,
        caller: &Caller,
        shown: Shown,
        visitor: &Visitor,
    ) -> Result<(MutexGuard<'_, ()>, Account), Problem> {
        let name = &caller.person.name;
        let Shown { password, code, within } = shown;
        let find = || self.register().account(name).cloned().ok_or_else(|| no_account(name));
        let before = find()?;
        let at = format!("{within}password");
        let needed = || field(&at, "is needed: the present password of this account");
        let wrong = || field(&at, "is not the password of this account");
        let proof = match before.password.clone() {
            None => None,
            Some(stored) => {
                let password = password.filter(|password| !password.is_empty()).ok_or_else(needed)?;
                Some(match self.try_proof(name) {
                    Ok(ticket) => self
                        .matches(name.as_str(), password, Some(stored), &ticket, visitor)
                        .await?
                        .then_some(ticket)
                        .ok_or_else(wrong),
                    Err(too_often) => Err(too_often),
                })
            }
        };
        let one_at_a_time = self.change_by(caller).await?;
        let mut account = find()?;
        // While it was hashed, somebody may have set another one.
        let is_same = account.password == before.password;
        match proof {
            Some(proof) => {
                let proof = proof.and_then(|ticket| is_same.then_some(ticket).ok_or_else(wrong));
                let proof = proof.map(|ticket| self.password_was_right(&ticket));
                self.counted(caller, proof).await?;
            }
            None if is_same => {}
            None => return Err(needed()),
        }
        if account.has_second_factor() {
            // Who has the password alone goes on being counted.
            self.prove_by_code(caller, &mut account, code.as_deref(), within).await?;
        } else if before.password.is_some() {
            self.right_proof(&caller.root);
        } else {
            self.require_recent_sign_in(caller)?;
        }
        Ok((one_at_a_time, account))
    }

    /// Neither a link nor a session that came of one is a sign-in: it is as old as the session at the beginning of them.
    fn require_recent_sign_in(&self, caller: &Caller) -> Result<(), Problem> {
        let began = {
            let register = self.register();
            let mut own = register.tokens_of(&caller.person.name);
            own.find(|(_, token)| token.id == caller.root).map(|(_, token)| token.created_at)
        };
        let is_recent = began.is_some_and(|began| is_recent(began, Timestamp::now()));
        if is_recent || caller.token == LOCAL_TOKEN {
            return Ok(());
        }
        let minutes = RECENT_SIGN_IN.as_mins();
        let detail = format!(
            "`{}` has no password to ask for, and signed in more than {minutes} minutes ago",
            caller.person.name
        );
        let hint = format!("sign in again, and do this within {minutes} minutes");
        Err(Problem::new(ProblemCode::Forbidden, detail).with_hint(hint))
    }

    /// Asks for a code of the account, and spends it in memory. To be called by whoever holds `changing`.
    pub(super) async fn prove_by_code(
        &self,
        caller: &Caller,
        account: &mut Account,
        code: Option<&str>,
        within: &str,
    ) -> Result<(), Problem> {
        let at = format!("{within}code");
        let needed = || field(&at, "the code of your authenticator is needed for this");
        let code = code.filter(|code| !code.is_empty()).ok_or_else(needed)?;
        let spent = match self.try_code_of_proof(&account.name) {
            Ok(guesser) => self
                .spend_code(account, code, Timestamp::now())
                .map(|()| self.code_was_right(&guesser))
                .map_err(|problem| wrong_field(&at, problem)),
            Err(too_often) => Err(too_often),
        };
        self.counted(caller, spent).await?;
        self.right_proof(&caller.root);
        Ok(())
    }

    /// Passes on whether a proof was right, and counts it if it was not. A session whose holder fails again and again ends: it was
    /// left open. Whatever session was made with it, or it was made with, was open to the same person. To be called by whoever
    /// holds `changing`.
    async fn counted(&self, caller: &Caller, proof: Result<(), Problem>) -> Result<(), Problem> {
        if proof.is_err()
            && caller.token != LOCAL_TOKEN
            && self.wrong_proof(&caller.root) >= TRIES_OF_A_SESSION
        {
            let name = &caller.person.name;
            let is_of_it = |token: &Token| token.root() == caller.root && token.kind != TokenKind::Api;
            let rows = self.register().revocations(name, is_of_it);
            if !rows.is_empty() {
                let by = caller.name();
                let deed = Deed {
                    by: &by,
                    from: caller.from,
                    action: "session.end",
                    subject: by.clone(),
                    before: Some(serde_json::json!({ "token": caller.token, "root": caller.root })),
                    after: Some(serde_json::json!({ "because": "too many wrong proofs" })),
                };
                self.write(rows, deed).await.map_err(store_problem)?;
            }
        }
        proof
    }
}

/// The caller is known here, and a code is a field like others.
fn wrong_field(at: &str, problem: Problem) -> Problem {
    match problem.code {
        ProblemCode::SecondFactorNeeded => field(at, problem.detail),
        _ => problem,
    }
}

fn field(name: &str, message: impl Into<String>) -> Problem {
    Problem::invalid_fields(vec![FieldError::new(name, message)])
}

fn is_recent(began: Timestamp, now: Timestamp) -> bool {
    now.duration_since(began) < RECENT_SIGN_IN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_is_recent_for_a_quarter_of_an_hour() {
        let began: Timestamp = "2026-11-19T12:00:00Z".parse().unwrap();
        assert!(is_recent(began, began));
        assert!(is_recent(began, began + SignedDuration::from_secs(899)));
        assert!(!is_recent(began, began + SignedDuration::from_secs(900)));
        assert!(
            is_recent(began, began - SignedDuration::from_hours(1)),
            "a clock that was put back refuses no owner"
        );
    }
}
