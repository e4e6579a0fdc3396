//! The launcher as a program (given a run folder) or as a nursery (given nothing), for this crate's tests with the real one; `cargo test` builds it beside them.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(run_folder) => danlu_launch::run(Path::new(&run_folder)),
        None => danlu_launch::serve(),
    }
}
