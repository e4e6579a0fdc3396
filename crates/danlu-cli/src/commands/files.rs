//! `danlu files`: what a job left.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use comfy_table::Cell;
use danlu_client::Client;
use danlu_types::api::{FileArea, FileEntry, FileKind, FileQuery};
use danlu_types::{AttemptNumber, JobId, WorkerIndex};

use crate::failure::{CliError, FAILED, USAGE};
use crate::{output, table, target, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Job id or name
    job: String,
    /// Folder to list; with `--get`, file or folder to download [default: the whole area]
    #[arg(default_value = "", hide_default_value = true)]
    path: String,
    /// Files to list: the job's output (`$DANLU_OUTPUT_DIR`), its checkpoints, or the working folder of a worker
    #[arg(long, value_enum, default_value = "output")]
    area: Area,
    /// Print the file; with `-o`, download the file or folder
    #[arg(long)]
    get: bool,
    /// With `--get`: folder to download to, created if missing
    #[arg(short, long, value_name = "FOLDER", requires = "get")]
    output: Option<PathBuf>,
    /// With `--area work`: number of the attempt [default: the last]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// With `--area work`: index of the worker [default: 0]
    #[arg(long, value_name = "N")]
    worker: Option<u32>,
    /// Print JSON
    #[arg(long, conflicts_with = "get")]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Area {
    Output,
    Checkpoint,
    Work,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let job = target::job_id(&client, &arguments.job).await?;
    let query = FileQuery {
        area: match arguments.area {
            Area::Output => FileArea::Output,
            Area::Checkpoint => FileArea::Checkpoint,
            Area::Work => FileArea::Work,
        },
        path: arguments.path,
        attempt: arguments.attempt.map(AttemptNumber),
        worker: arguments.worker.map(WorkerIndex),
    };
    if let Some(into) = arguments.output {
        let fetched = fetch(&client, job, query, into).await?;
        output::say(format!("fetched {} files, {}", fetched.files, words::size(fetched.bytes)));
        return Ok(if fetched.complete { ExitCode::SUCCESS } else { ExitCode::from(FAILED) });
    }
    if arguments.get {
        if is_folder(&client, job, &query).await? {
            return Err(CliError::new(format!("`{}` is a folder", query.path))
                .with_code(USAGE)
                .hint("`-o DIR` fetches it with everything in it; without `--get` it is listed"));
        }
        let mut out = std::io::stdout().lock();
        let written = |error: std::io::Error| CliError::new("cannot write the file").caused_by(&error);
        client.file_read(job, &query, |piece| out.write_all(piece).map_err(written)).await?;
        out.flush().map_err(written)?;
        return Ok(ExitCode::SUCCESS);
    }
    let entries = client.files_list(job, &query).await?.items;
    if arguments.json {
        output::json(&entries)?;
    } else if entries.is_empty() {
        output::say("nothing is there");
    } else {
        table::print(&mut files_table(&entries))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// As many as the server lists of a folder.
const MOST_LISTED: usize = 10_000;

#[derive(Debug)]
struct Fetched {
    files: u64,
    bytes: u64,
    complete: bool,
}

async fn is_folder(client: &Client, job: JobId, query: &FileQuery) -> Result<bool, CliError> {
    Ok(match query.path.trim_end_matches('/') {
        "" | "." => true,
        path => {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            let above = FileQuery { path: above.to_owned(), ..query.clone() };
            let entries = client.files_list(job, &above).await?.items;
            entries.iter().any(|entry| entry.name == name && entry.kind == FileKind::Folder)
        }
    })
}

/// A file, or a folder with everything below it. The server follows no links; what is neither file nor folder is named
/// and left out.
async fn fetch(client: &Client, job: JobId, query: FileQuery, into: PathBuf) -> Result<Fetched, CliError> {
    let mut fetched = Fetched { files: 0, bytes: 0, complete: true };
    if !is_folder(client, job, &query).await? {
        let name = query.path.rsplit('/').next().unwrap_or_default();
        fs::create_dir_all(&into).map_err(|error| cannot_write(&into, &error))?;
        let target = below(&into, name)?;
        fetched.bytes = fetch_file(client, job, &query, &target).await?;
        fetched.files = 1;
        return Ok(fetched);
    }
    let mut folders = vec![(query.path.trim_end_matches('/').to_owned(), into)];
    while let Some((path, into)) = folders.pop() {
        fs::create_dir_all(&into).map_err(|error| cannot_write(&into, &error))?;
        let here = FileQuery { path: path.clone(), ..query.clone() };
        let entries = client.files_list(job, &here).await?.items;
        if entries.len() >= MOST_LISTED {
            fetched.complete = false;
            output::say(format!("`{path}` has more than {MOST_LISTED} entries; only so many are fetched"));
        }
        for entry in entries {
            let target = below(&into, &entry.name)?;
            let path = if path.is_empty() { entry.name } else { format!("{path}/{}", entry.name) };
            match entry.kind {
                FileKind::Folder => folders.push((path, target)),
                FileKind::File => {
                    let file = FileQuery { path, ..query.clone() };
                    fetched.bytes += fetch_file(client, job, &file, &target).await?;
                    fetched.files += 1;
                }
                FileKind::Other => {
                    fetched.complete = false;
                    output::say(format!(
                        "left out `{}`: neither a file nor a folder",
                        output::printable(&path)
                    ));
                }
            }
        }
    }
    Ok(fetched)
}

/// A name that came from the server stays below the folder that it is put into.
fn below(folder: &Path, name: &str) -> Result<PathBuf, CliError> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) => Ok(folder.join(name)),
        _ => Err(CliError::new(format!("`{}` cannot be the name of a file here", output::printable(name)))),
    }
}

async fn fetch_file(client: &Client, job: JobId, query: &FileQuery, target: &Path) -> Result<u64, CliError> {
    let written = |error: std::io::Error| cannot_write(target, &error);
    let mut file = File::create(target).map_err(written)?;
    let mut bytes = 0;
    let write = |piece: &[u8]| {
        bytes += piece.len() as u64;
        file.write_all(piece).map_err(written)
    };
    client.file_read(job, query, write).await?;
    Ok(bytes)
}

fn cannot_write(target: &Path, error: &std::io::Error) -> CliError {
    CliError::new(format!("cannot write `{}`", target.display())).caused_by(error)
}

fn files_table(entries: &[FileEntry]) -> comfy_table::Table {
    let mut table = table::new(["name", "size", "changed"]);
    for entry in entries {
        let mark = if entry.kind == FileKind::Folder { "/" } else { "" };
        let size = if entry.kind == FileKind::File { words::size(entry.size) } else { "–".to_owned() };
        table.add_row([
            Cell::new(format!("{}{mark}", output::printable(&entry.name))),
            Cell::new(size),
            Cell::new(format!("{:.0}", entry.modified_at)),
        ]);
    }
    table
}
