//! What people do with accounts: sign in, make, change, delete.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use danlu_core::policy::{self, Action};
use danlu_store::DirectoryRow;
use danlu_types::account::{AccountName, Registration, Scope, Standing};
use danlu_types::api::{
    AccountChange, AccountView, Invitation, NewAccount, NewPassword, SignIn, TokenKind, Whoami,
};
use danlu_types::{FieldError, Problem, ProblemCode};
use jiff::{SignedDuration, Timestamp};

use super::register::{Account, Token, account_row, no_account_row, token_row};
use super::{Asker, Deed, Directory, LOCAL_ADMIN, json, new_secret, password, require};
use crate::app::store_problem;

const SESSION_LASTS: SignedDuration = SignedDuration::from_hours(24 * 7);
const LINK_LASTS: SignedDuration = SignedDuration::from_hours(48);
pub(super) const LONGEST_TEXT: usize = 200;

impl Directory {
    pub(crate) fn whoami(&self, asker: &Asker) -> Result<Whoami, Problem> {
        Ok(Whoami { account: self.view(&asker.person.name)?, scope: asker.person.scope })
    }

    pub(super) fn view(&self, name: &AccountName) -> Result<AccountView, Problem> {
        let register = self.register();
        register.account(name).map(|account| register.account_view(account)).ok_or_else(|| no_account(name))
    }

    pub(crate) fn accounts(&self) -> Vec<AccountView> {
        let register = self.register();
        register.accounts().map(|account| register.account_view(account)).collect()
    }

    pub(crate) fn account(&self, asker: &Asker, name: &AccountName) -> Result<AccountView, Problem> {
        require_of_account(asker, name, Action::SeeAccount)?;
        self.view(name)
    }

    /// The secret of a new session. Says the same, and takes as long, whatever is wrong.
    pub(crate) async fn sign_in(&self, request: SignIn, from: IpAddr) -> Result<(String, Asker), Problem> {
        let name: String = request.name.chars().take(LONGEST_TEXT).collect();
        if let Some(pause) = self.pause(&name, from) {
            let seconds = pause.as_secs() + 1;
            let detail = format!("too many tries; wait {seconds} seconds");
            return Err(Problem::new(ProblemCode::TooManyRequests, detail));
        }
        let account = name.parse().ok().and_then(|name| self.register().account(&name).cloned());
        let stored = account.as_ref().and_then(|account| account.password.clone());
        let matches = blocking(move || password::matches(&request.password, stored.as_deref())).await?;
        let Some(account) = account.filter(|account| matches && account.standing == Standing::Active) else {
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

        let secret = new_secret();
        let token = Token {
            id: new_id(),
            account: account.name.clone(),
            kind: TokenKind::Session,
            name: format!("signed in from {from}"),
            scope: Scope::All,
            created_at: Timestamp::now(),
            expires_at: Some(Timestamp::now() + SESSION_LASTS),
        };
        let deed = Deed {
            by: account.name.as_str(),
            from,
            action: "session.begin",
            subject: account.name.to_string(),
            before: None,
            after: None,
        };
        let now = Timestamp::now();
        // Nobody else takes away what is over.
        let mut rows = self
            .register()
            .revocations(&account.name, |token| token.expires_at.is_some_and(|end| end <= now));
        rows.push(token_row(&secret, &token));
        self.write(rows, deed).await.map_err(store_problem)?;
        let asker = self.asker(&secret, from).ok_or_else(|| no_account(&account.name))?;
        Ok((secret, asker))
    }

    fn pause(&self, name: &String, from: IpAddr) -> Option<Duration> {
        let guesses = self.guesses();
        let now = Instant::now();
        // Everybody on one machine shares its address; a name is counted there all the same.
        let by_address = guesses.by_address.pause(&from, now).filter(|_| !from.is_loopback());
        guesses.by_name.pause(name, now).max(by_address)
    }

    pub(crate) async fn sign_out(&self, asker: &Asker) -> Result<(), Problem> {
        self.revoke(asker, &asker.person.name.clone(), &asker.token.clone()).await
    }

    /// An account that its future owner asks for.
    pub(crate) async fn register_self(&self, new: NewAccount, from: IpAddr) -> Result<AccountView, Problem> {
        if self.registration == Registration::Closed {
            let detail = "accounts are made by administrators here";
            return Err(Problem::new(ProblemCode::Forbidden, detail).with_hint("ask one for an account"));
        }
        if new.password.is_none() {
            return Err(Problem::invalid_fields(vec![FieldError::new("password", "is missing")]));
        }
        let name = new.name.to_string();
        Ok(self.create(new, Standing::Waiting, &name, from).await?.account)
    }

    pub(crate) async fn create_account(&self, asker: &Asker, new: NewAccount) -> Result<Invitation, Problem> {
        self.create(new, Standing::Active, &asker.name(), asker.from).await
    }

    async fn create(
        &self,
        new: NewAccount,
        standing: Standing,
        by: &str,
        from: IpAddr,
    ) -> Result<Invitation, Problem> {
        check_text("display_name", new.display_name.as_deref())?;
        check_text("email", new.email.as_deref())?;
        let hashed = match new.password {
            Some(password) => Some(hashed(password).await?),
            None => None,
        };
        let _one_at_a_time = self.changing.lock().await;
        if self.register().account(&new.name).is_some() {
            let detail = format!("there is an account `{}` already", new.name);
            return Err(Problem::new(ProblemCode::WrongState, detail));
        }
        // Everybody owns the workspace of their name: nobody may come to own one that is there already.
        let name = new.name.as_str();
        if self.register().has_workspace(name) {
            let detail = format!("`{name}` is the name of a workspace");
            return Err(Problem::new(ProblemCode::WrongState, detail).with_hint("choose another name"));
        }
        let account = Account {
            name: new.name,
            display_name: new.display_name,
            email: new.email,
            admin: false,
            standing,
            password: hashed,
            created_at: Timestamp::now(),
        };
        let mut rows = vec![account_row(&account)];
        let link = account.password.is_none().then(|| link_to(&account.name));
        rows.extend(link.iter().map(|(secret, token)| token_row(secret, token)));
        let view = self.register().account_view(&account);
        let subject = account.name.to_string();
        let deed = Deed { by, from, action: "account.create", subject, before: None, after: json(&view) };
        self.write(rows, deed).await.map_err(store_problem)?;
        Ok(Invitation { account: view, password_link: link.map(|(secret, _)| secret) })
    }

    pub(crate) async fn change_account(
        &self,
        asker: &Asker,
        name: &AccountName,
        change: AccountChange,
    ) -> Result<AccountView, Problem> {
        require_of_account(asker, name, Action::ChangeAccount)?;
        if change.admin.is_some() || change.standing.is_some() {
            require_of_account(asker, name, Action::RunAccounts)?;
            if name.as_str() == LOCAL_ADMIN {
                let detail = format!("`{LOCAL_ADMIN}` is whoever runs this machine, and stays what it is");
                return Err(Problem::new(ProblemCode::WrongState, detail));
            }
        }
        check_text("display_name", change.display_name.as_deref())?;
        check_text("email", change.email.as_deref())?;
        let _one_at_a_time = self.changing.lock().await;
        let (mut account, before) = {
            let register = self.register();
            let account = register.account(name).cloned().ok_or_else(|| no_account(name))?;
            let before = json(&register.account_view(&account));
            (account, before)
        };
        account.display_name = change.display_name.or(account.display_name);
        account.email = change.email.or(account.email);
        account.admin = change.admin.unwrap_or(account.admin);
        account.standing = change.standing.unwrap_or(account.standing);
        let view = self.register().account_view(&account);
        let mut rows = vec![account_row(&account)];
        if account.standing == Standing::Disabled {
            // Enabled again, nobody should find old sessions open.
            rows.extend(self.register().revocations(name, |token| token.kind == TokenKind::Session));
        }
        let by = asker.name();
        let subject = name.to_string();
        let deed =
            Deed { by: &by, from: asker.from, action: "account.change", subject, before, after: json(&view) };
        self.write(rows, deed).await.map_err(store_problem)?;
        Ok(view)
    }

    pub(crate) async fn delete_account(&self, asker: &Asker, name: &AccountName) -> Result<(), Problem> {
        if name.as_str() == LOCAL_ADMIN {
            let detail = format!("`{LOCAL_ADMIN}` is whoever runs this machine, and cannot be deleted");
            return Err(Problem::new(ProblemCode::WrongState, detail));
        }
        let _one_at_a_time = self.changing.lock().await;
        let before = json(&self.view(name)?);
        let mut rows: Vec<DirectoryRow> = self.register().revocations(name, |_| true);
        rows.extend(self.register().departures(name));
        rows.push(no_account_row(name));
        let by = asker.name();
        let deed = Deed {
            by: &by,
            from: asker.from,
            action: "account.delete",
            subject: name.to_string(),
            before,
            after: None,
        };
        self.write(rows, deed).await.map_err(store_problem)
    }

    /// A link by which the owner of an account sets a new password; earlier links end.
    pub(crate) async fn password_link(
        &self,
        asker: &Asker,
        name: &AccountName,
    ) -> Result<Invitation, Problem> {
        let _one_at_a_time = self.changing.lock().await;
        let view = self.view(name)?;
        let (secret, token) = link_to(name);
        let mut rows = self.register().revocations(name, |token| token.kind == TokenKind::PasswordLink);
        rows.push(token_row(&secret, &token));
        let by = asker.name();
        let subject = name.to_string();
        let deed = Deed {
            by: &by,
            from: asker.from,
            action: "account.password_link",
            subject,
            before: None,
            after: None,
        };
        self.write(rows, deed).await.map_err(store_problem)?;
        Ok(Invitation { account: view, password_link: Some(secret) })
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
            let detail = format!("too many tries; wait {} seconds", pause.as_secs() + 1);
            return Err(Problem::new(ProblemCode::TooManyRequests, detail));
        }
        password::check(&new.password)?;
        let is_link = |token: &Token| {
            let lasts = token.expires_at.is_none_or(|end| end > Timestamp::now());
            token.kind == TokenKind::PasswordLink && token.account == *name && lasts
        };
        let by_link =
            new.link.as_deref().is_some_and(|link| self.register().token(link).is_some_and(is_link));
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

pub(super) fn require_of_account(asker: &Asker, name: &AccountName, action: Action) -> Result<(), Problem> {
    let relation = policy::to_account(&asker.person, name);
    require(asker, relation, action, Action::SeeAccount, || no_account(name))
}

fn link_to(name: &AccountName) -> (String, Token) {
    let now = Timestamp::now();
    let token = Token {
        id: new_id(),
        account: name.clone(),
        kind: TokenKind::PasswordLink,
        name: "a link to set a password".to_owned(),
        scope: Scope::Read,
        created_at: now,
        expires_at: Some(now + LINK_LASTS),
    };
    (new_secret(), token)
}

pub(super) fn new_id() -> String {
    use rand::Rng;
    format!("{:012x}", rand::rng().random::<u64>() >> 16)
}

async fn hashed(password: String) -> Result<String, Problem> {
    password::check(&password)?;
    blocking(move || password::hash(&password)).await?
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Problem::new(ProblemCode::Internal, "the server is shutting down"))
}

fn check_text(field: &str, text: Option<&str>) -> Result<(), Problem> {
    let Some(text) = text else { return Ok(()) };
    if text.chars().count() <= LONGEST_TEXT && !text.contains(char::is_control) {
        return Ok(());
    }
    let message = format!("must have at most {LONGEST_TEXT} visible characters");
    Err(Problem::invalid_fields(vec![FieldError::new(field, message)]))
}

pub(super) fn no_account(name: &AccountName) -> Problem {
    Problem::new(ProblemCode::NotFound, format!("there is no account `{name}`"))
}
