//! How people come in: with an invitation, or by asking and being let in by an owner of a workspace.
//!
//! Everybody owns the workspace of their own name. That makes nobody a doorkeeper: for it, neither counts.

use danlu_core::authorization::Action;
use danlu_types::account::{AccountName, Registration, Standing, WorkspaceRole};
use danlu_types::api::{
    AccountView, Applicant, InvitationView, MadeInvitation, MemberView, NewAccount, NewInvitation,
    NewRegistration,
};
use danlu_types::spec::is_name;
use danlu_types::{FieldError, Problem, ProblemCode};
use jiff::{SignedDuration, Timestamp};

use super::cache::{Account, account_row, member_row};
use super::credentials::{InvitationRecord, invitation_row, invitation_view, no_invitation_row};
use super::hashing::For;
use super::manage::{AccountOrigin, new_id};
use super::{Caller, Deed, Directory, Visitor, json, new_secret};
use crate::app::store_problem;

const INVITATION_LASTS: SignedDuration = SignedDuration::from_hours(24 * 7);
const LONGEST_INVITATION: SignedDuration = SignedDuration::from_hours(24 * 30);
const MOST_INVITATIONS: usize = 200;
/// Beyond it, somebody is filling the list for fun.
const MOST_WAITING: usize = 1000;

impl Directory {
    /// An account that its future owner asks for.
    pub(crate) async fn register_self(
        &self,
        new: NewRegistration,
        visitor: &Visitor,
    ) -> Result<AccountView, Problem> {
        if let Some(workspace) = &new.workspace
            && !is_name(workspace)
        {
            let message = "is no name of a workspace";
            return Err(Problem::invalid_fields(vec![FieldError::new("workspace", message)]));
        }
        let entry = match &new.invitation {
            Some(secret) => self.invited(secret, visitor)?,
            None => self.uninvited(new.workspace)?,
        };
        let by = new.name.to_string();
        let NewRegistration { name, display_name, email, password, .. } = new;
        let whose = For { name: by.clone(), place: Some(visitor.place()), is_known: false };
        let account = NewAccount { name, display_name, email, password: Some(password) };
        Ok(self.create(account, entry, &by, visitor.from, whose).await?.account)
    }

    fn invited(&self, secret: &str, visitor: &Visitor) -> Result<AccountOrigin<'static>, Problem> {
        let found = {
            let register = self.register();
            let found = register.credentials.invitation(secret, Timestamp::now());
            found.filter(|(_, invitation)| register.lets_in(&invitation.by, &invitation.workspace))
        };
        if let Some((key, invitation)) = found.filter(|_| self.registration != Registration::Closed) {
            Ok(AccountOrigin::Invited { key, invitation })
        } else {
            let detail = "invalid or expired invitation";
            let wrong = Problem::new(ProblemCode::Forbidden, detail).with_hint("ask for another one");
            Err(self.wrong_link(visitor, wrong))
        }
    }

    fn uninvited(&self, workspace: Option<String>) -> Result<AccountOrigin<'static>, Problem> {
        let (detail, hint) = match self.registration {
            Registration::Open => {
                let waits = |account: &&Account| account.standing == Standing::Waiting;
                if self.register().accounts().filter(waits).count() >= MOST_WAITING {
                    let detail = "too many accounts wait for approval";
                    return Err(Problem::new(ProblemCode::TooManyRequests, detail));
                }
                return Ok(AccountOrigin::Waiting { workspace });
            }
            Registration::Invitation => (
                "accounts are for those who are invited here",
                "ask an owner of a workspace for an invitation",
            ),
            Registration::Closed => ("accounts are made by administrators here", "ask one for an account"),
        };
        Err(Problem::new(ProblemCode::Forbidden, detail).with_hint(hint))
    }

    pub(crate) fn invitations(
        &self,
        caller: &Caller,
        workspace: &str,
    ) -> Result<Vec<InvitationView>, Problem> {
        self.require_doorkeeper(caller, workspace)?;
        let now = Timestamp::now();
        let register = self.register();
        let all = register.credentials.invitations.values();
        let good = all.filter(|invitation| invitation.workspace == workspace && invitation.expires_at > now);
        let good = good.filter(|invitation| register.lets_in(&invitation.by, workspace));
        let mut views: Vec<_> = good.map(invitation_view).collect();
        views.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(views)
    }

    pub(crate) async fn invite(
        &self,
        caller: &Caller,
        workspace: &str,
        new: NewInvitation,
    ) -> Result<MadeInvitation, Problem> {
        self.require_doorkeeper(caller, workspace)?;
        if self.registration == Registration::Closed {
            let detail = "accounts are made by administrators here";
            return Err(Problem::new(ProblemCode::WrongState, detail)
                .with_hint("`danlu up --registration invitation` lets people come by invitation"));
        }
        let asked = new.lasts.map(|span| SignedDuration::try_from(span.to_duration()));
        let lasts = asked.map_or(INVITATION_LASTS, |span| span.unwrap_or(SignedDuration::MAX));
        if lasts > LONGEST_INVITATION {
            let message = "an invitation lasts 30 days at most";
            return Err(Problem::invalid_fields(vec![FieldError::new("lasts", message)]));
        }
        let _one_at_a_time = self.change_by(caller).await?;
        let now = Timestamp::now();
        let mut rows = self.over(now);
        if self.register().credentials.invitations.len() - rows.len() >= MOST_INVITATIONS {
            let detail = format!("there are {MOST_INVITATIONS} invitations already");
            return Err(Problem::new(ProblemCode::WrongState, detail).with_hint("take back those not in use"));
        }
        let invitation = InvitationRecord {
            id: new_id(),
            workspace: workspace.to_owned(),
            role: new.role,
            by: caller.person.name.clone(),
            created_at: now,
            expires_at: caller.bounded(now + lasts),
            made_with: caller.ends_with(),
        };
        let secret = new_secret();
        rows.push(invitation_row(&secret, &invitation));
        let view = invitation_view(&invitation);
        let by = caller.name();
        let deed = Deed {
            by: &by,
            from: caller.from,
            action: "invitation.create",
            subject: workspace.to_owned(),
            before: None,
            after: json(&view),
        };
        self.write(rows, deed).await.map_err(store_problem)?;
        Ok(MadeInvitation { invitation: view, secret })
    }

    /// Rows that take away invitations whose time is over.
    fn over(&self, now: Timestamp) -> Vec<danlu_store::DirectoryRow> {
        let register = self.register();
        let over =
            register.credentials.invitations.iter().filter(|(_, invitation)| invitation.expires_at <= now);
        over.map(|(key, _)| no_invitation_row(key)).collect()
    }

    pub(crate) async fn disinvite(&self, caller: &Caller, workspace: &str, id: &str) -> Result<(), Problem> {
        self.require_doorkeeper(caller, workspace)?;
        let _one_at_a_time = self.changing.lock().await;
        let found = {
            let register = self.register();
            let mut all = register.credentials.invitations.iter();
            let found = all.find(|(_, invitation)| invitation.workspace == workspace && invitation.id == id);
            found.map(|(key, invitation)| (no_invitation_row(key), invitation_view(invitation)))
        };
        let id: String = id.chars().take(64).collect();
        let no_such =
            || Problem::new(ProblemCode::NotFound, format!("`{workspace}` has no invitation `{id}`"));
        let (row, view) = found.ok_or_else(no_such)?;
        let by = caller.name();
        let deed = Deed {
            by: &by,
            from: caller.from,
            action: "invitation.revoke",
            subject: workspace.to_owned(),
            before: json(&view),
            after: None,
        };
        self.write(vec![row], deed).await.map_err(store_problem)
    }

    /// Who asks to be let in.
    pub(crate) fn applicants(&self, caller: &Caller, workspace: &str) -> Result<Vec<Applicant>, Problem> {
        self.require_doorkeeper(caller, workspace)?;
        let register = self.register();
        let asking = register.accounts().filter(|account| asks_for(account, workspace));
        Ok(asking.map(applicant).collect())
    }

    /// Lets somebody in: the account works from now on, as a member's.
    pub(crate) async fn admit(
        &self,
        caller: &Caller,
        workspace: &str,
        name: &AccountName,
    ) -> Result<AccountView, Problem> {
        self.decide(caller, workspace, name, true).await
    }

    /// Leaves the account to others, or to administrators.
    pub(crate) async fn turn_away(
        &self,
        caller: &Caller,
        workspace: &str,
        name: &AccountName,
    ) -> Result<(), Problem> {
        self.decide(caller, workspace, name, false).await.map(drop)
    }

    async fn decide(
        &self,
        caller: &Caller,
        workspace: &str,
        name: &AccountName,
        admitted: bool,
    ) -> Result<AccountView, Problem> {
        self.require_doorkeeper(caller, workspace)?;
        let _one_at_a_time = self.changing.lock().await;
        let account = self.register().account(name).filter(|account| asks_for(account, workspace)).cloned();
        let mut account = account.ok_or_else(|| {
            Problem::new(ProblemCode::NotFound, format!("`{name}` does not ask to be let into `{workspace}`"))
        })?;
        let before = json(&self.register().account_view(&account));
        account.asks_for = None;
        let mut rows = Vec::new();
        let mut after = serde_json::Map::new();
        if admitted {
            account.standing = Standing::Active;
            let role = WorkspaceRole::Member;
            rows.push(member_row(workspace, name, Some(role)));
            after.insert("member".to_owned(), serde_json::json!(MemberView { account: name.clone(), role }));
        }
        rows.push(account_row(&account));
        after.insert("standing".to_owned(), serde_json::json!(account.standing));
        let by = caller.name();
        let action = if admitted { "application.approve" } else { "application.decline" };
        let after = Some(after.into());
        let deed = Deed { by: &by, from: caller.from, action, subject: name.to_string(), before, after };
        self.write(rows, deed).await.map_err(store_problem)?;
        self.view(name)
    }

    fn require_doorkeeper(&self, caller: &Caller, workspace: &str) -> Result<(), Problem> {
        self.require_of_workspace(caller, workspace, Action::ChangeMembers)?;
        if caller.person.admin || caller.person.name.as_str() != workspace {
            return Ok(());
        }
        let detail = "only an administrator can add members to a personal workspace";
        Err(Problem::new(ProblemCode::Forbidden, detail).with_hint("ask an administrator"))
    }
}

fn asks_for(account: &Account, workspace: &str) -> bool {
    account.standing == Standing::Waiting && account.asks_for.as_deref() == Some(workspace)
}

fn applicant(account: &Account) -> Applicant {
    Applicant {
        account: account.name.clone(),
        display_name: account.display_name.clone(),
        email: account.email.clone(),
        created_at: account.created_at,
    }
}
