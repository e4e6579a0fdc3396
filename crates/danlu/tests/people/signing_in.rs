//! Accounts, sessions and tokens.

use danlu_testkit::wire::send;
use serde_json::{Value, json};

use crate::site::{PASSWORD, Site, proof, run_danlu, value};

#[tokio::test(flavor = "multi_thread")]
async fn what_one_may_not_see_is_not_listed() {
    let site = Site::new(&[]).await;
    let job = site.job(true).await;
    let seen = async |who: &str| {
        let jobs = value(&site.ask(who, "GET", "/jobs", &Value::Null).await);
        let events = value(&site.ask(who, "GET", &format!("/events?job={job}"), &Value::Null).await);
        (jobs["items"].as_array().unwrap().len(), !events["items"].as_array().unwrap().is_empty())
    };
    assert_eq!(seen("sam").await, (0, false));
    for who in ["vera", "mia", "ada", "otto", "admin"] {
        assert_eq!(seen(who).await, (1, true), "{who}");
    }
    let hidden = site.ask("sam", "GET", &format!("/jobs/{job}"), &Value::Null).await;
    let missing = site.ask("sam", "GET", "/jobs/987654", &Value::Null).await;
    assert_eq!(hidden.body.replace(&job.to_string(), "N"), missing.body.replace("987654", "N"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_does_no_more_than_its_scope_and_nothing_once_revoked() {
    let site = Site::new(&[]).await;
    let job = site.job(true).await;
    let made = value(
        &site
            .ask("ada", "POST", "/tokens", &json!({ "name": "board", "scope": "read", "proof": proof() }))
            .await,
    );
    let (id, secret) = (made["token"]["id"].as_str().unwrap(), made["secret"].as_str());
    let look = async || site.ask_with(secret, "GET", &format!("/jobs/{job}"), &Value::Null).await.status;
    assert_eq!(look().await, 200);
    let stop = site.ask_with(secret, "POST", &format!("/jobs/{job}/stop"), &Value::Null).await;
    assert!(stop.status == 403 && stop.body.contains("`jobs`"), "{}", stop.body);
    let more = site.ask_with(secret, "POST", "/tokens", &json!({ "name": "x", "scope": "all" })).await;
    assert_eq!(more.status, 403, "{}", more.body);
    assert_eq!(
        site.ask("ada", "DELETE", &format!("/accounts/ada/tokens/{id}"), &Value::Null).await.status,
        204
    );
    assert_eq!(look().await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_says_nothing_and_gets_slow() {
    let site = Site::new(&[]).await;
    let wrong = site.sign_in("ada", "not her password").await;
    let unknown = site.sign_in("nobody-at-all", "not her password").await;
    assert_eq!((wrong.status, &wrong.body), (401, &unknown.body));
    for _ in 0..5 {
        site.sign_in("ada", "not her password").await;
    }
    assert_eq!(site.sign_in("ada", PASSWORD).await.status, 429);
    assert_eq!(site.sign_in("mia", PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_alone_changes_nothing() {
    let site = Site::new(&[]).await;
    let signed_in = site.sign_in("ada", PASSWORD).await;
    let cookie = signed_in.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly; SameSite=Lax"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let submit = async |more: &[(&str, &str)]| {
        let mut headers = vec![("cookie", cookie), ("content-type", "application/json")];
        headers.extend(more);
        send(&site.address, "POST", "/api/v1/jobs", &headers, br#"{"command":"true","cpus":"10m"}"#)
            .await
            .status
    };
    assert_eq!(submit(&[]).await, 403);
    assert_eq!(submit(&[("x-danlu-console", "1"), ("origin", "http://evil.example")]).await, 403);
    assert_eq!(submit(&[("x-danlu-console", "1"), ("origin", "http://localhost")]).await, 201);
    let read = send(&site.address, "GET", "/api/v1/whoami", &[("cookie", cookie)], b"").await;
    assert_eq!(value(&read)["account"]["name"], "ada");
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_wait_for_approval_and_end_when_disabled() {
    let site = Site::new(&["--registration", "open"]).await;
    let asked = json!({ "name": "nina", "password": PASSWORD });
    assert_eq!(site.ask("nobody", "POST", "/registration", &asked).await.status, 201);
    // Nobody makes themselves an administrator on the way.
    let greedy = json!({ "name": "eve", "password": PASSWORD, "admin": true });
    assert_eq!(site.ask("nobody", "POST", "/registration", &greedy).await.status, 422);
    assert_eq!(site.sign_in("nina", PASSWORD).await.status, 401);
    let approve = site.ask("admin", "PATCH", "/accounts/nina", &json!({ "standing": "active" })).await;
    assert_eq!(approve.status, 200, "{}", approve.body);
    let signed_in = site.sign_in("nina", PASSWORD).await;
    let secret = value(&signed_in)["secret"].as_str().unwrap().to_owned();
    let own = async |body: Value| site.ask_with(Some(&secret), "PATCH", "/accounts/nina", &body).await.status;
    assert_eq!(own(json!({ "email": "nina@lab.example" })).await, 200);
    assert_eq!(own(json!({ "admin": true })).await, 403);
    site.ask("admin", "PATCH", "/accounts/nina", &json!({ "standing": "disabled" })).await;
    assert_eq!(own(json!({ "email": "x@lab.example" })).await, 401);
    assert_eq!(
        site.ask("admin", "PATCH", "/accounts/admin", &json!({ "standing": "disabled" })).await.status,
        409
    );

    let audit = value(&site.ask("admin", "GET", "/audit?subject=nina", &Value::Null).await);
    let actions: Vec<&str> =
        audit["items"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(
        actions,
        ["account.create", "account.change", "session.begin", "account.change", "account.change"]
    );
    assert!(!audit.to_string().contains("argon2"), "no hash of a password leaves the server");
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_survive_a_restart() {
    let mut site = Site::new(&[]).await;
    let token = site.token("otto").unwrap().to_owned();
    site.server.kill();
    site.server.restart().await;
    site.address = site.server.client().address();
    let members = site.ask_with(Some(&token), "GET", "/workspaces/lab/members", &Value::Null).await;
    assert_eq!(value(&members)["items"].as_array().unwrap().len(), 4);
    assert_eq!(site.sign_in("vera", PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_signs_in_and_out() {
    let site = Site::new(&[]).await;
    let home = tempfile::tempdir().unwrap();
    let run = async |arguments: &[&str], typed: &str| run_danlu(home.path(), arguments, typed).await;
    let (code, _, said) = run(&["login", "ada", "--server", &site.address], "wrong\n").await;
    assert!(code == Some(1) && said.contains("no account with this name and password"), "{said}");
    let (code, _, said) = run(&["login", "ada", "--server", &site.address], &format!("{PASSWORD}\n")).await;
    assert_eq!(code, Some(0), "{said}");
    let (_, whoami, _) = run(&["whoami"], "").await;
    assert_eq!(whoami, "ada\nowner of the workspace `ada`, member of `default`\nmember of `lab`\n");
    let (code, token, _) =
        run(&["tokens", "add", "nightly", "--scope", "read"], &format!("{PASSWORD}\n")).await;
    assert!(code == Some(0) && token.starts_with("danlu_"), "{token}");
    let (code, _, said) = run(&["admin", "user", "list"], "").await;
    assert!(code == Some(1) && said.contains("`ada` may not do this"), "{said}");
    assert_eq!(run(&["logout"], "").await.0, Some(0));
    assert_eq!(run(&["whoami"], "").await.0, Some(4));

    let data = site.server.data().display().to_string();
    let (code, seal, said) = run(&["--data", &data, "admin", "audit", "verify"], "").await;
    assert!(code == Some(0) && seal.trim().len() == 64, "{said}");
    let admins = ["--data", &data, "admin", "token"];
    let (_, tokens, _) = run(&[&admins[..], &["list", "ada", "--json"]].concat(), "").await;
    let tokens: Value = serde_json::from_str(&tokens).unwrap();
    let nightly = tokens.as_array().unwrap().iter().find(|token| token["name"] == "nightly").unwrap();
    let revoke = [&admins[..], &["revoke", "ada", nightly["id"].as_str().unwrap()]].concat();
    assert_eq!(run(&revoke, "").await.0, Some(0));
    let (code, _, said) = run(&revoke, "").await;
    assert!(code != Some(0) && said.contains("`ada` has no token"), "{said}");
    let (_, page, _) = run(&["--data", &data, "admin", "user", "add", "nina"], "").await;
    assert!(page.starts_with(&format!("{}/set-password#account=nina&link=danlu_", site.address)), "{page}");
    let set = ["password", "--link", page.trim()];
    assert_eq!(run(&set, &format!("{PASSWORD}\n")).await.0, Some(0));
    let (code, _, said) = run(&set, &format!("{PASSWORD}\n")).await;
    assert!(code == Some(1) && said.contains("a link works once"), "{said}");
    assert_eq!(site.sign_in("nina", PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_comes_to_own_a_workspace_by_taking_its_name() {
    let site = Site::new(&["--registration", "open"]).await;
    let taken = json!({ "name": "lab", "password": PASSWORD });
    let asked = site.ask("nobody", "POST", "/registration", &taken).await;
    assert!(asked.status == 409 && asked.body.contains("name of a workspace"), "{}", asked.body);
    assert_eq!(site.ask("admin", "POST", "/accounts", &taken).await.status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_submission_is_its_senders_own() {
    let site = Site::new(&[]).await;
    let submit = async |who: &str| {
        let bearer = format!("Bearer {}", site.token(who).unwrap());
        let headers = [
            ("content-type", "application/json"),
            ("authorization", bearer.as_str()),
            ("idempotency-key", "nightly"),
        ];
        let body = br#"{"command":"true","cpus":"10m"}"#;
        value(&send(&site.address, "POST", "/api/v1/jobs", &headers, body).await)["id"].clone()
    };
    let (first, other, again) = (submit("ada").await, submit("sam").await, submit("ada").await);
    assert_eq!(first, again);
    assert_ne!(first, other);
}
