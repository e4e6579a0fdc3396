//! Tokens by which the programs of a worker speak for their own attempt, and for nothing else.
//!
//! None is stored: a token is the worker's id with a seal over it that only this server's key makes. It opens as long as that
//! worker of that attempt has not ended.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use danlu_core::launch::Access;
use danlu_core::{Job, WorkerLifecycle};
use danlu_engine::{EngineError, WorkerStream};
use danlu_types::api::NewReports;
use danlu_types::session::{Frame, FrameKind};
use danlu_types::{AttemptNumber, JobId, WorkerId};
use data_encoding::HEXLOWER;
use ring::hmac;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::app::App;
use crate::sidecar;

/// How these tokens begin, so that they are told from people's.
pub(crate) const PREFIX: &str = "danlu_attempt_";

/// A launcher answers at once, or something is wrong with it.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is sealed for one use opens no other.
const CONTEXT: &[u8] = b"danlu attempt\0";
const SIDECAR_CONTEXT: &[u8] = b"danlu courier\0";

pub(crate) struct AttemptTokens {
    key: hmac::Key,
    /// Where this server is reached, once it is.
    address: OnceLock<String>,
}

impl fmt::Debug for AttemptTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptTokens").field("address", &self.address).finish_non_exhaustive()
    }
}

impl AttemptTokens {
    pub(crate) fn new(key: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
        AttemptTokens { key, address: OnceLock::new() }
    }

    pub(crate) fn set_address(&self, address: &str) {
        let _ = self.address.set(address.to_owned());
    }

    /// What a worker's programs need in order to speak.
    pub(crate) fn access(&self, worker: WorkerId) -> Option<Access> {
        Some(Access { server: self.address.get()?.clone(), token: self.token(worker) })
    }

    fn token(&self, worker: WorkerId) -> String {
        let seal = hmac::sign(&self.key, &sealed(worker));
        format!("{PREFIX}{worker}_{}", HEXLOWER.encode(seal.as_ref()))
    }

    /// What opens the folders of an attempt to sidecars. Programs of the job do not get to see it.
    pub(crate) fn sidecar_token(&self, job: JobId, attempt: AttemptNumber) -> String {
        let seal = hmac::sign(&self.key, &sealed_for_sidecars(job, attempt));
        format!("{}{job}.{attempt}_{}", sidecar::PREFIX, HEXLOWER.encode(seal.as_ref()))
    }

    /// The attempt whose sidecars have this token.
    pub(crate) fn read_sidecar(&self, secret: &str) -> Option<(JobId, AttemptNumber)> {
        let (name, seal) = sidecar::token_body(secret)?.split_once('_')?;
        let (job, attempt) = name.split_once('.')?;
        let (job, attempt) = (JobId(job.parse().ok()?), AttemptNumber(attempt.parse().ok()?));
        let seal = HEXLOWER.decode(seal.as_bytes()).ok()?;
        hmac::verify(&self.key, &sealed_for_sidecars(job, attempt), &seal).is_ok().then_some((job, attempt))
    }

    /// The worker whose token this is.
    fn read(&self, secret: &str) -> Option<WorkerId> {
        let (worker, seal) = secret.strip_prefix(PREFIX)?.split_once('_')?;
        let worker = worker.parse().ok()?;
        let seal = HEXLOWER.decode(seal.as_bytes()).ok()?;
        hmac::verify(&self.key, &sealed(worker), &seal).is_ok().then_some(worker)
    }
}

fn sealed(worker: WorkerId) -> Vec<u8> {
    [CONTEXT, worker.to_string().as_bytes()].concat()
}

fn sealed_for_sidecars(job: JobId, attempt: AttemptNumber) -> Vec<u8> {
    [SIDECAR_CONTEXT, format!("{job}.{attempt}").as_bytes()].concat()
}

impl danlu_engine::slurm::SidecarTokens for AttemptTokens {
    fn token(&self, job: JobId, attempt: AttemptNumber) -> String {
        self.sidecar_token(job, attempt)
    }
}

/// Whom a request with such a token speaks for.
#[derive(Debug, Clone)]
pub(crate) struct Speaker {
    pub(crate) worker: WorkerId,
    pub(crate) job: Arc<Job>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the worker's launcher does not listen")]
    Launcher(#[source] std::io::Error),
    #[error("{0}")]
    Refused(String),
}

impl App {
    pub(crate) fn speaker(&self, secret: &str) -> Option<Speaker> {
        let worker = self.attempts.read(secret)?;
        let job = self.live_state.job(worker.job)?;
        let attempt = job.active().filter(|attempt| attempt.number == worker.attempt)?;
        let lives =
            !matches!(attempt.workers.get(worker.worker.0 as usize)?.state, WorkerLifecycle::Ended { .. });
        lives.then_some(Speaker { worker, job })
    }

    /// Hands reports to the launcher, which takes them as if its ranks had printed them: it alone writes down what they say.
    pub(crate) async fn report(&self, speaker: &Speaker, reports: &NewReports) -> Result<(), ReportError> {
        let mut launcher = self.engine.connect(speaker.worker).await?;
        let answer = tokio::time::timeout(PATIENCE, exchange(&mut launcher, reports)).await;
        let answer = answer.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        let frame = answer.map_err(ReportError::Launcher)?;
        if frame.kind == FrameKind::Error {
            return Err(ReportError::Refused(String::from_utf8_lossy(&frame.payload).into_owned()));
        }
        Ok(())
    }
}

async fn exchange(launcher: &mut Box<dyn WorkerStream>, reports: &NewReports) -> std::io::Result<Frame> {
    launcher.write_all(&Frame::json(FrameKind::Report, reports).encode()).await?;
    let mut buffer = Vec::new();
    loop {
        if launcher.read_buf(&mut buffer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(frame) = Frame::decode(&mut buffer).map_err(std::io::Error::other)? {
            return Ok(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    proptest! {
        /// Whatever is sent for a token, it opens what it was made for or nothing.
        #[test]
        fn no_damaged_token_opens_anything_else(
            job in any::<u64>(), attempt in any::<u32>(), worker in any::<u32>(), is_sidecars in any::<bool>(),
            from in any::<Index>(), to in any::<Index>(), with in "([0-9a-f._+-]|é|danlu_attempt_|danlu_sidecar_){0,6}",
        ) {
            let tokens = AttemptTokens::new("one key");
            let own: WorkerId = format!("{job}.{attempt}.{worker}").parse().unwrap();
            let token = if is_sidecars { tokens.sidecar_token(own.job, own.attempt) } else { tokens.token(own) };
            prop_assert_eq!(tokens.read(&token), (!is_sidecars).then_some(own));
            prop_assert_eq!(tokens.read_sidecar(&token), is_sidecars.then_some((own.job, own.attempt)));
            let (from, to) = (from.index(token.len() + 1), to.index(token.len() + 1));
            let damaged = format!("{}{with}{}", &token[..from], &token[to..]);
            if damaged != token {
                // `01` is read as `1`: another way to write the same token is no other token.
                prop_assert!(tokens.read(&damaged).is_none_or(|found| !is_sidecars && found == own), "{damaged}");
                prop_assert!(tokens.read_sidecar(&damaged).is_none_or(|found| is_sidecars && found == (own.job, own.attempt)), "{damaged}");
            }
        }

        #[test]
        fn no_text_is_taken_for_a_token(
            text in "(danlu_attempt_|danlu_sidecar_)?([0-9]{1,22}\\.?){0,4}_?([0-9a-fA-F]{64}|.{0,80})",
        ) {
            let tokens = AttemptTokens::new("one key");
            prop_assert_eq!(tokens.read(&text), None);
            prop_assert_eq!(tokens.read_sidecar(&text), None);
        }
    }

    #[test]
    fn a_token_is_its_workers_alone() {
        let (tokens, others) = (AttemptTokens::new("one key"), AttemptTokens::new("another"));
        let worker: WorkerId = "7.1.0".parse().unwrap();
        let token = tokens.token(worker);
        assert_eq!(tokens.read(&token), Some(worker));
        assert_eq!(others.read(&token), None, "another server's");
        let seal = token.rsplit('_').next().unwrap();
        for forged in [
            format!("{PREFIX}7.2.0_{seal}"),
            format!("{PREFIX}7.1.1_{seal}"),
            format!("{PREFIX}7.1.0_{}", "0".repeat(64)),
            format!("{PREFIX}7.1.0_{}", &seal[..62]),
            format!("{PREFIX}7.1.0_{seal}00"),
            format!("{PREFIX}7.1.0_+{}", &seal[1..]),
            format!("{PREFIX}7.1.0_ä{}", &seal[2..]),
            format!("{PREFIX}7.1.0_"),
            format!("{PREFIX}7.1.0"),
            PREFIX.to_owned(),
            seal.to_owned(),
        ] {
            assert_eq!(tokens.read(&forged), None, "{forged}");
        }
    }

    #[test]
    fn a_sidecars_token_is_one_attempts_and_no_programs() {
        let (tokens, others) = (AttemptTokens::new("one key"), AttemptTokens::new("another"));
        let token = tokens.sidecar_token(JobId(7), AttemptNumber(1));
        assert_eq!(tokens.read_sidecar(&token), Some((JobId(7), AttemptNumber(1))));
        assert_eq!(others.read_sidecar(&token), None, "another server's");
        assert_eq!(tokens.read(&token), None);
        let (prefix, seal) = (sidecar::PREFIX, token.rsplit('_').next().unwrap());
        let own = tokens.token("7.1.0".parse().unwrap());
        let programs = own.rsplit('_').next().unwrap();
        for forged in [
            format!("{prefix}7.2_{seal}"),
            format!("{prefix}71_{seal}"),
            format!("{prefix}7.1.0_{programs}"),
            format!("{prefix}7.1_{programs}"),
            format!("{PREFIX}7.1.0_{seal}"),
            format!("{prefix}7.1_"),
            prefix.to_owned(),
        ] {
            assert_eq!(tokens.read_sidecar(&forged), None, "{forged}");
            assert_eq!(tokens.read(&forged), None, "{forged}");
        }
    }
}
