//! `danlu up`: the server, on this machine.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use danlu_client::data_folder;
use danlu_server::{FirstSignIn, ServeOptions, SharingSource, UnixUsers};
use danlu_types::Span;
use danlu_types::account::Registration;
use tracing_subscriber::EnvFilter;

use crate::failure::{Failure, USAGE};
use crate::output;
use crate::runtime::block_on_many_threads;
use crate::workspaces_file::{self, WorkspacesFile};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The address to listen on; port 0 takes any free one
    #[arg(long, default_value = "127.0.0.1:8765", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// A PostgreSQL database instead of the embedded SQLite
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Offers made-up machines, whose workers run as local processes: `2x8:ascend:910B3@rack=r1,1x8:nvidia:A100-80G`
    #[arg(long, value_name = "NODES")]
    simulate: Option<String>,
    /// Workspaces to make and change at each start and at SIGHUP: guarantees, limits and the rest, in YAML or JSON
    #[arg(long, value_name = "FILE")]
    workspaces: Option<PathBuf>,
    /// Lets anybody ask for an account; it works once an administrator has approved it
    #[arg(long)]
    open_registration: bool,
    /// Runs jobs as users of their own: `same-name` for the machine's users with the accounts' names, or a range of user ids
    /// to give to accounts (`200000-299999`). The server must be root's; without this, all jobs run as its own user
    #[arg(long, value_name = "RULE")]
    unix_users: Option<UnixUsers>,
    /// Forgets jobs, with their logs, so long after their end (`30d`); keeps them for ever when absent
    #[arg(long, value_name = "TIME")]
    keep_ended: Option<Span>,
}

pub(crate) fn run(data: Option<&Path>, arguments: Arguments) -> Result<ExitCode, Failure> {
    if !arguments.listen.ip().is_loopback() {
        let address = arguments.listen;
        let message = format!("will not listen on {address}, which other machines can reach");
        return Err(Failure::new(message).with_code(USAGE).hint(
            "until there are accounts, one token opens everything: listen on 127.0.0.1, and reach it from \
             elsewhere through `ssh -L 8765:127.0.0.1:8765 HOST`",
        ));
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::new("cannot find this program's own file").caused_by(&error))?;
    if let Some(file) = &arguments.workspaces {
        // Here rather than in the server: what is wrong with it is shown at its line, before anything has begun.
        workspaces_file::open(file).map_err(|failure| failure.with_code(USAGE))?;
    }
    start_tracing();
    let options = ServeOptions {
        data: data_folder(data),
        listen: arguments.listen,
        database: arguments.database,
        simulate: arguments.simulate,
        sharing: arguments.workspaces.map(|file| Arc::new(WorkspacesFile(file)) as Arc<dyn SharingSource>),
        nursery: vec![program.into_os_string(), OsString::from("launch-workers")],
        registration: if arguments.open_registration { Registration::Open } else { Registration::Closed },
        unix_users: arguments.unix_users,
        keep_ended: arguments.keep_ended,
    };
    block_on_many_threads(async {
        danlu_server::serve(options, tell_first_sign_in)
            .await
            .map_err(|error| Failure::new("the server ended with an error").caused_by(error.as_ref()))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn tell_first_sign_in(first: FirstSignIn) {
    output::say("no administrator has signed in yet; this link does so, once and within an hour:");
    // Where nobody reads, `danlu login --link` makes another.
    let _ = output::line(first.page);
}

/// `DANLU_LOG`, or `RUST_LOG`, follows the usual filter syntax: `debug`, `danlu_server=trace,info`.
fn start_tracing() {
    let variable = if std::env::var_os("DANLU_LOG").is_some() { "DANLU_LOG" } else { "RUST_LOG" };
    let filter = EnvFilter::builder()
        .with_env_var(variable)
        .with_default_directive(tracing::level_filters::LevelFilter::INFO.into())
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::stderr_is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .init();
}
