//! Code from CUDA to Ascend NPU, from snapshot to snapshot: for the console, and for jobs whose code is migrated on its way.
//!
//! Nothing in a snapshot is run. One migration at a time, within bounds of size and time: it is the same machine that runs
//! the cluster. The same code and options give the same snapshot, so the reports inside of it hold no time.

mod view;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use danlu_migrate::project::{self, Destination, ProjectError, REPORT_NAMES};
use danlu_migrate::{Distributed, Options, TorchVersion, versions};
use danlu_objects::{Bounds, CodeStore, ObjectsError};
use danlu_types::api::{MigrationRequest, MigrationView};
use danlu_types::{FieldError, Problem, ProblemCode};

use crate::app::{App, no_snapshot};

const BOUNDS: Bounds = Bounds { bytes: 512 << 20, entries: 50_000 };
const LONGEST: Duration = Duration::from_mins(1);
/// How long one waits for the one before.
const PATIENCE: Duration = Duration::from_secs(30);
const LARGEST_REPORT: u64 = 256 << 20;
/// The title of the page, which cannot know what its reader calls the project.
const TITLE: &str = "Migration to Ascend NPU";

/// Set when nobody waits for the answer any more.
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug, thiserror::Error)]
enum MigrationError {
    #[error(transparent)]
    Snapshot(#[from] ObjectsError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error("cannot make the archive of the migrated copy")]
    Archive(#[from] std::io::Error),
}

impl App {
    pub(crate) async fn migrate(&self, request: MigrationRequest) -> Result<MigrationView, Problem> {
        let options = options(&request)?;
        if !self.code.has(&request.code) {
            return Err(no_snapshot(&request.code));
        }
        let turn = tokio::time::timeout(PATIENCE, self.migrating.clone().lock_owned()).await;
        let Ok(turn) = turn else {
            let detail = "others have their code migrated just now; one migration runs at a time";
            return Err(Problem::new(ProblemCode::TooManyRequests, detail)
                .with_hint("try again in a minute, or use `danlu migrate`, which needs no server"));
        };
        let given_up = Arc::new(AtomicBool::new(false));
        let _when_dropped = GivenUp(given_up.clone());
        let code = self.code.clone();
        let began = Instant::now();
        let work = move || {
            // Held until the work has ended, even if nobody waits for it any more.
            let _turn = turn;
            let goes_on = || !given_up.load(Ordering::Relaxed) && began.elapsed() < LONGEST;
            migrate(&code, &request.code, &options, &goes_on)
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(view)) => Ok(view),
            Ok(Err(error)) => Err(problem(&error)),
            Err(error) => {
                tracing::error!("migrating code failed: {error}");
                Err(Problem::new(ProblemCode::Internal, "the migration failed; the server's log says more"))
            }
        }
    }

    /// A report of a migrated snapshot, by its name.
    pub(crate) async fn migration_report(&self, code: &str, name: &str) -> Result<Vec<u8>, Problem> {
        let missing = || {
            Problem::new(ProblemCode::NotFound, "there is no such report")
                .with_hint(format!("reports are {}", REPORT_NAMES.join(", ")))
        };
        // Only names that we give ourselves, so that nothing else of a snapshot can be asked for.
        let name = REPORT_NAMES.iter().find(|known| **known == name).ok_or_else(missing)?;
        if !self.code.has(code) {
            return Err(missing());
        }
        let archive = self.code.path(code).map_err(|_| missing())?;
        let path = Path::new(project::PLATFORM_REPORTS).join(name);
        let read = move || danlu_objects::read_entry(danlu_objects::open(&archive)?, &path, LARGEST_REPORT);
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok(found)) => found.ok_or_else(missing),
            Ok(Err(error)) => Err(problem(&MigrationError::Snapshot(error))),
            Err(_) => Err(Problem::new(ProblemCode::Internal, "reading the report failed")),
        }
    }
}

fn options(request: &MigrationRequest) -> Result<Options, Problem> {
    let wrong = |field: &str, message: String| Problem::invalid_fields(vec![FieldError::new(field, message)]);
    let torch = match &request.torch {
        None => TorchVersion::newest(),
        Some(asked) => TorchVersion::nearest(asked).map(|(version, _)| version).ok_or_else(|| {
            wrong("torch", format!("is no version of PyTorch; there are lists for {}", versions().join(", ")))
        })?,
    };
    let distributed = match &request.distributed {
        None => None,
        Some(entry) => Some(Distributed::new(entry.main.as_str(), &entry.model).ok_or_else(|| {
            wrong(
                "distributed.model",
                "is not the name of a variable, such as `model` or `self.net`".to_owned(),
            )
        })?),
    };
    let (modelarts, similar) = (request.modelarts, request.similar);
    Ok(Options { torch, distributed, modelarts, similar, ..Options::default() })
}

fn migrate(
    code: &CodeStore,
    digest: &str,
    options: &Options,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<MigrationView, MigrationError> {
    let workshop = code.workshop()?;
    let (before, after) = (workshop.path().join("before"), workshop.path().join("after"));
    danlu_objects::unpack_within(danlu_objects::open(&code.path(digest)?)?, &before, BOUNDS)?;
    let report =
        project::migrate_while(&before, &Destination::Folder(after.clone()), options, true, goes_on)?;
    let reports =
        project::write_reports(&after.join(project::PLATFORM_REPORTS), &report, options, TITLE, None)?;
    let archive = workshop.path().join("archive");
    let packed = danlu_objects::pack_all(&after, std::io::BufWriter::new(std::fs::File::create(&archive)?))?;
    code.put(&packed.digest, std::fs::File::open(&archive)?)?;
    // What is not there any more is shown without its text.
    let text = |root: &Path, path: &str| {
        let bytes = std::fs::read(root.join(path)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let texts = |path: &str| (text(&before, path), text(&after, path));
    Ok(view::of(packed.digest, &report, reports, texts))
}

fn problem(error: &MigrationError) -> Problem {
    let detail = crate::error_chain(error);
    match error {
        MigrationError::Project(ProjectError::NoMain { .. }) => {
            Problem::invalid_fields(vec![FieldError::new("distributed.main", detail)])
                .with_hint("name the entry script relative to the snapshot, such as `tools/train.py`")
        }
        MigrationError::Project(ProjectError::GivenUp) => Problem::new(
            ProblemCode::InvalidFields,
            format!("this takes longer than {} seconds", LONGEST.as_secs()),
        )
        .with_hint("use `danlu migrate`, which takes as long as it needs"),
        MigrationError::Snapshot(ObjectsError::Bomb { .. } | ObjectsError::Hostile { .. }) => {
            Problem::new(ProblemCode::InvalidFields, detail).with_hint(
                "leave data out with `.danluignore`, or use `danlu migrate`, which has no such bound",
            )
        }
        MigrationError::Snapshot(ObjectsError::Damaged(_)) => {
            Problem::invalid_fields(vec![FieldError::new("code", detail)])
        }
        MigrationError::Snapshot(_) | MigrationError::Project(_) | MigrationError::Archive(_) => {
            tracing::warn!("could not migrate code: {detail}");
            Problem::new(ProblemCode::Unavailable, "the migrated copy could not be made")
                .with_hint("the server's log says why; the disk of its data folder may be full")
        }
    }
}
