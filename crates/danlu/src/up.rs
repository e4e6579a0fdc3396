//! `danlu up`: the server, on this machine.

mod confinement;
mod database_address;

use std::ffi::OsString;
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{ArgMatches, Args, FromArgMatches as _, ValueEnum};
use danlu_cli::{CliError, ServerCommand, USAGE, output, workspaces_file};
use danlu_client::data_folder;
use danlu_core::launch::Sandbox;
use danlu_server::{
    EngineChoice, FirstSignIn, ListenConfig, SandboxOptions, ServeOptions, SharingSource, Tls, UnixUsers,
};
use danlu_slurm::SlurmSettings;
use danlu_types::account::Registration;
use danlu_types::{Sharing, Span};
use serde::de::DeserializeOwned;
use tracing_subscriber::EnvFilter;

/// What the command line needs of the server.
pub(crate) const SERVER: ServerCommand = ServerCommand { arguments: Arguments::augment_args, run };

#[derive(Debug, Args)]
struct Arguments {
    /// Address to listen on; port 0 picks a free port
    ///
    /// An address that other machines can reach requires `--tls`, `--tls-certificate` or `--behind-proxy`.
    #[arg(long, default_value = "127.0.0.1:8765", value_name = "ADDRESS", value_parser = address, help_heading = "Network")]
    listen: SocketAddr,
    /// Serve HTTPS with a self-signed certificate and print its fingerprint
    #[arg(long, help_heading = "TLS")]
    tls: bool,
    /// Certificate chain for HTTPS (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls", help_heading = "TLS")]
    tls_certificate: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate", help_heading = "TLS")]
    tls_key: Option<PathBuf>,
    /// Reverse proxies that terminate TLS and whose `X-Forwarded-For` is trusted; without a value, those on this machine
    #[arg(long, value_name = "ADDRESSES", num_args = 0..=1, require_equals = true, value_delimiter = ',',
        default_missing_values = ["127.0.0.1", "::1"], help_heading = "Network")]
    behind_proxy: Option<Vec<IpAddr>>,
    /// URL of the server in links, e.g. `https://danlu.lab.example`
    #[arg(long, value_name = "URL", help_heading = "Network")]
    public_address: Option<String>,
    /// Longest time that a request may take to arrive
    #[arg(long, value_name = "DURATION", default_value = "30s", help_heading = "Network")]
    request_timeout: Span,
    /// PostgreSQL database to use instead of the embedded SQLite, e.g. `postgres://danlu@db.lab.example/danlu`
    ///
    /// The URL must not contain a password, because all users of this machine can read command lines. If you need a password, use
    /// `--database-file` or the environment variable `DANLU_DATABASE`.
    #[arg(long, value_name = "URL", conflicts_with = "database_file", help_heading = "Storage")]
    database: Option<String>,
    /// File with the URL of the PostgreSQL database, which may contain a password; file mode 0600
    #[arg(long, value_name = "FILE", help_heading = "Storage")]
    database_file: Option<PathBuf>,
    /// Where workers run: as processes on this machine, or in a Slurm cluster
    #[arg(long, value_enum, default_value = "local", value_name = "ENGINE", help_heading = "Engine")]
    engine: EngineName,
    /// Settings for the Slurm cluster (YAML or JSON): `partition`, `account`, `qos`, `gres`, `options` and others
    #[arg(long, value_name = "FILE", help_heading = "Engine")]
    slurm: Option<PathBuf>,
    /// Simulated nodes, e.g. `2x8:ascend:910B3@rack=r1,1x8:nvidia:A100-80G`; their workers run as local processes
    #[arg(long, value_name = "NODES", help_heading = "Engine")]
    simulate: Option<String>,
    /// File of workspaces and quotas to apply at start and on SIGHUP (YAML or JSON)
    #[arg(long, value_name = "FILE", help_heading = "Accounts")]
    workspaces: Option<PathBuf>,
    /// Who can register: `closed` (administrators create accounts), `invitation`, or `open` (anyone, subject to approval)
    #[arg(long, default_value = "closed", value_name = "MODE", help_heading = "Accounts")]
    registration: Registration,
    /// Settings of an OIDC provider for single sign-on (YAML or JSON)
    #[arg(long, value_name = "FILE", help_heading = "Accounts")]
    oidc: Option<PathBuf>,
    /// Run each account's jobs as its own Unix user: `same-name`, or a UID range such as `200000-299999`; requires root
    ///
    /// With `same-name`, an account's jobs run as the Unix user of the same name. With a range, Danlu assigns each account a UID. With
    /// `--engine slurm`, the server can run as a user whom `sudo` allows to submit for others, instead of root. Without this flag, all
    /// jobs run as the server's user.
    #[arg(long, value_name = "RULE", help_heading = "Jobs")]
    unix_users: Option<UnixUsers>,
    /// Delete jobs and their logs this long after they end, e.g. `30d` [default: never]
    #[arg(long, value_name = "DURATION", help_heading = "Storage")]
    keep_ended: Option<Span>,
    /// Trust the clock even if it is over a week ahead of the last time a server ran here
    ///
    /// By default, `--keep-ended` deletes nothing in this case, because the clock may have been set ahead by mistake.
    #[arg(long, requires = "keep_ended", help_heading = "Storage")]
    trust_clock: bool,
    /// Start on a restored backup; only if the original is no longer in use
    ///
    /// By default, the server refuses to start on a copy of a data folder, or on the database of another data folder. If the original
    /// were still in use, its jobs would run twice.
    #[arg(long, help_heading = "Storage")]
    restored: bool,
    /// Allocate devices to jobs even while processes outside any job use them
    #[arg(long, help_heading = "Jobs")]
    use_busy_devices: bool,
    /// Variables of the server's environment to pass to jobs, e.g. `HF_HOME,SITE_*`
    ///
    /// Jobs always get the usual variables: `PATH`, `LANG`, `LD_LIBRARY_PATH`, and those of proxies, CUDA and CANN.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Jobs")]
    pass_environment: Vec<String>,
    /// Limit of processes and threads per worker
    #[arg(long, value_name = "N", default_value_t = 32_768, value_parser = clap::value_parser!(u64).range(16..=4_194_304),
        help_heading = "Jobs")]
    processes_per_worker: u64,
    /// Let jobs gain privileges (`sudo`), use all system calls and open devices that are not allocated to them
    ///
    /// By default, system calls that training does not need are refused, e.g. loading kernel modules. If the server runs as root, each
    /// worker can open only the devices allocated to it.
    #[arg(long, help_heading = "Jobs")]
    unrestricted_jobs: bool,
    /// Let jobs that run as the server's user read and change the data folder, and mount file systems
    ///
    /// By default, Landlock closes the data folder to jobs, except for what is the job's own, if the kernel has it and no other folder
    /// would be closed with it. The server's log says whether it does. Containers without root need to mount file systems.
    #[arg(long, help_heading = "Jobs")]
    open_data_folder: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    Local,
    Slurm,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an address and a port, such as `127.0.0.1:8765`".to_owned())
}

fn run(data: Option<&Path>, matches: &ArgMatches) -> Result<ExitCode, CliError> {
    let arguments = Arguments::from_arg_matches(matches).map_err(|error| CliError::new(error.to_string()))?;
    let listen_config = listen_config(&arguments);
    if let Some(objection) = listen_config.objection() {
        return Err(CliError::new(objection).with_code(USAGE).hint(
            "add `--tls`, or `--behind-proxy` where a proxy does TLS; or listen on 127.0.0.1, and reach it from \
             elsewhere through `ssh -L 8765:127.0.0.1:8765 HOST`",
        ));
    }
    let program = std::env::current_exe()
        .map_err(|error| CliError::new("cannot find this program's own file").caused_by(&error))?;
    if let Some(file) = &arguments.workspaces {
        // Here rather than in the server: what is wrong with it is shown at its line, before anything has begun.
        workspaces_file::open(file).map_err(|failure| failure.with_code(USAGE))?;
    }
    let oidc = arguments.oidc.as_deref().map(|file| read("provider", file)).transpose()?;
    let engine = engine(&arguments)?;
    let variable = database_address::variable()?;
    let database =
        database_address::address(arguments.database, arguments.database_file.as_deref(), variable)?;
    start_tracing();
    keep_to_ourselves();
    // Slurm gives its jobs the limits of whoever submits them, so there they stay as they are.
    if matches!(engine, EngineChoice::Local)
        && let Err(error) = danlu_device::limits::raise_open_files()
    {
        tracing::warn!("could not raise the limit of open files: {error}");
    }
    let is_simulated = arguments.simulate.is_some();
    let data = data_folder(data);
    let mut closed_data = false;
    if matches!(engine, EngineChoice::Local) {
        confinement::tell_of_system_calls(!arguments.unrestricted_jobs);
        confinement::tell_of_processes(arguments.processes_per_worker, arguments.unix_users.is_some());
        confinement::tell_of_devices(!arguments.unrestricted_jobs && !is_simulated);
        confinement::tell_of_proxies(&arguments.pass_environment);
        // Jobs of other users are kept out by the folder's mode, and may go on mounting.
        if arguments.unix_users.is_none() {
            closed_data =
                confinement::closes_data(&data, arguments.unrestricted_jobs || arguments.open_data_folder);
        }
    }
    let options = ServeOptions {
        data,
        listen_config,
        database,
        engine,
        simulate: arguments.simulate,
        sharing: arguments.workspaces.map(|file| Arc::new(WorkspacesFile(file)) as Arc<dyn SharingSource>),
        fork_server: vec![program.into_os_string(), OsString::from("launch-workers")],
        registration: arguments.registration,
        oidc,
        unix_users: arguments.unix_users,
        keep_ended: arguments.keep_ended,
        trust_clock: arguments.trust_clock,
        restored: arguments.restored,
        use_busy_devices: arguments.use_busy_devices,
        sandbox: SandboxOptions {
            launch: Sandbox {
                umask: danlu_device::limits::umask_before(),
                restricted: !arguments.unrestricted_jobs,
                // Made-up devices are none of the machine's.
                closed_devices: !arguments.unrestricted_jobs && !is_simulated,
                closed_data,
            },
            processes: Some(arguments.processes_per_worker),
            environment: arguments.pass_environment,
        },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::new("cannot start the async runtime").caused_by(&error))?;
    runtime
        .block_on(danlu_server::serve(options, tell_first_sign_in))
        .map_err(|error| CliError::new("the server ended with an error").caused_by(error.as_ref()))?;
    Ok(ExitCode::SUCCESS)
}

/// Where the server reads the workspaces from, at start and whenever it is told to.
#[derive(Debug)]
struct WorkspacesFile(PathBuf);

impl SharingSource for WorkspacesFile {
    fn read(&self) -> Result<Sharing, Box<dyn std::error::Error + Send + Sync>> {
        workspaces_file::open(&self.0).map_err(|failure| failure.plain_text().into())
    }
}

/// What the server was started with is not its jobs', and neither is what it writes.
fn keep_to_ourselves() {
    danlu_device::limits::close_files_to_others();
    for (what, done) in [
        ("open files that the server was started with reach jobs", danlu_device::limits::keep_descriptors()),
        ("programs of the same user can read the server's environment", danlu_device::limits::hide()),
    ] {
        if let Err(error) = done {
            tracing::warn!("{what}: {error}");
        }
    }
}

fn listen_config(arguments: &Arguments) -> ListenConfig {
    let tls = match (&arguments.tls_certificate, &arguments.tls_key) {
        (Some(certificate), Some(key)) => Tls::Files { certificate: certificate.clone(), key: key.clone() },
        _ if arguments.tls => Tls::SelfSigned,
        _ => Tls::Off,
    };
    ListenConfig {
        listen: arguments.listen,
        tls,
        proxies: arguments.behind_proxy.clone(),
        public_address: arguments.public_address.clone(),
        patience: arguments.request_timeout.to_duration(),
    }
}

fn engine(arguments: &Arguments) -> Result<EngineChoice, CliError> {
    let refused = |what: &str, hint: &str| Err(CliError::new(what).with_code(USAGE).hint(hint));
    if arguments.engine == EngineName::Local {
        return match arguments.slurm {
            Some(_) => refused("`--slurm` is of the Slurm engine only", "add `--engine slurm`"),
            None => Ok(EngineChoice::Local),
        };
    }
    if arguments.simulate.is_some() {
        return refused("`--simulate` is of the local engine only", "Slurm says itself which nodes it has");
    }
    let settings =
        arguments.slurm.as_deref().map(|file| read::<SlurmSettings>("Slurm settings", file)).transpose()?;
    let settings = settings.unwrap_or_default();
    match &arguments.unix_users {
        Some(UnixUsers::Range(_)) => {
            return refused(
                "Slurm's nodes do not know users that Danlu makes up",
                "use `--unix-users same-name`",
            );
        }
        Some(UnixUsers::SameName) if settings.shared => {
            return refused(
                "jobs run as users of their own only where nodes share no disk with the server",
                "set `shared: false` and `server` in the file of `--slurm`: see docs/guide/slurm.md",
            );
        }
        Some(UnixUsers::SameName) | None => {}
    }
    match settings.objection() {
        Some(objection) => refused(objection.what, objection.hint),
        None => Ok(EngineChoice::Slurm(Box::new(settings))),
    }
}

fn read<T: DeserializeOwned>(what: &str, file: &Path) -> Result<T, CliError> {
    let refused = |error: &dyn std::error::Error| {
        CliError::new(format!("cannot read the {what} from `{}`", file.display()))
            .with_code(USAGE)
            .caused_by(error)
    };
    let text = std::fs::read_to_string(file).map_err(|error| refused(&error))?;
    serde_saphyr::from_str(&text).map_err(|error| refused(&error))
}

fn tell_first_sign_in(first: FirstSignIn) {
    if !is_for_us_alone(&std::io::stdout()) {
        output::say(
            "no administrator has signed in yet; `danlu login --link` makes a link that does so, once",
        );
        return;
    }
    output::say("no administrator has signed in yet; this link does so, once and within an hour:");
    // Where nobody reads, `danlu login --link` makes another.
    let _ = output::line(first.page);
}

/// Whether nobody else reads what is written there: not a file that others may read, nor the journal. What cannot be told is
/// others' too.
fn is_for_us_alone(output: &impl AsFd) -> bool {
    let Ok(file) = output.as_fd().try_clone_to_owned().map(File::from) else { return false };
    let Ok(about) = file.metadata() else { return false };
    let journal = std::env::var("JOURNAL_STREAM").ok();
    if journal.is_some_and(|stream| stream == format!("{}:{}", about.dev(), about.ino())) {
        return false;
    }
    !about.is_file() || about.mode() & 0o044 == 0
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_that_others_read_gets_no_secret() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let readable = |mode| {
            file.as_file().set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
            is_for_us_alone(file.as_file())
        };
        assert_eq!([0o600, 0o640, 0o604, 0o644, 0o622].map(readable), [true, false, false, false, true]);
        let (_reader, writer) = std::io::pipe().unwrap();
        assert!(is_for_us_alone(&writer), "whoever made the pipe reads it");
    }
}
