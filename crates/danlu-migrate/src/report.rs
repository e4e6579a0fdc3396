//! Reports: the vendor's files by their exact names and headers, and better ones.
//!
//! All of them are made from one [`Report`](crate::project::Report), so they cannot disagree; a change is in it once and
//! only if it was applied.

pub(crate) mod diff;
mod html;
mod reference;
mod sarif;
mod terminal;
mod vendor;

pub use self::html::html;
pub use self::reference::rules_markdown;
pub use self::sarif::sarif;
pub use self::terminal::{diffs, summary, text};
pub use self::vendor::{VendorFile, log_files, vendor_files};
