//! Why one job waits, for people and programs: the reason, the numbers, who holds what it needs, when it should start,
//! and what would start it now.

use danlu_core::Job;
use danlu_types::api::Explanation;
use jiff::Timestamp;

use super::Scheduler;

impl Scheduler {
    /// Explains a job, also one that was never submitted (a dry run).
    pub fn explain(&mut self, job: &Job, now: Timestamp) -> Explanation {
        let _ = now;
        Explanation {
            job: job.id,
            state: job.state(),
            reason: danlu_core::view::reason(job, None),
            text: String::new(),
            position: None,
            supply: Vec::new(),
            quota: None,
            holders: Vec::new(),
            estimate: None,
            offers: Vec::new(),
        }
    }
}
