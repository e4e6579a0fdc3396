//! What is known of people, in memory: rows go in as they are stored, at start and after each change.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use danlu_core::authorization::Principal;
pub(crate) use danlu_store::{Account, Token};
use danlu_store::{DirectoryRow, Document, Member, StoredSecret};
use danlu_types::account::{AccountName, Standing, WorkspaceRole};
use danlu_types::api::{AccountView, MemberView, Membership, SharingRules, TokenKind, TokenView};
use danlu_types::{Sharing, Workspace};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::credentials::{Credentials, no_invitation_row};

/// The workspace that everybody with an account may work in, where an administrator has not shared the cluster out
/// otherwise.
const EVERYBODYS: &str = "default";

/// What has happened once and for all.
const ADMIN_SIGNED_IN: &str = "admin_signed_in";

/// What is kept of a secret: enough to know it again, too little to use it.
pub(crate) fn hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The account as it is to be; a write of it is refused if another came since this one was read.
pub(crate) fn account_row(account: &Account) -> DirectoryRow {
    let next = Account { generation: account.generation + 1, ..account.clone() };
    DirectoryRow::Account(account.name.clone(), Some(next))
}

pub(crate) fn no_account_row(name: &AccountName) -> DirectoryRow {
    DirectoryRow::Account(name.clone(), None)
}

pub(crate) fn token_row(secret: &str, token: &Token) -> DirectoryRow {
    DirectoryRow::Token(hash(secret), Some(token.clone()))
}

/// By the key of its row.
pub(crate) fn no_token_row(key: String) -> DirectoryRow {
    DirectoryRow::Token(key, None)
}

pub(crate) fn member_row(
    workspace: &str,
    account: &AccountName,
    role: Option<WorkspaceRole>,
) -> DirectoryRow {
    let member = role.map(|role| Member { role, from_group: false });
    DirectoryRow::Member(workspace.to_owned(), account.clone(), member)
}

pub(crate) fn member_of_group_row(
    workspace: &str,
    account: &AccountName,
    role: WorkspaceRole,
) -> DirectoryRow {
    DirectoryRow::Member(workspace.to_owned(), account.clone(), Some(Member { role, from_group: true }))
}

pub(crate) fn workspace_row(name: &str, rules: Option<&Workspace>) -> DirectoryRow {
    DirectoryRow::Workspace(name.to_owned(), rules.cloned().map(Document::of))
}

pub(crate) fn sharing_row(rules: &SharingRules) -> DirectoryRow {
    DirectoryRow::SchedulingPolicy(Document::of(rules.clone()))
}

/// From here on, a starting server makes no way in.
pub(crate) fn admin_has_signed_in_row() -> DirectoryRow {
    DirectoryRow::Milestone(ADMIN_SIGNED_IN.to_owned())
}

/// Whether a row has a part in the rules of personal workspaces: whose they are, and what is said of them.
pub(crate) fn changes_rules(row: &DirectoryRow) -> bool {
    use DirectoryRow::{Account, SchedulingPolicy, Workspace};
    matches!(row, Account(..) | Workspace(..) | SchedulingPolicy(_))
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
    /// By workspace and name.
    pub(crate) secrets: BTreeMap<(String, String), StoredSecret>,
    /// The user ids of accounts that have one of their own, by account.
    pub(crate) unix_users: BTreeMap<String, u32>,
}

impl AccountCache {
    /// Of all rows there are.
    pub(crate) fn of(rows: impl IntoIterator<Item = DirectoryRow>) -> Self {
        let mut register = AccountCache::default();
        for row in rows {
            register.file(row);
        }
        register.list_all();
        register
    }

    /// Keeps what is not stored: when tokens were used.
    pub(crate) fn replace_with(&mut self, fresh: AccountCache) {
        let used = std::mem::take(&mut self.used);
        *self = AccountCache { used, ..fresh };
    }

    /// Takes in a row, or takes out what it takes away.
    pub(crate) fn file(&mut self, row: DirectoryRow) {
        use DirectoryRow as Row;
        match row {
            Row::Account(name, account) => put(&mut self.accounts, name, account),
            Row::Token(hash, Some(token)) => drop(self.tokens.insert(hash, token)),
            Row::Token(hash, None) => {
                if let Some(token) = self.tokens.remove(&hash) {
                    self.used.remove(&token.id);
                }
            }
            Row::Member(workspace, account, member) => self.file_member(workspace, account, member),
            Row::Workspace(name, rules) => {
                put(&mut self.stored.workspaces, name, rules.map(|rules| rules.value().clone()));
            }
            Row::SchedulingPolicy(rules) => {
                let SharingRules { lending, minimum_run_time, personal } = rules.value().clone();
                let workspaces = std::mem::take(&mut self.stored.workspaces);
                self.stored = Sharing { lending, minimum_run_time, personal, workspaces };
            }
            Row::Milestone(name) => self.admin_has_signed_in |= name == ADMIN_SIGNED_IN,
            Row::SshKey(fingerprint, key) => put(&mut self.credentials.ssh_keys, fingerprint, key),
            Row::S3Key(access_key, key) => put(&mut self.credentials.s3_keys, access_key, key),
            Row::Invitation(hash, invitation) => put(&mut self.credentials.invitations, hash, invitation),
            Row::ExternalIdentity(key, identity) => put(&mut self.credentials.subjects, key, identity),
            Row::FormerAccount(name, former) => put(&mut self.credentials.former, name, Some(former)),
            Row::FormerWorkspace(name, former) => {
                put(&mut self.credentials.former_workspaces, name, Some(former));
            }
            Row::UnixUser(account, user) => put(&mut self.unix_users, account, Some(user.uid)),
            Row::Secret(workspace, name, secret) => put(&mut self.secrets, (workspace, name), secret),
            // Read by those who check the audit.
            Row::AuditHead(_) => {}
        }
    }

    fn file_member(&mut self, workspace: String, account: AccountName, member: Option<Member>) {
        put(self.members.entry(workspace.clone()).or_default(), account, member);
        if self.members[&workspace].is_empty() {
            self.members.remove(&workspace);
        }
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

    /// Rows that take all members out of a workspace, and its rules, invitations and secrets away.
    pub(crate) fn dismissals(&self, workspace: &str) -> Vec<DirectoryRow> {
        let members = self.members.get(workspace).into_iter().flatten();
        let members = members.map(|(account, _)| member_row(workspace, account, None));
        let invitations = self.credentials.invitations.iter();
        let invitations = invitations
            .filter(|(_, invitation)| invitation.workspace == workspace)
            .map(|(key, _)| no_invitation_row(key));
        let secret = |name: &str| DirectoryRow::Secret(workspace.to_owned(), name.to_owned(), None);
        let secrets = self.secrets_of(workspace).map(|(name, _)| secret(name));
        members.chain(invitations).chain(secrets).chain([workspace_row(workspace, None)]).collect()
    }

    pub(crate) fn secrets_of(&self, workspace: &str) -> impl Iterator<Item = (&str, &StoredSecret)> {
        let first = (workspace.to_owned(), String::new());
        let from_there = self.secrets.range(first..);
        let own = from_there.take_while(move |((of, _), _)| of == workspace);
        own.map(|((_, name), secret)| (name.as_str(), secret))
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

fn put<K: Ord, V>(records: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => records.insert(key, value),
        None => records.remove(&key),
    };
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
