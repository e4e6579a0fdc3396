//! How often something is asked that others need as well, such as a cluster's controller.

use std::time::Duration;

/// So many times as long as the last answer took nothing is asked: a tenth of what one of its threads can do, at most.
const REST: u32 = 10;
/// One answer that was late says little, and what has changed is to be seen within minutes.
const LONGEST_REST: Duration = Duration::from_mins(2);

/// The pause after an answer that took so long, where it would be `every`.
pub fn pause_after(every: Duration, took: Duration) -> Duration {
    every.max(took.saturating_mul(REST).min(LONGEST_REST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_answers_slowly_is_asked_less_often() {
        let (every, milliseconds) = (Duration::from_secs(2), Duration::from_millis);
        let pauses = [0, 30, 200, 201, 3000, 60_000].map(|took| pause_after(every, milliseconds(took)));
        assert_eq!(pauses, [2000, 2000, 2000, 2010, 30_000, 120_000].map(milliseconds));
        assert_eq!(pause_after(Duration::from_mins(5), milliseconds(60_000)), Duration::from_mins(5));
        assert_eq!(pause_after(every, Duration::MAX), LONGEST_REST);
    }
}
