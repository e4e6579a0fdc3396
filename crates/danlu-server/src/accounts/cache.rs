//! What is known of people, in memory: rows go in as they are stored, at start and after each change.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use danlu_core::authorization::Principal;
use danlu_store::DirectoryRow;
use danlu_types::account::{AccountName, Scope, Standing, WorkspaceRole};
use danlu_types::api::{AccountView, MemberView, Membership, SharingRules, TokenKind, TokenView};
use danlu_types::{Sharing, Workspace, from_stored_json};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::credentials::{Credentials, no_invitation_row};
use super::second_factor::SecondFactor;

/// The workspace that everybody with an account may work in, where an administrator has not shared the cluster out
/// otherwise.
const EVERYBODYS: &str = "default";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) name: AccountName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) email: Option<String>,
    pub(crate) admin: bool,
    pub(crate) standing: Standing,
    /// Argon2id, as a PHC string; without one, nobody signs in with a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) password: Option<String>,
    pub(crate) created_at: Timestamp,
    /// The workspace whose owners may approve it, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asks_for: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) second_factor: Option<SecondFactor>,
    /// An administrator chose the name, or lets it stand for the machine's user who has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unix_user: bool,
}

impl Account {
    pub(crate) fn is_administrator(&self) -> bool {
        self.admin && self.standing == Standing::Active
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) id: String,
    pub(crate) account: AccountName,
    pub(crate) kind: TokenKind,
    pub(crate) name: String,
    pub(crate) scope: Scope,
    pub(crate) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<Timestamp>,
    /// Of a link to sign in: when the session ends that made it. The one that comes of it ends no later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session_ends: Option<Timestamp>,
    /// Of a link that was made with a session, and of the session that comes of it: the session at the beginning of them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) root: Option<String>,
    /// Of what does not outlive the token or session that it was made with: the id of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made_with: Option<String>,
    /// Of a link to set a password: the administrator who made it. It ends with their rights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made_by: Option<AccountName>,
}

impl Token {
    /// The id of the session from which this one comes, over however many links: its own, where it comes from none.
    pub(crate) fn root(&self) -> &str {
        self.root.as_deref().unwrap_or(&self.id)
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Member {
    role: WorkspaceRole,
    /// Given by a group of the provider, and taken away with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    from_group: bool,
}

const ACCOUNT: &str = "account";
const TOKEN: &str = "token";
const MEMBER: &str = "member";
const WORKSPACE: &str = "workspace";
const SHARING: &str = "sharing";
/// What has happened once and for all.
const MILESTONE: &str = "milestone";
const ADMIN_SIGNED_IN: &str = "admin_signed_in";

/// What is kept of a secret: enough to know it again, too little to use it.
pub(crate) fn hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(super) fn row<T: Serialize>(kind: &str, key: String, value: Option<&T>) -> DirectoryRow {
    let value = value.map(|value| serde_json::to_string(value).expect("plain values"));
    DirectoryRow { kind: kind.to_owned(), key, value }
}

pub(crate) fn account_row(account: &Account) -> DirectoryRow {
    row(ACCOUNT, account.name.to_string(), Some(account))
}

pub(crate) fn no_account_row(name: &AccountName) -> DirectoryRow {
    row::<Account>(ACCOUNT, name.to_string(), None)
}

pub(crate) fn token_row(secret: &str, token: &Token) -> DirectoryRow {
    row(TOKEN, hash(secret), Some(token))
}

/// By the key of its row.
pub(crate) fn no_token_row(key: String) -> DirectoryRow {
    row::<Token>(TOKEN, key, None)
}

pub(crate) fn member_row(
    workspace: &str,
    account: &AccountName,
    role: Option<WorkspaceRole>,
) -> DirectoryRow {
    // An account's name holds no slash, so the last one parts the two.
    let member = role.map(|role| Member { role, from_group: false });
    row(MEMBER, format!("{workspace}/{account}"), member.as_ref())
}

pub(crate) fn member_of_group_row(
    workspace: &str,
    account: &AccountName,
    role: WorkspaceRole,
) -> DirectoryRow {
    row(MEMBER, format!("{workspace}/{account}"), Some(&Member { role, from_group: true }))
}

pub(crate) fn workspace_row(name: &str, rules: Option<&Workspace>) -> DirectoryRow {
    row(WORKSPACE, name.to_owned(), rules)
}

pub(crate) fn sharing_row(rules: &SharingRules) -> DirectoryRow {
    row(SHARING, String::new(), Some(rules))
}

/// From here on, a starting server makes nobody a way in.
pub(crate) fn admin_has_signed_in_row() -> DirectoryRow {
    row(MILESTONE, ADMIN_SIGNED_IN.to_owned(), Some(&serde_json::Map::new()))
}

/// Whether a row has a part in the rules of personal workspaces: whose they are, and what is said of them.
pub(crate) fn changes_rules(row: &DirectoryRow) -> bool {
    [ACCOUNT, WORKSPACE, SHARING].contains(&row.kind.as_str())
}

#[derive(Debug, Default)]
pub(crate) struct AccountCache {
    accounts: BTreeMap<AccountName, Account>,
    /// By the hash of their secret.
    tokens: HashMap<String, Token>,
    members: BTreeMap<String, BTreeMap<AccountName, Member>>,
    /// As it is stored.
    stored: Sharing,
    /// As it holds: in everybody's own workspace, the rules of all such workspaces bind.
    sharing: Sharing,
    /// By token id; not worth a write each time.
    used: HashMap<String, Timestamp>,
    admin_has_signed_in: bool,
    pub(crate) credentials: Credentials,
}

impl AccountCache {
    /// Of all rows there are.
    pub(crate) fn of<'a>(rows: impl Iterator<Item = &'a DirectoryRow>) -> Self {
        let mut register = AccountCache::default();
        for row in rows {
            if let Err(trouble) = register.file(row) {
                tracing::error!("{trouble}; it counts as missing");
            }
        }
        register.list_all();
        register
    }

    /// Keeps what is not stored: when tokens were used.
    pub(crate) fn replace_with(&mut self, fresh: AccountCache) {
        let used = std::mem::take(&mut self.used);
        *self = AccountCache { used, ..fresh };
    }

    /// Takes in a row, or takes out what it takes away; the error is a row that this version does not understand.
    pub(crate) fn file(&mut self, row: &DirectoryRow) -> Result<(), String> {
        let understood = match row.kind.as_str() {
            ACCOUNT => self.file_account(row),
            TOKEN => self.file_token(row),
            MEMBER => self.file_member(row),
            WORKSPACE => self.file_workspace(row),
            SHARING => self.file_sharing(row),
            MILESTONE if row.key == ADMIN_SIGNED_IN => {
                self.admin_has_signed_in = row.value.is_some();
                Some(())
            }
            // Kept beside people, and read by those whose they are.
            crate::unix_users::UNIX_USER | crate::secrets::SECRET | crate::audit_proof::HEAD => Some(()),
            _ => self.credentials.file(row),
        };
        understood.ok_or_else(|| format!("the {} `{}` cannot be read", row.kind, row.key))
    }

    fn file_account(&mut self, row: &DirectoryRow) -> Option<()> {
        match &row.value {
            Some(value) => {
                let account: Account = serde_json::from_str(value).ok()?;
                self.accounts.insert(account.name.clone(), account);
            }
            None => {
                self.accounts.remove(&row.key.parse().ok()?);
            }
        }
        Some(())
    }

    fn file_token(&mut self, row: &DirectoryRow) -> Option<()> {
        match &row.value {
            Some(value) => {
                self.tokens.insert(row.key.clone(), serde_json::from_str(value).ok()?);
            }
            None => {
                if let Some(token) = self.tokens.remove(&row.key) {
                    self.used.remove(&token.id);
                }
            }
        }
        Some(())
    }

    fn file_member(&mut self, row: &DirectoryRow) -> Option<()> {
        let (workspace, account) = row.key.rsplit_once('/')?;
        let account = account.parse().ok()?;
        let members = self.members.entry(workspace.to_owned()).or_default();
        match &row.value {
            Some(value) => members.insert(account, serde_json::from_str(value).ok()?),
            None => members.remove(&account),
        };
        self.members.retain(|_, members| !members.is_empty());
        Some(())
    }

    fn file_workspace(&mut self, row: &DirectoryRow) -> Option<()> {
        match &row.value {
            Some(value) => self.stored.workspaces.insert(row.key.clone(), from_stored_json(value).ok()?),
            None => self.stored.workspaces.remove(&row.key),
        };
        Some(())
    }

    fn file_sharing(&mut self, row: &DirectoryRow) -> Option<()> {
        let SharingRules { lending, minimum_run_time, personal } =
            from_stored_json(row.value.as_ref()?).ok()?;
        let workspaces = std::mem::take(&mut self.stored.workspaces);
        self.stored = Sharing { lending, minimum_run_time, personal, workspaces };
        Some(())
    }

    /// Lists workspaces that are there only by their people: before there were rules, nobody had to make one.
    fn list_all(&mut self) {
        let unlisted: Vec<String> =
            self.members.keys().filter(|name| !self.has_workspace(name)).cloned().collect();
        self.stored.workspaces.extend(unlisted.into_iter().map(|name| (name, Workspace::default())));
        self.settle_personal();
    }

    /// To be called after rows of accounts, workspaces or rules were taken in: none of these can be read without the others.
    pub(crate) fn settle_personal(&mut self) {
        let mut sharing = self.stored.clone();
        for (name, rules) in &mut sharing.workspaces {
            if self.is_personal(name) {
                *rules = std::mem::take(rules).bound_by(&self.stored.personal);
            }
        }
        self.sharing = sharing;
    }

    /// Whether a workspace is somebody's own.
    pub(crate) fn is_personal(&self, name: &str) -> bool {
        name.parse().is_ok_and(|name| self.accounts.contains_key(&name))
    }

    pub(crate) fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    /// Those that were made, everybody's, and each person's own.
    pub(crate) fn has_workspace(&self, name: &str) -> bool {
        name == EVERYBODYS || self.stored.workspaces.contains_key(name) || self.is_personal(name)
    }

    /// Rows that take everybody out of a workspace, and its rules and invitations away: the name may be another's one day.
    pub(crate) fn dismissals(&self, workspace: &str) -> Vec<DirectoryRow> {
        let members = self.members.get(workspace).into_iter().flatten();
        let members = members.map(|(account, _)| member_row(workspace, account, None));
        let invitations = self.credentials.invitations.iter();
        let invitations = invitations
            .filter(|(_, invitation)| invitation.workspace == workspace)
            .map(|(key, _)| no_invitation_row(key));
        members.chain(invitations).chain([workspace_row(workspace, None)]).collect()
    }

    /// Whether somebody may still let others into a workspace, as they could when they invited them.
    pub(crate) fn lets_in(&self, person: &AccountName, workspace: &str) -> bool {
        let account = self.account(person).filter(|account| account.standing == Standing::Active);
        let given = || self.members.get(workspace).and_then(|members| members.get(person));
        account.is_some_and(|account| {
            account.admin || given().is_some_and(|member| member.role == WorkspaceRole::Owner)
        })
    }

    /// Whether two people are in a workspace together that is nobody's own.
    pub(crate) fn work_together(&self, one: &AccountName, other: &AccountName) -> bool {
        let mut shared = self.members.iter().filter(|(name, _)| !self.is_personal(name));
        shared.any(|(_, members)| members.contains_key(one) && members.contains_key(other))
    }

    /// Whether somebody answers for a workspace that is nobody's own.
    pub(crate) fn answers_for_others(&self, person: &AccountName) -> bool {
        let mut shared = self.members.iter().filter(|(name, _)| !self.is_personal(name));
        shared
            .any(|(_, members)| members.get(person).is_some_and(|member| member.role == WorkspaceRole::Owner))
    }

    pub(crate) fn account(&self, name: &AccountName) -> Option<&Account> {
        self.accounts.get(name)
    }

    pub(crate) fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.accounts.values()
    }

    pub(crate) fn token(&self, secret: &str) -> Option<&Token> {
        self.tokens.get(&hash(secret))
    }

    /// The link of this kind behind a secret, if it is still good.
    pub(crate) fn link(&self, secret: &str, kind: TokenKind, now: Timestamp) -> Option<&Token> {
        let is_good = |token: &&Token| token.kind == kind && token.expires_at.is_none_or(|end| end > now);
        self.token(secret).filter(is_good)
    }

    pub(crate) fn admin_has_signed_in(&self) -> bool {
        self.admin_has_signed_in
    }

    /// The tokens of an account, and the keys of their rows.
    pub(crate) fn tokens_of(&self, account: &AccountName) -> impl Iterator<Item = (&String, &Token)> {
        self.tokens.iter().filter(move |(_, token)| token.account == *account)
    }

    /// Rows that take away these tokens of an account, and what was made with them, over however many steps.
    pub(crate) fn revocations(
        &self,
        account: &AccountName,
        which: impl Fn(&Token) -> bool,
    ) -> Vec<DirectoryRow> {
        let mut gone: Vec<_> = self.tokens_of(account).filter(|(_, token)| which(token)).collect();
        let mut seen: HashSet<&str> = gone.iter().map(|(_, token)| token.id.as_str()).collect();
        let mut next = 0;
        while let Some((_, maker)) = gone.get(next) {
            let made = self.tokens.iter().filter(|(_, token)| token.made_with.as_ref() == Some(&maker.id));
            let made: Vec<_> = made.filter(|(_, token)| seen.insert(&token.id)).collect();
            gone.extend(made);
            next += 1;
        }
        let is_gone = |maker: &String| seen.contains(maker.as_str());
        let invitations = self.credentials.invitations.iter();
        let invitations = invitations.filter(|(_, made)| made.made_with.as_ref().is_some_and(is_gone));
        let invitations = invitations.map(|(key, _)| no_invitation_row(key));
        gone.into_iter().map(|(key, _)| no_token_row(key.clone())).chain(invitations).collect()
    }

    /// Rows that take away the links by which this account let others set their passwords.
    pub(crate) fn links_made_by(&self, account: &AccountName) -> Vec<DirectoryRow> {
        let is_of_it = |token: &&Token| token.made_by.as_ref() == Some(account) && token.account != *account;
        let links = self.tokens.iter().filter(|(_, token)| is_of_it(token));
        links.map(|(key, _)| no_token_row(key.clone())).collect()
    }

    /// Rows that take an account out of every workspace, and take away what it has.
    pub(crate) fn departures(&self, account: &AccountName) -> Vec<DirectoryRow> {
        let in_it = self.members.iter().filter(|(_, members)| members.contains_key(account));
        let left = in_it.map(|(workspace, _)| member_row(workspace, account, None));
        left.chain(self.credentials.departures(account)).collect()
    }

    /// Who asks with this secret, if it is one for asking and its account is in order.
    pub(crate) fn caller(&mut self, secret: &str, now: Timestamp) -> Option<(Principal, Token)> {
        let token = self.token(secret)?.clone();
        let is_over = token.expires_at.is_some_and(|end| end <= now);
        let account = self.account(&token.account)?;
        let is_for_asking = matches!(token.kind, TokenKind::Api | TokenKind::Session);
        if is_over || !is_for_asking || account.standing != Standing::Active {
            return None;
        }
        let person = Principal { name: account.name.clone(), admin: account.admin, scope: token.scope };
        self.used.insert(token.id.clone(), now);
        Some((person, token))
    }

    /// When the token of this key ends, if it can be used at all; the end of time where nothing else is said.
    pub(crate) fn expiry(&self, key: &str, now: Timestamp) -> Option<Timestamp> {
        let token = self.tokens.get(key)?;
        self.account(&token.account).filter(|account| account.standing == Standing::Active)?;
        Some(token.expires_at.unwrap_or(Timestamp::MAX)).filter(|end| *end > now)
    }

    /// Who asks with the token of this key, as they are now; nobody where it cannot be used.
    pub(crate) fn person_of(&self, key: &str, now: Timestamp) -> Option<Principal> {
        self.expiry(key, now)?;
        let token = self.tokens.get(key)?;
        let account = self.account(&token.account)?;
        Some(Principal { name: account.name.clone(), admin: account.admin, scope: token.scope })
    }

    pub(crate) fn role(&self, person: &AccountName, workspace: &str) -> Option<WorkspaceRole> {
        let given =
            self.members.get(workspace).and_then(|members| members.get(person)).map(|member| member.role);
        let by_nature = match workspace {
            EVERYBODYS => Some(WorkspaceRole::Member),
            _ if workspace == person.as_str() => Some(WorkspaceRole::Owner),
            _ => None,
        };
        given.max(by_nature)
    }

    /// The workspaces whose jobs a person sees.
    pub(crate) fn visible_to(&self, person: &AccountName) -> Vec<String> {
        let given = self.members.iter().filter(|(_, members)| members.contains_key(person));
        let mut visible: Vec<String> = given.map(|(workspace, _)| workspace.clone()).collect();
        for by_nature in [EVERYBODYS, person.as_str()] {
            if !visible.iter().any(|workspace| workspace == by_nature) {
                visible.push(by_nature.to_owned());
            }
        }
        visible
    }

    pub(crate) fn members(&self, workspace: &str) -> Vec<MemberView> {
        let members = self.members.get(workspace).into_iter().flatten();
        members.map(|(account, member)| MemberView { account: account.clone(), role: member.role }).collect()
    }

    /// The workspaces that somebody was put into, and whether a group did so.
    pub(crate) fn roles_of(&self, account: &AccountName) -> impl Iterator<Item = (&str, bool)> {
        self.members.iter().filter_map(|(workspace, members)| {
            members.get(account).map(|member| (workspace.as_str(), member.from_group))
        })
    }

    /// All accounts, with what each is where: one look at every member instead of one for every account and workspace.
    pub(crate) fn account_views(&self) -> Vec<AccountView> {
        let mut workspaces: BTreeMap<&AccountName, Vec<Membership>> = BTreeMap::new();
        for (workspace, members) in &self.members {
            for (account, member) in members {
                let membership = Membership { workspace: workspace.clone(), role: member.role };
                workspaces.entry(account).or_default().push(membership);
            }
        }
        let mut view = |account: &Account| {
            let own = workspaces.remove(&account.name).unwrap_or_default();
            view_with(account, own)
        };
        self.accounts.values().map(&mut view).collect()
    }

    pub(crate) fn account_view(&self, account: &Account) -> AccountView {
        let role = |(workspace, members): (&String, &BTreeMap<AccountName, Member>)| {
            Some(Membership { workspace: workspace.clone(), role: members.get(&account.name)?.role })
        };
        view_with(account, self.members.iter().filter_map(role).collect())
    }

    pub(crate) fn token_view(&self, token: &Token) -> TokenView {
        TokenView {
            id: token.id.clone(),
            name: token.name.clone(),
            kind: token.kind,
            scope: token.scope,
            created_at: token.created_at,
            expires_at: token.expires_at,
            last_used_at: self.used.get(&token.id).copied(),
        }
    }
}

fn view_with(account: &Account, workspaces: Vec<Membership>) -> AccountView {
    AccountView {
        name: account.name.clone(),
        display_name: account.display_name.clone(),
        email: account.email.clone(),
        admin: account.admin,
        standing: account.standing,
        second_factor: account.has_second_factor(),
        unix_user: account.unix_user,
        created_at: account.created_at,
        asks_for: account.asks_for.clone().filter(|_| account.standing == Standing::Waiting),
        workspaces,
    }
}
