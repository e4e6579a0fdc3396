//! A real server on a temporary folder, for end-to-end tests.
//!
//! Nothing here is a double: [`TestServer`] starts the built binary, talks to it over HTTP, kills it when a test says so, and
//! ends whatever its jobs left behind when the test is over. Tests wait for conditions with a deadline, never for time.

mod ascend;
mod clock;
mod disk;
mod postgres;
mod processes;
mod relay;
mod server;
mod skip;
mod slurm;
mod terminal;
pub mod wire;

pub use ascend::FakeAscend;
pub use clock::FakeClock;
pub use disk::SmallDisk;
pub use postgres::PostgresServer;
pub use processes::{alive, processes_of};
pub use relay::Relay;
pub use server::{TestServer, spec};
pub use skip::skip;
pub use slurm::{SlurmRig, slurm_programs};
pub use terminal::{CTRL_C, Terminal};

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

/// Long enough for the busiest machine; only a broken build waits for it.
pub const DEADLINE: Duration = Duration::from_mins(3);

/// Asks again and again until there is an answer.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, ask: impl FnMut() -> F) -> T {
    eventually_within(DEADLINE, what, ask).await
}

/// The same for what may take longer than all else.
pub async fn eventually_within<T, F: Future<Output = Option<T>>>(
    limit: Duration,
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
