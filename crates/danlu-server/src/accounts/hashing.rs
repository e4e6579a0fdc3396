//! Hashing of passwords: it takes a core for tens of milliseconds and 19 MiB, and anybody may cause it.
//!
//! A few at a time, and a short line before them, of which neither one name nor one place takes all; browsers that an account
//! knows, and places it has come in from, have a line of their own, where one place has more of it: but not all, since whoever
//! has several accounts has as many browsers that are known. So whoever sends thousands of passwords waits for themselves, and is sent away when the line
//! is long. A place is given back when the work is done, even if whoever asked for it has hung up.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use danlu_types::{Problem, ProblemCode};
use tokio::sync::Semaphore;

use super::guesses::GuessSource;

const PLACES: usize = 2;
const LONGEST_LINE: usize = 48;
const MOST_OF_A_NAME: usize = 6;
const MOST_OF_A_PLACE: usize = 12;
/// Where whoever tries has come in before.
const MOST_OF_A_KNOWN_PLACE: usize = LONGEST_LINE / 2;
/// By then, a place is free unless others go on asking.
const TRY_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct PasswordHashing {
    strangers: Arc<Lane>,
    known: Arc<Lane>,
}

#[derive(Debug)]
struct Lane {
    places: Arc<Semaphore>,
    line: Mutex<Line>,
}

/// Those who wait and those whose password is hashed now.
#[derive(Debug, Default)]
struct Line {
    length: usize,
    by_name: HashMap<String, usize>,
    by_place: HashMap<GuessSource, usize>,
}

/// For whom a password is hashed.
#[derive(Debug, Clone)]
pub(super) struct For {
    pub(super) name: String,
    /// Where they are, if their request says so.
    pub(super) place: Option<GuessSource>,
    /// They have shown who they are, or come in a browser or from a place that is known.
    pub(super) is_known: bool,
}

impl Default for PasswordHashing {
    fn default() -> Self {
        let lane = || Arc::new(Lane { places: Arc::new(Semaphore::new(PLACES)), line: Mutex::default() });
        PasswordHashing { strangers: lane(), known: lane() }
    }
}

impl PasswordHashing {
    pub(super) async fn run<T: Send + 'static>(
        &self,
        whose: For,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let lane = if whose.is_known { &self.known } else { &self.strangers };
        let standing = Standing::join(lane.clone(), whose)?;
        let place = lane.places.clone().acquire_owned().await;
        let hashed = tokio::task::spawn_blocking(move || {
            let _until_it_is_done = (place, standing);
            work()
        });
        hashed.await.map_err(|_| Problem::new(ProblemCode::Internal, "the server is shutting down"))
    }
}

/// One in the line, until dropped.
#[derive(Debug)]
struct Standing {
    lane: Arc<Lane>,
    whose: For,
}

impl Standing {
    fn join(lane: Arc<Lane>, whose: For) -> Result<Self, Problem> {
        if !lane.line.lock().unwrap_or_else(PoisonError::into_inner).join(&whose) {
            let detail = "too many sign in at once; try again in a second";
            return Err(Problem::new(ProblemCode::TooManyRequests, detail).with_retry_after(TRY_AGAIN));
        }
        Ok(Standing { lane, whose })
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.lane.line.lock().unwrap_or_else(PoisonError::into_inner).leave(&self.whose);
    }
}

impl Line {
    fn join(&mut self, whose: &For) -> bool {
        let of_name = self.by_name.get(&whose.name).copied().unwrap_or(0);
        let of_place = whose.place.and_then(|place| self.by_place.get(&place).copied()).unwrap_or(0);
        let most_of_place = if whose.is_known { MOST_OF_A_KNOWN_PLACE } else { MOST_OF_A_PLACE };
        if self.length >= LONGEST_LINE || of_name >= MOST_OF_A_NAME || of_place >= most_of_place {
            return false;
        }
        self.length += 1;
        *self.by_name.entry(whose.name.clone()).or_default() += 1;
        if let Some(place) = whose.place {
            *self.by_place.entry(place).or_default() += 1;
        }
        true
    }

    fn leave(&mut self, whose: &For) {
        self.length -= 1;
        one_less(&mut self.by_name, &whose.name);
        if let Some(place) = &whose.place {
            one_less(&mut self.by_place, place);
        }
    }
}

fn one_less<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::accounts::guesses::Visitor;

    fn stranger(name: &str, address: &str) -> For {
        let visitor = Visitor { from: address.parse().unwrap(), user: None, device: None };
        For { name: name.to_owned(), place: Some(visitor.place()), is_known: false }
    }

    #[test]
    fn neither_a_name_nor_a_place_takes_the_whole_line() {
        let mut line = Line::default();
        let joined =
            |line: &mut Line, one: &dyn Fn(usize) -> For| (0..500).filter(|at| line.join(&one(*at))).count();
        assert_eq!(
            joined(&mut line, &|at| stranger("ada", &format!("192.0.2.{}", at % 250))),
            MOST_OF_A_NAME
        );
        assert_eq!(joined(&mut line, &|at| stranger(&format!("n{at}"), "198.51.100.1")), MOST_OF_A_PLACE);
        let rest =
            joined(&mut line, &|at| stranger(&format!("m{at}"), &format!("10.0.{}.{}", at / 250, at % 250)));
        assert_eq!(line.length, LONGEST_LINE);
        assert_eq!(rest, LONGEST_LINE - MOST_OF_A_NAME - MOST_OF_A_PLACE);
        for at in 0..MOST_OF_A_NAME {
            line.leave(&stranger("ada", &format!("192.0.2.{at}")));
        }
        assert!(!line.by_name.contains_key("ada") && line.join(&stranger("ada", "192.0.2.9")));
    }

    #[test]
    fn whoever_has_many_accounts_leaves_room_for_others_who_are_known() {
        let mut line = Line::default();
        let known = |name: String, address: &str| For { is_known: true, ..stranger(&name, address) };
        let joined = (0..LONGEST_LINE).filter(|at| line.join(&known(format!("n{}", at % 8), "192.0.2.1")));
        assert_eq!(joined.count(), MOST_OF_A_KNOWN_PLACE);
        assert!(line.join(&known("ada".to_owned(), "192.0.2.2")));
    }

    #[tokio::test]
    async fn whoever_hangs_up_does_not_make_room_for_more_at_once() {
        let hashing = Arc::new(PasswordHashing::default());
        let (started, has_started) = mpsc::channel();
        let (finish, may_finish) = mpsc::channel::<()>();
        let may_finish = Arc::new(Mutex::new(may_finish));
        let begin = |name: &str| {
            let (hashing, started, may_finish) = (hashing.clone(), started.clone(), may_finish.clone());
            let whose = stranger(name, "192.0.2.1");
            tokio::spawn(async move {
                hashing
                    .run(whose, move || {
                        started.send(()).unwrap();
                        may_finish.lock().unwrap().recv().unwrap();
                    })
                    .await
            })
        };
        let first: Vec<_> = (0..PLACES).map(|at| begin(&at.to_string())).collect();
        let has_started = tokio::task::spawn_blocking(move || {
            (0..PLACES).for_each(|_| has_started.recv().unwrap());
            has_started
        });
        let has_started = has_started.await.unwrap();
        for one in first {
            one.abort();
            assert!(one.await.unwrap_err().is_cancelled());
        }
        let late = begin("late");
        while hashing.strangers.line.lock().unwrap().length < PLACES + 1 {
            tokio::task::yield_now().await;
        }
        tokio::task::yield_now().await;
        assert!(has_started.try_recv().is_err(), "the work of those who hung up goes on");
        (0..=PLACES).for_each(|_| finish.send(()).unwrap());
        late.await.unwrap().unwrap();
        while hashing.strangers.line.lock().unwrap().length > 0 {
            tokio::task::yield_now().await;
        }
        // Browsers that are known do not wait behind strangers.
        let known = For { is_known: true, ..stranger("ada", "192.0.2.1") };
        assert_eq!(hashing.run(known, || 7).await.unwrap(), 7);
    }
}
