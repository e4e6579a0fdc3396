//! What people do with accounts: make, change, delete.

use std::net::IpAddr;

use danlu_core::authorization::{self, Action};
use danlu_store::DirectoryRow;
use danlu_types::account::{AccountName, Standing};
use danlu_types::api::{AccountChange, AccountView, Invitation, NewAccount, TokenKind, Whoami};
use danlu_types::{FieldError, Problem, ProblemCode};
use jiff::Timestamp;

use super::cache::{Account, account_row, member_row, no_account_row, token_row};
use super::credentials::{InvitationRecord, former_row, no_invitation_row};
use super::hashing::For;
use super::links::new_link;
use super::{Caller, Deed, Directory, LOCAL_ADMIN, Visitor, json, password, require};
use crate::app::store_problem;

pub(super) const LONGEST_TEXT: usize = 200;

impl Directory {
    pub(crate) fn whoami(&self, caller: &Caller) -> Result<Whoami, Problem> {
        Ok(Whoami { account: self.view(&caller.person.name)?, scope: caller.person.scope })
    }

    pub(super) fn view(&self, name: &AccountName) -> Result<AccountView, Problem> {
        let register = self.register();
        register.account(name).map(|account| register.account_view(account)).ok_or_else(|| no_account(name))
    }

    pub(crate) fn accounts(&self) -> Vec<AccountView> {
        self.register().account_views()
    }

    pub(crate) fn account(&self, caller: &Caller, name: &AccountName) -> Result<AccountView, Problem> {
        require_of_account(caller, name, Action::SeeAccount)?;
        self.view(name)
    }

    pub(crate) async fn create_account(
        &self,
        caller: &Caller,
        new: NewAccount,
    ) -> Result<Invitation, Problem> {
        let whose = For { name: caller.name(), place: None, is_known: true };
        self.create(new, AccountOrigin::Made { caller }, &caller.name(), caller.from, whose).await
    }

    /// `whose` is for whom its password is hashed.
    pub(super) async fn create(
        &self,
        new: NewAccount,
        entry: AccountOrigin<'_>,
        by: &str,
        from: IpAddr,
        whose: For,
    ) -> Result<Invitation, Problem> {
        check_text("display_name", new.display_name.as_deref())?;
        check_text("email", new.email.as_deref())?;
        // Before the password is hashed, too: what is refused anyway should cost nothing.
        self.refuse_taken(&new.name)?;
        let hashed = match new.password {
            Some(password) => Some(self.hashed(password, whose).await?),
            None => None,
        };
        let _one_at_a_time = self.changing.lock().await;
        self.refuse_taken(&new.name)?;
        let mut account = Account {
            name: new.name,
            display_name: new.display_name,
            email: new.email,
            admin: false,
            standing: Standing::Active,
            password: hashed,
            created_at: Timestamp::now(),
            asks_for: None,
            second_factor: None,
            // Others chose their names themselves.
            unix_user: matches!(entry, AccountOrigin::Made { .. }),
            generation: 0,
        };
        let mut rows = Vec::new();
        let is_vouched_for = matches!(entry, AccountOrigin::VouchedFor { .. });
        let needs_password = account.password.is_none() && !is_vouched_for;
        let mut link = needs_password.then(|| new_link(&account.name, TokenKind::PasswordLink));
        match entry {
            AccountOrigin::Made { caller } => link.iter_mut().for_each(|(_, token)| caller.bound(token)),
            AccountOrigin::VouchedFor { subject } => rows.push(subject),
            AccountOrigin::Waiting { workspace } => {
                account.standing = Standing::Waiting;
                account.asks_for = workspace;
            }
            AccountOrigin::Invited { key, invitation } => {
                // Somebody else may have used it while the password was hashed, or the workspace may be gone.
                let is_good = {
                    let register = self.register();
                    register.credentials.invitations.contains_key(&key)
                        && register.has_workspace(&invitation.workspace)
                        && register.lets_in(&invitation.by, &invitation.workspace)
                };
                if !is_good {
                    let detail = "invalid or expired invitation";
                    return Err(Problem::new(ProblemCode::Forbidden, detail));
                }
                rows.push(no_invitation_row(&key));
                rows.push(member_row(&invitation.workspace, &account.name, Some(invitation.role)));
            }
        }
        rows.push(account_row(&account));
        rows.extend(link.iter().map(|(secret, token)| token_row(secret, token)));
        let view = self.register().account_view(&account);
        let subject = account.name.to_string();
        let deed = Deed { by, from, action: "account.create", subject, before: None, after: json(&view) };
        self.write(rows, deed).await.map_err(store_problem)?;
        Ok(Invitation { account: view, password_link: link.map(|(secret, _)| secret) })
    }

    pub(crate) async fn change_account(
        &self,
        caller: &Caller,
        name: &AccountName,
        change: AccountChange,
        visitor: &Visitor,
    ) -> Result<AccountView, Problem> {
        require_of_account(caller, name, Action::ChangeAccount)?;
        if change.admin == Some(true) {
            require_of_account(caller, name, Action::RunAccounts)?;
            caller.require_in_person()?;
        }
        if change.admin.is_some() || change.standing.is_some() || change.unix_user.is_some() {
            require_of_account(caller, name, Action::RunAccounts)?;
            if name.as_str() == LOCAL_ADMIN {
                let detail = format!("`{LOCAL_ADMIN}` is the local administrator, and cannot be changed");
                return Err(Problem::new(ProblemCode::WrongState, detail));
            }
        }
        if change.jobs.is_some() && change.standing != Some(Standing::Disabled) {
            let message = "goes with `standing: disabled` only";
            return Err(Problem::invalid_fields(vec![FieldError::new("jobs", message)]));
        }
        check_text("display_name", change.display_name.as_deref())?;
        check_text("email", change.email.as_deref())?;
        let makes_administrator = |account: &Account| {
            !account.is_administrator()
                && change.admin.unwrap_or(account.admin)
                && change.standing.unwrap_or(account.standing) == Standing::Active
        };
        let find = || self.register().account(name).cloned().ok_or_else(|| no_account(name));
        // An administrator is who a stolen session would make to stay.
        let is_proven = makes_administrator(&find()?);
        let (_one_at_a_time, mut rows) = if is_proven {
            caller.require_in_person()?;
            self.prove_to_outlast(caller, change.proof.clone(), visitor).await?
        } else {
            (self.changing.lock().await, Vec::new())
        };
        let mut account = find()?;
        if makes_administrator(&account) && !is_proven {
            let detail = format!("`{name}` has changed in the meantime");
            return Err(Problem::new(ProblemCode::WrongState, detail).with_hint("look at it and try again"));
        }
        let before = json(&self.register().account_view(&account));
        account.display_name = change.display_name.or(account.display_name);
        account.email = change.email.or(account.email);
        account.admin = change.admin.unwrap_or(account.admin);
        account.standing = change.standing.unwrap_or(account.standing);
        account.unix_user = change.unix_user.unwrap_or(account.unix_user);
        let view = self.register().account_view(&account);
        rows.push(account_row(&account));
        if !account.is_administrator() {
            rows.extend(self.register().links_made_by(name));
        }
        if account.standing == Standing::Disabled {
            // Enabled again, nobody should find old sessions open.
            rows.extend(self.register().revocations(name, |token| token.kind != TokenKind::Api));
        }
        let by = caller.name();
        let subject = name.to_string();
        let deed = Deed {
            by: &by,
            from: caller.from,
            action: "account.change",
            subject,
            before,
            after: json(&view),
        };
        self.write(rows, deed).await.map_err(store_problem)?;
        Ok(view)
    }

    /// Takes an account away with all that is its, in one change: tokens, keys, roles, invitations, identities, and its own
    /// workspace with rules and secrets.
    pub(crate) async fn delete_account(&self, caller: &Caller, name: &AccountName) -> Result<(), Problem> {
        if name.as_str() == LOCAL_ADMIN {
            let detail = format!("`{LOCAL_ADMIN}` is the local administrator, and cannot be deleted");
            return Err(Problem::new(ProblemCode::WrongState, detail));
        }
        let _one_at_a_time = self.changing.lock().await;
        let view = self.view(name)?;
        let before = self.with_secrets(json(&view), name.as_str());
        let mut rows: Vec<DirectoryRow> = self.register().revocations(name, |_| true);
        // Who only asked to be let in has left nothing behind, and takes the name from nobody.
        rows.extend((view.standing != Standing::Waiting).then(|| former_row(name, Timestamp::now())));
        rows.extend(self.register().departures(name));
        rows.extend(self.register().links_made_by(name));
        rows.extend(self.register().dismissals(name.as_str()));
        rows.push(no_account_row(name));
        let by = caller.name();
        let deed = Deed {
            by: &by,
            from: caller.from,
            action: "account.delete",
            subject: name.to_string(),
            before,
            after: None,
        };
        self.write(rows, deed).await.map_err(store_problem)
    }
}

impl Directory {
    fn refuse_taken(&self, name: &AccountName) -> Result<(), Problem> {
        let register = self.register();
        if register.account(name).is_some() {
            let detail = format!("there is an account `{name}` already");
            return Err(Problem::new(ProblemCode::WrongState, detail));
        }
        // Everybody owns the workspace of their name: nobody may come to own one that is there already.
        if register.has_workspace(name.as_str()) {
            let detail = format!("`{name}` is the name of a workspace");
            return Err(Problem::new(ProblemCode::WrongState, detail).with_hint("choose another name"));
        }
        drop(register);
        self.refuse_former(name.as_str())
    }

    pub(super) async fn hashed(&self, password: String, whose: For) -> Result<String, Problem> {
        password::check(&password)?;
        self.hashing.run(whose, move || password::hash(&password)).await?
    }

    /// Nobody gets the name of an account or a workspace that was deleted, for what that left behind.
    pub(super) fn refuse_former(&self, name: &str) -> Result<(), Problem> {
        let what = {
            let credentials = &self.register().credentials;
            match () {
                () if credentials.former.contains_key(name) => "an account",
                () if credentials.former_workspaces.contains_key(name) => "a workspace",
                () => return Ok(()),
            }
        };
        let detail = format!("`{name}` was the name of {what} that is deleted");
        let hint = "choose another name: jobs, files and entries of the audit stay under this one";
        Err(Problem::new(ProblemCode::WrongState, detail).with_hint(hint))
    }
}

/// How an account comes to be.
#[derive(Debug)]
pub(super) enum AccountOrigin<'a> {
    /// By an administrator.
    Made {
        caller: &'a Caller,
    },
    /// By a provider that we sign people in through, and whose word on them this row keeps.
    VouchedFor {
        subject: DirectoryRow,
    },
    /// It waits for approval: of the workspace's owners, or of an administrator.
    Waiting {
        workspace: Option<String>,
    },
    Invited {
        key: String,
        invitation: InvitationRecord,
    },
}

pub(super) fn require_of_account(caller: &Caller, name: &AccountName, action: Action) -> Result<(), Problem> {
    let relation = authorization::to_account(&caller.person, name);
    require(caller, relation, action, Action::SeeAccount, || no_account(name))
}

pub(super) fn new_id() -> String {
    use rand::Rng;
    format!("{:012x}", rand::rng().random::<u64>() >> 16)
}

pub(super) fn check_text(field: &str, text: Option<&str>) -> Result<(), Problem> {
    let Some(text) = text else { return Ok(()) };
    if text.chars().count() <= LONGEST_TEXT && !text.contains(char::is_control) {
        return Ok(());
    }
    let message = format!("must have at most {LONGEST_TEXT} visible characters");
    Err(Problem::invalid_fields(vec![FieldError::new(field, message)]))
}

pub(super) fn no_account(name: &AccountName) -> Problem {
    Problem::new(ProblemCode::NotFound, format!("account `{name}` not found"))
}
