//! Sign-in through somebody else's accounts: what an administrator writes about an OIDC provider.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::api::Membership;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcSettings {
    /// As the provider writes it in its tokens; the rest is read from `ISSUER/.well-known/openid-configuration`.
    pub issuer: String,
    pub client_id: String,
    /// A file that holds the client's secret alone; none for public clients.
    #[serde(default)]
    pub client_secret_file: Option<PathBuf>,
    #[serde(default = "scopes")]
    pub scopes: Vec<String>,
    /// The claim that lists a person's groups.
    #[serde(default = "groups_claim")]
    pub groups_claim: String,
    /// What the people of a group are in which workspaces.
    #[serde(default)]
    pub groups: BTreeMap<String, Vec<Membership>>,
}

fn scopes() -> Vec<String> {
    ["openid", "profile", "email"].map(str::to_owned).to_vec()
}

fn groups_claim() -> String {
    "groups".to_owned()
}
