//! What the server has to say to the worker: orders to stop, and the words of its gang.

use std::convert::Infallible;
use std::io;
use std::time::{Duration, Instant};

use danlu_client::Client;
use danlu_core::launch::{STOP_FILE, StopOrder};
use danlu_types::Span;
use danlu_types::api::SidecarNews;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::log::Notes;
use crate::retry::{RetryError, retry_until_answered};
use crate::stage_in::{StagedInputs, write_whole};

/// A server that answers at once though there is nothing new is about to end.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// Where news go.
#[derive(Debug)]
pub(crate) struct UpdateListener<'a> {
    pub(crate) client: &'a Client,
    pub(crate) staged_inputs: &'a StagedInputs,
    pub(crate) notes: Notes,
}

impl UpdateListener<'_> {
    /// What there is to hear before the launcher is started; returns its version.
    pub(crate) async fn first(&self) -> Result<String, RetryError> {
        let news = retry_until_answered(|| self.client.worker_news(self.staged_inputs.worker(), "")).await?;
        self.lay_down(&news);
        Ok(news.version)
    }

    /// Hears until nobody listens. A worker that nobody waits for is ended.
    pub(crate) async fn listen(&self, mut since: String, launcher: Pid) -> Infallible {
        loop {
            let asked = Instant::now();
            match retry_until_answered(|| self.client.worker_news(self.staged_inputs.worker(), &since)).await
            {
                Ok(news) if news.version == since => {
                    let rest = LEAST_PAUSE.saturating_sub(asked.elapsed());
                    tokio::time::sleep(rest).await;
                }
                Ok(news) => {
                    self.lay_down(&news);
                    wake(launcher);
                    since = news.version;
                }
                Err(refusal) => {
                    if let RetryError::Refused(error) = refusal {
                        self.notes.add(format_args!("the server tells no news: {error}; ending the worker"));
                    }
                    self.lay_down(&SidecarNews { stop: Some(Span::default()), ..SidecarNews::default() });
                    wake(launcher);
                    return std::future::pending().await;
                }
            }
        }
    }

    fn lay_down(&self, news: &SidecarNews) {
        let folders = &self.staged_inputs.launch.folders;
        let write = || -> io::Result<()> {
            let is_word = |name: &str| name.starts_with("worker-") && !name.contains('/');
            for (name, word) in news.gang.iter().filter(|(name, _)| is_word(name)) {
                let path = folders.gang.join(name);
                if !path.exists() {
                    write_whole(&path, word.as_bytes())?;
                }
            }
            if let Some(grace) = news.stop {
                write_whole(&folders.run.join(STOP_FILE), &serde_json::to_vec(&StopOrder { grace })?)?;
            }
            Ok(())
        };
        if let Err(error) = write() {
            self.notes.add(format_args!("what the server said cannot be written down: {error}"));
        }
    }
}

/// Has the launcher look for orders. One that has ended needs none.
fn wake(launcher: Pid) {
    let _ = kill(launcher, Signal::SIGURG);
}
