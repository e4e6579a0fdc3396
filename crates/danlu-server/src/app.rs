//! The use-cases of the API: what each request means, before HTTP and after the core.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use danlu_core::admission::Excess;
use danlu_core::authorization::Action;
use danlu_core::launch::{RunLayout, UnixUser};
use danlu_core::view::job_view;
use danlu_core::{Job, TransitionError, Trigger};
use danlu_engine::Engine;
use danlu_objects::CodeStore;
use danlu_store::logs::LineCounts;
use danlu_store::{Store, StoreError, SubmissionKey};
use danlu_types::api::{JobState, JobView};
use danlu_types::{FieldError, JobId, JobSpec, Problem, ProblemCode, Reason, Span};
use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::accounts::{Caller, Directory, require};
use crate::attempt_tokens::AttemptTokens;
use crate::audit_proof::Trail;
use crate::health::ServerHealth;
use crate::job_writer::{JobWriter, JobWriterError, WriteResult};
use crate::live_state::LiveState;
use crate::nodes::NodeNotes;
use crate::notify::Notifier;
use crate::planner::Planner;
use crate::reconcile::retention_clock::RetentionClock;
use crate::removals::Removals;
use crate::reports::LiveReports;
use crate::sandbox::SandboxOptions;
use crate::sidecar::Sidecars;
use crate::troubles::Troubles;
use crate::unix_users::{UnixUserError, UserTable};
use crate::usage::UsageLog;

const RESTORE_JOB: &str = "its row in the database is damaged; it is left out of lists and does not run. Restore the database from a \
                           back-up to have it again";
/// Between the first answer of an engine that was away and its first inventory.
pub(crate) const NAMES_NO_NODES: &str = "the engine has not named its nodes yet";
const TRY_AGAIN: &str = "nothing was changed, or it is shown once the database answers; check that and the disk of the data folder, then try again";

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) live_state: Arc<LiveState>,
    pub(crate) job_writer: JobWriter,
    pub(crate) wake: Arc<Notifier>,
    pub(crate) layout: RunLayout,
    pub(crate) code: CodeStore,
    /// What is known of how many lines each log has.
    pub(crate) line_counts: LineCounts,
    /// How long ended jobs are kept; for ever when absent.
    pub(crate) keep_ended: Option<Span>,
    /// Whether devices that processes outside Danlu use are given out.
    pub(crate) retention_clock: RetentionClock,
    pub(crate) use_busy_devices: bool,
    pub(crate) planner: Planner,
    pub(crate) nodes: NodeNotes,
    pub(crate) reports: LiveReports,
    pub(crate) directory: Directory,
    pub(crate) trail: Arc<Trail>,
    pub(crate) usage: UsageLog,
    /// Held while somebody simulates.
    pub(crate) simulating: tokio::sync::Mutex<()>,
    /// Held while somebody has code migrated.
    pub(crate) migrating: Arc<tokio::sync::Mutex<()>>,
    /// Held while a job file is read.
    pub(crate) parsing: Arc<tokio::sync::Mutex<()>>,
    pub(crate) reading_reports: crate::migrations::ReportTurns,
    /// What holds for the programs of all jobs.
    pub(crate) sandbox: SandboxOptions,
    pub(crate) removals: Arc<Removals>,
    /// Whom jobs run as.
    pub(crate) users: UserTable,
    pub(crate) attempts: Arc<AttemptTokens>,
    /// Only where nodes share no disk with the server.
    pub(crate) sidecars: Option<Sidecars>,
    pub(crate) health: Arc<ServerHealth>,
    /// What keeps the server from doing all of its work now, and does not keep it from taking jobs.
    pub(crate) troubles: Troubles,
}

impl App {
    /// The job with the scheduler's word on why it waits, where it does.
    pub(crate) async fn view(&self, job: &Job) -> JobView {
        self.views(std::slice::from_ref(job)).await.remove(0)
    }

    /// The scheduler is asked about the jobs of the page only, and only if one of them waits.
    pub(crate) async fn views(&self, jobs: &[Job]) -> Vec<JobView> {
        let waits = |job: &Job| job.state() == JobState::Queued;
        if !jobs.iter().any(waits) {
            return jobs.iter().map(|job| self.with_progress(job, job_view(job, None))).collect();
        }
        let mut scheduler = self.planner.lock().await;
        let mut view = |job: &Job| {
            let waiting = scheduler.wait_reason(job.id).filter(|_| waits(job));
            self.with_progress(job, job_view(job, waiting.and_then(|reason| reason.reason(&job.spec))))
        };
        jobs.iter().map(&mut view).collect()
    }

    fn with_progress(&self, job: &Job, mut view: JobView) -> JobView {
        if let Some(remark) = self.remark_on(job) {
            view.reason = remark;
        }
        let progress = job.active().and_then(|attempt| self.reports.of(job.id, attempt.number));
        JobView { progress, ..view }
    }

    /// What the engine says of a job: what one that is being started waits for, that one that runs is suspended, that the
    /// engine itself does not answer.
    pub(crate) fn remark_on(&self, job: &Job) -> Option<Reason> {
        let live = |state| matches!(state, JobState::Starting | JobState::Running);
        let attempt = job.active().filter(|attempt| live(attempt.state()))?;
        let remark = self.reports.remark_on(job.id, attempt.number);
        let starting = || attempt.state() == JobState::Starting;
        let unreachable = |detail| Reason::ClusterUnreachable { detail };
        let outage = || self.engine.trouble().filter(|_| starting()).map(unreachable);
        let delayed = |detail| Reason::LaunchDelayed { detail };
        let launch =
            || self.reports.launch_trouble_of(job.id, attempt.number).filter(|_| starting()).map(delayed);
        remark.or_else(outage).or_else(launch)
    }

    pub(crate) async fn submit(
        &self,
        caller: &Caller,
        spec: JobSpec,
        key: Option<String>,
    ) -> Result<Arc<Job>, Problem> {
        // Of the job as it was sent: what a workspace adds to it may be another thing at the second try.
        let key = key.map(|key| submission_key(caller, &key, &spec));
        let (spec, excesses) = self.check(caller, spec)?;
        let approval = excesses.first().map(Excess::need);
        // Taken now, it could not start, and nobody would be told why.
        if let Some(trouble) = self.health.objection() {
            return Err(Problem::new(ProblemCode::Unavailable, trouble).with_hint(TRY_AGAIN));
        }
        self.unix_user(&caller.name()).await.map_err(user_problem)?;
        match self.job_writer.submit(spec, caller.name(), key.clone(), approval).await {
            Ok(WriteResult::SubmittedBefore(id)) => {
                let job = self.job_for(caller, id, Action::SeeJob).await?;
                match key {
                    Some(key) if self.differs(&key).await? => Err(key_reused(&job)),
                    _ => Ok(job),
                }
            }
            other => done(other),
        }
    }

    /// Whom the jobs of an account run as. Where that is the machine's user of its name, an administrator must have meant
    /// that user: names of accounts are chosen by people.
    pub(crate) async fn unix_user(&self, account: &str) -> Result<Option<UnixUser>, UnixUserError> {
        if self.users.is_by_name() && !self.directory.may_be_unix_user(account) {
            return Err(UnixUserError::NotAllowed(account.to_owned()));
        }
        self.users.of(&self.directory, account).await
    }

    /// Whether something else was submitted with this key before.
    async fn differs(&self, key: &SubmissionKey) -> Result<bool, Problem> {
        let before = self.store.submission_digest(&key.key).await.map_err(store_problem)?;
        Ok(before.is_some_and(|digest| digest != key.digest))
    }

    /// Refuses what is wrong in itself, what the caller may not ask for, and what nothing here could ever run. The job as
    /// its workspace takes it, and all for which somebody has to approve it.
    pub(crate) fn check(&self, caller: &Caller, spec: JobSpec) -> Result<(JobSpec, Vec<Excess>), Problem> {
        let errors = spec.check();
        if !errors.is_empty() {
            return Err(Problem::invalid_fields(errors));
        }
        let relation = self.directory.to_workspace(&caller.person, &spec.workspace);
        let nowhere = || {
            let message = format!(
                "cannot be `{}`: it does not exist, or `{}` is not a member",
                spec.workspace, caller.person.name
            );
            Problem::invalid_fields(vec![FieldError::new("workspace", message)])
                .with_hint("`danlu whoami` lists yours; an owner of the workspace can put you into it")
        };
        require(caller, relation, Action::SubmitJob, Action::SeeMembers, nowhere)?;
        if !self.directory.has_workspace(&spec.workspace) {
            return Err(nowhere());
        }
        let spec = self.engine.fit(spec).map_err(|error| Problem::invalid_fields(vec![error]))?;
        let (spec, excesses) =
            self.directory.settle(spec).map_err(|error| Problem::invalid_fields(vec![error]))?;
        self.check_secrets(&spec)?;
        // Of nodes that nobody has seen yet, nothing can be said.
        if self.live_state.nodes().is_empty() {
            let trouble = self.engine.trouble().unwrap_or_else(|| NAMES_NO_NODES.to_owned());
            return Err(Problem::new(ProblemCode::Unavailable, trouble)
                .with_hint("nothing is known of its nodes yet; submit again once it answers"));
        }
        if let Err(impossible) = self.planner.check(&spec) {
            let is_about_devices =
                ["devices", "any_of"].iter().any(|field| impossible.field.starts_with(field));
            if let Some(notice) = self.notice().filter(|_| is_about_devices) {
                return Err(Problem::new(ProblemCode::Unavailable, notice)
                    .with_hint("submit again once they are offered; `danlu nodes` says when"));
            }
            let detail = format!("`{}`: {}", impossible.field, impossible.message);
            let problem = Problem::new(ProblemCode::CannotEverRun, detail);
            return Err(Problem { errors: vec![impossible], ..problem });
        }
        match &spec.code {
            Some(digest) if !self.code.has(digest) => Err(no_snapshot(digest)),
            _ => Ok((spec, excesses)),
        }
    }

    /// Why there may be more devices than are offered, with the node.
    pub(crate) fn notice(&self) -> Option<String> {
        let (node, notice) = self.engine.notices().pop_first()?;
        Some(format!("node `{node}`: {notice}"))
    }

    /// The job, if the caller may do this to it.
    pub(crate) async fn job_for(
        &self,
        caller: &Caller,
        id: JobId,
        action: Action,
    ) -> Result<Arc<Job>, Problem> {
        let job = self.job(id).await?;
        let relation = self.directory.to_job(&caller.person, &job);
        require(caller, relation, action, Action::SeeJob, || no_such_job(id))?;
        Ok(job)
    }

    async fn job(&self, id: JobId) -> Result<Arc<Job>, Problem> {
        if let Some(job) = self.live_state.job(id) {
            return Ok(job);
        }
        let job = self.store.job_fetch(id).await.map_err(store_problem)?;
        job.map(Arc::new).ok_or_else(|| no_such_job(id))
    }

    /// What there is to tell of jobs whose rows are damaged.
    pub(crate) fn unreadable_jobs(&self) -> Vec<String> {
        let told =
            |(id, error)| format!("job {id} cannot be read from the database ({error}): {RESTORE_JOB}");
        self.store.unreadable_jobs().into_iter().map(told).collect()
    }

    pub(crate) async fn change(&self, id: JobId, event: Trigger) -> Result<Arc<Job>, Problem> {
        match self.job_writer.apply(id, event.clone()).await {
            // The live state forgets jobs that have ended; they are not gone, they only take no more events.
            Ok(WriteResult::NoSuchJob) => {
                let job = self.job(id).await?;
                match danlu_core::apply(&job, event, Timestamp::now()) {
                    danlu_core::Transition::Refuse(refusal) => Err(refused(&refusal)),
                    danlu_core::Transition::Ignore | danlu_core::Transition::Next { .. } => Ok(job),
                }
            }
            other => done(other),
        }
    }

    pub(crate) async fn delete(&self, caller: &Caller, id: JobId) -> Result<(), Problem> {
        let job = self.job_for(caller, id, Action::ChangeJob).await?;
        if job.ended_at().is_none() {
            return Err(Problem::new(ProblemCode::WrongState, format!("job {id} has not ended"))
                .with_hint(format!("stop it first: `danlu stop {id}`")));
        }
        if let Some(why) = self.health.read_only() {
            return Err(Problem::new(ProblemCode::Unavailable, format!("job {id} cannot be deleted: {why}"))
                .with_hint("make the disk writable, then delete it again"));
        }
        self.forget(&[id]).await.map_err(store_problem)?;
        Ok(())
    }

    /// Removes ended jobs, with their history and folders. The space that these take comes back later ([`crate::removals`]).
    ///
    /// The folders are put aside first, then the records go, then the folders: no folder is left that no job names, because
    /// a starting server clears away what it finds aside ([`crate::reconcile`]), and no job that is still listed loses its logs.
    pub(crate) async fn forget(&self, ids: &[JobId]) -> Result<u64, StoreError> {
        if ids.is_empty() {
            return Ok(0);
        }
        // The records may well be elsewhere, and gone they would leave folders that no job names.
        if self.health.read_only().is_some() {
            let error = std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem);
            return Err(StoreError::unavailable("remove the folders of jobs", error));
        }
        let (layout, aside, moved) = (self.layout.clone(), self.put_aside(), ids.to_vec());
        let moved = tokio::task::spawn_blocking(move || {
            // A database that is restored from before these jobs may name them again, and nothing of them lies here then.
            let noted =
                moved.iter().max().map_or(Ok(()), |id| crate::identity::note_number(&layout.data, *id));
            if let Err(error) = noted {
                tracing::warn!("could not note the numbers of forgotten jobs: {error}");
            }
            put_folders_aside(&layout, &aside, moved)
        });
        // A folder that could not be moved is removed where it is.
        let moved = moved.await.unwrap_or_default();
        let result = self.store.jobs_delete(ids).await;
        if let Ok(forgotten) = result {
            self.health.measures.forgotten_jobs.add(forgotten);
            let in_place = ids.iter().map(|id| self.layout.job_folder(*id));
            self.removals.add(moved.into_iter().map(|(_, aside)| aside).chain(in_place));
            return result;
        }
        let layout = self.layout.clone();
        let put_back = tokio::task::spawn_blocking(move || {
            for (id, aside) in moved {
                if let Err(error) = std::fs::rename(&aside, layout.job_folder(id)) {
                    tracing::warn!("could not put {} back: {error}", aside.display());
                }
            }
        });
        // Fails only where the runtime ends; the next start goes on.
        let _ = put_back.await;
        result
    }

    /// Where folders of jobs lie while these are being forgotten.
    pub(crate) fn put_aside(&self) -> PathBuf {
        self.layout.data.join("forgotten")
    }
}

fn put_folders_aside(layout: &RunLayout, aside: &Path, ids: Vec<JobId>) -> Vec<(JobId, PathBuf)> {
    use std::os::unix::fs::DirBuilderExt as _;
    // On a full disk this may fail, and the folders are removed all the same.
    let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(aside);
    let moved = ids.into_iter().filter_map(|id| {
        let place = aside.join(id.to_string());
        std::fs::rename(layout.job_folder(id), &place).ok().map(|()| (id, place))
    });
    moved.collect()
}

/// Keys are their senders' own: what another has used says nothing about this one.
/// What `danlu submit` takes along of the shell that it is typed in. A try from another shell is the same submission.
const OF_THE_SHELL: [&str; 7] = [
    "PATH",
    "VIRTUAL_ENV",
    "VIRTUAL_ENV_PROMPT",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "CONDA_PYTHON_EXE",
    "CONDA_EXE",
];

fn submission_key(caller: &Caller, key: &str, spec: &JobSpec) -> SubmissionKey {
    let mut spec = spec.clone();
    spec.env.retain(|name, _| !OF_THE_SHELL.contains(&name.as_str()));
    let body = serde_json::to_vec(&spec).expect("a job is plain values");
    SubmissionKey {
        key: format!("{} {key}", caller.name()),
        digest: BASE64URL_NOPAD.encode(&Sha256::digest(body)),
    }
}

fn key_reused(job: &Job) -> Problem {
    let detail =
        format!("the key was used before, for job {} (`{}`), with other contents", job.id, job.spec.name);
    Problem::new(ProblemCode::KeyReused, detail).with_hint(
        "nothing was submitted; give every new job a key of its own, and repeat one only to ask again",
    )
}

pub(crate) fn no_snapshot(digest: &str) -> Problem {
    let digest: String = digest.chars().take(100).collect();
    let message = format!("no snapshot {digest} has been uploaded");
    Problem::invalid_fields(vec![FieldError::new("code", message)])
        .with_hint("upload it first with `PUT /api/v1/code/{digest}`; `danlu submit` does so by itself")
}

pub(crate) fn done(answer: Result<WriteResult, JobWriterError>) -> Result<Arc<Job>, Problem> {
    match answer {
        Ok(WriteResult::Done(job) | WriteResult::Unchanged(job)) => Ok(job),
        Ok(WriteResult::Refused(refusal)) => Err(refused(&refusal)),
        Ok(WriteResult::NoSuchJob) => Err(Problem::new(ProblemCode::NotFound, "no such job")),
        Ok(WriteResult::SubmittedBefore(id)) => Err(no_such_job(id)),
        Ok(WriteResult::Overbooked) => {
            Err(Problem::new(ProblemCode::WrongState, "its devices were given to another job"))
        }
        Err(JobWriterError::Store(error)) => match &*error {
            StoreError::Refused { .. } => {
                Err(Problem::new(ProblemCode::InvalidFields, crate::error_chain(&*error)))
            }
            error => Err(unavailable(error)),
        },
        Err(error) => Err(unavailable(&error)),
    }
}

/// Said to whoever submits: once the job is to be launched, nobody is there to be told.
fn user_problem(error: UnixUserError) -> Problem {
    match error {
        UnixUserError::Store(error) => store_problem(error),
        UnixUserError::LookUp { .. } => unavailable(&error),
        UnixUserError::NotAllowed(_) => Problem::new(ProblemCode::Forbidden, error.to_string()),
        UnixUserError::Missing(_) | UnixUserError::NoPerson { .. } | UnixUserError::NoneLeft { .. } => {
            Problem::new(ProblemCode::CannotEverRun, error.to_string()).with_hint(
                "an administrator can add such a user, or start the server with other `--unix-users`",
            )
        }
    }
}

pub(crate) fn refused(refusal: &TransitionError) -> Problem {
    let problem = Problem::new(ProblemCode::WrongState, refusal.to_string());
    match refusal {
        TransitionError::ChangedSinceSeen { job } => problem.with_hint(format!(
            "look at it again (`danlu show {job}`), and approve the `generation` that you saw"
        )),
        _ => problem,
    }
}

fn no_such_job(id: JobId) -> Problem {
    Problem::new(ProblemCode::NotFound, format!("job {id} not found"))
        .with_hint("`danlu jobs --all` lists them")
}

#[expect(clippy::needless_pass_by_value, reason = "reads as `map_err(store_problem)`")]
pub(crate) fn store_problem(error: StoreError) -> Problem {
    if let StoreError::Corrupt { .. } = error {
        let problem = Problem::new(ProblemCode::Internal, crate::error_chain(&error));
        return problem.with_hint(RESTORE_JOB);
    }
    if let StoreError::Unavailable { .. } | StoreError::Damaged { .. } = error {
        return unavailable(&error);
    }
    if let StoreError::Stale(_) = error {
        let problem = Problem::new(ProblemCode::WrongState, error.to_string());
        return problem.with_hint("try again: what it is now is shown in a moment");
    }
    tracing::error!("{}", crate::error_chain(&error));
    Problem::new(ProblemCode::Internal, error.to_string())
}

fn unavailable(error: &dyn std::error::Error) -> Problem {
    Problem::new(ProblemCode::Unavailable, crate::error_chain(error)).with_hint(TRY_AGAIN)
}
