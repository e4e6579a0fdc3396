//! The rules by which workspaces share the cluster: read at start, and again at SIGHUP.

use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use danlu_types::{Node, Sharing};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// Where the rules come from. The server does not know files of theirs: whoever starts it does.
pub trait SharingSource: Debug + Send + Sync {
    fn read(&self) -> Result<Sharing, Box<dyn Error + Send + Sync>>;
}

pub(crate) fn read(source: &dyn SharingSource, nodes: &[Node]) -> anyhow::Result<Sharing> {
    let sharing = source.read().map_err(|error| anyhow!(error)).context("could not read the workspaces")?;
    for warning in crate::workspaces::overpromised(&sharing, nodes) {
        tracing::warn!("{warning}; not all guarantees can be kept at once");
    }
    tracing::info!("{} workspaces share the cluster", sharing.workspaces.len());
    Ok(sharing)
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
        let (source, nodes) = (source.clone(), app.book.nodes());
        let sharing = tokio::task::spawn_blocking(move || read(source.as_ref(), &nodes)).await;
        match sharing {
            Ok(Ok(sharing)) => {
                app.planner.set_sharing(sharing).await;
                app.wake.schedule.notify_one();
            }
            Ok(Err(error)) => tracing::error!("{error:#}; the workspaces stay as they were"),
            Err(error) => tracing::error!("reading the workspaces failed: {error}; they stay as they were"),
        }
    }
}
