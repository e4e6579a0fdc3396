//! What a token, a session or a link must not become: more, or longer, than it is.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::site::{PASSWORD, Site, proof, value};

const SSH_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

fn time(value: &Value) -> Timestamp {
    value.as_str().unwrap_or_else(|| panic!("no time: {value}")).parse().unwrap()
}

async fn token(site: &Site, who: &str, mut new: Value) -> Value {
    new["proof"] = proof();
    let made = site.ask(who, "POST", "/tokens", &new).await;
    assert_eq!(made.status, 201, "{}", made.body);
    value(&made)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_token_makes_ends_with_it() {
    let site = Site::new(&["--registration", "invitation"]).await;
    let short = token(&site, "otto", json!({ "name": "short", "scope": "all", "lasts": "1m" })).await;
    let (secret, ends) = (short["secret"].as_str(), time(&short["token"]["expires_at"]));
    let make = async |body: Value| value(&site.ask_with(secret, "POST", "/tokens", &body).await);
    for lasts in [Value::Null, json!("90d")] {
        let made = make(json!({ "name": "long", "scope": "all", "lasts": lasts })).await;
        assert_eq!(time(&made["token"]["expires_at"]), ends, "{made}");
    }
    let shorter = make(json!({ "name": "shorter", "scope": "read", "lasts": "1s" })).await;
    assert!(time(&shorter["token"]["expires_at"]) < ends);
    let owner = json!({ "role": "owner" });
    let invited = site.ask_with(secret, "POST", "/workspaces/lab/invitations", &owner).await;
    assert_eq!(time(&value(&invited)["invitation"]["expires_at"]), ends);

    // Links by which others set a password: an administrator's program makes them, for as long as it may.
    site.ask("admin", "PATCH", "/accounts/vera", &json!({ "admin": true })).await;
    let program = token(&site, "vera", json!({ "name": "short", "scope": "all", "lasts": "1m" })).await;
    let (program, over) = (program["secret"].as_str(), time(&program["token"]["expires_at"]));
    let link_ends = async |who: &str| {
        let path = format!("/accounts/{who}/tokens");
        let listed = value(&site.ask("admin", "GET", &path, &Value::Null).await);
        let of_link = |token: &&Value| token["kind"] == "password_link";
        time(&listed["items"].as_array().unwrap().iter().find(of_link).unwrap()["expires_at"])
    };
    let made = site.ask_with(program, "POST", "/accounts", &json!({ "name": "nina" })).await;
    assert!(made.status == 201 && value(&made)["password_link"].is_string(), "{}", made.body);
    assert_eq!(link_ends("nina").await, over, "of a new account");
    let made = site.ask_with(program, "POST", "/accounts/mia/password_link", &Value::Null).await;
    assert_eq!((made.status, link_ends("mia").await), (200, over), "of an account that is there");
    site.ask("vera", "POST", "/accounts/mia/password_link", &json!({ "proof": proof() })).await;
    assert!(link_ends("mia").await > over, "a session's lasts as long as they do");

    let rotate = async |by: Option<&str>| {
        let path = format!("/accounts/otto/tokens/{}/rotation", short["token"]["id"].as_str().unwrap());
        value(&site.ask_with(by, "POST", &path, &json!({ "proof": proof() })).await)
    };
    // A session may renew it; the token itself only changes its secret.
    let rotated = rotate(secret).await;
    assert_eq!(time(&rotated["token"]["expires_at"]), ends, "{rotated}");
    let renewed = rotate(site.token("otto")).await;
    assert!(time(&renewed["token"]["expires_at"]) > ends, "{renewed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_programs_becomes_no_session_whatever_its_scope() {
    let site = Site::new(&[]).await;
    site.ask("admin", "PATCH", "/accounts/otto", &json!({ "admin": true })).await;
    site.ask("admin", "PATCH", "/accounts/vera", &json!({ "admin": true })).await;
    let all = token(&site, "otto", json!({ "name": "all", "scope": "all" })).await;
    let ask = async |method: &str, path: &str, body: Value| {
        site.ask_with(all["secret"].as_str(), method, path, &body).await
    };
    for (method, path, body) in [
        ("POST", "/sign_in_link", Value::Null),
        ("POST", "/accounts/otto/password_link", Value::Null),
        ("POST", "/accounts/vera/password_link", Value::Null),
        ("POST", "/accounts/admin/password_link", Value::Null),
        ("POST", "/accounts/otto/totp", json!({ "password": PASSWORD })),
        // Keys have no end, and a token that was revoked would leave them behind.
        ("POST", "/accounts/otto/s3_keys", json!({ "name": "bucket" })),
        ("POST", "/accounts/otto/ssh_keys", json!({ "key": SSH_KEY })),
        ("POST", "/accounts/mia/ssh_keys", json!({ "key": SSH_KEY })),
        ("DELETE", "/accounts/vera/totp", Value::Null),
        ("PATCH", "/accounts/mia", json!({ "admin": true })),
    ] {
        let answer = ask(method, path, body).await;
        assert!(answer.status == 403 && answer.body.contains("session"), "{method} {path}: {}", answer.body);
    }
    // What an administrator's programs are for goes on.
    assert_eq!(ask("POST", "/accounts", json!({ "name": "made", "password": PASSWORD })).await.status, 201);
    assert_eq!(ask("POST", "/accounts/mia/password_link", Value::Null).await.status, 200);
    assert_eq!(ask("PATCH", "/accounts/mia", json!({ "standing": "disabled" })).await.status, 200);
    // A session is somebody who signed in.
    assert_eq!(site.ask("otto", "POST", "/sign_in_link", &Value::Null).await.status, 201);
    let password = json!({ "password": PASSWORD });
    assert_eq!(site.ask("otto", "POST", "/accounts/otto/totp", &password).await.status, 201);
    assert_eq!(
        site.ask("otto", "POST", "/accounts/otto/ssh_keys", &json!({ "key": SSH_KEY, "proof": proof() }))
            .await
            .status,
        201
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_made_of_a_session_ends_no_later() {
    let site = Site::new(&[]).await;
    let ends = async |secret: &str| {
        let listed = value(&site.ask_with(Some(secret), "GET", "/accounts/ada/tokens", &Value::Null).await);
        let used = listed["items"].as_array().unwrap().iter().filter(|one| one["kind"] == "session");
        let mut ends: Vec<_> = used.map(|one| time(&one["expires_at"])).collect();
        ends.sort_unstable();
        (ends[0], *ends.last().unwrap(), ends.len())
    };
    let first = site.token("ada").unwrap();
    let link = value(&site.ask("ada", "POST", "/sign_in_link", &Value::Null).await)["secret"].clone();
    let come = value(&site.ask("nobody", "POST", "/session", &json!({ "link": link })).await);
    let (earliest, latest, sessions) = ends(come["secret"].as_str().unwrap()).await;
    assert_eq!((earliest, sessions), (latest, 2), "both end together");
    assert_eq!(ends(first).await.2, 2);
    // The data folder's own token is no session and ends nothing.
    let link = value(&site.ask("admin", "POST", "/sign_in_link", &Value::Null).await)["secret"].clone();
    assert_eq!(site.ask("nobody", "POST", "/session", &json!({ "link": link })).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_ends_tokens_unless_they_are_to_stay() {
    let site = Site::new(&[]).await;
    let made = token(&site, "ada", json!({ "name": "nightly", "scope": "read" })).await;
    let works =
        async || site.ask_with(made["secret"].as_str(), "GET", "/whoami", &Value::Null).await.status == 200;
    let kept =
        json!({ "account": "ada", "password": "another password", "current": PASSWORD, "keep_tokens": true });
    assert_eq!(site.ask("nobody", "POST", "/password", &kept).await.status, 204);
    assert!(works().await, "kept");
    let link = value(&site.ask("admin", "POST", "/accounts/ada/password_link", &Value::Null).await);
    let reset = json!({ "account": "ada", "password": "a third password", "link": link["password_link"] });
    assert_eq!(site.ask("nobody", "POST", "/password", &reset).await.status, 204);
    assert!(!works().await, "whoever had it had her account");
    // The administrator's token is a file, which no password replaces.
    let link = value(&site.ask("admin", "POST", "/accounts/admin/password_link", &Value::Null).await);
    let reset = json!({ "account": "admin", "password": PASSWORD, "link": link["password_link"] });
    assert_eq!(site.ask("nobody", "POST", "/password", &reset).await.status, 204);
    assert_eq!(site.ask("admin", "GET", "/whoami", &Value::Null).await.status, 200);
}
