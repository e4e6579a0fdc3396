//! The user ids that accounts have of their own, where jobs run as users from a range of numbers.

use std::collections::BTreeSet;

use danlu_store::{DirectoryRow, StoreError, UnixUserRecord};
use danlu_types::api::AuditEntry;
use jiff::Timestamp;

use super::{Directory, json};

impl Directory {
    pub(crate) fn unix_user(&self, account: &str) -> Option<u32> {
        self.register().unix_users.get(account).copied()
    }

    /// The account's number, or one that `choose` takes beside those that are given; `None` where it finds none. A number whose
    /// commit was not heard of is not given twice: the database has each once.
    pub(crate) async fn give_unix_user(
        &self,
        account: &str,
        choose: impl Fn(&BTreeSet<u32>) -> Option<u32>,
    ) -> Result<Option<u32>, StoreError> {
        let _one_at_a_time = self.changing.lock().await;
        if let Some(uid) = self.unix_user(account) {
            return Ok(Some(uid));
        }
        let given = self.register().unix_users.values().copied().collect();
        let Some(uid) = choose(&given) else { return Ok(None) };
        let record = UnixUserRecord { uid };
        let audit = AuditEntry {
            number: 0,
            at: Timestamp::now(),
            by: "-".to_owned(),
            from: "-".to_owned(),
            action: "unix_user.give".to_owned(),
            subject: account.to_owned(),
            before: None,
            after: json(&record),
            seal: String::new(),
        };
        self.write_entry(vec![DirectoryRow::UnixUser(account.to_owned(), record)], audit).await?;
        Ok(Some(uid))
    }
}
