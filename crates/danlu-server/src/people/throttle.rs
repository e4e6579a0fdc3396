//! How often one may guess: a few tries, then ever longer pauses.
//!
//! Counted by account and by address. An account's count does not lock its owner out for long: the pause is a minute at
//! most, which makes guessing hopeless and forgetting bearable.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

const FREE_TRIES: u32 = 5;
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// A count that nothing was added to for this long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(15);
/// Beyond it, the oldest counts make room: memory is not what a guesser may take.
const MOST_COUNTED: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Throttle<K> {
    counts: HashMap<K, Count>,
}

#[derive(Debug)]
struct Count {
    failures: u32,
    last: Instant,
}

impl<K> Default for Throttle<K> {
    fn default() -> Self {
        Throttle { counts: HashMap::new() }
    }
}

impl<K: Hash + Eq + Clone> Throttle<K> {
    /// How long this one has to wait before the next try.
    pub(crate) fn pause(&self, key: &K, now: Instant) -> Option<Duration> {
        let count = self.counts.get(key)?;
        let doublings = count.failures.checked_sub(FREE_TRIES)?.min(10);
        let pause = Duration::from_secs(1 << doublings).min(LONGEST_PAUSE);
        pause.checked_sub(now.saturating_duration_since(count.last)).filter(|left| !left.is_zero())
    }

    pub(crate) fn failed(&mut self, key: K, now: Instant) {
        if self.counts.len() >= MOST_COUNTED {
            self.counts.retain(|_, count| now.saturating_duration_since(count.last) < FORGOTTEN_AFTER);
        }
        if self.counts.len() >= MOST_COUNTED {
            let oldest = self.counts.iter().min_by_key(|(_, count)| count.last).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.counts.remove(&key));
        }
        let count = self.counts.entry(key).or_insert(Count { failures: 0, last: now });
        if now.saturating_duration_since(count.last) >= FORGOTTEN_AFTER {
            count.failures = 0;
        }
        count.failures += 1;
        count.last = now;
    }

    pub(crate) fn succeeded(&mut self, key: &K) {
        self.counts.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let mut throttle = Throttle::default();
        let start = Instant::now();
        for _ in 0..FREE_TRIES {
            assert_eq!(throttle.pause(&"ada", start), None);
            throttle.failed("ada", start);
        }
        assert_eq!(throttle.pause(&"ada", start), Some(Duration::from_secs(1)));
        assert_eq!(throttle.pause(&"grace", start), None);
        throttle.failed("ada", start);
        assert_eq!(throttle.pause(&"ada", start), Some(Duration::from_secs(2)));
        for _ in 0..50 {
            throttle.failed("ada", start);
        }
        assert_eq!(throttle.pause(&"ada", start), Some(LONGEST_PAUSE));
        assert_eq!(throttle.pause(&"ada", start + LONGEST_PAUSE), None);
        throttle.succeeded(&"ada");
        assert_eq!(throttle.pause(&"ada", start), None);
    }

    #[test]
    fn guessers_do_not_fill_the_memory() {
        let mut throttle = Throttle::default();
        let start = Instant::now();
        for guess in 0..MOST_COUNTED + 100 {
            throttle.failed(guess, start + Duration::from_millis(guess as u64));
        }
        assert_eq!(throttle.counts.len(), MOST_COUNTED);
    }
}
