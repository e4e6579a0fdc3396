//! How often one may guess: a few tries, then ever longer pauses.
//!
//! A try is counted as failed before it is evaluated, and given back when it was right: of guesses that come together, no
//! more are evaluated than of guesses that come one by one.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// A count that nothing was added to for this long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(15);
/// Beyond it, the oldest counts make room: memory is not what a guesser may take.
const MOST_COUNTED: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Throttle<K> {
    free_tries: u32,
    counts: HashMap<K, Count>,
}

#[derive(Debug)]
struct Count {
    failures: u32,
    last: Instant,
}

impl<K: Hash + Eq + Clone> Throttle<K> {
    pub(crate) fn new(free_tries: u32) -> Self {
        Throttle { free_tries, counts: HashMap::new() }
    }

    /// How long this one has to wait before the next try.
    pub(crate) fn pause(&self, key: &K, now: Instant) -> Option<Duration> {
        let count = self.counts.get(key)?;
        let doublings = count.failures.checked_sub(self.free_tries)?.min(10);
        let pause = Duration::from_secs(1 << doublings).min(LONGEST_PAUSE);
        pause.checked_sub(now.saturating_duration_since(count.last)).filter(|left| !left.is_zero())
    }

    /// Counts a try as failed, and says how many have failed by now.
    pub(crate) fn failed(&mut self, key: K, now: Instant) -> u32 {
        if self.counts.len() >= MOST_COUNTED && !self.counts.contains_key(&key) {
            self.counts.retain(|_, count| now.saturating_duration_since(count.last) < FORGOTTEN_AFTER);
            if self.counts.len() >= MOST_COUNTED {
                let oldest =
                    self.counts.iter().min_by_key(|(_, count)| count.last).map(|(key, _)| key.clone());
                oldest.and_then(|key| self.counts.remove(&key));
            }
        }
        let count = self.counts.entry(key).or_insert(Count { failures: 0, last: now });
        if now.saturating_duration_since(count.last) >= FORGOTTEN_AFTER {
            count.failures = 0;
        }
        count.failures = count.failures.saturating_add(1);
        count.last = now;
        count.failures
    }

    /// Counts a try, unless it has to wait.
    pub(crate) fn take(&mut self, key: &K, now: Instant) -> Result<(), Duration> {
        if let Some(pause) = self.pause(key, now) {
            return Err(pause);
        }
        self.failed(key.clone(), now);
        Ok(())
    }

    /// One try of this key was right, or was none; the others still count.
    pub(crate) fn give_back(&mut self, key: &K) {
        if let Some(count) = self.counts.get_mut(key) {
            count.failures = count.failures.saturating_sub(1);
        }
    }

    /// Whoever uses this key has shown who they are.
    pub(crate) fn succeeded(&mut self, key: &K) {
        self.counts.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE_TRIES: u32 = 5;

    #[test]
    fn pauses_grow_and_end() {
        let mut throttle = Throttle::new(FREE_TRIES);
        let start = Instant::now();
        for _ in 0..FREE_TRIES {
            assert_eq!(throttle.take(&"ada", start), Ok(()));
        }
        assert_eq!(throttle.take(&"ada", start), Err(Duration::from_secs(1)));
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

    /// Each guess takes, is evaluated, and gives back or does not, in every order that two can have.
    #[test]
    fn tries_that_are_under_way_count() {
        let mut throttle = Throttle::new(FREE_TRIES);
        let start = Instant::now();
        let evaluated = (0..800).filter(|_| throttle.take(&"ada", start).is_ok()).count();
        assert_eq!(evaluated, FREE_TRIES as usize);
        throttle.give_back(&"ada");
        assert_eq!(throttle.take(&"ada", start), Ok(()), "one was right, and may be tried again");
        assert!(throttle.take(&"ada", start).is_err());
        // After a pause there is one try, not one for each who waits.
        let later = start + Duration::from_secs(1);
        assert_eq!((0..800).filter(|_| throttle.take(&"ada", later).is_ok()).count(), 1);
        throttle.give_back(&"nobody");
    }

    #[test]
    fn guessers_do_not_fill_the_memory() {
        let mut throttle = Throttle::new(FREE_TRIES);
        let start = Instant::now();
        for guess in 0..MOST_COUNTED + 100 {
            throttle.failed(guess, start + Duration::from_millis(guess as u64));
        }
        assert_eq!(throttle.counts.len(), MOST_COUNTED);
        // One that is there needs no room, so it takes nobody's.
        throttle.failed(MOST_COUNTED, start);
        assert_eq!(throttle.counts.len(), MOST_COUNTED);
    }
}
