//! Passwords: Argon2id, and no hint to those who guess.

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use danlu_types::{FieldError, Problem, ProblemCode};

const SHORTEST: usize = 10;
/// Longer ones would only keep the processor busy.
const LONGEST: usize = 1024;

/// Compared against where there is no account or no password, so that both take as long.
static NOBODYS: LazyLock<String> = LazyLock::new(|| hash("nobody's").unwrap_or_default());

pub(crate) fn check(password: &str) -> Result<(), Problem> {
    let length = password.chars().count();
    if (SHORTEST..=LONGEST).contains(&length) {
        return Ok(());
    }
    let message = format!("must have {SHORTEST} to {LONGEST} characters; this one has {length}");
    Err(Problem::invalid_fields(vec![FieldError::new("password", message)]))
}

/// Takes tens of milliseconds on purpose; not for async threads.
pub(crate) fn hash(password: &str) -> Result<String, Problem> {
    let hashed = Argon2::default().hash_password(password.as_bytes());
    hashed.map(|hash| hash.to_string()).map_err(|error| {
        tracing::error!("a password could not be hashed: {error}");
        Problem::new(ProblemCode::Internal, "the password could not be hashed")
    })
}

/// Whether this is the password behind that hash; takes as long where there is none.
pub(crate) fn matches(password: &str, stored: Option<&str>) -> bool {
    let hash = stored.unwrap_or(&NOBODYS);
    let Ok(parsed) = PasswordHash::new(hash) else { return false };
    let same = Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok();
    same && stored.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_password_matches() {
        let stored = hash("correct horse").unwrap();
        assert!(stored.starts_with("$argon2id$"));
        assert!(matches("correct horse", Some(&stored)));
        assert!(!matches("correct mare", Some(&stored)));
        assert!(!matches("nobody's", None));
        assert_ne!(stored, hash("correct horse").unwrap(), "salted");
    }
}
