//! Accounts, tokens and members: who there is, and every change to it with its trail.
//!
//! All of it is kept in memory, because every request asks for it; a change is first written, with its entry in the audit,
//! and only then seen.

mod cache;
mod credentials;
mod external_identity;
mod guesses;
mod hashing;
mod identities;
mod invitations;
mod keys;
mod links;
mod manage;
mod password;
mod proof;
mod roles;
mod second_factor;
pub(crate) mod secrets;
mod sign_in;
mod throttle;
mod token_expiry;
mod totp;
mod unix_users;
mod workspaces;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use danlu_core::authorization::{self, Action, AuthzDecision, Principal, Relation};
use danlu_store::{DirectoryChange, DirectoryRow, Store, StoreError};
use danlu_types::account::{AccountName, Registration, Scope, Standing};
use danlu_types::api::{AuditEntry, TokenKind};
use danlu_types::{Problem, ProblemCode};
use jiff::Timestamp;
use rand::Rng;
use serde::Serialize;

use cache::{Account, AccountCache, Token};
use guesses::Guesses;
pub(crate) use guesses::{Visitor, network_of};
use hashing::PasswordHashing;
pub(crate) use roles::no_workspace;

use crate::encryption::Encryptor;

/// Whoever can read the token file of the data folder is this one. The account cannot be lost: it belongs to the machine.
pub(crate) const LOCAL_ADMIN: &str = "admin";
const LOCAL_TOKEN: &str = "local";

/// How secrets begin, so that people and scanners know one when they see it.
const SECRET_PREFIX: &str = "danlu_";

#[derive(Debug)]
pub(crate) struct Directory {
    store: Arc<dyn Store>,
    register: Mutex<AccountCache>,
    /// The token of the data folder. Not stored: the file is where it is kept, and a new file is a new token.
    local: DirectoryRow,
    /// One change at a time: each looks, decides and writes.
    changing: tokio::sync::Mutex<()>,
    guesses: Mutex<Guesses>,
    hashing: PasswordHashing,
    /// Told after every change.
    changes: tokio::sync::watch::Sender<()>,
    registration: Registration,
    encryptor: Arc<Encryptor>,
}

/// Who a request comes from.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) person: Principal,
    /// The id of the token it came with.
    pub(crate) token: String,
    /// The id of the session with which the first link was made that led to this one; its own, if it came of none.
    root: String,
    /// Under which the token is filed: a hash of its secret, so another one once it is rotated.
    key: String,
    kind: TokenKind,
    expires_at: Option<Timestamp>,
    /// Whether a browser sent it, as the cookie of a session.
    in_browser: bool,
    pub(crate) from: IpAddr,
}

impl Caller {
    pub(crate) fn name(&self) -> String {
        self.person.name.to_string()
    }

    pub(crate) fn in_browser(self) -> Self {
        Caller { in_browser: true, ..self }
    }

    /// Whether somebody has signed in, or runs this machine. A token for programs is neither, whatever it may be used for.
    fn is_in_person(&self) -> bool {
        self.kind == TokenKind::Session || self.token == LOCAL_TOKEN
    }

    /// For what gives its owner a way in, or holds without end: a program's token would outlive itself by it.
    fn require_in_person(&self) -> Result<(), Problem> {
        if self.is_in_person() {
            return Ok(());
        }
        let detail = "a token for programs does not make what outlives it: this is for a session";
        Err(Problem::new(ProblemCode::Forbidden, detail)
            .with_hint("sign in with `danlu login`, and use that session"))
    }

    /// The end of something that this one makes: what a program's token makes does not outlive it.
    fn bounded(&self, end: Timestamp) -> Timestamp {
        if self.is_in_person() { end } else { self.expires_at.map_or(end, |own| own.min(end)) }
    }

    /// The same for a link by which the owner of an account sets a password: it ends with what this one is and may.
    fn bound(&self, link: &mut Token) {
        link.expires_at = link.expires_at.map(|end| self.bounded(end));
        link.made_with = self.ends_with();
        link.made_by = Some(self.person.name.clone());
    }

    /// The token with which what this one makes ends, however it ends: only a person makes what outlasts what they asked with.
    fn ends_with(&self) -> Option<String> {
        (!self.is_in_person()).then(|| self.token.clone())
    }
}

/// Something done, for the audit.
struct Deed<'a> {
    by: &'a str,
    from: IpAddr,
    action: &'static str,
    subject: String,
    before: Option<serde_json::Value>,
    after: Option<serde_json::Value>,
}

impl Directory {
    /// Reads who there is; makes the local administrator where there is nobody yet.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        local_token: &str,
        registration: Registration,
        encryptor: Arc<Encryptor>,
    ) -> Result<Self, StoreError> {
        let admin: AccountName = LOCAL_ADMIN.parse().expect("a name");
        let local = Token {
            id: LOCAL_TOKEN.to_owned(),
            account: admin.clone(),
            kind: TokenKind::Api,
            name: "the token file of the data folder".to_owned(),
            scope: Scope::All,
            created_at: Timestamp::now(),
            expires_at: None,
            session_ends: None,
            root: None,
            made_with: None,
            made_by: None,
        };
        let local = cache::token_row(local_token, &local);
        let register = AccountCache::of(store.directory().await?.into_iter().chain([local.clone()]));
        let directory = Directory {
            store,
            register: Mutex::new(register),
            local,
            changing: tokio::sync::Mutex::default(),
            guesses: Mutex::default(),
            hashing: PasswordHashing::default(),
            changes: tokio::sync::watch::Sender::default(),
            registration,
            encryptor,
        };
        directory.check_seals();
        if directory.register().account(&admin).is_none() {
            let account = Account {
                name: admin.clone(),
                display_name: None,
                email: None,
                admin: true,
                standing: Standing::Active,
                password: None,
                created_at: Timestamp::now(),
                asks_for: None,
                second_factor: None,
                unix_user: true,
                generation: 0,
            };
            let deed = Deed {
                by: "-",
                from: IpAddr::from([127, 0, 0, 1]),
                action: "account.create",
                subject: LOCAL_ADMIN.to_owned(),
                before: None,
                after: json(&directory.register().account_view(&account)),
            };
            directory.write(vec![cache::account_row(&account)], deed).await?;
        }
        Ok(directory)
    }

    pub(crate) fn registration(&self) -> Registration {
        self.registration
    }

    fn register(&self) -> MutexGuard<'_, AccountCache> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn guesses(&self) -> MutexGuard<'_, Guesses> {
        self.guesses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn caller(&self, secret: &str, from: IpAddr) -> Option<Caller> {
        let (person, token) = self.register().caller(secret, Timestamp::now())?;
        let root = token.root().to_owned();
        let Token { id, kind, expires_at, .. } = token;
        Some(Caller {
            person,
            token: id,
            root,
            key: cache::hash(secret),
            kind,
            expires_at,
            in_browser: false,
            from,
        })
    }

    /// The next change is this caller's, if their token is still good: while they waited for it, another may have ended it, and
    /// what they make would be what is left of it.
    async fn change_by(&self, caller: &Caller) -> Result<tokio::sync::MutexGuard<'_, ()>, Problem> {
        let one_at_a_time = self.changing.lock().await;
        if self.register().expiry(&caller.key, Timestamp::now()).is_none() {
            let over = Problem::new(ProblemCode::Unauthenticated, "this session or token has ended");
            return Err(over.with_hint("sign in again"));
        }
        Ok(one_at_a_time)
    }

    /// The workspaces whose jobs somebody sees; `None` for all.
    pub(crate) fn visible_to(&self, person: &Principal) -> Option<Vec<String>> {
        (!person.admin).then(|| self.register().visible_to(&person.name))
    }

    /// Workspaces to which somebody may submit jobs.
    pub(crate) fn submittable_by(&self, person: &Principal) -> Vec<String> {
        let register = self.register();
        let mut names = register.visible_to(&person.name);
        if person.admin {
            names.extend(register.sharing().workspaces.keys().cloned());
        }
        names.sort_unstable();
        names.dedup();
        names.retain(|name| {
            let relation = authorization::to_workspace(person, register.role(&person.name, name));
            let may =
                authorization::permission(relation, person.scope, Action::SubmitJob, Action::SeeMembers);
            may == AuthzDecision::Yes && register.has_workspace(name)
        });
        names
    }

    pub(crate) fn to_workspace(&self, person: &Principal, workspace: &str) -> Relation {
        authorization::to_workspace(person, self.register().role(&person.name, workspace))
    }

    pub(crate) fn to_job(&self, person: &Principal, job: &danlu_core::Job) -> Relation {
        authorization::to_job(person, self.register().role(&person.name, &job.spec.workspace), &job.owner)
    }

    /// Takes what the database has for what is so, after a change that it may have taken without saying so.
    pub(crate) async fn read_again(&self) -> Result<(), StoreError> {
        let _changing = self.changing.lock().await;
        let rows = self.store.directory().await?;
        let fresh = AccountCache::of(rows.into_iter().chain([self.local.clone()]));
        self.register().replace_with(fresh);
        self.changes.send_replace(());
        Ok(())
    }

    /// Whoever waits for this is told of every change.
    #[cfg(test)]
    pub(crate) fn watch(&self) -> tokio::sync::watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Writes a change and its trail, and shows it once it is durable.
    async fn write(&self, rows: Vec<DirectoryRow>, deed: Deed<'_>) -> Result<(), StoreError> {
        let audit = AuditEntry {
            number: 0,
            at: Timestamp::now(),
            by: deed.by.to_owned(),
            from: deed.from.to_string(),
            action: deed.action.to_owned(),
            subject: deed.subject,
            before: deed.before,
            after: deed.after,
            seal: String::new(),
        };
        self.write_entry(rows, audit).await
    }

    /// The one writer of people and of entries in the audit.
    async fn write_entry(&self, rows: Vec<DirectoryRow>, audit: AuditEntry) -> Result<(), StoreError> {
        let change = DirectoryChange { rows, audit };
        self.store.directory_change(&change).await?;
        let mut register = self.register();
        let changes_rules = change.rows.iter().any(cache::changes_rules);
        for row in change.rows {
            register.file(row);
        }
        if changes_rules {
            register.settle_personal();
        }
        drop(register);
        self.changes.send_replace(());
        Ok(())
    }
}

/// Refuses what the policy does not allow. `what` names the thing for those who may know of it, `hidden` is the answer to
/// those who may not.
pub(crate) fn require(
    caller: &Caller,
    relation: Relation,
    action: Action,
    see: Action,
    hidden: impl FnOnce() -> Problem,
) -> Result<(), Problem> {
    match authorization::permission(relation, caller.person.scope, action, see) {
        AuthzDecision::Yes => Ok(()),
        AuthzDecision::Hidden => Err(hidden()),
        AuthzDecision::No => {
            let detail = format!("`{}` may not do this", caller.person.name);
            Err(Problem::new(ProblemCode::Forbidden, detail)
                .with_hint("ask an owner of the workspace, or an administrator"))
        }
        AuthzDecision::ScopeTooSmall(needed) => {
            let detail = format!("this token is for `{}` only", caller.person.scope.as_str());
            Err(Problem::new(ProblemCode::Forbidden, detail)
                .with_hint(format!("use one with the scope `{}`", needed.as_str())))
        }
    }
}

/// For what belongs to the whole platform.
pub(crate) fn require_of_platform(caller: &Caller, action: Action) -> Result<(), Problem> {
    let relation = authorization::to_platform(&caller.person);
    require(caller, relation, action, Action::SeeCluster, || {
        Problem::new(ProblemCode::NotFound, "there is nothing at this address")
    })
}

fn json(value: &impl Serialize) -> Option<serde_json::Value> {
    serde_json::to_value(value).ok()
}

fn new_secret() -> String {
    let words: [u128; 2] = rand::rng().random();
    format!("{SECRET_PREFIX}{:032x}{:032x}", words[0], words[1])
}
