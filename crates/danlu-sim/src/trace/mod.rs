//! Traces of real clusters, read from their text into nodes and arrivals.

pub mod openb;
mod table;

pub use table::TraceError;
