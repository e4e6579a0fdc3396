//! Which data folder this is, and whether the database belongs to it.
//!
//! A data folder and its database name each other. A copy of a folder bears the same name, and is told by its file being
//! another file: whoever starts a copy beside the original would run every job twice, and judge workers that are not its
//! own. So a copy, and a database of another folder, are refused until somebody says that the original is gone.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, bail};
use danlu_types::JobId;
use rand::Rng;
use serde::{Deserialize, Serialize};

const IDENTITY_FILE: &str = "identity.json";
/// The largest number of a job that left nothing else in the data folder.
const NUMBERS_FILE: &str = "largest-number";
/// What a person can be asked to do with numbers ends before this, and so do numbers that other programs can hold.
const LARGEST_NUMBER: u64 = 1 << 53;

/// What is written in the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    identity: String,
    /// The file's own number on its disk, and when it was made there where that is known: a copy has others.
    inode: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    made_at_nanoseconds: Option<u128>,
}

/// What was found in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Nothing,
    Own(String),
    Copy(String),
}

/// What is to be done about folder and database.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Keep(String),
    /// A new name for both.
    Rename,
    RefuseCopy,
    RefuseDatabase,
}

/// `restored`: somebody says that what this was copied from is not used any more.
fn decide(folder: &Found, database: Option<&str>, restored: bool) -> Decision {
    match (folder, database) {
        (Found::Own(folder), Some(database)) if folder == database => Decision::Keep(folder.clone()),
        // A database that is new, or older than identities.
        (Found::Own(folder), None) => Decision::Keep(folder.clone()),
        (Found::Nothing, None) => Decision::Rename,
        _ if restored => Decision::Rename,
        (Found::Copy(_), _) => Decision::RefuseCopy,
        (Found::Nothing | Found::Own(_), Some(_)) => Decision::RefuseDatabase,
    }
}

/// The name that folder and database have in common from now on; the caller writes it into the database.
pub(crate) fn settle(data: &Path, database: Option<&str>, restored: bool) -> anyhow::Result<String> {
    match decide(&find(data)?, database, restored) {
        Decision::Keep(identity) => Ok(identity),
        Decision::Rename => {
            let name: u128 = rand::rng().random();
            let identity = format!("{name:032x}");
            write(data, &identity)
                .with_context(|| format!("could not write `{}`", data.join(IDENTITY_FILE).display()))?;
            Ok(identity)
        }
        Decision::RefuseCopy => bail!(
            "the data folder `{}` is a copy of another one, and would run that one's jobs a second time; if the original is \
             not used any more (this is a restored back-up, or was moved to another disk), start once with `--restored`",
            data.display()
        ),
        Decision::RefuseDatabase => bail!(
            "the database belongs to another data folder than `{}`, whose jobs would run a second time; give that folder with \
             `--data`, or, if it is gone for good, start once with `--restored`",
            data.display()
        ),
    }
}

fn find(data: &Path) -> anyhow::Result<Found> {
    let path = data.join(IDENTITY_FILE);
    let about = || format!("could not read `{}`", path.display());
    let file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        opened => opened.with_context(about)?,
    };
    let written: Written = serde_json::from_reader(&file).with_context(about)?;
    let own = of_file(&file, written.identity.clone()).with_context(about)?;
    Ok(if own == written { Found::Own(written.identity) } else { Found::Copy(written.identity) })
}

fn write(data: &Path, identity: &str) -> std::io::Result<()> {
    let (path, draft) = (data.join(IDENTITY_FILE), data.join(format!("{IDENTITY_FILE}.new")));
    // Made anew: what lies there may be a file of the copy.
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&draft)?;
    let written = of_file(&file, identity.to_owned())?;
    file.write_all(serde_json::to_string(&written)?.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(draft, path)
}

fn of_file(file: &File, identity: String) -> std::io::Result<Written> {
    let metadata = file.metadata()?;
    let made = metadata.created().ok().and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
    Ok(Written { identity, inode: metadata.ino(), made_at_nanoseconds: made.map(|made| made.as_nanos()) })
}

/// Notes a number that is not to be given again although nothing of its job may be left. Smaller ones than before change nothing.
pub(crate) fn note_number(data: &Path, number: JobId) -> std::io::Result<()> {
    if number <= noted_number(data) {
        return Ok(());
    }
    let (path, draft) = (data.join(NUMBERS_FILE), data.join(format!("{NUMBERS_FILE}.new")));
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&draft)?;
    writeln!(file, "{number}")?;
    file.sync_all()?;
    std::fs::rename(draft, path)
}

fn noted_number(data: &Path) -> JobId {
    let text = std::fs::read_to_string(data.join(NUMBERS_FILE)).unwrap_or_default();
    JobId(text.trim().parse().ok().filter(|number| *number < LARGEST_NUMBER).unwrap_or(0))
}

/// The largest number that any job of this folder has had, by what lies there: a database that was restored from before it
/// does not know. 0 if there is none.
pub(crate) fn largest_number(data: &Path) -> JobId {
    let JobId(mut largest) = noted_number(data);
    for folder in ["runs", "live", "forgotten"] {
        let Ok(entries) = std::fs::read_dir(data.join(folder)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            // Workers are `JOB.ATTEMPT.WORKER`.
            let number = name.to_str().and_then(|name| name.split('.').next()?.parse().ok());
            largest = largest.max(number.filter(|number| *number < LARGEST_NUMBER).unwrap_or(0));
        }
    }
    JobId(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_name_where_it_is_moved_and_loses_it_where_it_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (folder.path().join("here"), folder.path().join("there"));
        std::fs::create_dir(&here).unwrap();
        let identity = settle(&here, None, false).unwrap();
        assert_eq!(settle(&here, Some(&identity), false).unwrap(), identity);
        std::fs::rename(&here, &there).unwrap();
        assert_eq!(settle(&there, Some(&identity), false).unwrap(), identity);

        let copied = std::process::Command::new("cp").arg("-a").arg(&there).arg(&here).status().unwrap();
        assert!(copied.success());
        let refused = settle(&here, Some(&identity), false).unwrap_err().to_string();
        assert!(refused.contains("is a copy of another one"), "{refused}");
        let renamed = settle(&here, Some(&identity), true).unwrap();
        assert_ne!(renamed, identity);
        assert_eq!(settle(&here, Some(&renamed), false).unwrap(), renamed);
        assert_eq!(settle(&there, Some(&identity), false).unwrap(), identity, "the original is as it was");
    }

    #[test]
    fn a_database_of_another_folder_is_refused_until_somebody_says_that_it_is_gone() {
        let own = Found::Own("a".to_owned());
        assert_eq!(decide(&own, Some("b"), false), Decision::RefuseDatabase);
        assert_eq!(decide(&Found::Nothing, Some("b"), false), Decision::RefuseDatabase);
        assert_eq!(decide(&own, Some("b"), true), Decision::Rename);
        assert_eq!(decide(&Found::Nothing, None, false), Decision::Rename);
        assert_eq!(decide(&own, None, false), Decision::Keep("a".to_owned()));
    }

    #[test]
    fn numbers_go_on_after_all_that_lies_there() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(largest_number(data.path()), JobId(0));
        for folder in ["runs/7", "runs/notes", "runs/18446744073709551615", "live/12.1.0"] {
            std::fs::create_dir_all(data.path().join(folder)).unwrap();
        }
        assert_eq!(largest_number(data.path()), JobId(12));
        std::fs::create_dir_all(data.path().join("forgotten/13")).unwrap();
        assert_eq!(largest_number(data.path()), JobId(13));
        note_number(data.path(), JobId(20)).unwrap();
        note_number(data.path(), JobId(15)).unwrap();
        assert_eq!(largest_number(data.path()), JobId(20));
        std::fs::write(data.path().join(NUMBERS_FILE), "scribble").unwrap();
        assert_eq!(largest_number(data.path()), JobId(13));
    }
}
