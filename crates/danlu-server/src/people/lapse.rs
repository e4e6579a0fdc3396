//! The end of what was asked for once and goes on: streams and terminals end with the token that opened them.

use std::time::Duration;

use jiff::Timestamp;

use super::{Asker, Directory};

/// A clock that is set while a stream is open should not keep it open for days.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

impl Directory {
    /// Waits until the token that somebody asks with is revoked or over, or its account cannot be used any more.
    pub(crate) async fn lapsed(&self, asker: &Asker) {
        let mut changes = self.changes.subscribe();
        loop {
            let now = Timestamp::now();
            let Some(expires_at) = self.register().expiry(&asker.key, now) else {
                return;
            };
            let left = Duration::try_from(expires_at.duration_since(now)).unwrap_or_default();
            let wait = left.min(LOOK_AGAIN);
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}
