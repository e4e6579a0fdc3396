//! The files of a job, for those who may enter it.
//!
//! The folders belong to the job's program, which may put links there to whatever it likes; the server may be root. So the
//! kernel is asked to resolve names below the folder and through no link (`openat2`), and nothing is looked up twice.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use danlu_core::Job;
use danlu_types::api::{FileArea, FileEntry, FileKind, FileQuery};
use danlu_types::{JobId, Problem, ProblemCode, WorkerIndex};
use jiff::Timestamp;
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};

use crate::app::App;

/// More in one folder is not shown; nobody would read it.
const MOST_ENTRIES: usize = 10_000;

impl App {
    /// What is in a folder of a job's: folders first, then by name.
    pub(crate) async fn files(&self, job: &Job, query: FileQuery) -> Result<Vec<FileEntry>, Problem> {
        let root = self.area(job, &query)?;
        let id = job.id;
        off_the_threads(move || {
            if query.path.is_empty() && !root.exists() {
                // It has not run yet, or kept nothing.
                return Ok(Vec::new());
            }
            let folder = open(&root, &query.path, OFlag::O_DIRECTORY, id)?;
            list(folder).map_err(|error| unreadable(id, &query.path, error))
        })
        .await
    }

    /// A file of a job's, and how long it is now.
    pub(crate) async fn file(&self, job: &Job, query: FileQuery) -> Result<(File, u64), Problem> {
        let root = self.area(job, &query)?;
        let id = job.id;
        off_the_threads(move || {
            // A pipe would make whoever opens it wait for somebody at its other end.
            let file = File::from(open(&root, &query.path, OFlag::O_NONBLOCK, id)?);
            match file.metadata() {
                Ok(about) if about.is_file() => Ok((file, about.len())),
                _ => Err(unreadable(id, &query.path, Errno::EISDIR)),
            }
        })
        .await
    }

    fn area(&self, job: &Job, query: &FileQuery) -> Result<std::path::PathBuf, Problem> {
        Ok(match query.area {
            FileArea::Output => self.layout.output_folder(job.id),
            FileArea::Checkpoint => self.layout.checkpoint_folder(job.id),
            FileArea::Work => {
                let last = crate::http::last_attempt(job);
                let (attempt, worker) =
                    (query.attempt.unwrap_or(last), query.worker.unwrap_or(WorkerIndex(0)));
                if attempt > last || attempt.0 == 0 || worker.0 >= job.spec.workers {
                    let detail = format!("job {} has no worker {worker} of an attempt {attempt}", job.id);
                    return Err(Problem::new(ProblemCode::NotFound, detail));
                }
                self.layout.run_folder(job.worker_id(attempt, worker)).join("work")
            }
        })
    }
}

async fn off_the_threads<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Problem::new(ProblemCode::Internal, "reading the files failed")))
}

fn open(root: &Path, path: &str, flags: OFlag, job: JobId) -> Result<OwnedFd, Problem> {
    let path = if path.is_empty() { "." } else { path };
    let plain = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.contains('\0') || !Path::new(path).components().all(plain) {
        let detail = "`path` must name something below the folder: no `..`, no `/` at its beginning";
        return Err(Problem::new(ProblemCode::BadRequest, detail));
    }
    let failed = |error| unreadable(job, path, error);
    let folder = nix::fcntl::open(root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(failed)?;
    let how = OpenHow::new().flags(flags | OFlag::O_RDONLY | OFlag::O_CLOEXEC).resolve(
        ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS,
    );
    openat2(&folder, path, how).map_err(failed)
}

fn unreadable(job: JobId, path: &str, error: Errno) -> Problem {
    let path: String = path.chars().take(200).collect();
    match error {
        Errno::ENOENT | Errno::ENOTDIR | Errno::EISDIR | Errno::ENXIO => {
            Problem::new(ProblemCode::NotFound, format!("`{path}` not found in job {job}"))
        }
        Errno::ELOOP | Errno::EXDEV => Problem::new(
            ProblemCode::NotFound,
            format!("`{path}` leads through a link, which is not followed"),
        ),
        error => Problem::new(ProblemCode::Unavailable, format!("`{path}` cannot be read: {error}")),
    }
}

fn list(folder: OwnedFd) -> Result<Vec<FileEntry>, Errno> {
    let mut folder = Dir::from_fd(folder)?;
    let mut names = Vec::new();
    for entry in folder.iter().take(MOST_ENTRIES) {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push((entry.file_name().to_owned(), entry.file_type()));
        }
    }
    let mut entries = Vec::new();
    for (name, kind) in names {
        // Gone since, or not ours to see.
        let Ok(about) = fstatat(folder.as_fd(), name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW) else {
            continue;
        };
        entries.push(FileEntry {
            name: name.to_string_lossy().into_owned(),
            kind: kind_of(kind, &about),
            size: u64::try_from(about.st_size).unwrap_or(0),
            modified_at: Timestamp::from_second(about.st_mtime).unwrap_or(Timestamp::UNIX_EPOCH),
        });
    }
    for entry in entries.iter_mut().filter(|entry| entry.kind != FileKind::File) {
        entry.size = 0;
    }
    entries.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    Ok(entries)
}

fn kind_of(kind: Option<Type>, about: &FileStat) -> FileKind {
    let is = |flag: SFlag| about.st_mode & SFlag::S_IFMT.bits() == flag.bits();
    match kind {
        Some(Type::Directory) => FileKind::Folder,
        Some(Type::File) => FileKind::File,
        None if is(SFlag::S_IFDIR) => FileKind::Folder,
        None if is(SFlag::S_IFREG) => FileKind::File,
        _ => FileKind::Other,
    }
}
