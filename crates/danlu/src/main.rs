//! The one binary: the command line, and the launcher that the engine puts around each worker.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else that would start a thread: this process is copied for each worker.
    if std::env::args_os().nth(1).is_some_and(|first| first == "launch-workers") {
        return danlu_launch::serve();
    }
    danlu_cli::main()
}
