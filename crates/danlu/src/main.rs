//! The one binary: the command line, the launcher that the engine puts around each worker, and the process of a migration.

#[cfg(all(test, feature = "server"))]
mod tests;
#[cfg(feature = "server")]
mod up;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else that would start a thread: launchers have one, and the first is copied for each worker.
    let mut arguments = std::env::args_os().skip(1);
    let (first, second) = (arguments.next(), arguments.next());
    match (first.as_deref().and_then(|first| first.to_str()), second) {
        (Some("launch-workers"), _) => danlu_launch::serve(),
        (Some("slurm-worker"), Some(folder)) => {
            let beside_sidecar = arguments.next().is_some_and(|word| word == "beside-sidecar");
            danlu_launch::run_in_allocation(Path::new(&folder), beside_sidecar)
        }
        (Some("slurm-claim"), Some(server)) => danlu_sidecar::claim(server, arguments),
        (Some("slurm-sidecar"), Some(server)) => {
            danlu_launch::guard_sidecar(|| danlu_sidecar::run(server, arguments))
        }
        (Some("slurm-session"), Some(run)) => danlu_launch::pipe_session(Path::new(&run)),
        #[cfg(feature = "server")]
        (Some("migrate-snapshot"), Some(folder)) => danlu_server::migrate_snapshot(Path::new(&folder)),
        // For `cargo xtask generate`.
        #[cfg(feature = "server")]
        (Some("openapi"), None) => danlu_cli::output::line(danlu_server::openapi_json())
            .map_or_else(danlu_cli::CliError::report, |()| ExitCode::SUCCESS),
        #[cfg(feature = "server")]
        _ => danlu_cli::main(Some(&up::SERVER)),
        #[cfg(not(feature = "server"))]
        _ => danlu_cli::main(None),
    }
}
