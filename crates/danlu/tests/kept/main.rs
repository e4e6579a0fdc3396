//! Data folders and databases of servers of earlier versions, which were killed: today's server opens them, and people, jobs and
//! the audit are what they were. `make.py` made them, with the binary of then.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod folder;

use danlu_testkit::wire::{Answer, send};
use danlu_testkit::{FakeClock, TestServer};
use danlu_types::api::{JobOutcome, JobState};
use danlu_types::{JobId, JobSpec};
use data_encoding::BASE32_NOPAD;
use folder::Kept;
use jiff::Timestamp;
use ring::hmac;
use serde_json::{Value, json};

/// A test for each database.
macro_rules! on_both {
    ($($behaviour:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $behaviour() {
                super::$behaviour(super::Kept::of("0008/sqlite")).await;
            })+
        }
        mod postgresql {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $behaviour() {
                super::$behaviour(super::Kept::of("0008/postgres")).await;
            })+
        }
    };
}

on_both! {
    all_is_as_it_was_said_to_be,
    passwords_codes_and_tokens_still_work,
    sessions_links_and_invitations_still_work,
    a_running_job_is_adopted_and_the_next_starts,
    names_of_the_deleted_stay_taken,
}

async fn ask(server: &TestServer, token: Option<&Value>, method: &str, path: &str, body: &Value) -> Answer {
    let bearer = token.map(|token| format!("Bearer {}", token.as_str().unwrap()));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    send(&server.client().address(), method, &format!("/api/v1{path}"), &headers, &body).await
}

fn value(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{} {}", answer.head, answer.body))
}

fn verify(server: &TestServer) -> String {
    let verified = std::process::Command::new(env!("CARGO_BIN_EXE_danlu"))
        .arg("--data")
        .arg(server.data())
        .args(["admin", "audit", "verify"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[verified.stdout, verified.stderr].concat()).into_owned();
    assert!(verified.status.success(), "{said}");
    said
}

/// What was said then and is not said now, by its place. What is said besides may be new.
fn missing(then: &Value, now: &Value, place: &str, found: &mut Vec<String>) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            // Reasons are made when they are asked for, and said better from version to version.
            for (key, then) in then.iter().filter(|(key, _)| *key != "reason") {
                missing(then, now.get(key).unwrap_or(&Value::Null), &format!("{place}/{key}"), found);
            }
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            for (index, (then, now)) in then.iter().zip(now).enumerate() {
                missing(then, now, &format!("{place}/{index}"), found);
            }
        }
        _ if then == now => {}
        _ => found.push(format!("{place}: {then} is now {now}")),
    }
}

/// What depends on when it is asked.
fn without_moments(mut said: Value) -> Value {
    for item in said["items"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        // Of tokens, kept in memory only; of jobs, an estimate.
        for moment in ["last_used_at", "start_estimate", "estimate"] {
            item.remove(moment);
        }
    }
    said
}

async fn all_is_as_it_was_said_to_be(kept: Kept) {
    let Some(server) = kept.start(&[], &[]).await else { return };
    let admin = &kept.held["tokens"]["admin"];
    let mut found = Vec::new();
    for (path, then) in kept.said.as_object().unwrap() {
        // Invitations last for 30 days; `sessions_links_and_invitations_still_work` looks at them.
        if path.ends_with("/invitations") {
            continue;
        }
        let answer = ask(&server, Some(admin), "GET", path, &Value::Null).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        missing(&without_moments(then.clone()), &without_moments(value(&answer)), path, &mut found);
    }
    assert_eq!(found, [""; 0], "{}", server.log());
    // Word for word: no entry was added, and the proof of the accounts that was written then holds for them now.
    let verification = ask(&server, Some(admin), "GET", "/audit/verification", &Value::Null).await;
    assert_eq!(value(&verification), kept.said["/audit/verification"]);
    assert!(!server.log().contains("put back"), "seals open: {}", server.log());
}

/// The code of now (RFC 6238).
fn code(secret: &Value) -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let secret = BASE32_NOPAD.decode(secret.as_str().unwrap().as_bytes()).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &secret);
    let tag = hmac::sign(&key, &(seconds / 30).to_be_bytes());
    let start = usize::from(tag.as_ref()[19] & 15);
    let word = u32::from_be_bytes(tag.as_ref()[start..start + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", word % 1_000_000)
}

async fn passwords_codes_and_tokens_still_work(kept: Kept) {
    let Some(mut server) = kept.start(&[], &[]).await else { return };
    let sign_in = async |server: &TestServer, name: &str, code: Value| {
        let body = json!({ "name": name, "password": kept.held["password"], "code": code });
        ask(server, None, "POST", "/session", &body).await
    };
    for name in ["ada", "otto", "vera", "invited"] {
        let answer = sign_in(&server, name, Value::Null).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.body);
    }
    for (name, why) in [("asks", "waits for approval"), ("away", "disabled"), ("left", "deleted")] {
        assert_eq!(sign_in(&server, name, Value::Null).await.status, 401, "{name} is {why}");
    }
    let needed = sign_in(&server, "mfa", Value::Null).await;
    assert_eq!((needed.status, &value(&needed)["code"]), (401, &json!("second_factor_needed")));
    for right in [json!(code(&kept.held["totp"])), kept.held["recovery"][0].clone()] {
        let answer = sign_in(&server, "mfa", right).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    assert_eq!(sign_in(&server, "mfa", kept.held["recovery"][0].clone()).await.status, 401, "used");

    let admits = "an owner lets in who asked then";
    let otto = value(&sign_in(&server, "otto", Value::Null).await)["secret"].clone();
    let admitted = ask(&server, Some(&otto), "POST", "/workspaces/lab/applicants/asks", &Value::Null).await;
    assert_eq!(admitted.status, 200, "{admits}: {}", admitted.body);
    assert_eq!(sign_in(&server, "asks", Value::Null).await.status, 200, "{admits}");

    for restarted in [false, true] {
        for (whose, name, scope) in [
            ("admin", "admin", "all"),
            ("ada script", "ada", "jobs"),
            ("ada dashboard", "ada", "read"),
            ("ada all", "ada", "all"),
        ] {
            let answer =
                ask(&server, Some(&kept.held["tokens"][whose]), "GET", "/whoami", &Value::Null).await;
            assert_eq!(answer.status, 200, "{whose}: {}", answer.body);
            let who = value(&answer);
            assert_eq!((&who["account"]["name"], &who["scope"]), (&json!(name), &json!(scope)));
        }
        verify(&server);
        if !restarted {
            server.kill();
            server.restart().await;
        }
    }
}

async fn sessions_links_and_invitations_still_work(kept: Kept) {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let Some(clock) = FakeClock::below(folder.path()) else { return };
    // A moment after the server of then was killed; files keep their times.
    let entries = kept.said["/audit?limit=1000"]["items"].as_array().unwrap();
    let last: Timestamp = entries.last().unwrap()["at"].as_str().unwrap().parse().unwrap();
    clock.jump(&format!("{}", last.as_second() + 5 - Timestamp::now().as_second()));
    let mut environment = clock.environment().to_vec();
    environment.push(("NO_FAKE_STAT", "1"));
    let Some(server) = kept.start_in(folder, &[], &environment).await else { return };
    let held = &kept.held;
    for name in ["ada", "otto", "mfa"] {
        let answer = ask(&server, Some(&held["tokens"][name]), "GET", "/whoami", &Value::Null).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.body);
    }
    let path = "/workspaces/lab/invitations";
    let answer = ask(&server, Some(&held["tokens"]["otto"]), "GET", path, &Value::Null).await;
    let mut found = Vec::new();
    missing(&kept.said[path], &value(&answer), path, &mut found);
    assert_eq!(found, [""; 0]);
    let link = json!({ "link": held["sign_in_link"] });
    let come = async || ask(&server, None, "POST", "/session", &link).await;
    let come_in = come().await;
    assert_eq!((come_in.status, &value(&come_in)["account"]["name"]), (200, &json!("otto")));
    assert_eq!(come().await.status, 401, "it works once");
    let set = json!({ "account": "vera", "password": "another password", "link": held["password_link"] });
    assert_eq!(ask(&server, None, "POST", "/password", &set).await.status, 204);
    let invited = json!({ "name": "comes", "password": held["password"], "invitation": held["invitation"] });
    let answer = ask(&server, None, "POST", "/registration", &invited).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    verify(&server);
}

async fn a_running_job_is_adopted_and_the_next_starts(kept: Kept) {
    let Some(server) = kept.start(&[], &[]).await else { return };
    let number = |name: &str| JobId(kept.held["jobs"][name].as_u64().unwrap());
    let job = server.wait_for(number("runs"), JobState::Running).await;
    assert_eq!(job.attempts.len(), 1, "it is not started anew");
    assert_eq!(server.job(number("waits")).await.state, JobState::Queued);
    std::fs::write(server.folder().join("go"), "").unwrap();
    let job = server.wait_for_end(number("runs")).await;
    assert_eq!((job.outcome, job.attempts.len()), (Some(JobOutcome::Succeeded), 1), "{:?}", job.reason);
    assert_eq!(server.texts(job.id).await, ["before", "after"]);
    let next = server.wait_for_end(number("waits")).await;
    assert_eq!(next.outcome, Some(JobOutcome::Succeeded), "{:?}", next.reason);
    assert_eq!(server.texts(next.id).await, ["in turn"]);
    assert_eq!(server.texts(number("done")).await.len(), 2, "logs of then are read");

    // A secret that was sealed then is opened for a job of now.
    let command = "printf %s \"$KEY\" | sha256sum | cut -c1-8";
    let secret =
        json!({ "command": command, "workspace": "lab", "cpus": "10m", "secrets": { "KEY": "wandb" } });
    let secret: JobSpec = serde_json::from_value(secret).unwrap();
    let job = server.run(&secret).await;
    let lines = server.texts(job.id).await;
    assert_eq!((job.outcome, lines), (Some(JobOutcome::Succeeded), vec!["267350df".to_owned()]));
}

async fn names_of_the_deleted_stay_taken(kept: Kept) {
    let Some(server) = kept.start(&[], &[]).await else { return };
    let admin = Some(&kept.held["tokens"]["admin"]);
    let account = ask(&server, admin, "POST", "/accounts", &json!({ "name": "left" })).await;
    assert!(account.status == 409 && account.body.contains("that is deleted"), "{}", account.body);
    let workspace = ask(&server, admin, "PUT", "/workspaces/gone", &json!({})).await;
    assert!(workspace.status == 409 && workspace.body.contains("that is deleted"), "{}", workspace.body);
}
