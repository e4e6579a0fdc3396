//! Puts the parts together, serves until asked to end, and leaves jobs running.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use danlu_core::launch::RunLayout;
use danlu_engine::Engine;
use danlu_engine::local::{self, Launchers, LocalEngine, LocalOptions};
use danlu_engine::slurm::{SidecarOptions, SlurmEngine, SlurmOptions};
use danlu_objects::CodeStore;
use danlu_slurm::SlurmSettings;
use danlu_store::logs::LineCounts;
use danlu_store::{ServerLock, Store, StoreError};
use danlu_types::Span;
use danlu_types::account::Registration;
use danlu_types::fingerprint::Fingerprint;
use danlu_types::link::sign_in_page;
use danlu_types::oidc::OidcSettings;
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::accounts::Directory;
use crate::app::App;
use crate::attempt_tokens::AttemptTokens;
use crate::audit_proof::Trail;
use crate::database;
use crate::encryption::Encryptor;
use crate::folder::DataFolder;
use crate::job_writer::JobWriter;
use crate::listener::accept::Listener;
use crate::listener::places::{ConnectionBounds, ConnectionLimits};
use crate::listener::{ListenConfig, Tls, certificate};
use crate::live_state::LiveState;
use crate::nodes::{NodeNotes, beside_ours};
use crate::notify::Notifier;
use crate::oidc::Oidc;
use crate::planner::Planner;
use crate::reconcile::retention_clock::RetentionClock;
use crate::reports::LiveReports;
use crate::sandbox::SandboxOptions;
use crate::sidecar::Sidecars;
use crate::troubles::Troubles;
use crate::unix_users::{UnixUsers, UserTable};
use crate::usage::UsageLog;
use crate::workspaces_config::SharingSource;

/// How many ended jobs a starting server reads: enough for the durations of what people run again and again.
const JOBS_TO_LEARN_FROM: u32 = 1000;

#[derive(Debug, Clone)]
pub struct ServeOptions {
    pub data: PathBuf,
    pub listen_config: ListenConfig,
    /// `postgres://…`; the data folder's own SQLite file when absent.
    pub database: Option<String>,
    /// Where workers run.
    pub engine: EngineChoice,
    /// Nodes to make up, as `danlu up --simulate` takes them; of the local engine only.
    pub simulate: Option<String>,
    /// A file whose workspaces are taken over at start and at SIGHUP.
    pub sharing: Option<Arc<dyn SharingSource>>,
    /// The program, with its arguments, whose copies become the launchers of workers (`danlu_launch::serve`).
    pub fork_server: Vec<OsString>,
    /// How accounts come to be.
    pub registration: Registration,
    /// A provider through which people sign in.
    pub oidc: Option<OidcSettings>,
    /// Whom jobs run as; the server's own user when absent.
    pub unix_users: Option<UnixUsers>,
    /// How long ended jobs are kept; for ever when absent.
    pub keep_ended: Option<Span>,
    /// The clock is right although it is far ahead of when a server last ran here.
    pub trust_clock: bool,
    /// What this data folder or database was copied from is not used any more.
    pub restored: bool,
    /// Gives out devices that processes outside Danlu use.
    pub use_busy_devices: bool,
    /// What holds for the programs of all jobs.
    pub sandbox: SandboxOptions,
}

#[derive(Debug, Clone)]
pub enum EngineChoice {
    /// As processes of this machine.
    Local,
    /// In allocations of a Slurm cluster.
    Slurm(Box<SlurmSettings>),
}

/// What only the person who started the server is told.
#[derive(Debug, Clone)]
pub struct FirstSignIn {
    /// The page on which they sign in as administrator, once.
    pub page: String,
}

/// Serves until SIGTERM or SIGINT. Where no administrator has ever signed in, `tell` gets a way in for one.
pub async fn serve(options: ServeOptions, tell: impl FnOnce(FirstSignIn)) -> anyhow::Result<()> {
    if let Some(objection) = options.listen_config.objection() {
        bail!(objection);
    }
    // On a cluster, users' files reach the server only by way of sidecars.
    let is_local = matches!(options.engine, EngineChoice::Local);
    let folder = Arc::new(DataFolder::open(&options.data, is_local && options.unix_users.is_some())?);
    // A start on a full disk writes a little; what was kept for that is given up as long as it helps.
    while folder.health.make_room() {}
    // The embedded database belongs to the data folder, which is ours by now.
    let claim = match &options.database {
        Some(url) => Some(database::claim(url).await.context("could not take the database")?),
        None => None,
    };
    let listen_config = Arc::new(options.listen_config.clone());
    let identity = certificate::open(&folder.path, &listen_config)?;
    let fingerprint = identity.as_ref().map(|identity| identity.fingerprint);
    let attempts = Arc::new(AttemptTokens::new(&folder.attempt_key()?));
    let engine = |identity| open_engine(&options, &folder, identity, fingerprint, &attempts);
    let app = Arc::new(open(&options, &folder, engine, attempts.clone()).await?);

    let listener = tokio::net::TcpListener::bind(listen_config.listen)
        .await
        .with_context(|| format!("could not listen on `{}`", listen_config.listen))?;
    let address = listen_config.address(listener.local_addr()?);
    // On other machines, jobs find it where the settings say.
    app.attempts.set_address(server_for_nodes(&options.engine).unwrap_or(&address));
    let stop = CancellationToken::new();
    // Before the first job is placed: a device that somebody else uses is not to be given out meanwhile.
    app.take_readings().await;
    // Before anything is forgotten anew: what lies aside then is on its way, and is not to go back.
    crate::reconcile::retention::reconcile_put_aside(&app).await;
    let mut loops = crate::reconcile::spawn_all(&app, &stop);
    if let Some(source) = options.sharing.clone() {
        loops.spawn(crate::workspaces_config::reload_loop(app.clone(), source, stop.clone()));
    } else {
        loops.spawn(ignore_hangups(stop.clone()));
    }
    if let Err(error) = folder.announce(&address, fingerprint) {
        if app.health.objection().is_none() {
            return Err(error);
        }
        tracing::warn!("clients that look into the data folder do not find this server yet: {error:#}");
        loops.spawn(folder.clone().announce_later(address.clone(), fingerprint, stop.clone()));
    }
    tracing::info!(data = %folder.path.display(), "serving on {address}");
    if let Some(fingerprint) = fingerprint {
        tracing::info!("the certificate's SHA-256 fingerprint is {fingerprint}");
    }
    match app.directory.first_link().await {
        Ok(Some(link)) => {
            tell(FirstSignIn { page: sign_in_page(listen_config.public_address(&address), &link.secret) });
        }
        Ok(None) => {}
        Err(problem) => tracing::warn!("could not make a link to sign in with: {}", problem.detail),
    }

    if let Some(warning) = listen_config.warning(options.unix_users.is_some()) {
        tracing::warn!("{warning}");
    }
    let public = listen_config.public_address(&address);
    let oidc = match options.oidc.clone() {
        Some(settings) => Some(Arc::new(Oidc::new(settings, public, certificate::client_tls()?)?)),
        None => None,
    };
    let places = ConnectionLimits::new(ConnectionBounds::of_this_process());
    let router = crate::http::router(app.clone(), listen_config.clone(), oidc, places.clone(), stop.clone());
    let (hand_back, handed_back) = oneshot::channel();
    let shutdown = {
        let stop = stop.clone();
        let store = app.store.clone();
        async move {
            // The claim outlives the last write, so it comes back from here.
            let _ = hand_back.send(wait_for_end(claim, &*store).await);
            tracing::info!("shutting down; jobs keep running and are found again by the next `danlu up`");
            stop.cancel();
        }
    };
    let tls = identity.map(|identity| identity.acceptor);
    let proxies = listen_config.proxies.clone().unwrap_or_default();
    let knows_jobs = listen_config.proxies.is_some() && options.unix_users.is_some();
    let (patience, refuse) = (listen_config.patience, crate::http::refuse);
    Listener { router, tls, patience, places, proxies, refuse, knows_jobs }.serve(listener, shutdown).await;
    stop.cancel();
    while loops.join_next().await.is_some() {}
    folder.retract(&address, fingerprint);
    app.store.close().await;
    match handed_back.await {
        Ok((_claim, Some(lost))) => Err(lost).context("lost the database, so this server had to end"),
        _ => Ok(()),
    }
}

fn people_choose_names(options: &ServeOptions) -> bool {
    options.oidc.is_some() || options.registration != Registration::Closed
}

/// Waits for a signal, or for another server to take the database, which only a database that was away for a while allows.
async fn wait_for_end(
    mut claim: Option<ServerLock>,
    store: &dyn Store,
) -> (Option<ServerLock>, Option<StoreError>) {
    let lost = async {
        match &mut claim {
            Some(claim) => claim.lost().await,
            None => std::future::pending().await,
        }
    };
    let lost = tokio::select! {
        () = wait_for_signal() => None,
        error = lost => Some(error),
        () = store.deposed() => Some(StoreError::Deposed),
    };
    (claim, lost)
}

fn server_for_nodes(engine: &EngineChoice) -> Option<&str> {
    match engine {
        EngineChoice::Local => None,
        EngineChoice::Slurm(settings) => {
            settings.server.as_deref().map(|server| server.trim_end_matches('/'))
        }
    }
}

/// Makes this the only server that writes, if the database is this folder's, and says how both are called. Where nothing can be
/// written, nothing needs that, and a folder may be without a name.
async fn take_lead(
    options: &ServeOptions,
    folder: &DataFolder,
    store: &dyn Store,
) -> anyhow::Result<Option<String>> {
    let database = store.identity().await?;
    let (identity, taken) = match crate::identity::settle(&folder.path, database.as_deref(), options.restored)
    {
        Ok(identity) => {
            let taken = store.lead(&identity).await.context("could not take the database");
            (Some(identity), taken)
        }
        Err(error) if error.downcast_ref::<std::io::Error>().is_some() => (None, Err(error)),
        Err(refused) => return Err(refused),
    };
    match (taken, folder.health.objection()) {
        (Err(error), Some(_)) => tracing::warn!("{error:#}"),
        (taken, _) => taken?,
    }
    Ok(identity)
}

pub(crate) async fn open(
    options: &ServeOptions,
    folder: &DataFolder,
    engine: impl FnOnce(Option<String>) -> anyhow::Result<Arc<dyn Engine>>,
    attempts: Arc<AttemptTokens>,
) -> anyhow::Result<App> {
    let url = match &options.database {
        Some(url) => url.clone(),
        None => format!("sqlite:{}", folder.path.join("danlu.db").display()),
    };
    let encryptor = Arc::new(Encryptor::open(&folder.path)?);
    let trail = Arc::new(Trail::new(&folder.path, &encryptor));
    let store = database::open(&url, &folder.health, &trail).await?;
    // Engines tell by the name what is theirs.
    let engine = engine(take_lead(options, folder, &*store).await?)?;
    // Before anything is written that would vouch for what it finds.
    trail.begin(&*store, options.restored).await;
    let nodes = first_inventory(&*engine).await?;

    let jobs = store.jobs_live().await?;
    let nodes = NodeNotes::new(beside_ours(nodes, jobs.iter()), store.node_notes().await?);
    let live_state = Arc::new(LiveState::new(nodes.noted()));
    adopt(&live_state, jobs);
    let wake = Arc::new(Notifier::new());
    let last_id = store.job_last_id().await?.max(crate::identity::largest_number(&folder.path));
    let job_writer = JobWriter::spawn(store.clone(), live_state.clone(), wake.clone(), last_id);
    let layout = RunLayout { data: folder.path.clone() };
    let code = CodeStore::new(folder.path.join("code"));
    code.clear_incoming();
    let directory = Directory::open(store.clone(), &folder.token()?, options.registration, encryptor)
        .await
        .context("could not read the accounts")?;
    if let Some(source) = options.sharing.clone() {
        match (crate::workspaces_config::take(source, &directory).await, folder.health.objection()) {
            (Err(error), Some(_)) => tracing::warn!("{error:#}"),
            (taken, _) => taken?,
        }
    }
    let sharing = directory.sharing();
    for warning in danlu_core::quota::overpromised(&sharing, &live_state.nodes()) {
        tracing::warn!("{warning}; not all guarantees can be kept at once");
    }
    let planner = Planner::new(live_state.clone(), sharing);
    let mut ended = store.jobs_ended_last(JOBS_TO_LEARN_FROM).await?;
    ended.reverse();
    planner.remember(&ended).await;
    nodes.learn(ended.iter().chain(live_state.read().jobs().map(Arc::as_ref)), Timestamp::now());
    let users = UserTable::new(options.unix_users.clone(), &layout);
    match (&options.unix_users, users.limitation(options.sandbox.launch.closed_data)) {
        (Some(rule), _) => {
            tracing::info!("jobs run as {rule}");
            if *rule == UnixUsers::SameName && people_choose_names(options) {
                tracing::warn!(
                    "people choose the names of their accounts here, and this machine has users: jobs of an account wait for \
                     an administrator who says that it is the user's"
                );
            }
        }
        (None, limitation) => tracing::warn!("{}", limitation.unwrap_or_default()),
    }
    let sidecars = match &options.engine {
        EngineChoice::Slurm(settings) if !settings.shared => {
            Some(Sidecars::new(programs_folder(&folder.path)))
        }
        EngineChoice::Slurm(_) | EngineChoice::Local => None,
    };
    let line_counts = LineCounts::new();
    let keep_ended = options.keep_ended;
    let reports = LiveReports::default();
    Ok(App {
        store,
        engine,
        live_state,
        job_writer,
        wake,
        layout,
        code,
        line_counts,
        keep_ended,
        retention_clock: RetentionClock::new(&folder.path, options.trust_clock),
        use_busy_devices: options.use_busy_devices,
        planner,
        nodes,
        reports,
        directory,
        trail,
        usage: UsageLog::open(&folder.path, Timestamp::now()),
        simulating: tokio::sync::Mutex::default(),
        migrating: Arc::default(),
        parsing: Arc::default(),
        reading_reports: crate::migrations::ReportTurns::default(),
        removals: Arc::default(),
        sandbox: options.sandbox.clone(),
        users,
        attempts,
        sidecars,
        health: folder.health.clone(),
        troubles: Troubles::default(),
    })
}

/// The nodes to begin with. Where a cluster does not answer, jobs that run there are to be seen nevertheless: its nodes come
/// with the first inventory that it gives.
async fn first_inventory(engine: &dyn Engine) -> anyhow::Result<Vec<danlu_types::Node>> {
    const PATIENCE: Duration = Duration::from_secs(8);
    let told = match tokio::time::timeout(PATIENCE, engine.inventory()).await {
        Ok(Ok(nodes)) => return Ok(nodes),
        Ok(Err(error)) if !engine.inventory_changes() => {
            return Err(error).context("could not take inventory");
        }
        Ok(Err(error)) => crate::error_chain(&error),
        Err(_) => format!("the engine has not answered for {PATIENCE:?}"),
    };
    tracing::error!("serving without nodes until the engine names them: {told}");
    Ok(Vec::new())
}

fn open_engine(
    options: &ServeOptions,
    folder: &DataFolder,
    identity: Option<String>,
    fingerprint: Option<Fingerprint>,
    attempts: &Arc<AttemptTokens>,
) -> anyhow::Result<Arc<dyn Engine>> {
    let data = folder.path.clone();
    match &options.engine {
        EngineChoice::Local => {
            if options.unix_users.is_some() && !nix::unistd::geteuid().is_root() {
                bail!("jobs can run as users of their own only where the server runs as root");
            }
            let offered =
                local::offered_nodes(options.simulate.as_deref()).context("could not read `--simulate`")?;
            let launchers = Launchers::Nursery(options.fork_server.clone());
            let environment = options.sandbox.environment.clone();
            let engine = LocalEngine::new(LocalOptions { data, launchers, environment, offered })
                .context("could not prepare the local engine")?;
            if let Some(limitation) = engine.limitation() {
                tracing::warn!("{limitation}");
            }
            Ok(Arc::new(engine))
        }
        EngineChoice::Slurm(settings) => {
            let program = options.fork_server.first().cloned().unwrap_or_default();
            // A certificate that authorities vouch for may be renewed while jobs run.
            let fingerprint = fingerprint.filter(|_| options.listen_config.tls == Tls::SelfSigned);
            let sidecars = (!settings.shared).then(|| SidecarOptions {
                tokens: attempts.clone(),
                fingerprint: fingerprint.map(|fingerprint| fingerprint.to_string()),
                programs: programs_folder(&folder.path),
            });
            let (settings, many_users) = ((**settings).clone(), options.unix_users.is_some());
            let slurm = SlurmOptions { data, identity, program, settings, many_users, sidecars };
            let engine = SlurmEngine::new(slurm).context("could not prepare the Slurm engine")?;
            Ok(Arc::new(engine))
        }
    }
}

/// Where programs lie that nodes fetch.
fn programs_folder(data: &std::path::Path) -> PathBuf {
    data.join("programs")
}

/// Takes over what an earlier server left: jobs that wait go on waiting, those that run hold their devices.
fn adopt(live_state: &LiveState, jobs: Vec<danlu_core::Job>) {
    let mut pages = live_state.write();
    let count = jobs.len();
    for job in jobs {
        if let Some(attempt) = job.active() {
            let grants: Vec<_> = attempt.workers.iter().map(|worker| worker.grant.clone()).collect();
            if let Some(error) = pages.cluster.force_allocate(job.id, &grants) {
                // The inventory has changed under a running job. It keeps running; its node takes no others until the
                // job ends or is found lost.
                tracing::warn!(job.id = %job.id, "job {} holds what this inventory does not offer: {error}", job.id);
            }
        }
        pages.insert(Arc::new(job));
    }
    if count > 0 {
        tracing::info!("took over {count} jobs that have not ended");
    }
}

/// Where there is no file to read again, SIGHUP asks for nothing, and must not end the server.
async fn ignore_hangups(stop: CancellationToken) {
    let Ok(mut hang_up) = signal(SignalKind::hangup()) else { return };
    loop {
        tokio::select! {
            _ = hang_up.recv() => tracing::info!("no workspaces file to read again"),
            () = stop.cancelled() => return,
        }
    }
}

pub(crate) async fn wait_for_signal() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        // Without signal handlers the default action ends the process, which jobs survive too.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
