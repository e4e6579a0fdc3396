//! Coming in and going out: sessions, and what guessers learn of them, which is nothing.

use std::net::IpAddr;

use danlu_store::DirectoryRow;
use danlu_types::account::{Scope, Standing};
use danlu_types::api::{SignIn, TokenKind};
use danlu_types::{FieldError, Problem, ProblemCode};
use jiff::{SignedDuration, Timestamp};

use super::cache::{Account, Token, account_row, admin_has_signed_in_row, token_row};
use super::guesses::Ticket;
use super::hashing::For;
use super::manage::{LONGEST_TEXT, new_id, no_account};
use super::second_factor::code_needed;
use super::{Caller, Deed, Directory, Visitor, new_secret, password};
use crate::app::store_problem;

const SESSION_LASTS: SignedDuration = SignedDuration::from_hours(24 * 7);

impl Directory {
    /// The secret of a new session.
    pub(crate) async fn sign_in(
        &self,
        request: SignIn,
        visitor: &Visitor,
    ) -> Result<(String, Caller), Problem> {
        match request {
            SignIn { name: Some(name), password: Some(password), link: None, code } => {
                self.sign_in_by_password(&name, password, code, visitor).await
            }
            SignIn { name: None, password: None, link: Some(link), code: None } => {
                self.sign_in_by_link(&link, visitor).await
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
        code: Option<String>,
        visitor: &Visitor,
    ) -> Result<(String, Caller), Problem> {
        let name: String = name.chars().take(LONGEST_TEXT).collect();
        let ticket = self.try_password(&name, visitor)?;
        let account = name.parse().ok().and_then(|name| self.register().account(&name).cloned());
        let stored = account.as_ref().and_then(|account| account.password.clone());
        let matches = self.matches(&name, password, stored, &ticket, visitor).await?;
        let _one_at_a_time = self.changing.lock().await;
        // While the password was hashed, the account may have been disabled or given another one.
        let is_same = |account: &Account| self.register().account(&account.name) == Some(account);
        let allowed = |account: &Account| matches && account.standing == Standing::Active && is_same(account);
        let Some(mut account) = account.filter(allowed) else {
            return Err(Problem::new(ProblemCode::Unauthenticated, "no account with this name and password")
                .with_hint(
                    "a new account works once it was approved; an administrator can reset a password",
                ));
        };
        self.password_was_right(&ticket);
        let mut rows = Vec::new();
        if account.has_second_factor() {
            let code = code.ok_or_else(|| code_needed("this account has an authenticator"))?;
            self.spend_counted_code(&mut account, &code, visitor)?;
            rows.push(account_row(&account));
        }
        self.begin_session(&account, "password", rows, visitor.from, None).await
    }

    /// Whether this is the password behind that hash, which nobody learns faster for asking more often.
    pub(super) async fn matches(
        &self,
        name: &str,
        password: String,
        stored: Option<String>,
        ticket: &Ticket,
        visitor: &Visitor,
    ) -> Result<bool, Problem> {
        let whose = For { name: name.to_owned(), place: Some(visitor.place()), is_known: ticket.is_known };
        self.hashing.run(whose, move || password::matches(&password, stored.as_deref())).await
    }

    async fn sign_in_by_link(&self, link: &str, visitor: &Visitor) -> Result<(String, Caller), Problem> {
        // From the look to the write, so that of two who come with the same link one gets in.
        let _one_at_a_time = self.changing.lock().await;
        let found = {
            let register = self.register();
            let token = register.link(link, TokenKind::SignInLink, Timestamp::now()).cloned();
            token.and_then(|token| Some((register.account(&token.account).cloned()?, token)))
        };
        let Some((account, token)) = found.filter(|(account, _)| account.standing == Standing::Active) else {
            let wrong = Problem::new(ProblemCode::Unauthenticated, "this link does not open anything")
                .with_hint("a link works once and not for long; `danlu login --link` makes another");
            return Err(self.wrong_link(visitor, wrong));
        };
        let used = self.register().revocations(&account.name, |other| other.id == token.id);
        self.begin_session(&account, "link", used, visitor.from, Some(&token)).await
    }

    /// To be called by whoever holds `changing`. A session that comes of a link ends no later than the one that made the link,
    /// and for the same wrong proofs.
    pub(super) async fn begin_session(
        &self,
        account: &Account,
        with: &str,
        mut rows: Vec<DirectoryRow>,
        from: IpAddr,
        link: Option<&Token>,
    ) -> Result<(String, Caller), Problem> {
        let secret = new_secret();
        let now = Timestamp::now();
        let at_the_latest = link.and_then(|link| link.session_ends);
        let session = Token {
            id: new_id(),
            account: account.name.clone(),
            kind: TokenKind::Session,
            name: format!("signed in from {from}"),
            scope: Scope::All,
            created_at: now,
            expires_at: Some(at_the_latest.map_or(now + SESSION_LASTS, |end| end.min(now + SESSION_LASTS))),
            session_ends: None,
            root: link.and_then(|link| link.root.clone()),
            made_with: link.and_then(|link| link.made_with.clone()),
            made_by: None,
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
        let caller = self.caller(&secret, from).ok_or_else(|| no_account(&account.name))?;
        Ok((secret, caller))
    }

    pub(crate) async fn sign_out(&self, caller: &Caller) -> Result<(), Problem> {
        self.revoke(caller, &caller.person.name.clone(), &caller.token.clone()).await
    }
}
