//! The async runtime, built only by commands that need one.

use std::future::Future;

use tokio::runtime::Builder;

use crate::failure::CliError;

/// Runs a client command: one thread is enough to talk to one server.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::new("cannot start the async runtime").caused_by(&error))?;
    runtime.block_on(future)
}
