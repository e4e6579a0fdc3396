//! Who did what: entries that hold each other fast.
//!
//! Each entry is sealed with a hash over itself and the seal before it. To change or remove one unnoticed, one would have to
//! seal all that follow anew, and the last seal is what an auditor writes down.

use danlu_types::api::AuditEntry;
use sha2::{Digest, Sha256};

/// Before the first entry.
pub const FIRST_SEAL: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What an entry's seal must be, after an entry with that seal.
pub fn seal(previous: &str, entry: &AuditEntry) -> String {
    let unsealed = AuditEntry { seal: String::new(), ..entry.clone() };
    let text = serde_json::to_vec(&unsealed).expect("an entry is plain values");
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
        if entry.number != number || seal(&last, entry) != entry.seal {
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
            entry.seal = seal(&previous, &entry);
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
