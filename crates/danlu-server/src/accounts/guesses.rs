//! Who may try to come in now: counts of guesses that keep guessers out, and nobody else.
//!
//! A password is counted by the name and where the guess is from, so that whoever guesses somebody's password elsewhere keeps
//! nobody from their account. A browser in which the account has signed in before says so by a cookie, and is counted by itself:
//! it comes in even from where the guesser sits. Codes are asked for after a right password only; they are counted by account.
//! What somebody shows who has a session already is counted by account too, and apart: sessions make others, and each could bring
//! a browser of its own, so neither is what a count may hang on; and nobody who signs in waits for it.
//! Secrets of links cannot be guessed, so a right one is never refused ([ADR 26](../../../docs/adr/0026-who-guesses-waits.md)).

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use danlu_types::account::AccountName;
use danlu_types::{Problem, ProblemCode};
use rand::Rng as _;

use super::Directory;
use super::throttle::Throttle;
use crate::encryption::Encryptor;

const FREE_TRIES: u32 = 5;
/// Of one place, whatever names are tried there: several people may sit behind one address.
const FREE_TRIES_OF_A_PLACE: u32 = 40;
/// Only right passwords add to them, so no guesser fills the memory.
const MOST_REMEMBERED: usize = 10_000;
/// Nobody guesses those; whoever goes on is told to stop.
const FREE_LINKS: u32 = 10;
/// After so many wrong proofs in a row, a session was left open to somebody else.
pub(super) const TRIES_OF_A_SESSION: u32 = 20;

/// Somebody who wants to come in, as far as one can see before they have.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) from: IpAddr,
    /// On this machine, whose program it is: everybody here shares an address.
    pub(crate) user: Option<u32>,
    /// What a browser shows of an earlier sign-in.
    pub(crate) device: Option<String>,
}

/// Where guesses are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct GuessSource {
    address: IpAddr,
    user: Option<u32>,
}

impl Visitor {
    pub(crate) fn place(&self) -> GuessSource {
        GuessSource { address: network_of(self.from), user: self.user }
    }
}

/// Whoever has one address of IPv6 has 2^64 of them.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// By whom a password or a code is tried.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Guesser {
    /// By a browser that the account knows.
    Device(String),
    /// By anybody at this place.
    Stranger(String, GuessSource),
    /// Codes only, which nobody is asked for who does not know the password.
    OfAccount(AccountName),
    /// By whoever has a session of this account, in all of its sessions together.
    Proof(AccountName),
}

#[derive(Debug)]
pub(super) struct Guesses {
    passwords: Throttle<Guesser>,
    places: Throttle<GuessSource>,
    codes: Throttle<Guesser>,
    /// Links that were none. They name no account that could be counted.
    links: Throttle<GuessSource>,
    /// Wrong proofs, where one asks for more than the session alone, by the session from which all others came.
    sessions: Throttle<String>,
    /// Where accounts have come in from: a long line of strangers is not theirs to wait in.
    came_in: HashSet<(String, GuessSource)>,
}

impl Default for Guesses {
    fn default() -> Self {
        Guesses {
            passwords: Throttle::new(FREE_TRIES),
            places: Throttle::new(FREE_TRIES_OF_A_PLACE),
            codes: Throttle::new(FREE_TRIES),
            links: Throttle::new(FREE_LINKS),
            sessions: Throttle::new(TRIES_OF_A_SESSION),
            came_in: HashSet::new(),
        }
    }
}

/// A try that is under way, and counts as failed until it is given back.
#[derive(Debug)]
#[must_use = "a try that was right is given back"]
pub(super) struct Ticket {
    guesser: Guesser,
    place: Option<GuessSource>,
    /// Whether the account has come in from there, or in this browser, or is in.
    pub(super) is_known: bool,
}

impl Directory {
    /// A try of this name's password.
    pub(super) fn try_password(&self, name: &str, visitor: &Visitor) -> Result<Ticket, Problem> {
        let (now, place) = (Instant::now(), visitor.place());
        let device = self.device_of(name, visitor);
        let mut guesses = self.guesses();
        let Some(device) = device else {
            let guesser = Guesser::Stranger(name.to_owned(), place);
            let pause = guesses.passwords.pause(&guesser, now).max(guesses.places.pause(&place, now));
            if let Some(pause) = pause {
                return Err(too_often(pause));
            }
            guesses.passwords.failed(guesser.clone(), now);
            guesses.places.failed(place, now);
            let is_known = guesses.came_in.contains(&(name.to_owned(), place));
            return Ok(Ticket { guesser, place: Some(place), is_known });
        };
        let guesser = Guesser::Device(device);
        guesses.passwords.take(&guesser, now).map_err(too_often)?;
        Ok(Ticket { guesser, place: None, is_known: true })
    }

    /// A try of an account's password by somebody who has a session of it.
    pub(super) fn try_proof(&self, name: &AccountName) -> Result<Ticket, Problem> {
        let guesser = Guesser::Proof(name.clone());
        self.guesses().passwords.take(&guesser, Instant::now()).map_err(too_often)?;
        Ok(Ticket { guesser, place: None, is_known: true })
    }

    /// The password was right.
    pub(super) fn password_was_right(&self, ticket: &Ticket) {
        let mut guesses = self.guesses();
        if let Guesser::Stranger(name, place) = &ticket.guesser {
            if guesses.came_in.len() >= MOST_REMEMBERED {
                guesses.came_in.clear();
            }
            guesses.came_in.insert((name.clone(), *place));
        }
        guesses.passwords.succeeded(&ticket.guesser);
        // Others at the same place, and other names that were tried there, still count.
        if let Some(place) = &ticket.place {
            guesses.places.give_back(place);
        }
    }

    /// A try of a code of this account's authenticator.
    pub(super) fn try_code(&self, name: &AccountName, visitor: &Visitor) -> Result<Guesser, Problem> {
        let device = self.device_of(name.as_str(), visitor);
        let guesser = device.map_or_else(|| Guesser::OfAccount(name.clone()), Guesser::Device);
        self.guesses().codes.take(&guesser, Instant::now()).map_err(too_often)?;
        Ok(guesser)
    }

    /// The same by somebody who has a session of it.
    pub(super) fn try_code_of_proof(&self, name: &AccountName) -> Result<Guesser, Problem> {
        let guesser = Guesser::Proof(name.clone());
        self.guesses().codes.take(&guesser, Instant::now()).map_err(too_often)?;
        Ok(guesser)
    }

    pub(super) fn code_was_right(&self, guesser: &Guesser) {
        self.guesses().codes.succeeded(guesser);
    }

    /// Somebody showed a link that is none: what to answer instead of `wrong`, if they did so too often.
    pub(super) fn wrong_link(&self, visitor: &Visitor, wrong: Problem) -> Problem {
        self.guesses().links.take(&visitor.place(), Instant::now()).map_or_else(too_often, |()| wrong)
    }

    /// How often in a row the holder of this session, or of one that was made with it, could not show who they are.
    pub(super) fn wrong_proof(&self, root: &str) -> u32 {
        self.guesses().sessions.failed(root.to_owned(), Instant::now())
    }

    pub(super) fn right_proof(&self, root: &str) {
        self.guesses().sessions.succeeded(&root.to_owned());
    }

    /// What a browser keeps of a sign-in, to be known by when others guess; `None` if it has it already.
    pub(crate) fn device_cookie(&self, name: &AccountName, visitor: &Visitor) -> Option<String> {
        self.device_of(name.as_str(), visitor).is_none().then(|| cookie_of_device(&self.encryptor, name))
    }

    fn device_of(&self, name: &str, visitor: &Visitor) -> Option<String> {
        device_in(&self.encryptor, visitor.device.as_deref()?, name)
    }
}

fn cookie_of_device(encryptor: &Encryptor, name: &AccountName) -> String {
    let id: [u8; 16] = rand::rng().random();
    format!("{name}.{}", encryptor.encrypt(&context(name.as_str()), &id))
}

/// The browser's number, if this server gave it to it for this account.
fn device_in(encryptor: &Encryptor, cookie: &str, name: &str) -> Option<String> {
    let (own, sealed) = cookie.split_once('.')?;
    if own != name {
        return None;
    }
    let id = encryptor.decrypt(&context(name), sealed).ok()?;
    Some(data_encoding::HEXLOWER.encode(&id))
}

fn context(name: &str) -> String {
    format!("a browser of {name}")
}

pub(super) fn too_often(pause: Duration) -> Problem {
    let detail = format!("too many tries; wait {} seconds", pause.as_secs() + 1);
    Problem::new(ProblemCode::TooManyRequests, detail).with_retry_after(pause)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    static SEALER: LazyLock<Encryptor> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        Encryptor::open(folder.path()).unwrap()
    });

    proptest! {
        #[test]
        fn no_damaged_cookie_is_a_browser_that_is_known(
            from in any::<Index>(), to in any::<Index>(), with in "([ -~]|é|\u{0}){0,6}", name in "ada|mia|ada\\.|",
        ) {
            let cookie = cookie_of_device(&SEALER, &"ada".parse().unwrap());
            let id = device_in(&SEALER, &cookie, "ada");
            prop_assert!(id.is_some());
            let (from, to) = (from.index(cookie.len() + 1), to.index(cookie.len() + 1));
            let damaged = format!("{}{with}{}", &cookie[..from], &cookie[to..]);
            if damaged != cookie {
                prop_assert_eq!(device_in(&SEALER, &damaged, &name), None, "{}", damaged);
            }
        }

        #[test]
        fn no_text_is_a_browser_that_is_known(text in "((ada|mia)?\\.?[0-9a-zA-Z+/=_-]{0,120})|.{0,60}") {
            prop_assert_eq!(device_in(&SEALER, &text, "ada"), None);
        }
    }

    #[test]
    fn places_are_networks_and_users() {
        let place = |from: &str, user| Visitor { from: from.parse().unwrap(), user, device: None }.place();
        assert_eq!(place("2001:db8::1", None), place("2001:db8::ffff:0:0:2", None));
        assert_ne!(place("2001:db8::1", None), place("2001:db8:0:1::1", None));
        assert_ne!(place("192.0.2.1", None), place("192.0.2.2", None));
        assert_eq!(place("::ffff:192.0.2.1", None), place("192.0.2.1", None));
        assert_ne!(place("127.0.0.1", Some(1000)), place("127.0.0.1", Some(1001)));
    }

    #[test]
    fn a_browser_is_known_to_its_account_only() {
        let folder = tempfile::tempdir().unwrap();
        let encryptor = Encryptor::open(folder.path()).unwrap();
        let cookie = cookie_of_device(&encryptor, &"ada".parse().unwrap());
        let id = device_in(&encryptor, &cookie, "ada").unwrap();
        assert_eq!(device_in(&encryptor, &cookie, "ada"), Some(id));
        let sealed = cookie.strip_prefix("ada.").unwrap();
        for (forged, name) in [
            (cookie.as_str(), "mia"),
            (&format!("mia.{sealed}"), "mia"),
            (&format!("ada.{}", encryptor.encrypt("the authenticator of ada", b"0123456789abcdef")), "ada"),
            ("ada.", "ada"),
            ("ada", "ada"),
            ("", ""),
        ] {
            assert_eq!(device_in(&encryptor, forged, name), None, "{forged}");
        }
    }
}
