//! The launcher as a program of its own, for tests and measurements; the `danlu` binary has it as a hidden command.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(run_folder) => danlu_launch::run(Path::new(&run_folder)),
        None => ExitCode::from(2),
    }
}
