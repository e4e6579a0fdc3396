//! Coming in and going out: sessions, and what guessers learn of them, which is nothing.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use danlu_store::DirectoryRow;
use danlu_types::account::{Scope, Standing};
use danlu_types::api::{SignIn, TokenKind};
use danlu_types::{FieldError, Problem, ProblemCode};
use jiff::{SignedDuration, Timestamp};

use super::cases::{LONGEST_TEXT, blocking, new_id, no_account};
use super::links::too_often;
use super::register::{Account, Token, admin_has_signed_in_row, token_row};
use super::{Asker, Deed, Directory, new_secret, password};
use crate::app::store_problem;

const SESSION_LASTS: SignedDuration = SignedDuration::from_hours(24 * 7);

impl Directory {
    /// The secret of a new session.
    pub(crate) async fn sign_in(&self, request: SignIn, from: IpAddr) -> Result<(String, Asker), Problem> {
        match request {
            SignIn { name: Some(name), password: Some(password), link: None } => {
                self.sign_in_by_password(&name, password, from).await
            }
            SignIn { name: None, password: None, link: Some(link) } => {
                self.sign_in_by_link(&link, from).await
            }
            _ => {
                let message = "say `name` and `password`, or `link` alone";
                Err(Problem::invalid_fields(vec![FieldError::new("", message)]))
            }
        }
    }

    /// Says the same, and takes as long, whatever is wrong.
    async fn sign_in_by_password(
        &self,
        name: &str,
        password: String,
        from: IpAddr,
    ) -> Result<(String, Asker), Problem> {
        let name: String = name.chars().take(LONGEST_TEXT).collect();
        if let Some(pause) = self.pause(&name, from) {
            return Err(too_often(pause));
        }
        let account = name.parse().ok().and_then(|name| self.register().account(&name).cloned());
        let stored = account.as_ref().and_then(|account| account.password.clone());
        let matches = blocking(move || password::matches(&password, stored.as_deref())).await?;
        let _one_at_a_time = self.changing.lock().await;
        // While the password was hashed, the account may have been disabled or given another one.
        let is_same = |account: &Account| self.register().account(&account.name) == Some(account);
        let allowed = |account: &Account| matches && account.standing == Standing::Active && is_same(account);
        let Some(account) = account.filter(allowed) else {
            let now = Instant::now();
            let mut guesses = self.guesses();
            guesses.by_name.failed(name, now);
            guesses.by_address.failed(from, now);
            return Err(Problem::new(ProblemCode::Unauthenticated, "no account with this name and password")
                .with_hint(
                    "a new account works once it was approved; an administrator can reset a password",
                ));
        };
        self.guesses().by_name.succeeded(&name);
        self.begin_session(&account, "password", Vec::new(), from).await
    }

    async fn sign_in_by_link(&self, link: &str, from: IpAddr) -> Result<(String, Asker), Problem> {
        if let Some(pause) = self.guesses().links.pause(&from, Instant::now()) {
            return Err(too_often(pause));
        }
        // From the look to the write, so that of two who come with the same link one gets in.
        let _one_at_a_time = self.changing.lock().await;
        let found = {
            let register = self.register();
            let token = register.link(link, TokenKind::SignInLink, Timestamp::now()).cloned();
            token.and_then(|token| Some((register.account(&token.account).cloned()?, token)))
        };
        let Some((account, token)) = found.filter(|(account, _)| account.standing == Standing::Active) else {
            self.guesses().links.failed(from, Instant::now());
            return Err(Problem::new(ProblemCode::Unauthenticated, "this link does not open anything")
                .with_hint("a link works once and not for long; `danlu login --link` makes another"));
        };
        let used = self.register().revocations(&account.name, |other| other.id == token.id);
        self.begin_session(&account, "link", used, from).await
    }

    /// To be called by whoever holds `changing`.
    async fn begin_session(
        &self,
        account: &Account,
        with: &str,
        mut rows: Vec<DirectoryRow>,
        from: IpAddr,
    ) -> Result<(String, Asker), Problem> {
        let secret = new_secret();
        let now = Timestamp::now();
        let session = Token {
            id: new_id(),
            account: account.name.clone(),
            kind: TokenKind::Session,
            name: format!("signed in from {from}"),
            scope: Scope::All,
            created_at: now,
            expires_at: Some(now + SESSION_LASTS),
        };
        {
            let register = self.register();
            // Nobody else takes away what is over.
            let is_over = |token: &Token| token.expires_at.is_some_and(|end| end <= now);
            rows.extend(register.revocations(&account.name, is_over));
            if account.admin && !register.admin_has_signed_in() {
                rows.push(admin_has_signed_in_row());
            }
        }
        rows.push(token_row(&secret, &session));
        let deed = Deed {
            by: account.name.as_str(),
            from,
            action: "session.begin",
            subject: account.name.to_string(),
            before: None,
            after: Some(serde_json::json!({ "with": with })),
        };
        self.write(rows, deed).await.map_err(store_problem)?;
        let asker = self.asker(&secret, from).ok_or_else(|| no_account(&account.name))?;
        Ok((secret, asker))
    }

    pub(super) fn pause(&self, name: &String, from: IpAddr) -> Option<Duration> {
        let guesses = self.guesses();
        let now = Instant::now();
        // Everybody on one machine shares its address; a name is counted there all the same.
        let by_address = guesses.by_address.pause(&from, now).filter(|_| !from.is_loopback());
        guesses.by_name.pause(name, now).max(by_address)
    }

    pub(crate) async fn sign_out(&self, asker: &Asker) -> Result<(), Problem> {
        self.revoke(asker, &asker.person.name.clone(), &asker.token.clone()).await
    }
}
