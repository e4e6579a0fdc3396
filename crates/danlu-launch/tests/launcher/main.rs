//! The launcher as a process, with real ranks.

mod ends;
mod gangs;
mod harness;
mod limits;
mod output;
mod sessions;
