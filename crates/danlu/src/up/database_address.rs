//! Where the server's database is said to be, without telling everybody its password.
//!
//! The arguments of a process are for all users of the machine to read, and its environment for all programs of the same user.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use danlu_cli::{CliError, USAGE};

const VARIABLE: &str = "DANLU_DATABASE";

/// The address from whichever place it was given in, if it was.
pub(crate) fn address(
    argument: Option<String>,
    file: Option<&Path>,
    variable: Option<String>,
) -> Result<Option<String>, CliError> {
    if let Some(address) = argument {
        if has_password(&address) {
            return Err(CliError::new("`--database` holds a password, which everybody on this machine could read")
                .with_code(USAGE)
                .hint(format!(
                    "write the address into a file that only you can read, and give it with `--database-file FILE`; or \
                     set `{VARIABLE}`"
                )));
        }
        return Ok(Some(address));
    }
    match file {
        Some(file) => read(file).map(Some),
        None => Ok(variable.filter(|address| !address.is_empty())),
    }
}

/// From the environment of this process.
pub(crate) fn variable() -> Result<Option<String>, CliError> {
    match std::env::var(VARIABLE) {
        Ok(address) => Ok(Some(address)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(CliError::new(format!("`{VARIABLE}` is not text")).with_code(USAGE))
        }
    }
}

fn read(file: &Path) -> Result<String, CliError> {
    let shown = file.display();
    let failed = |error: &std::io::Error| {
        CliError::new(format!("cannot read the database's address from `{shown}`"))
            .with_code(USAGE)
            .caused_by(error)
    };
    let about = fs::metadata(file).map_err(|error| failed(&error))?;
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(CliError::new(format!("`{shown}` can be read by others (mode {mode:o})"))
            .with_code(USAGE)
            .hint(format!(
                "close it to them, `chmod 600 {shown}`, and change the password if others may have read it"
            )));
    }
    if !about.is_file() || about.size() > 64 << 10 {
        return Err(CliError::new(format!("`{shown}` must hold exactly one address")).with_code(USAGE));
    }
    let text = fs::read_to_string(file).map_err(|error| failed(&error))?;
    match text.trim() {
        address if !address.is_empty() && !address.contains('\n') => Ok(address.to_owned()),
        _ => Err(CliError::new(format!("`{shown}` does not hold one line with an address"))
            .with_code(USAGE)
            .hint("such as `postgres://USER:PASSWORD@HOST/NAME`")),
    }
}

/// `postgres://user:PASSWORD@host/name`, or `…?password=PASSWORD`.
fn has_password(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
    // The last `@`: a password may hold others.
    let user = before_query.rsplit_once('@').map_or("", |(user, _)| user);
    let in_user = user.split_once(':').is_some_and(|(_, password)| !password.is_empty());
    in_user
        || query.split('&').any(|pair| pair.strip_prefix("password=").is_some_and(|word| !word.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_found_wherever_they_stand() {
        for with in [
            "postgres://danlu:secret@localhost/danlu",
            "postgres://danlu:a@b/c@localhost/danlu",
            "postgresql://localhost/danlu?user=danlu&password=secret",
        ] {
            assert!(has_password(with), "{with}");
        }
        for without in [
            "postgres://danlu@localhost:5432/danlu",
            "postgres://danlu:@localhost/danlu",
            "postgres://danlu@%2Frun%2Fpostgresql:5432/danlu",
            "sqlite:/var/lib/danlu/danlu.db",
            "",
        ] {
            assert!(!has_password(without), "{without}");
        }
    }

    #[test]
    fn a_file_with_an_address_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("database");
        let given = |text: &str, mode| {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            address(None, Some(&file), Some("postgres://elsewhere/x".to_owned())).ok().flatten()
        };
        let url = "postgres://danlu:secret@localhost/danlu";
        assert_eq!(given(&format!("{url}\n"), 0o600).as_deref(), Some(url));
        for (text, mode) in [(url, 0o640), (url, 0o604), ("", 0o600), ("one\ntwo", 0o600)] {
            assert_eq!(given(text, mode), None, "{text} {mode:o}");
        }
        assert!(address(None, Some(&folder.path().join("none")), None).is_err());
        assert!(address(Some(url.to_owned()), None, None).is_err());
        assert_eq!(address(None, None, Some(url.to_owned())).unwrap().as_deref(), Some(url));
    }
}
