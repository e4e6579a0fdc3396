//! What a job says about the manner of its start.

use danlu_types::{Compat, JobSpec, OnHang, RankTableUse, Span};
use serde::{Deserialize, Serialize};

/// The fields of [`JobSpec`] of the same names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchOptions {
    pub together: bool,
    pub binding: bool,
    pub rank_table: RankTableUse,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compat: Vec<Compat>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hang_after: Option<Span>,
    pub on_hang: OnHang,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        LaunchOptions {
            together: true,
            binding: true,
            rank_table: RankTableUse::Auto,
            compat: Vec::new(),
            hang_after: None,
            on_hang: OnHang::Notify,
        }
    }
}

impl LaunchOptions {
    pub fn of(spec: &JobSpec) -> Self {
        LaunchOptions {
            together: spec.together,
            binding: spec.binding,
            rank_table: spec.rank_table,
            compat: spec.compat.clone(),
            hang_after: spec.hang_after,
            on_hang: spec.on_hang,
        }
    }

    pub fn is_default(&self) -> bool {
        *self == LaunchOptions::default()
    }

    pub fn is_compatible_with(&self, platform: Compat) -> bool {
        self.compat.contains(&platform)
    }

    /// Whether a job that cannot be given a rank table must not start.
    pub fn needs_rank_table(&self) -> bool {
        self.rank_table == RankTableUse::Always
            || self.is_compatible_with(Compat::Modelarts)
            || self.is_compatible_with(Compat::Apulis)
    }
}
