//! Accounts and what belongs to them, and the audit.

use danlu_core::audit::{FIRST_SEAL, verify};
use danlu_store::{
    Account, AuditFilter, AuditHead, DirectoryChange, DirectoryRow, Document, EventFilter,
    ExternalIdentityRecord, FormerRecord, InvitationRecord, JobFilter, Member, S3KeyRecord, SecondFactor,
    SshKeyRecord, StoreError, StoredSecret, Token, UnixUserRecord,
};
use danlu_types::account::{AccountName, Scope, Standing, WorkspaceRole};
use danlu_types::api::{AuditEntry, SharingRules, TokenKind};
use danlu_types::{JobId, Sharing, Workspace};
use jiff::Timestamp;

use crate::database::Database;
use crate::jobs::{inserts, job_with, time};

fn change(by: &str, subject: &str, rows: Vec<DirectoryRow>) -> DirectoryChange {
    let audit = AuditEntry {
        number: 0,
        at: time(1),
        by: by.to_owned(),
        from: "127.0.0.1".to_owned(),
        action: "account.change".to_owned(),
        subject: subject.to_owned(),
        before: None,
        after: None,
        seal: String::new(),
    };
    DirectoryChange { rows, audit }
}

fn name(text: &str) -> AccountName {
    text.parse().unwrap()
}

/// To the nanosecond: what is read is what was written.
fn at() -> Timestamp {
    "2026-11-19T23:29:25.041940588Z".parse().unwrap()
}

fn account(called: &str, generation: u64) -> Account {
    Account {
        name: name(called),
        display_name: None,
        email: None,
        admin: false,
        standing: Standing::Active,
        password: None,
        created_at: at(),
        asks_for: None,
        second_factor: None,
        unix_user: false,
        generation,
    }
}

fn account_row(account: Account) -> DirectoryRow {
    DirectoryRow::Account(account.name.clone(), Some(account))
}

fn token(of: &str) -> Token {
    Token {
        id: "b273d0fec813".to_owned(),
        account: name(of),
        kind: TokenKind::SignInLink,
        name: "丹 `'\"\\".to_owned(),
        scope: Scope::Jobs,
        created_at: at(),
        expires_at: Some(at()),
        session_ends: None,
        root: Some("5faa59a3e3ca".to_owned()),
        made_with: Some("5faa59a3e3ca".to_owned()),
        made_by: Some(name("root")),
    }
}

/// A row of each kind, and of accounts one with all and one with little.
fn one_of_each() -> Vec<DirectoryRow> {
    use DirectoryRow as Row;
    let text = str::to_owned;
    let ada = Account {
        display_name: Some(text("Ada 丹")),
        email: Some(text("ada@example.org")),
        admin: true,
        standing: Standing::Waiting,
        password: Some(text("$argon2id$")),
        asks_for: Some(text("lab")),
        second_factor: Some(SecondFactor {
            secret: text("v1.x"),
            confirmed: true,
            last_step: Some(59_000_000),
            recovery: vec![text("1a"), text("0b")],
        }),
        unix_user: true,
        ..account("ada", 1)
    };
    let unconfirmed =
        SecondFactor { secret: text("v1.y"), confirmed: false, last_step: None, recovery: vec![] };
    let policy = SharingRules::from(&Sharing::default());
    vec![
        account_row(ada),
        account_row(Account { second_factor: Some(unconfirmed), ..account("mia", 1) }),
        account_row(account("sam", 1)),
        Row::Token(text("12d8"), Some(token("ada"))),
        Row::Member(text("lab"), name("ada"), Some(Member { role: WorkspaceRole::Owner, from_group: true })),
        Row::Workspace(text("lab"), Some(Document::of(Workspace::default()))),
        Row::SchedulingPolicy(Document::of(policy)),
        Row::Milestone(text("admin_signed_in")),
        Row::SshKey(
            text("SHA256:Zk"),
            Some(SshKeyRecord {
                id: text("67ec"),
                account: name("ada"),
                name: text("laptop"),
                key: text("ssh-ed25519 AAAA"),
                created_at: at(),
            }),
        ),
        Row::S3Key(
            text("3YKA"),
            Some(S3KeyRecord {
                account: name("sam"),
                name: text("bucket"),
                secret: text("v1.z"),
                created_at: at(),
            }),
        ),
        Row::Invitation(
            text("dc73"),
            Some(InvitationRecord {
                id: text("89ef"),
                workspace: text("lab"),
                role: WorkspaceRole::Viewer,
                by: name("sam"),
                created_at: at(),
                expires_at: at(),
                made_with: Some(text("5faa59a3e3ca")),
            }),
        ),
        Row::ExternalIdentity(
            text("http://127.0.0.1 a subject / with spaces"),
            Some(ExternalIdentityRecord { account: name("sam"), linked_at: None }),
        ),
        Row::FormerAccount(text("left"), FormerRecord { deleted_at: at() }),
        Row::FormerWorkspace(text("gone"), FormerRecord { deleted_at: at() }),
        Row::UnixUser(text("left"), UnixUserRecord { uid: 200_000 }),
        Row::Secret(
            text("lab"),
            text("wandb"),
            Some(StoredSecret { sealed: text("v1.s"), changed_at: at(), changed_by: text("sam") }),
        ),
        Row::AuditHead(AuditHead { number: 7, entry: text("b6"), directory: text("96") }),
    ]
}

/// The same rows, each taken away; those that never are, left out.
fn taken_away(rows: &[DirectoryRow]) -> Vec<DirectoryRow> {
    use DirectoryRow as Row;
    let gone = |row: &DirectoryRow| {
        Some(match row.clone() {
            Row::Account(name, _) => Row::Account(name, None),
            Row::Token(hash, _) => Row::Token(hash, None),
            Row::Member(workspace, account, _) => Row::Member(workspace, account, None),
            Row::Workspace(name, _) => Row::Workspace(name, None),
            Row::SshKey(key, _) => Row::SshKey(key, None),
            Row::S3Key(key, _) => Row::S3Key(key, None),
            Row::Invitation(hash, _) => Row::Invitation(hash, None),
            Row::ExternalIdentity(key, _) => Row::ExternalIdentity(key, None),
            Row::Secret(workspace, name, _) => Row::Secret(workspace, name, None),
            Row::SchedulingPolicy(_)
            | Row::Milestone(_)
            | Row::FormerAccount(..)
            | Row::FormerWorkspace(..)
            | Row::UnixUser(..)
            | Row::AuditHead(_) => return None,
        })
    };
    rows.iter().filter_map(gone).collect()
}

fn sorted(mut rows: Vec<DirectoryRow>) -> Vec<DirectoryRow> {
    rows.sort_by_key(|row| {
        let sealed = row.sealed();
        (sealed.kind, sealed.key)
    });
    rows
}

pub(crate) async fn people_are_kept_replaced_and_taken_away(database: &Database) {
    let store = database.open().await;
    let rows = sorted(one_of_each());
    // In any order: foreign keys are looked at when all of a change is there.
    let backwards = rows.iter().rev().cloned().collect();
    store.directory_change(&change("root", "all", backwards)).await.unwrap();
    assert_eq!(sorted(store.directory().await.unwrap()), rows);
    assert_eq!(sorted(database.open().await.directory().await.unwrap()), rows);

    let changed = Account { email: None, admin: false, second_factor: None, ..account("ada", 2) };
    let member = Member { role: WorkspaceRole::Viewer, from_group: false };
    let member = DirectoryRow::Member("lab".to_owned(), name("ada"), Some(member));
    let change_both = change("root", "ada", vec![account_row(changed.clone()), member.clone()]);
    store.directory_change(&change_both).await.unwrap();
    let now = store.directory().await.unwrap();
    assert!(now.contains(&account_row(changed)) && now.contains(&member) && now.len() == rows.len());

    let away = taken_away(&rows);
    assert_eq!(away.len(), rows.len() - 6);
    store.directory_change(&change("root", "all", away)).await.unwrap();
    let left: Vec<&str> =
        sorted(store.directory().await.unwrap()).iter().map(|row| row.sealed().kind).collect();
    assert_eq!(
        left,
        ["audit_head", "former_account", "former_workspace", "milestone", "sharing", "unix_user"]
    );
}

pub(crate) async fn an_account_that_was_changed_meanwhile_is_not_written_over(database: &Database) {
    let store = database.open().await;
    store.directory_change(&change("root", "ada", vec![account_row(account("ada", 1))])).await.unwrap();
    let disabled = Account { standing: Standing::Disabled, ..account("ada", 2) };
    store.directory_change(&change("root", "ada", vec![account_row(disabled.clone())])).await.unwrap();
    // Made from the first generation, too.
    let late = Account { admin: true, ..account("ada", 2) };
    let rows = vec![DirectoryRow::Milestone("beside".to_owned()), account_row(late)];
    let refused = store.directory_change(&change("root", "ada", rows)).await;
    assert!(matches!(refused, Err(StoreError::Stale(_))), "{refused:?}");
    assert_eq!(refused.unwrap_err().to_string(), "the account `ada` was changed meanwhile");
    assert_eq!(store.directory().await.unwrap(), [account_row(disabled)], "nor what was beside it");
    assert_eq!(store.audit_rows(0, 10).await.unwrap().len(), 2);
    let again = store.directory_change(&change("root", "ada", vec![account_row(account("ada", 1))])).await;
    assert!(matches!(again, Err(StoreError::Refused { .. })), "it is there already: {again:?}");
}

pub(crate) async fn what_is_an_accounts_goes_with_it_or_nothing_goes(database: &Database) {
    let store = database.open().await;
    let token = |token| DirectoryRow::Token("12d8".to_owned(), token);
    let rows = vec![token(Some(token_of_ada())), account_row(account("ada", 1))];
    store.directory_change(&change("root", "ada", rows)).await.unwrap();
    let before = store.directory().await.unwrap();
    // A use-case that forgets the token.
    let gone = || DirectoryRow::Account(name("ada"), None);
    let former = || DirectoryRow::FormerAccount("ada".to_owned(), FormerRecord { deleted_at: at() });
    let refused = store.directory_change(&change("root", "ada", vec![gone(), former()])).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
    assert_eq!(store.directory().await.unwrap(), before);
    assert_eq!(store.audit_rows(0, 10).await.unwrap().len(), 1, "and no entry tells of it");
    let rows = vec![gone(), former(), token(None)];
    store.directory_change(&change("root", "ada", rows)).await.unwrap();
    assert_eq!(store.directory().await.unwrap(), [former()]);
}

fn token_of_ada() -> Token {
    token("ada")
}

/// Each is an error that names the row; no row counts as missing.
pub(crate) async fn a_row_of_people_that_cannot_be_read_is_an_error_that_names_it(database: &Database) {
    let store = database.open().await;
    store.directory_change(&change("root", "all", one_of_each())).await.unwrap();
    let remedy = "; restore the database from a back-up, or correct this row with a SQL client";
    for (damage, repair, told) in [
        (
            "UPDATE accounts SET status = 'flying' WHERE name = 'sam'",
            "UPDATE accounts SET status = 'active' WHERE name = 'sam'",
            "the account `sam` cannot be read from the database: unknown variant `flying`, expected one of `waiting`, \
             `active`, `disabled`",
        ),
        (
            "UPDATE accounts SET mfa_recovery_codes = '[' WHERE name = 'ada'",
            "UPDATE accounts SET mfa_recovery_codes = '[]' WHERE name = 'ada'",
            "the account `ada` cannot be read from the database: `mfa_recovery_codes`: EOF while parsing a list at line 1 column 1",
        ),
        (
            "UPDATE memberships SET role = 'king'",
            "UPDATE memberships SET role = 'owner'",
            "the member `lab/ada` cannot be read from the database: unknown variant `king`, expected one of `viewer`, `member`, \
             `owner`",
        ),
        (
            "UPDATE workspaces SET rules = '{}x'",
            "UPDATE workspaces SET rules = '{}'",
            "the workspace `lab` cannot be read from the database: trailing characters at line 1 column 3",
        ),
        (
            "UPDATE unix_users SET uid = -1",
            "UPDATE unix_users SET uid = 200000",
            "the unix_user `left` cannot be read from the database: invalid value: integer `-1`, expected u32",
        ),
    ] {
        database.execute(damage).await.unwrap();
        let error = store.directory().await.unwrap_err();
        assert!(matches!(error, StoreError::UnreadableRow(_)), "{error:?}");
        assert_eq!(error.to_string(), format!("{told}{remedy}"));
        database.execute(repair).await.unwrap();
        store.directory().await.unwrap();
    }
}

pub(crate) async fn the_audit_is_sealed_whoever_writes_at_once(database: &Database) {
    let store = database.open().await;
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..20 {
        let store = store.clone();
        writers.spawn(async move {
            let subject = format!("p{number}");
            let rows = vec![DirectoryRow::Milestone(subject.clone())];
            store.directory_change(&change("root", &subject, rows)).await.unwrap();
        });
    }
    writers.join_all().await;
    let all = AuditFilter { limit: 100, ..AuditFilter::default() };
    let mut entries = store.audit_list(&all).await.unwrap();
    assert_eq!(entries.len(), 20);
    assert_eq!(verify(FIRST_SEAL, 1, &entries), Ok(entries[19].seal.clone()));
    entries[7].by.push('!');
    assert_eq!(verify(FIRST_SEAL, 1, &entries), Err(8));

    let of_one = AuditFilter { subject: Some("p3".to_owned()), ..all.clone() };
    assert_eq!(store.audit_list(&of_one).await.unwrap().len(), 1);
    assert!(
        store
            .audit_list(&AuditFilter { by: Some("ada".to_owned()), ..all.clone() })
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(store.audit_list(&AuditFilter { after: 18, ..all }).await.unwrap().len(), 2);
}

pub(crate) async fn what_vouches_for_an_entry_is_written_with_it(database: &Database) {
    let store = database.open().await;
    for number in 1..=3_u64 {
        let head = |entry: &AuditEntry| AuditHead {
            number: entry.number,
            entry: entry.seal.clone(),
            directory: "96".to_owned(),
        };
        let change = change("root", "\u{0}ada", vec![DirectoryRow::Milestone("once".to_owned())]);
        let entry = store.directory_change_proven(&change, &head).await.unwrap();
        assert_eq!(entry.number, number);
        let directory = store.directory().await.unwrap();
        assert!(directory.contains(&DirectoryRow::AuditHead(head(&entry))), "{directory:?}");
    }
    let rows = store.audit_rows(1, 10).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), [2, 3]);
    assert_eq!((rows[0].by.as_str(), rows[0].subject.as_str()), ("root", "\u{fffd}ada"));
    let read: AuditEntry = serde_json::from_str(&rows[1].entry).unwrap();
    assert_eq!((read.number, read.subject.as_str()), (3, "\u{0}ada"));
    assert_eq!(store.audit_rows(0, 2).await.unwrap().len(), 2);
}

pub(crate) async fn only_what_is_visible_is_listed(database: &Database) {
    let store = database.open().await;
    let in_workspace = |id, name: &str| job_with(id, |spec| spec.workspace = name.into());
    store
        .commit(inserts([&in_workspace(1, "vision"), &in_workspace(2, "speech"), &in_workspace(3, "vision")]))
        .await
        .unwrap();
    let visible = Some(vec!["vision".to_owned(), "nowhere".to_owned()]);
    let jobs = JobFilter { visible: visible.clone(), limit: 10, ..JobFilter::default() };
    let ids: Vec<JobId> = store.jobs_list(&jobs).await.unwrap().iter().map(|job| job.id).collect();
    assert_eq!(ids, [JobId(3), JobId(1)]);
    let nothing = JobFilter { visible: Some(Vec::new()), limit: 10, ..JobFilter::default() };
    assert!(store.jobs_list(&nothing).await.unwrap().is_empty());
    let events = EventFilter { job: None, visible, after: 0, limit: 10 };
    let seen: Vec<_> = store.events_list(&events).await.unwrap().iter().map(|event| event.job).collect();
    assert_eq!(seen, [Some(JobId(1)), Some(JobId(3))]);
}
