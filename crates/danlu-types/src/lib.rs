//! Words everyone shares: ids, quantities, job specifications, API bodies, error codes.
//!
//! Nothing here decides or acts: these are values with their text and JSON forms. Parsing is strict and says
//! what would have been accepted, because most of these values are first typed by a person.

pub mod account;
pub mod api;
pub mod device;
pub mod family;
pub mod fingerprint;
pub mod format;
pub mod history;
pub mod id;
pub mod link;
pub mod node;
pub mod oidc;
pub mod problem;
pub mod progress;
pub mod quantity;
pub mod reading;
pub mod reason;
pub mod sample;
pub mod session;
pub mod spec;
mod stored;
mod within;
pub mod workspace;

pub use device::{Device, DeviceCount, DeviceKind, DeviceRequest, Health, Wiring};
pub use family::Family;
pub use id::{AttemptNumber, JobId, NodeName, Rank, WorkerId, WorkerIndex};
pub use node::{ForeignHold, ForeignKind, Node, NodeCapacity, Topology};
pub use problem::{FieldError, Problem, ProblemCode};
pub use progress::{Fraction, ProgressView};
pub use quantity::{Bytes, Cpus, ParseQuantityError, Span};
pub use reading::{DeviceProcess, Reading};
pub use reason::{Reason, ReasonCode};
pub use spec::{
    Compat, Framework, JobSpec, NodeSelection, OnHang, RankTableUse, RanksPerWorker, Retry, RetryCause,
    SecretForm, SecretUse, is_set_by_grant,
};
pub use stored::from_stored_json;
pub(crate) use within::within;
pub use workspace::{Amounts, HeadOfLine, IdlePolicy, Sharing, Workspace};
