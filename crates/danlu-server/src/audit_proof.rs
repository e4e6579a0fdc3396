//! Vouches for the audit, and for what it is about, with a key that is not in the database.
//!
//! Entries hold each other fast by their seals ([`danlu_core::audit`]), which anybody can compute anew who can write to the
//! database. So two things are added that such a writer cannot make:
//!
//! - the *head*, a row that is written with each entry: two HMACs, of the last entry's number and seal, and of those and the
//!   whole directory (accounts, tokens, roles, rules, secrets) as it is after the entry;
//! - the *count*, a file of the data folder: number and seal of the last entry, so that an older state of the whole database is
//!   told from the newest.
//!
//! A server that is killed between commit and file finds a count that is behind; the head vouches for the entries since. What
//! is found at a start becomes an entry of its own, because the next head would vouch for what is there by then. A writer who
//! can read the data folder's key and change its files too is beyond this: such a one *is* the server.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use danlu_core::audit::{FIRST_SEAL, chain_hash};
use danlu_store::{AuditHead, AuditRow, DirectoryChange, DirectoryRow, SealedText, Store, StoreError};
use danlu_types::api::{AuditEntry, AuditVerification};
use data_encoding::HEXLOWER;
use jiff::Timestamp;
use ring::hmac;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::encryption::Encryptor;

#[cfg(test)]
mod tests;

pub(crate) const COUNT_FILE: &str = "audit.count";
/// What an entry is called that tells of a finding.
const FINDING: &str = "audit.finding";
/// What the entry is called with which vouching begins, or begins anew.
const BEGINNING: &str = "audit.begin";
const PAGE: u32 = 1000;
/// An attacker who changes everything should not fill memory with what is found.
const MOST_FINDINGS: usize = 100;

#[derive(Debug)]
pub(crate) struct Trail {
    key: hmac::Key,
    file: PathBuf,
    /// Of every row of the directory, as the database has it; `None` where that has to be read.
    state: Mutex<Option<Rows>>,
}

/// The directory as one sum of HMACs, which changes with any row. The sum itself is shown to nobody: sums of many states could
/// be played against each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rows {
    codes: HashMap<(&'static str, String), Code>,
    sum: Code,
}

type Code = [u8; 32];

/// The last entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Last {
    number: u64,
    seal: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Count {
    #[serde(flatten)]
    last: Last,
    code: String,
}

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
enum Counted {
    Missing,
    /// It is not one that this server wrote.
    Wrong,
    Last(Last),
}

impl Rows {
    fn set(&mut self, key: &hmac::Key, row: &DirectoryRow) {
        if let DirectoryRow::AuditHead(_) = row {
            return;
        }
        let SealedText { kind, key: name, value } = row.sealed();
        let place = (kind, stored(&name));
        let new = value.as_ref().map(|value| {
            // Lengths, so that nothing can be moved from one to the other.
            let (kind, name, value) = (place.0, &place.1, stored(value));
            let text = format!("{} {} {} {kind}{name}{value}", kind.len(), name.len(), value.len());
            code_of(key, "row", &text)
        });
        let old = match new {
            Some(code) => self.codes.insert(place, code),
            None => self.codes.remove(&place),
        };
        for code in [old, new].into_iter().flatten() {
            self.sum.iter_mut().zip(code).for_each(|(sum, byte)| *sum ^= byte);
        }
    }
}

/// As the store keeps it.
fn stored(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn code_of(key: &hmac::Key, what: &str, text: &str) -> Code {
    let tag = hmac::sign(key, format!("{what}:{text}").as_bytes());
    let mut code = Code::default();
    code.copy_from_slice(tag.as_ref());
    code
}

impl Trail {
    pub(crate) fn new(folder: &Path, encryptor: &Encryptor) -> Self {
        Trail { key: encryptor.audit_key(), file: folder.join(COUNT_FILE), state: Mutex::default() }
    }

    /// Looks whether the end of the audit and the directory are what an earlier server left, and makes an entry of what is
    /// not. Nothing of it keeps the server from starting.
    pub(crate) async fn begin(&self, store: &dyn Store, restored: bool) {
        let findings = match self.look_at_start(store).await {
            Ok(Some(findings)) => findings,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!("could not check the audit: {}", crate::error_chain(&error));
                return;
            }
        };
        for finding in &findings {
            tracing::error!("{finding}; `danlu admin audit verify` tells more");
        }
        let entry = |action: &str, after: serde_json::Value| AuditEntry {
            number: 0,
            at: Timestamp::now(),
            by: "-".to_owned(),
            from: "-".to_owned(),
            action: action.to_owned(),
            subject: "audit".to_owned(),
            before: None,
            after: Some(after),
            seal: String::new(),
        };
        let after = serde_json::json!({ "findings": findings });
        // A restored database is an older one, as somebody has said.
        let action = if findings.is_empty() || restored { BEGINNING } else { FINDING };
        let change = DirectoryChange { rows: Vec::new(), audit: entry(action, after) };
        if let Err(error) = store.directory_change(&change).await {
            tracing::warn!("could not write to the audit: {}", crate::error_chain(&error));
        }
    }

    /// What is found at a start; `None` where nothing need be written.
    async fn look_at_start(&self, store: &dyn Store) -> Result<Option<Vec<String>>, StoreError> {
        let mut state = self.state.lock().await;
        let counted = self.counted();
        // A start need not read what an earlier server has counted already.
        let mut chain = match &counted {
            Counted::Last(last) => Chain::after(last.number.saturating_sub(1), last.clone()),
            Counted::Missing | Counted::Wrong => Chain::whole(u64::MAX),
        };
        chain.read(store, u64::MAX).await?;
        let (rows, head) = self.rows(store).await?;
        if counted == Counted::Missing && head.is_none() {
            *state = Some(rows);
            if chain.last == 0 {
                // The first start ever.
                return Ok(None);
            }
            tracing::info!("from now on, the audit is sealed with the key of the data folder");
            return Ok(Some(Vec::new()));
        }
        self.compare(&mut chain, &counted, head.as_ref(), &rows);
        if chain.findings.is_empty() {
            *state = Some(rows);
            return Ok(None);
        }
        Ok(Some(chain.findings))
    }

    /// Writes a change with what vouches for it.
    pub(crate) async fn change(
        &self,
        store: &dyn Store,
        change: &DirectoryChange,
    ) -> Result<AuditEntry, StoreError> {
        let mut state = self.state.lock().await;
        let mut rows = match state.take() {
            Some(rows) => rows,
            None => self.rows(store).await?.0,
        };
        for row in &change.rows {
            rows.set(&self.key, row);
        }
        // Until the commit is known to have been made, what the database holds is not.
        let prove = |entry: &AuditEntry| self.head(entry, &rows);
        let entry = store.directory_change_proven(change, &prove).await?;
        *state = Some(rows);
        let last = Last { number: entry.number, seal: entry.seal.clone() };
        if let Err(error) = self.write_count(&last) {
            // The head vouches for what comes after the count.
            tracing::warn!("could not write `{}`: {error}", self.file.display());
        }
        Ok(entry)
    }

    /// Reads everything. Changes wait meanwhile for the end of it only. `known`: findings of earlier starts, up to this entry,
    /// are not told again.
    pub(crate) async fn verify(
        &self,
        store: &dyn Store,
        known: u64,
    ) -> Result<AuditVerification, StoreError> {
        let mut chain = Chain::whole(known);
        if let Counted::Last(last) = self.counted() {
            chain.read(store, last.number.saturating_sub(1)).await?;
        }
        let state = self.state.lock().await;
        let counted = self.counted();
        if let Counted::Last(last) = &counted {
            chain.counted = Some(last.clone());
        }
        chain.read(store, u64::MAX).await?;
        match self.rows(store).await {
            Ok((rows, head)) => self.compare(&mut chain, &counted, head.as_ref(), &rows),
            // What this server knows of the row is what it was; a start would not go on with it.
            Err(error @ StoreError::UnreadableRow(_)) => chain.find(error.to_string()),
            Err(error) => return Err(error),
        }
        drop(state);
        let Chain { last: entries, seal, findings, .. } = chain;
        Ok(AuditVerification { entries, seal: seal.unwrap_or_default(), findings })
    }

    /// What the end of the chain is to agree with.
    fn compare(&self, chain: &mut Chain, counted: &Counted, head: Option<&AuditHead>, rows: &Rows) {
        let (last, file) = (chain.last, self.file.display());
        match counted {
            Counted::Missing => {
                chain.find(format!("the file `{file}` is missing, which says where the audit ended"));
            }
            Counted::Wrong => chain.find(format!(
                "`{file}` is not as this server wrote it, or `{}` is another key than it was",
                crate::encryption::KEY_FILE
            )),
            Counted::Last(Last { number, .. }) if last == 0 => {
                chain.find(format!("the audit is empty, and had {number} entries"));
            }
            Counted::Last(Last { number, .. }) if last < *number => {
                chain.find(format!(
                    "the audit ends with entry {last}, and had {number} entries: its end was cut off"
                ));
            }
            Counted::Last(_) => {}
        }
        let Some(head) = head else {
            return chain.find("the proof of the last entry is missing from the database".to_owned());
        };
        let seal = chain.seal.clone().unwrap_or_default();
        if head.number != last || head.entry != self.entry_code(last, &seal) {
            chain.find(format!(
                "entry {last} is the last, and is not the one that this server wrote last (it was number {})",
                head.number
            ));
        }
        if head.directory != self.directory_code(head.number, rows) {
            chain.find(
                "accounts, tokens, roles, rules or secrets were changed in the database without an entry"
                    .to_owned(),
            );
        }
    }

    fn entry_code(&self, number: u64, seal: &str) -> String {
        HEXLOWER.encode(&code_of(&self.key, "entry", &format!("{number} {seal}")))
    }

    fn directory_code(&self, number: u64, rows: &Rows) -> String {
        let sum = HEXLOWER.encode(&rows.sum);
        HEXLOWER.encode(&code_of(&self.key, "directory", &format!("{number} {sum}")))
    }

    fn count_code(&self, last: &Last) -> String {
        HEXLOWER.encode(&code_of(&self.key, "count", &format!("{} {}", last.number, last.seal)))
    }

    fn head(&self, entry: &AuditEntry, rows: &Rows) -> AuditHead {
        AuditHead {
            number: entry.number,
            entry: self.entry_code(entry.number, &entry.seal),
            directory: self.directory_code(entry.number, rows),
        }
    }

    /// The directory as the database has it, and what vouches for it there.
    async fn rows(&self, store: &dyn Store) -> Result<(Rows, Option<AuditHead>), StoreError> {
        let (mut rows, mut head) = (Rows::default(), None);
        for row in store.directory().await? {
            rows.set(&self.key, &row);
            if let DirectoryRow::AuditHead(found) = row {
                head = Some(found);
            }
        }
        Ok((rows, head))
    }

    fn counted(&self) -> Counted {
        let text = match std::fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Counted::Missing,
            Err(_) => return Counted::Wrong,
        };
        match serde_json::from_str::<Count>(&text) {
            Ok(Count { last, code }) if code == self.count_code(&last) => Counted::Last(last),
            _ => Counted::Wrong,
        }
    }

    /// Whole or not at all: one that is behind costs a look at the entries since, and half of one would be a finding.
    fn write_count(&self, last: &Last) -> io::Result<()> {
        let count = Count { last: last.clone(), code: self.count_code(last) };
        let temporary = self.file.with_extension("count.new");
        let mut file =
            OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
        file.write_all(serde_json::to_string(&count).expect("plain values").as_bytes())?;
        file.sync_all()?;
        std::fs::rename(temporary, &self.file)
    }
}

/// Entries one after the other, each held against the one before.
#[derive(Debug)]
struct Chain {
    /// The number of the last one that was read.
    last: u64,
    /// Its seal; `None` where the one before the first was not read.
    seal: Option<String>,
    /// What the file says of one of them.
    counted: Option<Last>,
    /// Findings of earlier starts up to this entry are known.
    known: u64,
    findings: Vec<String>,
}

impl Chain {
    fn whole(known: u64) -> Self {
        Chain { last: 0, seal: Some(FIRST_SEAL.to_owned()), counted: None, known, findings: Vec::new() }
    }

    fn after(last: u64, counted: Last) -> Self {
        Chain { last, seal: None, counted: Some(counted), known: u64::MAX, findings: Vec::new() }
    }

    fn find(&mut self, finding: String) {
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(finding);
        }
    }

    /// Reads on, up to and with entry `to`.
    async fn read(&mut self, store: &dyn Store, to: u64) -> Result<(), StoreError> {
        let mut after = self.last;
        loop {
            let rows = store.audit_rows(after, PAGE).await?;
            for row in &rows {
                if row.number > to {
                    return Ok(());
                }
                after = row.number;
                self.add(row);
            }
            if rows.len() < PAGE as usize {
                return Ok(());
            }
        }
    }

    fn add(&mut self, row: &AuditRow) {
        let number = row.number;
        let Ok(entry) = serde_json::from_str::<AuditEntry>(&row.entry) else {
            self.find(format!("entry {number} cannot be read any more"));
            (self.last, self.seal) = (number, None);
            return;
        };
        let follows = self.seal.as_ref().is_none_or(|before| chain_hash(before, &entry) == entry.seal);
        if number != self.last + 1 || entry.number != number || !follows {
            self.find(format!("entry {number} was changed, or entries before it are missing"));
        }
        if row.by != stored(&entry.by) || row.subject != stored(&entry.subject) {
            self.find(format!("entry {number} is filed under another account or subject than it tells of"));
        }
        if self.counted.as_ref().is_some_and(|last| last.number == number && last.seal != entry.seal) {
            self.find(format!(
                "entry {number} is another than the one that was counted: entries were replaced"
            ));
        }
        if entry.action == FINDING && number > self.known {
            self.find(format!(
                "entry {number} tells of what was found when the server started: {}",
                entry.after.unwrap_or_default()
            ));
        }
        (self.last, self.seal) = (number, Some(entry.seal));
    }
}
