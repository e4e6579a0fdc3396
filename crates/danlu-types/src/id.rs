//! Ids. Each is a newtype, so that a worker's index never stands where a rank should.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

/// A job's number: given out in order of submission, never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct JobId(pub u64);

/// One try at running a job; the first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct AttemptNumber(pub u32);

/// A worker's place in its gang, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct WorkerIndex(pub u32);

/// A training process's number within its attempt, from 0, counted over all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Rank(pub u32);

/// The name by which an engine knows a machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct NodeName(pub String);

/// One worker of one attempt of one job, written `1042.1.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId {
    pub job: JobId,
    pub attempt: AttemptNumber,
    pub worker: WorkerIndex,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not {what}")]
pub struct ParseIdError {
    text: String,
    what: &'static str,
}

macro_rules! display_inner {
    ($($name:ty),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
display_inner!(JobId, AttemptNumber, WorkerIndex, Rank, NodeName);

impl FromStr for JobId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse()
            .map(JobId)
            .map_err(|_| ParseIdError { text: text.to_owned(), what: "a job number such as `1042`" })
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.job, self.attempt, self.worker)
    }
}

impl FromStr for WorkerId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseIdError { text: text.to_owned(), what: "a worker id such as `1042.1.0`" };
        let mut parts = text.split('.');
        let mut next = || parts.next().and_then(|part| part.parse::<u64>().ok()).ok_or_else(error);
        let (job, attempt, worker) = (next()?, next()?, next()?);
        if parts.next().is_some() {
            return Err(error());
        }
        Ok(WorkerId {
            job: JobId(job),
            attempt: AttemptNumber(u32::try_from(attempt).map_err(|_| error())?),
            worker: WorkerIndex(u32::try_from(worker).map_err(|_| error())?),
        })
    }
}

impl Serialize for WorkerId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WorkerId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_ids_read_what_they_write() {
        let id = WorkerId { job: JobId(1042), attempt: AttemptNumber(1), worker: WorkerIndex(0) };
        assert_eq!(id.to_string(), "1042.1.0");
        assert_eq!("1042.1.0".parse(), Ok(id));
    }

    #[test]
    fn bad_worker_ids_say_what_is_accepted() {
        for text in ["", "1", "1.2", "1.2.3.4", "a.b.c", "1.2.99999999999"] {
            let error = text.parse::<WorkerId>().unwrap_err().to_string();
            assert_eq!(error, format!("`{text}` is not a worker id such as `1042.1.0`"));
        }
    }
}
