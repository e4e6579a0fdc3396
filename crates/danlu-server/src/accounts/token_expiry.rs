//! The end of what was asked for once and goes on: streams, downloads and terminals end with the token that opened them, and
//! those about a job with the role that opened them.

use std::time::Duration;

use danlu_core::authorization::Action;
use danlu_types::{JobId, ProblemCode};
use jiff::Timestamp;

use super::{Caller, Directory};
use crate::app::App;

/// A clock that is set while a stream is open should not keep it open for days.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

impl Directory {
    /// Waits until the token that somebody asks with is revoked or over, or its account cannot be used any more.
    pub(crate) async fn lapsed(&self, caller: &Caller) {
        let mut changes = self.changes.subscribe();
        loop {
            let now = Timestamp::now();
            let Some(expires_at) = self.register().expiry(&caller.key, now) else {
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

    /// The same caller with what they are by now: an administrator may have become somebody like all others. `None` once the
    /// token cannot be used.
    pub(crate) fn asker_now(&self, caller: &Caller) -> Option<Caller> {
        let person = self.register().person_of(&caller.key, Timestamp::now())?;
        Some(Caller { person, ..caller.clone() })
    }
}

impl App {
    /// Waits until somebody may not do this to a job any more: the token, the account, the role or the workspace is gone.
    pub(crate) async fn forbidden(&self, caller: &Caller, id: JobId, action: Action) {
        let mut changes = self.directory.changes.subscribe();
        loop {
            let Some(caller) = self.directory.asker_now(caller) else { return };
            match self.job_for(&caller, id, action).await {
                Ok(_) => {}
                // A database that does not answer takes nobody's role away.
                Err(problem) if matches!(problem.code, ProblemCode::Unavailable | ProblemCode::Internal) => {}
                Err(_) => return,
            }
            tokio::select! {
                () = self.directory.lapsed(&caller) => return,
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }
}
