//! What can go wrong with a snapshot, each with what it happened to.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum ObjectsError {
    #[error("cannot {doing} `{}`", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot walk the folder")]
    Walk(#[source] ignore::Error),
    #[error("`{}` is not a folder", .0.display())]
    NotAFolder(PathBuf),
    #[error("nothing to pack in `{}`: it is empty, or everything in it is ignored", .0.display())]
    Empty(PathBuf),
    #[error(
        "the folder holds {} in {files} files, more than the {} that a snapshot may have; the largest: {}",
        shown_size(*bytes),
        shown_size(*limit),
        shown_files(largest)
    )]
    TooLarge { bytes: u64, limit: u64, files: usize, largest: Vec<(PathBuf, u64)> },
    #[error("the folder holds more than {} entries", crate::MOST_ENTRIES)]
    TooMany,
    #[error("it is more than {} folders deep at `{path}`", crate::DEEPEST)]
    TooDeep { path: String },
    #[error("`{}` is a link to `{}`, which is outside the folder", path.display(), target.display())]
    LinkOutside { path: PathBuf, target: PathBuf },
    #[error("`{}` is neither a file, a folder nor a link", .0.display())]
    OddFile(PathBuf),
    #[error("`{}` changed while it was packed", .0.display())]
    Changed(PathBuf),
    #[error("cannot write the archive")]
    Write(#[source] io::Error),
    #[error("the archive is damaged")]
    Damaged(#[source] io::Error),
    #[error("the archive is refused: {reason} at entry `{entry}`")]
    Hostile { entry: String, reason: &'static str },
    #[error("the archive is refused: it unpacks to more than {}", shown_size(*limit))]
    Bomb { limit: u64 },
    #[error("`{0}` is not a digest: `sha256:` and 64 hex digits")]
    BadDigest(String),
    #[error("the content has the digest `{found}`, not `{expected}`")]
    WrongDigest { expected: String, found: String },
    #[error("cannot read the content")]
    Read(#[source] io::Error),
}

impl ObjectsError {
    /// What the person can do about it, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ObjectsError::TooLarge { .. } | ObjectsError::TooMany | ObjectsError::TooDeep { .. } => Some(
                "name what the job does not need in `.danluignore`, one pattern a line as in `.gitignore`",
            ),
            ObjectsError::LinkOutside { .. } | ObjectsError::OddFile(_) => Some(
                "name it in `.danluignore`, and give the job the path it points to in `env` or `command`",
            ),
            _ => None,
        }
    }
}

/// Rounded for people: `2.3 GiB`.
pub(crate) fn shown_size(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => {
            let text = format!("{:.1}", bytes as f64 / *size as f64);
            format!("{} {unit}", text.trim_end_matches(".0"))
        }
        None => format!("{bytes} bytes"),
    }
}

fn shown_files(files: &[(PathBuf, u64)]) -> String {
    let mut text = String::new();
    for (path, size) in files {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}`{}` ({})", path.display(), shown_size(*size));
    }
    text
}
