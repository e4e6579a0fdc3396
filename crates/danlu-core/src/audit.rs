//! Who did what: entries that hold each other fast.
//!
//! Each entry is sealed with a hash over itself and the seal before it. To change or remove one unnoticed, one would have to
//! seal all that follow anew, and the last seal is what an auditor writes down.

use danlu_types::api::AuditEntry;
use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Before the first entry.
pub const FIRST_SEAL: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The bytes that a hash covers, whatever an entry is called in the API and in the code: names and order of these fields never
/// change, or entries that were written before would no longer verify.
#[derive(Serialize)]
struct HashedFields<'a> {
    number: u64,
    at: Timestamp,
    by: &'a str,
    from: &'a str,
    action: &'a str,
    subject: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a serde_json::Value>,
    /// Always empty.
    seal: &'a str,
}

/// What an entry's seal must be, after an entry with that seal.
pub fn chain_hash(previous: &str, entry: &AuditEntry) -> String {
    let AuditEntry { number, at, by, from, action, subject, before, after, seal: _ } = entry;
    let covered = HashedFields {
        number: *number,
        at: *at,
        by,
        from,
        action,
        subject,
        before: before.as_ref(),
        after: after.as_ref(),
        seal: "",
    };
    let text = serde_json::to_vec(&covered).expect("an entry is plain values");
    let mut hash = Sha256::new();
    hash.update(previous.as_bytes());
    hash.update(text);
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        use std::fmt::Write;
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Checks entries that follow one with that seal; returns the last seal, or the number of the first entry that is not what
/// was written.
pub fn verify<'a>(
    previous: &str,
    first_number: u64,
    entries: impl IntoIterator<Item = &'a AuditEntry>,
) -> Result<String, u64> {
    let mut last = previous.to_owned();
    for (number, entry) in (first_number..).zip(entries) {
        if entry.number != number || chain_hash(&last, entry) != entry.seal {
            return Err(number);
        }
        last.clone_from(&entry.seal);
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(length: u64) -> Vec<AuditEntry> {
        let mut previous = FIRST_SEAL.to_owned();
        let entry = |number| {
            let mut entry = AuditEntry {
                number,
                at: jiff::Timestamp::UNIX_EPOCH,
                by: "ada".to_owned(),
                from: "127.0.0.1".to_owned(),
                action: "account.change".to_owned(),
                subject: format!("account-{number}"),
                before: None,
                after: Some(serde_json::json!({ "standing": "active" })),
                seal: String::new(),
            };
            entry.seal = chain_hash(&previous, &entry);
            previous.clone_from(&entry.seal);
            entry
        };
        (1..=length).map(entry).collect()
    }

    #[test]
    fn what_was_written_verifies() {
        let entries = chain(5);
        assert_eq!(verify(FIRST_SEAL, 1, &entries), Ok(entries[4].seal.clone()));
        assert_eq!(verify(&entries[1].seal, 3, &entries[2..]), Ok(entries[4].seal.clone()));
    }

    /// These were computed by the first release of this format.
    #[test]
    fn old_entries_still_verify() {
        let hashes: Vec<String> = chain(2).into_iter().map(|entry| entry.seal).collect();
        let first = "d1de2ba8d1b976979505a75369be6fa1e4c80b0b8995876bbe52a13a4debb743";
        let second = "7c562d4db466a5b4b7e8a6782fd529f6e33e80076adf69252f3c8d5162f02c17";
        assert_eq!(hashes, [first, second]);
    }

    #[test]
    fn changed_removed_and_swapped_entries_are_named() {
        let mut changed = chain(5);
        changed[2].by = "grace".to_owned();
        assert_eq!(verify(FIRST_SEAL, 1, &changed), Err(3));
        let mut removed = chain(5);
        removed.remove(1);
        assert_eq!(verify(FIRST_SEAL, 1, &removed), Err(2));
        let mut swapped = chain(5);
        swapped.swap(3, 4);
        assert_eq!(verify(FIRST_SEAL, 1, &swapped), Err(4));
    }
}
