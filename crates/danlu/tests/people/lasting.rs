//! What does not end with the session, token or administrator that made it, and what is asked for before.

use serde_json::{Value, json};

use crate::second_factor::code;
use crate::site::{PASSWORD, Site, proof, run_danlu, value};

const SSH_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

async fn field_of(site: &Site, who: &str, method: &str, path: &str, body: &Value) -> Value {
    let refused = site.ask(who, method, path, body).await;
    assert_eq!(refused.status, 422, "{method} {path} {body}: {}", refused.body);
    value(&refused)["errors"][0]["field"].clone()
}

/// With an authenticator; the secret that its codes are made of, and recovery codes.
async fn enrolled(site: &Site, who: &str) -> (Value, Vec<Value>) {
    let path = format!("/accounts/{who}/totp");
    let enrolled = value(&site.ask(who, "POST", &path, &proof()).await);
    let confirm = json!({ "code": code(&enrolled["secret"], 0) });
    let recovery = value(&site.ask(who, "POST", &format!("{path}/confirmation"), &confirm).await);
    (enrolled["secret"].clone(), recovery["codes"].as_array().unwrap().clone())
}

async fn works(site: &Site, secret: &Value) -> bool {
    site.ask_with(secret.as_str(), "GET", "/whoami", &Value::Null).await.status == 200
}

async fn token(site: &Site, by: Option<&str>, name: &str) -> Value {
    let new = json!({ "name": name, "scope": "all", "proof": proof() });
    value(&site.ask_with(by, "POST", "/tokens", &new).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_outlasts_a_session_asks_for_a_proof() {
    let site = Site::new(&[]).await;
    site.ask("admin", "PATCH", "/accounts/otto", &json!({ "admin": true })).await;
    enrolled(&site, "vera").await;
    let made = token(&site, site.token("otto"), "nightly").await;
    let rotation = format!("/accounts/otto/tokens/{}/rotation", made["token"]["id"].as_str().unwrap());
    for (method, path, body) in [
        ("POST", "/tokens", json!({ "name": "x", "scope": "read", "lasts": "1m" })),
        ("POST", &rotation, json!({})),
        ("POST", "/accounts/otto/s3_keys", json!({ "name": "bucket" })),
        ("POST", "/accounts/otto/ssh_keys", json!({ "key": SSH_KEY })),
        // What makes a stolen session of an administrator everybody's account.
        ("POST", "/accounts/mia/password_link", json!({})),
        ("POST", "/accounts/otto/password_link", json!({})),
        ("PATCH", "/accounts/mia", json!({ "admin": true })),
        ("DELETE", "/accounts/vera/totp", json!({})),
    ] {
        for wrong in [json!({}), json!({ "password": "" }), json!({ "password": "not his password" })] {
            let mut body = body.clone();
            body["proof"] = wrong;
            let field = field_of(&site, "otto", method, path, &body).await;
            assert_eq!(field, "proof.password", "{method} {path}: {body}");
        }
        assert_eq!(field_of(&site, "otto", method, path, &body).await, "proof.password", "{method} {path}");
        let mut body = body;
        body["proof"] = proof();
        let done = site.ask("otto", method, path, &body).await;
        assert!(done.status < 300, "{method} {path}: {} {}", done.status, done.body);
    }
    // An administrator who was disabled is not let in again by a session alone.
    site.ask("admin", "PATCH", "/accounts/mia", &json!({ "standing": "disabled" })).await;
    let enable = json!({ "standing": "active" });
    assert_eq!(field_of(&site, "otto", "PATCH", "/accounts/mia", &enable).await, "proof.password");
    // All other changes of accounts are made as before.
    site.ask("admin", "PATCH", "/accounts/sam", &json!({ "standing": "disabled" })).await;
    assert_eq!(site.ask("otto", "PATCH", "/accounts/sam", &enable).await.status, 200);
    assert_eq!(site.ask("otto", "PATCH", "/accounts/sam", &json!({ "admin": false })).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_part_of_the_proof_and_good_once() {
    let site = Site::new(&[]).await;
    let (secret, recovery) = enrolled(&site, "ada").await;
    let make = |code: &Value| json!({ "name": "x", "scope": "read", "proof": { "password": PASSWORD, "code": code } });
    for wrong in [json!(null), json!(""), json!("000000x")] {
        let field = field_of(&site, "ada", "POST", "/tokens", &make(&wrong)).await;
        assert_eq!(field, "proof.code", "{wrong}");
    }
    let alone = json!({ "name": "x", "scope": "read", "proof": { "code": recovery[0] } });
    assert_eq!(field_of(&site, "ada", "POST", "/tokens", &alone).await, "proof.password");
    for right in [json!(code(&secret, 1)), recovery[0].clone()] {
        assert_eq!(site.ask("ada", "POST", "/tokens", &make(&right)).await.status, 201, "{right}");
        let again = field_of(&site, "ada", "POST", "/tokens", &make(&right)).await;
        assert_eq!(again, "proof.code", "{right} was used");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_holder_guesses_at_proofs_is_stopped() {
    let site = Site::new(&[]).await;
    let mut statuses = Vec::new();
    for guess in 0..8 {
        let new = json!({ "name": "x", "scope": "read", "proof": { "password": format!("guess {guess}") } });
        statuses.push(site.ask("ada", "POST", "/tokens", &new).await.status);
    }
    assert_eq!(statuses[..5], [422; 5]);
    assert!(statuses[5..].iter().all(|status| *status == 429), "{statuses:?}");
    assert_eq!(site.sign_in("ada", PASSWORD).await.status, 200, "who signs in waits for none of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_token_made_ends_when_it_is_revoked_or_rotated_by_its_owner() {
    let site = Site::new(&["--registration", "invitation"]).await;
    for ends in ["revoked", "rotated"] {
        let first = token(&site, site.token("ada"), "first").await;
        let second = token(&site, first["secret"].as_str(), "second").await;
        let third = token(&site, second["secret"].as_str(), "third").await;
        assert!(works(&site, &third["secret"]).await);
        // A program that renews its own secret takes nothing from others.
        let path = format!("/accounts/ada/tokens/{}", second["token"]["id"].as_str().unwrap());
        let renewed =
            site.ask_with(second["secret"].as_str(), "POST", &format!("{path}/rotation"), &Value::Null).await;
        assert!(works(&site, &third["secret"]).await && works(&site, &value(&renewed)["secret"]).await);
        let path = format!("/accounts/ada/tokens/{}", first["token"]["id"].as_str().unwrap());
        let answer = match ends {
            "revoked" => site.ask("ada", "DELETE", &path, &Value::Null).await,
            _ => site.ask("ada", "POST", &format!("{path}/rotation"), &json!({ "proof": proof() })).await,
        };
        assert!(answer.status < 300, "{}", answer.body);
        assert!(!works(&site, &value(&renewed)["secret"]).await, "{ends}");
        assert!(!works(&site, &third["secret"]).await, "{ends}");
    }
    // An invitation lets another in, and is worth no more than what made it.
    let made = token(&site, site.token("otto"), "doorkeeper").await;
    let invite = json!({ "role": "member" });
    let invited =
        site.ask_with(made["secret"].as_str(), "POST", "/workspaces/lab/invitations", &invite).await;
    let path = format!("/accounts/otto/tokens/{}", made["token"]["id"].as_str().unwrap());
    assert_eq!(site.ask("otto", "DELETE", &path, &Value::Null).await.status, 204);
    let eve = json!({ "name": "eve", "password": PASSWORD, "invitation": value(&invited)["secret"] });
    let registered = site.ask_with(None, "POST", "/registration", &eve).await;
    assert_eq!(registered.status, 403, "{}", registered.body);
    // The token that has another's new secret takes it along.
    let (thief, other) =
        (token(&site, site.token("ada"), "thief").await, token(&site, site.token("ada"), "other").await);
    let path = |made: &Value| format!("/accounts/ada/tokens/{}", made["token"]["id"].as_str().unwrap());
    let rotation = format!("{}/rotation", path(&other));
    let taken = site.ask_with(thief["secret"].as_str(), "POST", &rotation, &Value::Null).await;
    let taken = value(&taken)["secret"].clone();
    assert!(works(&site, &taken).await);
    assert_eq!(site.ask("ada", "DELETE", &path(&thief), &Value::Null).await.status, 204);
    assert!(!works(&site, &taken).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_came_of_a_link_ends_with_the_session_that_made_it() {
    let site = Site::new(&[]).await;
    let come = async |by: &Value| {
        let link = value(&site.ask_with(by.as_str(), "POST", "/sign_in_link", &Value::Null).await);
        let body = json!({ "link": link["secret"] });
        value(&site.ask_with(None, "POST", "/session", &body).await)["secret"].clone()
    };
    let first = value(&site.sign_in("ada", PASSWORD).await)["secret"].clone();
    let second = come(&first).await;
    let third = come(&second).await;
    let unused = value(&site.ask_with(third.as_str(), "POST", "/sign_in_link", &Value::Null).await);
    let revoke = site.ask_with(second.as_str(), "DELETE", "/session", &Value::Null).await;
    assert_eq!(revoke.status, 204);
    assert!(works(&site, &first).await, "the one before goes on");
    assert!(!works(&site, &third).await);
    let body = json!({ "link": unused["secret"] });
    assert_eq!(site.ask_with(None, "POST", "/session", &body).await.status, 401, "and with it its link");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_an_administrator_made_end_when_they_are_none() {
    let site = Site::new(&[]).await;
    for (maker, body) in [
        ("otto", json!({ "standing": "disabled" })),
        ("vera", json!({ "admin": false })),
        ("mia", Value::Null),
    ] {
        site.ask("admin", "PATCH", &format!("/accounts/{maker}"), &json!({ "admin": true })).await;
        let link = async |path: &str, body: Value| {
            let made = site.ask(maker, "POST", path, &body).await;
            assert!(made.status < 300, "{maker}: {}", made.body);
            value(&made)["password_link"].clone()
        };
        let fresh = format!("fresh-{maker}");
        let links = [
            ("ada", link("/accounts/ada/password_link", json!({ "proof": proof() })).await),
            (&fresh, link("/accounts", json!({ "name": fresh })).await),
        ];
        let path = format!("/accounts/{maker}");
        let gone = match &body {
            Value::Null => site.ask("admin", "DELETE", &path, &Value::Null).await,
            change => site.ask("admin", "PATCH", &path, change).await,
        };
        assert!(gone.status < 300, "{}", gone.body);
        for (account, link) in links {
            let set = json!({ "account": account, "password": "a thief's password", "link": link });
            let answer = site.ask_with(None, "POST", "/password", &set).await;
            assert_eq!(answer.status, 401, "{maker} for {account}: {}", answer.body);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_asks_for_the_password_and_the_code() {
    let site = Site::new(&[]).await;
    let home = tempfile::tempdir().unwrap();
    let run = async |arguments: &[&str], typed: &str| run_danlu(home.path(), arguments, typed).await;
    let (code, _, said) = run(&["login", "ada", "--server", &site.address], &format!("{PASSWORD}\n")).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, printed, said) = run(&["tokens", "add", "nightly"], "not her password\n").await;
    assert!(code == Some(1) && printed.is_empty(), "{printed}");
    assert!(said.contains("is not the password of this account"), "{said}");
    let (_, recovery) = enrolled(&site, "ada").await;
    let typed = format!("{PASSWORD}\n{}\n", recovery[0].as_str().unwrap());
    let (code, secret, said) = run(&["tokens", "add", "nightly", "--scope", "all"], &typed).await;
    assert!(code == Some(0) && secret.starts_with("danlu_"), "{said}");
}
