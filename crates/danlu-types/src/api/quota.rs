//! Where workspaces stand with what they were promised.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::reason::QuotaResource;
use crate::{JobId, Sharing, Span, Workspace};

/// Where a workspace stands with one resource. Devices and CPUs are counted, memory is in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuotaView {
    pub workspace: String,
    pub resource: QuotaResource,
    /// What it was promised.
    pub guaranteed: f64,
    /// The part of the promise that cannot be kept now, because of devices and nodes that are out of service.
    pub broken: f64,
    /// What it never exceeds; absent when unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    pub used: f64,
    /// What it uses beyond its guarantee.
    pub borrowed: f64,
    /// What others use of its guarantee.
    pub lent: f64,
    /// What lies unused in the cluster and it may still use.
    pub free: f64,
    /// All of it in one sentence.
    pub text: String,
    /// Who of its people uses how much, most first; nobody where the asker may not see its jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<UserUse>,
    /// Who has what it lends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loans: Vec<Loan>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UserUse {
    pub user: String,
    pub used: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

/// What one workspace has of another's guarantee, and when it comes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Loan {
    /// The borrower.
    pub workspace: String,
    pub amount: f64,
    /// From when on it is given back whenever the lender asks: its jobs have then run for the minimum time. Absent when
    /// none of them can be made to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub on_demand_from: Option<Timestamp>,
    /// When the last of the borrower's jobs should have ended, if there is anything to tell it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expected_end: Option<Timestamp>,
    /// The borrower's jobs that use the resource; none where the asker may not see them.
    pub jobs: Vec<JobId>,
}

/// Which quotas to show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct QuotaQuery {
    /// Of this workspace only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// What holds for all workspaces, and for those that are not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SharingRules {
    /// Whether guarantees that lie idle are lent to others, to be taken back by preemption.
    pub lending: bool,
    /// A job is not preempted before it has run this long.
    pub minimum_run_time: Span,
    /// The rules of everybody's own workspace.
    #[serde(default, skip_serializing_if = "Workspace::says_nothing")]
    pub personal: Workspace,
}

impl From<&Sharing> for SharingRules {
    fn from(sharing: &Sharing) -> Self {
        let Sharing { lending, minimum_run_time, personal, workspaces: _ } = sharing;
        SharingRules { lending: *lending, minimum_run_time: *minimum_run_time, personal: personal.clone() }
    }
}
