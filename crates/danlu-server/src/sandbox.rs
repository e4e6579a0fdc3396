//! What the person who runs the server decides for the programs of jobs.

use danlu_core::launch::Sandbox;

/// What holds for the programs of all jobs, whatever they ask for.
#[derive(Debug, Clone, Default)]
pub struct SandboxOptions {
    pub launch: Sandbox,
    /// The most processes and threads of a worker; as many as the machine can have when absent.
    pub processes: Option<u64>,
    /// Of the server's environment, what jobs are given besides the usual: `NAME` or `PREFIX*`.
    pub environment: Vec<String>,
}
