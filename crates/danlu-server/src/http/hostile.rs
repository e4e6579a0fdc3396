//! Requests that no client of ours would send: whatever bytes there are, they are read or refused.

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use danlu_types::api::{
    AccountChange, ClaimRequest, CordonRequest, IdentityDeparture, MigrationRequest, NewAccount, NewIdentity,
    NewInvitation, NewPassword, NewRegistration, NewReports, NewRole, NewS3Key, NewSecret, NewSshKey,
    NewToken, ParseRequest, SharingRules, SidecarNews, SignIn, SimulationRequest, StopRequest, TotpCode,
    TotpRemoval, TreeEntry,
};
use danlu_types::{JobSpec, Workspace};
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::auth::{bearer, cookie_named, is_from_console};
use super::extract::read_json;
use super::sign_in::PasswordOf;
use crate::change::patched;

/// As every body that there is; how each is judged does not matter, that it is does.
fn read_as_everything(bytes: &[u8]) {
    macro_rules! read_as {
        ($($body:ty)*) => {
            $(if let Err(problem) = read_json::<$body>(bytes) {
                assert!([400, 422].contains(&problem.status), "{problem:?}");
                assert!(problem.detail.len() < 2000, "{} bytes of refusal", problem.detail.len());
            })*
        };
    }
    read_as! {
        JobSpec Workspace AccountChange CordonRequest MigrationRequest NewAccount NewInvitation NewPassword NewRegistration
        NewReports NewRole NewS3Key NewSecret NewSshKey NewToken SharingRules SignIn SimulationRequest StopRequest TotpCode
        ParseRequest NewIdentity IdentityDeparture TotpRemoval PasswordOf ClaimRequest SidecarNews TreeEntry
    }
    // Changes and copies of jobs are patches of what is there.
    if let Ok(patch) = read_json::<Map<String, Value>>(bytes) {
        let full: JobSpec = serde_json::from_str(CORPUS[0]).expect("a job");
        for spec in [JobSpec::of_command("true"), full.clone()] {
            match patched(&spec, patch.clone()) {
                Ok(spec) => assert!(spec.check().len() < 1000),
                Err(problem) => {
                    assert!([400, 422].contains(&problem.status), "{problem:?}");
                    assert!(problem.detail.len() < 2000, "{} bytes of refusal", problem.detail.len());
                }
            }
        }
    }
}

const CORPUS: [&str; 8] = [
    r#"{"name":"a","command":"true","devices":{"kind":"ascend","count":8},"any_of":[{"count":1}],"env":{"A":"b"},"memory":"1Gi"}"#,
    r#"{"retry":{"limit":3,"on":["exit"]},"secrets":[{"name":"x","as":"file"}],"nodes":{"labels":{"a":"b"}},"max_time":"1d12h"}"#,
    r#"{"lending":true,"minimum_run_time":"5m","personal":{"limit":{"nvidia":1.5,"memory":"1Ti"}}}"#,
    r#"{"trace":"submit,duration\n0s,1h\n","runs":[{"name":"x","nodes":"1x8:nvidia:A100","sharing":{"lending":false}}]}"#,
    r#"{"name":"ada","password":"correct horse battery","code":"123456","link":null,"display_name":"\u0000\ud83d\ude00"}"#,
    r#"{"allocation":"1.slurm.0","job":17,"nonce":"0123456789abcdef","granted":"JobId=17 Nodes=n1 CPU_IDs=0-3 GRES=gpu(IDX:0-1)"}"#,
    r#"{"account":"ada","password":"correct horse battery","current":"a","link":"b","code":"123456","keep_tokens":true,"path":"a/b","kind":"link"}"#,
    r#"{"key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f a@b","lines":["::danlu progress 0.5"]}"#,
];

#[test]
fn hostile_depth_ends_in_a_refusal() {
    const MANY: usize = 100_000;
    for text in [
        "[".repeat(MANY),
        "{\"env\":".repeat(MANY),
        "{\"any_of\":[".repeat(MANY),
        "[".repeat(MANY) + &"]".repeat(MANY),
        format!("{{\"runs\":{}", "[{\"sharing\":".repeat(MANY)),
        format!("{{\"unknown\":{}1{}}}", "[".repeat(MANY), "]".repeat(MANY)),
    ] {
        read_as_everything(text.as_bytes());
    }
}

proptest! {
    #[test]
    fn hostile_bodies_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_as_everything(&bytes);
    }

    #[test]
    fn hostile_arrangements_are_read_or_refused(
        text in "([{}\\[\\],:]|\"(command|name|devices|count|runs|env|scope|role|key|retry|nodes|labels|account|password|job|nonce)\"|null|true|-?[0-9]{1,25}|1e999|\"\\\\ud800\"|\"[a-z]{0,4}\"){0,60}",
    ) {
        read_as_everything(text.as_bytes());
    }

    #[test]
    fn hostile_damage_is_read_or_refused(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..10usize, prop::collection::vec(any::<u8>(), 0..4)), 1..5),
    ) {
        let mut bytes = which.get(&CORPUS).as_bytes().to_vec();
        for (at, cut, with) in damage {
            let from = at.index(bytes.len() + 1);
            let to = (from + cut).min(bytes.len());
            bytes.splice(from..to, with);
        }
        read_as_everything(&bytes);
    }

    /// What is taken for a token or a cookie is a part of what was sent, and never anybody else's.
    #[test]
    fn hostile_headers_give_nothing_that_was_not_sent(
        cookies in prop::collection::vec("([ -~\t]|danlu_session=|;| |=|\"){0,40}", 0..4),
        token in "(Bearer |bearer |Basic )?[ -~\u{a0}-\u{ff}]{0,80}",
        origin in "https?://[ -~]{0,20}|null|",
        host in "[ -~]{0,20}",
    ) {
        let mut headers = HeaderMap::new();
        for cookie in &cookies {
            if let Ok(value) = cookie.parse() {
                headers.append("cookie", value);
            }
        }
        for (name, text) in [("authorization", &token), ("origin", &origin), ("host", &host)] {
            if let Ok(value) = axum::http::HeaderValue::from_bytes(text.as_bytes()) {
                headers.insert(name, value);
            }
        }
        if let Some(found) = cookie_named(&headers, "danlu_session") {
            let pair = format!("danlu_session={found}");
            prop_assert!(cookies.iter().any(|cookie| cookie.contains(&pair)));
            prop_assert!(!found.contains(';'));
        }
        if let Some(found) = bearer(&headers) {
            prop_assert!(token.starts_with("Bearer ") && token.contains(found));
        }
        // A change with a cookie is refused without the console's header, whatever else there is.
        let mut request = Request::post("/api/v1/jobs").body(Body::empty()).expect("a request");
        *request.headers_mut() = headers;
        prop_assert!(!is_from_console(&request));
    }
}
