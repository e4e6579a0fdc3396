//! The one binary: the command line, and the launcher that the engine puts around each worker.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: a launcher starts with every worker, and its start is part of the job's latency.
    let mut arguments = std::env::args_os().skip(1);
    if let (Some(first), Some(run_folder)) = (arguments.next(), arguments.next())
        && first == "launch-worker"
    {
        return danlu_launch::run(Path::new(&run_folder));
    }
    danlu_cli::main()
}
