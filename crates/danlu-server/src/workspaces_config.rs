//! A file with rules by which workspaces share the cluster: taken over at start, and again at SIGHUP.

use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use danlu_types::Sharing;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::accounts::Directory;
use crate::app::App;

/// Where the rules come from. The server does not know files of theirs: whoever starts it does.
pub trait SharingSource: Debug + Send + Sync {
    fn read(&self) -> Result<Sharing, Box<dyn Error + Send + Sync>>;
}

/// Takes over what the source says.
pub(crate) async fn take(source: Arc<dyn SharingSource>, directory: &Directory) -> anyhow::Result<()> {
    let sharing = tokio::task::spawn_blocking(move || source.read().map_err(|error| anyhow!(error)))
        .await?
        .context("could not read the workspaces")?;
    directory.take_sharing(&sharing).await.context("could not keep the workspaces")?;
    tracing::info!("took over {} workspaces from their file", sharing.workspaces.len());
    Ok(())
}

/// Reads the rules again whenever SIGHUP asks for it. What cannot be read leaves the old ones in force.
pub(crate) async fn reload_loop(app: Arc<App>, source: Arc<dyn SharingSource>, stop: CancellationToken) {
    let mut hang_up = match signal(SignalKind::hangup()) {
        Ok(hang_up) => hang_up,
        Err(error) => {
            tracing::warn!("will not read the workspaces again at SIGHUP: {error}");
            return;
        }
    };
    loop {
        tokio::select! {
            _ = hang_up.recv() => {}
            () = stop.cancelled() => return,
        }
        match take(source.clone(), &app.directory).await {
            Ok(()) => app.share_anew().await,
            Err(error) => tracing::error!("{error:#}; the workspaces stay as they were"),
        }
    }
}
