//! Packing a folder and sending it, once for each content.

use std::path::{Path, PathBuf};

use danlu_client::Client;
use danlu_objects::{PackedSnapshot, pack};

use crate::failure::CliError;
use crate::{output, progress, words};

/// Packs `folder`, uploads it unless the server has it, and gives its digest.
pub(crate) async fn code(client: &Client, folder: &Path) -> Result<String, CliError> {
    let archive = tempfile::NamedTempFile::new()
        .map_err(|error| CliError::new("cannot make a temporary file to pack into").caused_by(&error))?;
    let snapshot = packed(folder.to_owned(), archive.path().to_owned()).await?;
    if client.code_has(&snapshot.digest).await? {
        return Ok(snapshot.digest);
    }
    let bar = progress::bytes(snapshot.size.0, "uploading");
    let drawn = bar.clone();
    let result =
        client.code_put(&snapshot.digest, archive.path(), move |sent| drawn.set_position(sent)).await;
    bar.finish_and_clear();
    result?;
    let size = words::size(snapshot.size.0);
    let files = if snapshot.files == 1 { "1 file".to_owned() } else { format!("{} files", snapshot.files) };
    output::say(format!("uploaded `{}`: {files}, {size} packed", folder.display()));
    Ok(snapshot.digest)
}

async fn packed(folder: PathBuf, archive: PathBuf) -> Result<PackedSnapshot, CliError> {
    let bar = progress::spinner(format!("packing `{}`", folder.display()));
    let drawn = bar.clone();
    let result = tokio::task::spawn_blocking(move || {
        let file = std::fs::File::create(&archive)
            .map_err(|error| CliError::new("cannot open the temporary archive").caused_by(&error))?;
        let shown = folder.display().to_string();
        let packed = pack(&folder, std::io::BufWriter::new(file), |bytes| {
            drawn.set_message(format!("packing `{shown}`: {}", words::size(bytes)));
        });
        packed.map_err(CliError::from)
    })
    .await;
    bar.finish_and_clear();
    result.map_err(|error| CliError::new("packing the folder was cut short").caused_by(&error))?
}
