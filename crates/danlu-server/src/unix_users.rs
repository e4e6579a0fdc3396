//! Which user of the machine an account's jobs run as.
//!
//! A number that was given to an account is never given to another: what it left on the disk belongs to that number.

use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use danlu_core::launch::{RunLayout, UnixUser};
use danlu_store::StoreError;
use danlu_types::account::AccountName;
use nix::unistd::{Uid, User, geteuid, getgrouplist};

use crate::accounts::Directory;

/// Below are the users of the system itself, and `nobody` is 65534.
const FIRST_PERSON: u32 = 1000;
const NOBODY: u32 = 65_534;

/// How accounts come to users of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnixUsers {
    /// The machine has a user of the same name.
    SameName,
    /// Each account gets a number of its own from this range. The machine need not know it.
    Range(RangeInclusive<u32>),
}

impl FromStr for UnixUsers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "same-name" {
            return Ok(UnixUsers::SameName);
        }
        let range =
            text.split_once('-').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
        match range {
            Some((first, last)) if first >= FIRST_PERSON && first <= last && last < u32::MAX => {
                Ok(UnixUsers::Range(first..=last))
            }
            _ => Err(format!(
                "`{text}` is neither `same-name` nor a range of user ids from {FIRST_PERSON} on, such as `200000-299999`"
            )),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum UnixUserError {
    #[error("this machine has no user `{0}`, whom the jobs of that account would run as")]
    Missing(String),
    #[error(
        "no administrator has said that jobs of the account `{0}` may run as this machine's user `{0}`: \
         `danlu admin user unix-user {0} --allow` does"
    )]
    NotAllowed(String),
    #[error("jobs do not run as `{name}` (user id {uid}), which is not a person's user")]
    NoPerson { name: String, uid: u32 },
    #[error("all user ids from {} to {} are given away", range.start(), range.end())]
    NoneLeft { range: RangeInclusive<u32> },
    #[error("could not look up the user `{name}`")]
    LookUp {
        name: String,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug)]
pub(crate) struct UserTable {
    rule: Option<UnixUsers>,
    homes: PathBuf,
    /// Users that the machine told us about.
    known: Mutex<HashMap<String, UnixUser>>,
}

impl UserTable {
    pub(crate) fn new(rule: Option<UnixUsers>, layout: &RunLayout) -> Self {
        UserTable { rule, homes: layout.homes_folder(), known: Mutex::default() }
    }

    /// What everybody who submits jobs should know, where nothing keeps them apart, or nothing but a closed data folder.
    pub(crate) fn limitation(&self, closed_data: bool) -> Option<String> {
        if self.rule.is_some() {
            return None;
        }
        let user =
            User::from_uid(geteuid()).ok().flatten().map_or_else(|| geteuid().to_string(), |user| user.name);
        let means = if geteuid().is_root() {
            "`--unix-users` gives each account a user of its own"
        } else {
            "a server that runs as root gives each account a user of its own, with `--unix-users`"
        };
        let reach = if closed_data {
            "can do outside of the data folder what that user can"
        } else {
            "can read and change the files of all others, and the server's"
        };
        Some(format!(
            "all jobs run as `{user}`, like this server: anyone who can submit one {reach}; {means}"
        ))
    }

    /// Whether the name of an account says whom its jobs run as.
    pub(crate) fn is_by_name(&self) -> bool {
        self.rule == Some(UnixUsers::SameName)
    }

    /// Whom the jobs of an account run as; nobody else than the server where there is no rule.
    pub(crate) async fn of(
        &self,
        directory: &Directory,
        account: &str,
    ) -> Result<Option<UnixUser>, UnixUserError> {
        if self.rule.is_some() && account.parse::<AccountName>().is_err() {
            // A job from before there were accounts; its name becomes no part of a path.
            return Err(UnixUserError::Missing(account.to_owned()));
        }
        match &self.rule {
            None => Ok(None),
            Some(UnixUsers::SameName) => self.same_name(account).await.map(Some),
            Some(UnixUsers::Range(range)) => self.numbered(directory, account, range).await.map(Some),
        }
    }

    async fn same_name(&self, account: &str) -> Result<UnixUser, UnixUserError> {
        if let Some(user) = lock(&self.known).get(account) {
            return Ok(user.clone());
        }
        let name = account.to_owned();
        // May ask a directory server.
        let found = tokio::task::spawn_blocking(move || look_up(&name)).await;
        let user = found.map_err(|error| UnixUserError::LookUp {
            name: account.to_owned(),
            source: std::io::Error::other(error),
        })??;
        lock(&self.known).insert(account.to_owned(), user.clone());
        Ok(user)
    }

    async fn numbered(
        &self,
        directory: &Directory,
        account: &str,
        range: &RangeInclusive<u32>,
    ) -> Result<UnixUser, UnixUserError> {
        let is_of_machine = |uid: u32| User::from_uid(Uid::from_raw(uid)).is_ok_and(|user| user.is_some());
        let uid = match directory.unix_user(account) {
            Some(uid) => uid,
            None => directory
                .give_unix_user(account, |given| first_free(range, given, is_of_machine))
                .await?
                .ok_or_else(|| UnixUserError::NoneLeft { range: range.clone() })?,
        };
        let home = self.homes.join(account);
        Ok(UnixUser { name: account.to_owned(), uid, gid: uid, groups: Vec::new(), home })
    }
}

fn first_free(
    range: &RangeInclusive<u32>,
    taken: &BTreeSet<u32>,
    is_of_machine: impl Fn(u32) -> bool,
) -> Option<u32> {
    range.clone().find(|uid| *uid != NOBODY && !taken.contains(uid) && !is_of_machine(*uid))
}

fn look_up(name: &str) -> Result<UnixUser, UnixUserError> {
    let failed = |errno: nix::Error| UnixUserError::LookUp { name: name.to_owned(), source: errno.into() };
    let found =
        User::from_name(name).map_err(failed)?.ok_or_else(|| UnixUserError::Missing(name.to_owned()))?;
    let uid = found.uid.as_raw();
    if uid < FIRST_PERSON || uid == NOBODY {
        return Err(UnixUserError::NoPerson { name: name.to_owned(), uid });
    }
    let as_text = CString::new(name).map_err(|_| UnixUserError::Missing(name.to_owned()))?;
    let groups = getgrouplist(&as_text, found.gid).map_err(failed)?;
    let further = groups.into_iter().filter(|group| *group != found.gid).map(nix::unistd::Gid::as_raw);
    Ok(UnixUser {
        name: name.to_owned(),
        uid,
        gid: found.gid.as_raw(),
        groups: further.collect(),
        home: found.dir,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for UnixUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnixUsers::SameName => f.write_str(
                "the users of the same name, of accounts that an administrator made or allowed (`danlu admin user unix-user NAME --allow`)",
            ),
            UnixUsers::Range(range) => write!(f, "users from {} to {}", range.start(), range.end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_word_or_a_range_of_people() {
        assert_eq!("same-name".parse(), Ok(UnixUsers::SameName));
        assert_eq!("200000-299999".parse(), Ok(UnixUsers::Range(200_000..=299_999)));
        for bad in ["", "0-5", "999-2000", "5000-4000", "5000", "1000-4294967295", "off"] {
            assert!(bad.parse::<UnixUsers>().is_err(), "{bad}");
        }
        let text =
            "`0-5` is neither `same-name` nor a range of user ids from 1000 on, such as `200000-299999`";
        assert_eq!("0-5".parse::<UnixUsers>(), Err(text.to_owned()));
    }

    #[test]
    fn a_number_is_given_once() {
        let taken = BTreeSet::from([5000, 5001]);
        assert_eq!(first_free(&(5000..=5005), &taken, |uid| uid == 5002), Some(5003));
        assert_eq!(first_free(&(5000..=5001), &taken, |_| false), None);
        assert_eq!(first_free(&(NOBODY..=NOBODY + 1), &taken, |_| false), Some(NOBODY + 1));
    }

    #[test]
    fn jobs_never_run_as_users_of_the_system() {
        assert!(matches!(look_up("root"), Err(UnixUserError::NoPerson { uid: 0, .. })));
        assert!(matches!(look_up("no-such-user-here"), Err(UnixUserError::Missing(_))));
    }
}
