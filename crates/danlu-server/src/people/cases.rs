//! What people do with accounts: sign in, make, change, delete, give tokens and roles.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use danlu_core::policy::{self, Action};
use danlu_store::DirectoryRow;
use danlu_types::account::{AccountName, Registration, Scope, Standing, WorkspaceRole};
use danlu_types::api::{
    AccountChange, AccountView, Invitation, MadeToken, MemberView, NewAccount, NewPassword, NewToken, SignIn,
    TokenKind, TokenView, Whoami,
};
use danlu_types::spec::is_name;
use danlu_types::{FieldError, Problem, ProblemCode};
use jiff::{SignedDuration, Timestamp};

use super::register::{Account, Token, account_row, member_row, no_account_row, token_row};
use super::{Asker, Deed, Directory, LOCAL_ADMIN, json, new_secret, password, require};
use crate::app::store_problem;

const SESSION_LASTS: SignedDuration = SignedDuration::from_hours(24 * 7);
const LINK_LASTS: SignedDuration = SignedDuration::from_hours(48);
const LONGEST_TEXT: usize = 200;
/// More would be a mistake in a script.
const MOST_TOKENS: usize = 100;

impl Directory {
    pub(crate) fn whoami(&self, asker: &Asker) -> Result<Whoami, Problem> {
        Ok(Whoami { account: self.view(&asker.person.name)?, scope: asker.person.scope })
    }

    fn view(&self, name: &AccountName) -> Result<AccountView, Problem> {
        let register = self.register();
        register.account(name).map(|account| register.account_view(account)).ok_or_else(|| no_account(name))
    }

    pub(crate) fn accounts(&self) -> Vec<AccountView> {
        let register = self.register();
        register.accounts().map(|account| register.account_view(account)).collect()
    }

    pub(crate) fn account(&self, asker: &Asker, name: &AccountName) -> Result<AccountView, Problem> {
        self.require_of_account(asker, name, Action::SeeAccount)?;
        self.view(name)
    }

    fn require_of_account(&self, asker: &Asker, name: &AccountName, action: Action) -> Result<(), Problem> {
        let relation = policy::to_account(&asker.person, name);
        require(asker, relation, action, Action::SeeAccount, || no_account(name))
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
        self.write(vec![token_row(&secret, &token)], deed).await.map_err(store_problem)?;
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
        self.require_of_account(asker, name, Action::ChangeAccount)?;
        if change.admin.is_some() || change.standing.is_some() {
            self.require_of_account(asker, name, Action::RunAccounts)?;
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

    pub(crate) fn tokens(&self, asker: &Asker, name: &AccountName) -> Result<Vec<TokenView>, Problem> {
        self.require_of_account(asker, name, Action::SeeAccount)?;
        self.view(name)?;
        let register = self.register();
        let mut tokens: Vec<_> =
            register.tokens_of(name).map(|(_, token)| register.token_view(token)).collect();
        tokens.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(tokens)
    }

    /// A token for the asker's programs, that may do no more than the one that asks.
    pub(crate) async fn make_token(&self, asker: &Asker, new: NewToken) -> Result<MadeToken, Problem> {
        let name = asker.person.name.clone();
        self.require_of_account(asker, &name, Action::ChangeAccount)?;
        if new.name.is_empty()
            || new.name.chars().count() > LONGEST_TEXT
            || new.name.contains(char::is_control)
        {
            let message = format!("must have 1 to {LONGEST_TEXT} visible characters");
            return Err(Problem::invalid_fields(vec![FieldError::new("name", message)]));
        }
        let _one_at_a_time = self.changing.lock().await;
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
            expires_at: lasts.map(|lasts| now.checked_add(lasts).unwrap_or(Timestamp::MAX)),
        };
        let secret = new_secret();
        let view = self.register().token_view(&token);
        let by = asker.name();
        let subject = token.account.to_string();
        let deed = Deed {
            by: &by,
            from: asker.from,
            action: "token.create",
            subject,
            before: None,
            after: json(&view),
        };
        self.write(vec![token_row(&secret, &token)], deed).await.map_err(store_problem)?;
        Ok(MadeToken { token: view, secret })
    }

    pub(crate) async fn revoke(&self, asker: &Asker, name: &AccountName, id: &str) -> Result<(), Problem> {
        // Whoever may look may also end the session that they look with.
        let own = asker.person.name == *name && asker.token == id;
        let action = if own { Action::SeeAccount } else { Action::ChangeAccount };
        self.require_of_account(asker, name, action)?;
        let _one_at_a_time = self.changing.lock().await;
        let rows = self.register().revocations(name, |token| token.id == id && id != super::LOCAL_TOKEN);
        if rows.is_empty() {
            return Err(Problem::new(
                ProblemCode::NotFound,
                format!("`{name}` has no token `{id}` to revoke"),
            ));
        }
        let by = asker.name();
        let subject = name.to_string();
        let before = Some(serde_json::json!({ "token": id }));
        let deed = Deed { by: &by, from: asker.from, action: "token.revoke", subject, before, after: None };
        self.write(rows, deed).await.map_err(store_problem)
    }

    pub(crate) fn members(&self, asker: &Asker, workspace: &str) -> Result<Vec<MemberView>, Problem> {
        self.require_of_workspace(asker, workspace, Action::SeeMembers)?;
        Ok(self.register().members(workspace))
    }

    fn require_of_workspace(&self, asker: &Asker, workspace: &str, action: Action) -> Result<(), Problem> {
        let relation = self.to_workspace(&asker.person, workspace);
        require(asker, relation, action, Action::SeeMembers, || no_workspace(workspace))
    }

    /// Gives somebody a role, or takes it away.
    pub(crate) async fn set_role(
        &self,
        asker: &Asker,
        workspace: &str,
        name: &AccountName,
        role: Option<WorkspaceRole>,
    ) -> Result<(), Problem> {
        self.require_of_workspace(asker, workspace, Action::ChangeMembers)?;
        if !is_name(workspace) {
            return Err(no_workspace(workspace));
        }
        let _one_at_a_time = self.changing.lock().await;
        let before = {
            let register = self.register();
            if register.account(name).is_none() {
                return Err(no_account(name));
            }
            register.members(workspace).into_iter().find(|member| member.account == *name)
        };
        if role.is_none() && before.is_none() {
            let detail = format!("`{name}` was not put into `{workspace}`");
            return Err(Problem::new(ProblemCode::NotFound, detail));
        }
        let by = asker.name();
        let deed = Deed {
            by: &by,
            from: asker.from,
            action: "member.change",
            subject: workspace.to_owned(),
            before: before.as_ref().and_then(json),
            after: role.and_then(|role| json(&MemberView { account: name.clone(), role })),
        };
        self.write(vec![member_row(workspace, name, role)], deed).await.map_err(store_problem)
    }
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

fn new_id() -> String {
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

fn no_account(name: &AccountName) -> Problem {
    Problem::new(ProblemCode::NotFound, format!("there is no account `{name}`"))
}

fn no_workspace(name: &str) -> Problem {
    let name: String = name.chars().take(63).collect();
    Problem::new(ProblemCode::NotFound, format!("there is no workspace `{name}`"))
}
