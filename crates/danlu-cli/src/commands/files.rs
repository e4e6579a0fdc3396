//! `danlu files`: what a job left.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use comfy_table::Cell;
use danlu_client::Client;
use danlu_types::api::{FileArea, FileEntry, FileKind, FileQuery};
use danlu_types::{AttemptNumber, WorkerIndex};

use crate::failure::Failure;
use crate::{output, table, target, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Number or name
    job: String,
    /// A folder to list, or with `--get` a file to print
    #[arg(default_value = "")]
    path: String,
    /// `output` (`$DANLU_OUTPUT_DIR`), `checkpoint`, or `work`: where a worker ran
    #[arg(long, value_enum, default_value = "output")]
    area: Area,
    /// Prints the file's content
    #[arg(long)]
    get: bool,
    /// For `work`: of this attempt [default: the last]
    #[arg(long)]
    attempt: Option<u32>,
    /// For `work`: of this worker [default: 0]
    #[arg(long)]
    worker: Option<u32>,
    /// Prints JSON
    #[arg(long, conflicts_with = "get")]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Area {
    Output,
    Checkpoint,
    Work,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, Failure> {
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
    if arguments.get {
        let mut out = std::io::stdout().lock();
        let written = |error: std::io::Error| Failure::new("cannot write the file").caused_by(&error);
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
