//! The async runtime, built only by commands that need one.

use std::future::Future;
use std::io;

use tokio::runtime::Builder;

use crate::failure::CliError;

/// Runs a client command: one thread is enough to talk to one server.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    Builder::new_current_thread().enable_all().build().map_err(|error| cannot_start(&error))?.block_on(future)
}

/// Runs the server.
pub(crate) fn block_on_many_threads<T>(
    future: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    Builder::new_multi_thread().enable_all().build().map_err(|error| cannot_start(&error))?.block_on(future)
}

fn cannot_start(error: &io::Error) -> CliError {
    CliError::new("cannot start the async runtime").caused_by(error)
}
