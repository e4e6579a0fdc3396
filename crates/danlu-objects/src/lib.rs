//! Code snapshots: a folder packed into one archive that is named by its own digest.
//!
//! [`pack`] is deterministic: the same tree gives the same bytes, so an unchanged folder is uploaded once. [`unpack`]
//! treats every archive as hostile: it never writes outside the folder it was given, never follows a link while
//! writing, and stops at fixed bounds. [`CodeStore`] holds archives under names that it verified itself.
//!
//! Everything here blocks; callers in async code move it to a blocking thread.

mod digest;
mod entries;
mod error;
mod pack;
mod path;
mod store;
mod unpack;

pub use digest::{is_digest, sha256_digest};
pub use entries::find_entry;
pub use error::ObjectsError;
pub use pack::{PackedSnapshot, pack, pack_all};
pub use store::{CodeStore, StoredSnapshot};
pub use unpack::{UnpackLimits, open, unpack, unpack_within};

/// The most that a snapshot may hold, before compression. Code is megabytes; what is larger is data, and belongs
/// where the job can read it without a copy for each attempt.
pub const MOST_BYTES: u64 = 2 << 30;

/// The most entries a snapshot may have: an archive of nothing but tiny files is a bomb, too.
pub const MOST_ENTRIES: usize = 500_000;

/// In so many folders an entry may be: no program's code comes near, and every path stays one that the kernel takes.
pub const DEEPEST: usize = 256;

/// Error texts name the entry, but not a megabyte of name.
fn shown_name(path: &std::path::Path) -> String {
    path.to_string_lossy().chars().take(200).collect()
}
