//! The launcher as a program (given a run folder), as a fork server (given nothing), or as Slurm starts it, for this crate's
//! tests with the real one; `cargo test` builds it beside them.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match &arguments[..] {
        [] => danlu_launch::serve(),
        [what, folder] if what == "slurm-worker" => danlu_launch::run_in_allocation(Path::new(folder), false),
        [what, folder] if what == "slurm-session" => danlu_launch::pipe_session(Path::new(folder)),
        [run_folder, ..] => danlu_launch::run(Path::new(run_folder)),
    }
}
