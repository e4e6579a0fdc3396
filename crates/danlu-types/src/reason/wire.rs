//! Reasons as JSON: `{code, params, text}`.

use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::Reason;

/// A reason as the API tells it: a stable code, its parameters, and the English sentence made of both.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reason)]
pub struct ToldReason<'a> {
    #[serde(flatten, serialize_with = "Reason::serialize")]
    #[schema(inline = false)]
    reason: &'a Reason,
    text: String,
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Reason::Unrecognised { code, params, text } => {
                json!({ "code": code, "params": params, "text": text }).serialize(serializer)
            }
            reason => ToldReason { reason, text: reason.to_string() }.serialize(serializer),
        }
        .map_err(S::Error::custom)
    }
}

/// What any server says, of this version or a newer one.
#[derive(Deserialize)]
struct AnyReason {
    code: String,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default)]
    text: String,
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let AnyReason { code, params, text } = AnyReason::deserialize(deserializer)?;
        let known = match &params {
            Some(params) => json!({ "code": code, "params": params }),
            None => json!({ "code": code }),
        };
        Ok(Reason::deserialize(known).unwrap_or(Reason::Unrecognised { code, params, text }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::{FailedWorker, ProcessExit};
    use crate::{JobId, Rank, ReasonCode, WorkerIndex};

    #[test]
    fn a_reason_is_a_code_with_parameters_and_a_sentence() {
        let failed = FailedWorker {
            attempt: None,
            worker: Some(WorkerIndex(1)),
            rank: Some(Rank(3)),
            exit: Some(ProcessExit::Signal(9)),
            detail: String::new(),
        };
        let not_before = "2026-11-19T10:00:00Z".parse().unwrap();
        let failure = Some(Box::new(Reason::Exit(failed)));
        let backoff = Reason::RetryBackoff { attempt: crate::AttemptNumber(2), not_before, failure };
        insta::assert_json_snapshot!([Reason::Succeeded, Reason::Reserved { job: JobId(7) }, backoff], @r#"
        [
          {
            "code": "succeeded",
            "text": "succeeded"
          },
          {
            "code": "reserved",
            "params": {
              "job": 7
            },
            "text": "free resources are reserved for job 7, which is ahead in the queue"
          },
          {
            "code": "retry_backoff",
            "params": {
              "attempt": 2,
              "not_before": "2026-11-19T10:00:00Z",
              "failure": {
                "code": "exit",
                "params": {
                  "worker": 1,
                  "rank": 3,
                  "exit": {
                    "signal": 9
                  }
                },
                "text": "failed: worker 1: rank 3 was killed by signal 9"
              }
            },
            "text": "waiting to try again, no earlier than 2026-11-19T10:00:00Z (attempt 2 failed: worker 1: rank 3 was killed by signal 9)"
          }
        ]
        "#);
    }

    #[test]
    fn reasons_are_read_as_they_were_written() {
        for reason in [
            Reason::Succeeded,
            Reason::Reserved { job: JobId(7) },
            Reason::Stopped { by: None },
            Reason::Preempting { jobs: vec![JobId(1), JobId(2)] },
        ] {
            let text = serde_json::to_string(&reason).unwrap();
            assert_eq!(serde_json::from_str::<Reason>(&text).unwrap(), reason, "{text}");
        }
    }

    #[test]
    fn what_a_newer_server_says_is_kept_as_it_came() {
        for unknown in [
            r#"{"code":"waiting_for_license","params":{"name":"ansys"},"text":"waiting for a license"}"#,
            r#"{"code":"reserved","params":{"jobs":[7]},"text":"reserved for job 7"}"#,
        ] {
            let reason: Reason = serde_json::from_str(unknown).unwrap();
            assert_eq!(reason.code(), ReasonCode::Unrecognised);
            assert!(reason.word() == "waiting_for_license" || reason.word() == "reserved");
            let again: Value = serde_json::to_value(&reason).unwrap();
            assert_eq!(again, serde_json::from_str::<Value>(unknown).unwrap());
        }
    }
}
