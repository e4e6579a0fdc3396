//! Code from CUDA to Ascend NPU, from snapshot to snapshot: for the console, and for jobs whose code is migrated on its way.
//!
//! Nothing in a snapshot is run. One migration at a time, within bounds of size and time: it is the same machine that runs
//! the cluster. The same code and options give the same snapshot, so the reports inside of it hold no time. Sources are read in a
//! process of their own ([`child`]): whatever one of them does to the migrator, it does to that process.

mod child;
mod report;
mod view;

use std::path::Path;
use std::time::Duration;

use danlu_migrate::project::{self, REPORT_NAMES};
use danlu_migrate::{Distributed, Options, TorchVersion, versions};
use danlu_objects::{CodeStore, ObjectsError, UnpackLimits};
use danlu_types::api::{MigrationRequest, MigrationView};
use danlu_types::{FieldError, Problem, ProblemCode};

use self::child::ChildError;
pub use self::child::migrate_snapshot;
use self::report::ReadingError;
pub(crate) use self::report::{ReportReading, ReportTurns};
use crate::app::{App, no_snapshot};

const BOUNDS: UnpackLimits = UnpackLimits { bytes: 512 << 20, entries: 50_000 };
/// How long one waits for the one before.
const PATIENCE: Duration = Duration::from_secs(30);
/// The title of the page, which cannot know what its reader calls the project.
const TITLE: &str = "Migration to Ascend NPU";

#[derive(Debug, thiserror::Error)]
enum MigrationError {
    #[error(transparent)]
    Snapshot(#[from] ObjectsError),
    #[error(transparent)]
    Child(#[from] ChildError),
    #[error("cannot make the archive of the migrated copy")]
    Archive(#[from] std::io::Error),
}

impl App {
    pub(crate) async fn migrate(&self, request: MigrationRequest) -> Result<MigrationView, Problem> {
        options(&request)?;
        if !self.code.has(&request.code) {
            return Err(no_snapshot(&request.code));
        }
        let turn = tokio::time::timeout(PATIENCE, self.migrating.clone().lock_owned()).await;
        let Ok(turn) = turn else {
            let detail = "others have their code migrated just now; one migration runs at a time";
            return Err(Problem::new(ProblemCode::TooManyRequests, detail)
                .with_hint("try again in a minute, or use `danlu migrate`, which needs no server"));
        };
        // Held until the work has ended. Whoever waits no more ends the process with its future.
        let migrated = self.migrate_alone(&request).await;
        drop(turn);
        migrated.map_err(|error| problem(&error))
    }

    async fn migrate_alone(&self, request: &MigrationRequest) -> Result<MigrationView, MigrationError> {
        let (code, digest) = (self.code.clone(), request.code.clone());
        let workshop = blocking(move || unpacked(&code, &digest)).await?;
        let mut view = child::migrate(workshop.path(), request, child::LIMITS).await?;
        let code = self.code.clone();
        view.code = blocking(move || packed(&code, workshop.path())).await?;
        Ok(view)
    }

    /// A report of a migrated snapshot, by its name.
    pub(crate) async fn migration_report(&self, code: &str, name: &str) -> Result<ReportReading, Problem> {
        let missing = || {
            Problem::new(ProblemCode::NotFound, "report not found")
                .with_hint(format!("reports are {}", REPORT_NAMES.join(", ")))
        };
        // Only names that we give ourselves, so that nothing else of a snapshot can be asked for.
        let name = REPORT_NAMES.iter().find(|known| **known == name).ok_or_else(missing)?;
        if !self.code.has(code) {
            return Err(missing());
        }
        let archive = self.code.path(code).map_err(|_| missing())?;
        let path = Path::new(project::PLATFORM_REPORTS).join(name);
        match report::read(&self.reading_reports, archive, path).await {
            Ok(found) => found.ok_or_else(missing),
            Err(ReadingError::Snapshot(error)) => Err(problem(&MigrationError::Snapshot(error))),
            Err(ReadingError::Busy) => Err(ReadingError::busy()),
            Err(ReadingError::Ended) => Err(Problem::new(ProblemCode::Internal, "reading the report failed")),
        }
    }
}

fn options(request: &MigrationRequest) -> Result<Options, Problem> {
    let wrong = |field: &str, message: String| Problem::invalid_fields(vec![FieldError::new(field, message)]);
    let torch = match &request.torch {
        None => TorchVersion::newest(),
        Some(asked) => TorchVersion::nearest(asked).map(|(version, _)| version).ok_or_else(|| {
            wrong(
                "torch",
                format!("is not a supported PyTorch version; supported are {}", versions().join(", ")),
            )
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

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MigrationError> + Send + 'static,
) -> Result<T, MigrationError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(MigrationError::Archive(std::io::Error::other(error))))
}

/// A folder with the snapshot in it, where [`child`] looks for it.
fn unpacked(code: &CodeStore, digest: &str) -> Result<tempfile::TempDir, MigrationError> {
    let workshop = code.workshop()?;
    danlu_objects::unpack_within(
        danlu_objects::open(&code.path(digest)?)?,
        &workshop.path().join(child::BEFORE),
        BOUNDS,
    )?;
    Ok(workshop)
}

/// Stores what the child made as a snapshot, and gives its digest.
fn packed(code: &CodeStore, workshop: &Path) -> Result<String, MigrationError> {
    let archive = workshop.join("archive");
    let out = std::io::BufWriter::new(std::fs::File::create(&archive)?);
    let packed = danlu_objects::pack_all(&workshop.join(child::AFTER), out)?;
    code.put(&packed.digest, std::fs::File::open(&archive)?)?;
    Ok(packed.digest)
}

fn problem(error: &MigrationError) -> Problem {
    let detail = crate::error_chain(error);
    match error {
        MigrationError::Child(ChildError::NoMain(_)) => {
            Problem::invalid_fields(vec![FieldError::new("distributed.main", detail)])
                .with_hint("name the entry script relative to the snapshot, such as `tools/train.py`")
        }
        MigrationError::Child(ChildError::Timeout(_)) => Problem::new(ProblemCode::InvalidFields, detail)
            .with_hint("use `danlu migrate`, which takes as long as it needs"),
        MigrationError::Child(ChildError::Crashed { .. }) => {
            tracing::warn!("could not migrate code: {detail}");
            Problem::invalid_fields(vec![FieldError::new("code", detail)]).with_hint(
                "leave files that are not yours out with `.danluignore`, or find the file with `danlu migrate --check`, \
                 and report it",
            )
        }
        MigrationError::Snapshot(ObjectsError::Bomb { .. } | ObjectsError::Hostile { .. }) => {
            Problem::invalid_fields(vec![FieldError::new("code", detail)]).with_hint(
                "leave data out with `.danluignore`, or use `danlu migrate`, which has no such bound",
            )
        }
        MigrationError::Snapshot(ObjectsError::Damaged(_)) => {
            Problem::invalid_fields(vec![FieldError::new("code", detail)])
        }
        MigrationError::Snapshot(_) | MigrationError::Child(_) | MigrationError::Archive(_) => {
            tracing::warn!("could not migrate code: {detail}");
            Problem::new(ProblemCode::Unavailable, "the migrated copy could not be made")
                .with_hint("the server's log says why; the disk of its data folder may be full")
        }
    }
}
