//! Links: secrets that are good for one thing, once, and not for long. To set a password, and to sign in without one.

use std::net::IpAddr;
use std::time::Instant;

use danlu_core::policy::Action;
use danlu_types::account::{AccountName, Scope};
use danlu_types::api::{Invitation, NewPassword, SignInLink, TokenKind};
use danlu_types::{Problem, ProblemCode};
use jiff::{SignedDuration, Timestamp};

use super::cases::{blocking, hashed, new_id, require_of_account};
use super::register::{Token, account_row, token_row};
use super::{Asker, Deed, Directory, LOCAL_ADMIN, new_secret, password};
use crate::app::store_problem;

const PASSWORD_LINK_LASTS: SignedDuration = SignedDuration::from_hours(48);
/// Whoever asks for one has a browser at hand.
const SIGN_IN_LINK_LASTS: SignedDuration = SignedDuration::from_mins(10);
/// Printed by a server that somebody has just installed; they may read on before they open it.
const FIRST_LINK_LASTS: SignedDuration = SignedDuration::from_hours(1);

impl Directory {
    /// A link by which the owner of an account sets a new password; earlier links end.
    pub(crate) async fn password_link(
        &self,
        asker: &Asker,
        name: &AccountName,
    ) -> Result<Invitation, Problem> {
        let _one_at_a_time = self.changing.lock().await;
        let view = self.view(name)?;
        let link = new_link(name, TokenKind::PasswordLink);
        self.write_link(&asker.name(), asker.from, "account.password_link", &link).await?;
        Ok(Invitation { account: view, password_link: Some(link.0) })
    }

    /// A link by which the asker signs in elsewhere: in a browser. Earlier ones end.
    pub(crate) async fn sign_in_link(&self, asker: &Asker) -> Result<SignInLink, Problem> {
        let name = &asker.person.name;
        // A session may do everything its account may, so a token for less must not get one.
        require_of_account(asker, name, Action::ChangeAccount)?;
        let _one_at_a_time = self.changing.lock().await;
        let link = new_link(name, TokenKind::SignInLink);
        self.write_link(&asker.name(), asker.from, "account.sign_in_link", &link).await?;
        let (secret, token) = link;
        Ok(SignInLink { secret, expires_at: token.expires_at.unwrap_or(token.created_at) })
    }

    /// The way in for whoever started this server, for as long as no administrator has ever signed in.
    pub(crate) async fn first_link(&self) -> Result<Option<SignInLink>, Problem> {
        let _one_at_a_time = self.changing.lock().await;
        if self.register().admin_has_signed_in() {
            return Ok(None);
        }
        let admin: AccountName = LOCAL_ADMIN.parse().expect("a name");
        let (secret, mut token) = new_link(&admin, TokenKind::SignInLink);
        let expires_at = token.created_at + FIRST_LINK_LASTS;
        token.expires_at = Some(expires_at);
        let link = (secret, token);
        self.write_link("-", IpAddr::from([127, 0, 0, 1]), "account.sign_in_link", &link).await?;
        Ok(Some(SignInLink { secret: link.0, expires_at }))
    }

    async fn write_link(
        &self,
        by: &str,
        from: IpAddr,
        action: &'static str,
        (secret, link): &(String, Token),
    ) -> Result<(), Problem> {
        let mut rows = self.register().revocations(&link.account, |token| token.kind == link.kind);
        rows.push(token_row(secret, link));
        let subject = link.account.to_string();
        let deed = Deed { by, from, action, subject, before: None, after: None };
        self.write(rows, deed).await.map_err(store_problem)
    }

    /// Sets a password with the present one or with a link; all sessions of the account end.
    pub(crate) async fn set_password(
        &self,
        name: &AccountName,
        new: NewPassword,
        from: IpAddr,
    ) -> Result<(), Problem> {
        let wrong = || {
            Problem::new(ProblemCode::Unauthenticated, "the present password or the link is not right")
                .with_hint("a link works once and for two days; an administrator can make another")
        };
        if let Some(pause) = self.pause(&name.to_string(), from) {
            return Err(too_often(pause));
        }
        password::check(&new.password)?;
        let by_link = new.link.as_deref().is_some_and(|link| {
            let register = self.register();
            let link = register.link(link, TokenKind::PasswordLink, Timestamp::now());
            link.is_some_and(|token| token.account == *name)
        });
        let stored = self.register().account(name).and_then(|account| account.password.clone());
        let current = new.current.unwrap_or_default();
        let allowed = by_link || blocking(move || password::matches(&current, stored.as_deref())).await?;
        if !allowed {
            self.guesses().by_name.failed(name.to_string(), Instant::now());
            return Err(wrong());
        }
        let hash = hashed(new.password).await?;
        let _one_at_a_time = self.changing.lock().await;
        let mut account = self.register().account(name).cloned().ok_or_else(wrong)?;
        account.password = Some(hash);
        let mut rows = self.register().revocations(name, |token| token.kind != TokenKind::Api);
        rows.push(account_row(&account));
        let subject = name.to_string();
        let deed =
            Deed { by: name.as_str(), from, action: "account.password", subject, before: None, after: None };
        self.write(rows, deed).await.map_err(store_problem)
    }
}

pub(super) fn new_link(name: &AccountName, kind: TokenKind) -> (String, Token) {
    let now = Timestamp::now();
    let (what, lasts) = match kind {
        TokenKind::SignInLink => ("a link to sign in", SIGN_IN_LINK_LASTS),
        _ => ("a link to set a password", PASSWORD_LINK_LASTS),
    };
    let token = Token {
        id: new_id(),
        account: name.clone(),
        kind,
        name: what.to_owned(),
        scope: Scope::Read,
        created_at: now,
        expires_at: Some(now + lasts),
    };
    (new_secret(), token)
}

pub(super) fn too_often(pause: std::time::Duration) -> Problem {
    let detail = format!("too many tries; wait {} seconds", pause.as_secs() + 1);
    Problem::new(ProblemCode::TooManyRequests, detail)
}
