//! Links: secrets that are good for one thing, once, and not for long. To set a password, and to sign in without one.

use std::net::IpAddr;

use danlu_core::authorization::Action;
use danlu_store::DirectoryRow;
use danlu_types::account::{AccountName, Scope};
use danlu_types::api::{Invitation, NewPassword, Proof, SignInLink, TokenKind};
use danlu_types::{Problem, ProblemCode};
use jiff::{SignedDuration, Timestamp};

use super::cache::{Account, Token, account_row, token_row};
use super::hashing::For;
use super::manage::{new_id, require_of_account};
use super::second_factor::code_needed;
use super::{Caller, Deed, Directory, LOCAL_ADMIN, LOCAL_TOKEN, Visitor, new_secret, password};
use crate::app::store_problem;

const PASSWORD_LINK_LASTS: SignedDuration = SignedDuration::from_hours(48);
/// Whoever asks for one has a browser at hand.
const SIGN_IN_LINK_LASTS: SignedDuration = SignedDuration::from_mins(10);
/// Printed by a server that somebody has just installed; they may read on before they open it.
const FIRST_LINK_LASTS: SignedDuration = SignedDuration::from_hours(1);

impl Directory {
    /// A link by which the owner of an account sets a new password; earlier links end.
    ///
    /// Asks the administrator for a proof: with their session alone, a thief would have every account.
    pub(crate) async fn password_link(
        &self,
        caller: &Caller,
        name: &AccountName,
        proof: Option<Proof>,
        visitor: &Visitor,
    ) -> Result<Invitation, Problem> {
        // Before anything is asked for: what is refused anyway should cost no code.
        self.view(name)?;
        let (_one_at_a_time, spent) = self.prove_to_outlast(caller, proof, visitor).await?;
        let view = self.view(name)?;
        if view.admin || caller.person.name == *name {
            caller.require_in_person()?;
        }
        let mut link = new_link(name, TokenKind::PasswordLink);
        caller.bound(&mut link.1);
        self.write_link(&caller.name(), caller.from, "account.password_link", &link, spent).await?;
        Ok(Invitation { account: view, password_link: Some(link.0) })
    }

    /// A link by which the caller signs in elsewhere: in a browser. Earlier ones end.
    pub(crate) async fn sign_in_link(&self, caller: &Caller) -> Result<SignInLink, Problem> {
        let name = &caller.person.name;
        // A session may do everything its account may, so a token for less must not get one.
        require_of_account(caller, name, Action::ChangeAccount)?;
        caller.require_in_person()?;
        let _one_at_a_time = self.change_by(caller).await?;
        let mut link = new_link(name, TokenKind::SignInLink);
        link.1.session_ends = caller.expires_at;
        // The data folder's token can do no more with a session than without.
        if caller.token != LOCAL_TOKEN {
            link.1.root = Some(caller.root.clone());
            link.1.made_with = Some(caller.token.clone());
        }
        self.write_link(&caller.name(), caller.from, "account.sign_in_link", &link, Vec::new()).await?;
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
        let here = IpAddr::from([127, 0, 0, 1]);
        self.write_link("-", here, "account.sign_in_link", &link, Vec::new()).await?;
        Ok(Some(SignInLink { secret: link.0, expires_at }))
    }

    async fn write_link(
        &self,
        by: &str,
        from: IpAddr,
        action: &'static str,
        (secret, link): &(String, Token),
        mut rows: Vec<DirectoryRow>,
    ) -> Result<(), Problem> {
        rows.extend(self.register().revocations(&link.account, |token| token.kind == link.kind));
        rows.push(token_row(secret, link));
        let subject = link.account.to_string();
        let deed = Deed { by, from, action, subject, before: None, after: None };
        self.write(rows, deed).await.map_err(store_problem)
    }

    /// Sets a password with the present one or with a link; all sessions of the account end, and its tokens unless they are
    /// to stay.
    pub(crate) async fn set_password(
        &self,
        name: &AccountName,
        new: NewPassword,
        visitor: &Visitor,
    ) -> Result<(), Problem> {
        password::check(&new.password)?;
        let whose = For { name: name.to_string(), place: Some(visitor.place()), is_known: false };
        if let Some(link) = new.link {
            if !self.is_password_link_of(&link, name) {
                return Err(self.wrong_link(visitor, wrong_proof()));
            }
            let hash = self.hashed(new.password, whose).await?;
            let _one_at_a_time = self.changing.lock().await;
            // Of many who came with it while their passwords were hashed, the first has used it up.
            if !self.is_password_link_of(&link, name) {
                return Err(wrong_proof());
            }
            let account = self.register().account(name).cloned().ok_or_else(wrong_proof)?;
            return self.keep_password(account, hash, new.keep_tokens, visitor).await;
        }
        let ticket = self.try_password(name.as_str(), visitor)?;
        let stored = self.register().account(name).and_then(|account| account.password.clone());
        let (current, compared) = (new.current.unwrap_or_default(), stored.clone());
        let whose = For { is_known: ticket.is_known, ..whose };
        let is_right =
            self.hashing.run(whose.clone(), move || password::matches(&current, compared.as_deref())).await?;
        if !is_right {
            return Err(wrong_proof());
        }
        self.password_was_right(&ticket);
        let hash = self.hashed(new.password, whose).await?;
        let _one_at_a_time = self.changing.lock().await;
        let mut account = self.register().account(name).cloned().ok_or_else(wrong_proof)?;
        // Somebody else may have set another one meanwhile, such as with a link because this one is known to others.
        if account.password != stored {
            return Err(wrong_proof());
        }
        if account.has_second_factor() {
            let code = new.code.ok_or_else(|| code_needed("this account has an authenticator"))?;
            self.spend_counted_code(&mut account, &code, visitor)?;
        }
        self.keep_password(account, hash, new.keep_tokens, visitor).await
    }

    fn is_password_link_of(&self, link: &str, name: &AccountName) -> bool {
        let register = self.register();
        let link = register.link(link, TokenKind::PasswordLink, Timestamp::now());
        link.is_some_and(|token| token.account == *name)
    }

    /// To be called by whoever holds `changing`.
    async fn keep_password(
        &self,
        mut account: Account,
        hash: String,
        keep_tokens: bool,
        visitor: &Visitor,
    ) -> Result<(), Problem> {
        account.password = Some(hash);
        let ends = |token: &Token| token.id != LOCAL_TOKEN && (token.kind != TokenKind::Api || !keep_tokens);
        let mut rows = self.register().revocations(&account.name, ends);
        rows.push(account_row(&account));
        let deed = Deed {
            by: account.name.as_str(),
            from: visitor.from,
            action: "account.password",
            subject: account.name.to_string(),
            before: None,
            after: Some(serde_json::json!({ "tokens_kept": keep_tokens })),
        };
        self.write(rows, deed).await.map_err(store_problem)
    }
}

fn wrong_proof() -> Problem {
    Problem::new(ProblemCode::Unauthenticated, "the present password or the link is not right")
        .with_hint("a link works once and for two days; an administrator can make another")
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
        session_ends: None,
        root: None,
        made_with: None,
        made_by: None,
    };
    (new_secret(), token)
}
