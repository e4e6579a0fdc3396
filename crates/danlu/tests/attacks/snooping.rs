//! Finding out what is there: accounts by text and time, others' jobs by their numbers.

use std::time::{Duration, Instant};

use danlu_testkit::wire::Answer;
use serde_json::{Value, json};

use crate::site::{PASSWORD, Site, value};
use crate::walk::operations;

#[tokio::test(flavor = "multi_thread")]
async fn nobody_learns_which_accounts_there_are() {
    let site = Site::new(&[]).await;
    site.ask("admin", "POST", "/accounts", &json!({ "name": "dora", "password": PASSWORD })).await;
    site.ask("admin", "PATCH", "/accounts/dora", &json!({ "standing": "disabled" })).await;
    site.ask("admin", "POST", "/accounts", &json!({ "name": "nopass" })).await;
    let same = |answers: &[Answer], what: &str| {
        let first = &answers[0];
        for other in answers {
            assert_eq!((other.status, &other.body), (first.status, &first.body), "{what}");
        }
    };
    let sign_in = async |name: &str, password: &str| site.sign_in(name, password).await;
    let wrong = "not the password";
    same(
        &[
            sign_in("ada", wrong).await,
            sign_in("nobody-here", wrong).await,
            sign_in("nopass", wrong).await,
            sign_in("dora", wrong).await,
            sign_in("dora", PASSWORD).await,
            sign_in("Not A Name!", wrong).await,
        ],
        "sign-in",
    );
    let set = async |body: Value| site.ask("nobody", "POST", "/password", &body).await;
    let guess = |name: &str| json!({ "account": name, "password": PASSWORD, "current": wrong });
    let link = |name: &str| json!({ "account": name, "password": PASSWORD, "link": "danlu_0" });
    same(&[set(guess("mia")).await, set(guess("nobody-here")).await, set(guess("nopass")).await], "password");
    same(&[set(link("vera")).await, set(link("nobody-there")).await], "link");
    let look = async |name: &str, more: &str| {
        let mut answer = site.ask("sam", "GET", &format!("/accounts/{name}{more}"), &Value::Null).await;
        answer.body = answer.body.replace(name, "NAME");
        answer
    };
    for more in ["", "/tokens", "/ssh_keys", "/s3_keys"] {
        same(&[look("ada", more).await, look("nobody-here", more).await], more);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_take_as_long_for_accounts_that_are_not_there() {
    let site = Site::new(&[]).await;
    let time = async |name: &str| {
        let start = Instant::now();
        assert_eq!(site.sign_in(name, "not the password").await.status, 401);
        start.elapsed()
    };
    // The least of a few says what it costs; a busy machine only makes some of them longer.
    let (mut known, mut unknown) = (Duration::MAX, Duration::MAX);
    for (there, not_there) in
        [("ada", "eda"), ("mia", "nia"), ("sam", "dam"), ("otto", "atto"), ("vera", "wera")]
    {
        known = known.min(time(there).await);
        unknown = unknown.min(time(not_there).await);
    }
    assert!(unknown * 4 > known && known * 4 > unknown, "known {known:?}, unknown {unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn others_jobs_are_not_reached_by_their_numbers() {
    let site = Site::new(&[]).await;
    let job = site.job(true).await;
    let mut tried = 0;
    for operation in
        operations(&site).await.iter().filter(|operation| operation.path.starts_with("/jobs/{id}"))
    {
        let ask = async |id: u64| {
            let path = operation.path.replace("{id}", &id.to_string()).replace("{worker}", "0");
            // A change wants a body; what is in it does not matter.
            let body = match operation.path.as_str() {
                path if path.ends_with("/approval") => json!({ "generation": 2 }),
                _ if operation.method.eq_ignore_ascii_case("patch") => json!({}),
                _ => Value::Null,
            };
            let mut answer = site.ask("sam", &operation.method, &path, &body).await;
            answer.body = answer.body.replace(&id.to_string(), "N");
            answer
        };
        let (hidden, missing) = (ask(job).await, ask(987_654).await);
        assert_eq!((hidden.status, &hidden.body), (404, &missing.body), "{}", operation.path);
        tried += 1;
    }
    assert!(tried >= 10, "only {tried} were tried");
    // Nor through what takes a number elsewhere.
    let events = site.ask("sam", "GET", &format!("/events?job={job}"), &Value::Null).await;
    assert!(events.body.starts_with("{\"items\":[]"), "{}", events.body);
    let listed = site.ask("sam", "GET", "/jobs?workspace=lab&owner=ada", &Value::Null).await;
    assert!(!listed.body.contains("\"workspace\":\"lab\""), "{}", listed.body);
    let submitted = site.ask("sam", "POST", "/jobs", &json!({ "command": "true", "workspace": "lab" })).await;
    let nowhere = site.ask("sam", "POST", "/jobs", &json!({ "command": "true", "workspace": "bal" })).await;
    assert_eq!((submitted.status, submitted.body), (nowhere.status, nowhere.body.replace("bal", "lab")));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_see_a_job_sees_only_that_something_is_held() {
    let site = Site::new(&["--simulate", "1x2:ascend:910B3"]).await;
    let spec = json!({
        "name": "merger-model", "command": "sleep 1000", "workspace": "lab", "devices": { "kind": "ascend", "count": 2 }, "cpus": "10m",
    });
    let job = value(&site.ask("ada", "POST", "/jobs", &spec).await)["id"].as_u64().unwrap();
    site.server.wait_for(danlu_types::JobId(job), danlu_types::api::JobState::Running).await;
    let own = json!({ "command": "true", "devices": { "kind": "ascend", "count": 1 }, "cpus": "10m" });
    let waiting = value(&site.ask("sam", "POST", "/jobs", &own).await)["id"].as_u64().unwrap();
    let asked = [
        ("GET", "/devices".to_owned(), Value::Null),
        ("GET", "/nodes".to_owned(), Value::Null),
        ("GET", "/quota".to_owned(), Value::Null),
        ("GET", "/quota?workspace=lab".to_owned(), Value::Null),
        ("GET", format!("/jobs/{waiting}/why"), Value::Null),
        ("POST", "/jobs?dry_run=true".to_owned(), own.clone()),
    ];
    for (method, path, body) in &asked {
        let answer = site.ask("sam", method, path, body).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        for named in ["merger-model", "\"ada\"", "of ada", &format!("\"job\":{job},"), &format!("[{job}]")] {
            assert!(!answer.body.contains(named), "{path} names {named}: {}", answer.body);
        }
        if !path.starts_with("/quota") {
            assert!(answer.body.contains("another workspace's job"), "{path}: {}", answer.body);
        }
        for sees in ["vera", "admin"] {
            if path.ends_with("/why") {
                continue;
            }
            let answer = site.ask(sees, method, path, body).await;
            let named = answer.body.contains("merger-model") || answer.body.contains("\"ada\"");
            // A viewer submits to their own workspace, and sees the lab's job in the way.
            assert!(named, "{path} says nothing to {sees}: {}", answer.body);
        }
    }
}
