//! How a device is doing at one moment, as far as its vendor's tools tell.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Bytes, Health, JobId};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Reading {
    pub health: Health,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation_percent: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<i32>,
    /// Of the whole card, where several devices share one: then only the first of them has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_watts: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<DeviceProcess>,
}

/// A process that holds a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceProcess {
    pub pid: i32,
    pub name: String,
    /// Nobody's where the process is not to be seen from here, as one of another container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// The job that it is part of; without one it is none of Danlu's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
}
