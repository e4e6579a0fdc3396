//! Things of one workspace or account asked for through another, and by or about what is not there any more.

use serde_json::{Value, json};

use crate::matrix::recipe;
use crate::site::{PASSWORD, Site, proof, value};

const SSH_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

async fn made(site: &Site, who: &str, method: &str, path: &str, body: Value, pointer: &str) -> String {
    let answer = site.ask(who, method, path, &body).await;
    assert!(answer.status < 300, "{method} {path}: {}", answer.body);
    match value(&answer).pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => panic!("no {pointer} in {}", answer.body),
    }
}

/// The secret of a session of a new account.
async fn newcomer(site: &Site, name: &str) -> String {
    let new = json!({ "name": name, "password": PASSWORD });
    assert_eq!(site.ask("admin", "POST", "/accounts", &new).await.status, 201);
    value(&site.sign_in(name, PASSWORD).await)["secret"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_another_is_reached_through_what_is_ones_own() {
    let site = Site::new(&["--registration", "open"]).await;
    let olga = newcomer(&site, "olga").await;
    site.ask("admin", "PUT", "/workspaces/attic", &json!({})).await;
    site.ask("admin", "PUT", "/workspaces/attic/members/olga", &json!({ "role": "owner" })).await;
    // What the lab and ada have.
    let job = site.job(true).await;
    let invitation = made(
        &site,
        "otto",
        "POST",
        "/workspaces/lab/invitations",
        json!({ "role": "member" }),
        "/invitation/id",
    )
    .await;
    site.ask("otto", "PUT", "/workspaces/lab/secrets/hf-token", &json!({ "value": "swordfish" })).await;
    let token = made(
        &site,
        "ada",
        "POST",
        "/tokens",
        json!({ "name": "x", "scope": "read", "proof": proof() }),
        "/token/id",
    )
    .await;
    let key = made(
        &site,
        "ada",
        "POST",
        "/accounts/ada/ssh_keys",
        json!({ "key": SSH_KEY, "proof": proof() }),
        "/id",
    )
    .await;
    let bucket = made(
        &site,
        "ada",
        "POST",
        "/accounts/ada/s3_keys",
        json!({ "name": "b", "proof": proof() }),
        "/key/access_key",
    )
    .await;
    let asks = json!({ "name": "asks", "password": PASSWORD, "workspace": "lab" });
    assert_eq!(site.ask("nobody", "POST", "/registration", &asks).await.status, 201);
    let looks = [
        ("otto", "/workspaces/lab/invitations".to_owned()),
        ("otto", "/workspaces/lab/secrets".to_owned()),
        ("otto", "/workspaces/lab/applicants".to_owned()),
        ("otto", "/workspaces/lab/members".to_owned()),
        ("ada", "/accounts/ada/ssh_keys".to_owned()),
        ("ada", "/accounts/ada/s3_keys".to_owned()),
        ("ada", format!("/jobs/{job}")),
    ];
    let mut before = Vec::new();
    for (who, path) in &looks {
        before.push(site.ask(who, "GET", path, &Value::Null).await.body);
    }
    let ask =
        async |method: &str, path: &str, body: &Value| site.ask_with(Some(&olga), method, path, body).await;
    let own = json!({ "command": "true", "workspace": "attic", "cpus": "10m", "hold": true });
    let mut own_job = value(&ask("POST", "/jobs", &own).await)["id"].as_u64();
    if own_job.is_none() {
        let own = json!({ "command": "sleep 1000", "workspace": "attic", "cpus": "10m" });
        own_job = value(&ask("POST", "/jobs", &own).await)["id"].as_u64();
    }
    let own_job = own_job.unwrap();
    let with_secret = json!({
        "command": "true", "workspace": "attic", "cpus": "10m", "secrets": [{ "name": "hf-token", "as": "env", "variable": "T" }],
    });
    for (method, path, body) in [
        ("DELETE", format!("/workspaces/attic/invitations/{invitation}"), Value::Null),
        ("DELETE", "/workspaces/attic/secrets/hf-token".to_owned(), Value::Null),
        ("POST", "/workspaces/attic/applicants/asks".to_owned(), Value::Null),
        ("DELETE", "/workspaces/attic/applicants/asks".to_owned(), Value::Null),
        ("DELETE", format!("/accounts/olga/tokens/{token}"), Value::Null),
        ("POST", format!("/accounts/olga/tokens/{token}/rotation"), json!({ "proof": proof() })),
        ("DELETE", format!("/accounts/olga/ssh_keys/{key}"), Value::Null),
        ("DELETE", format!("/accounts/olga/s3_keys/{bucket}"), Value::Null),
        ("PATCH", format!("/jobs/{own_job}"), json!({ "workspace": "lab" })),
        ("POST", format!("/jobs/{own_job}/clone"), json!({ "workspace": "lab" })),
        ("POST", "/jobs".to_owned(), with_secret),
        ("POST", format!("/jobs/{job}/clone"), json!({ "workspace": "attic" })),
        ("POST", format!("/jobs/{job}/approval"), json!({ "generation": 2 })),
        ("PUT", "/workspaces/lab/members/olga".to_owned(), json!({ "role": "owner" })),
    ] {
        let answer = ask(method, &path, &body).await;
        assert!(
            [403, 404, 409, 422].contains(&answer.status),
            "{method} {path}: {} {}",
            answer.status,
            answer.body
        );
    }
    for ((who, path), before) in looks.iter().zip(before) {
        assert_eq!(site.ask(who, "GET", path, &Value::Null).await.body, before, "{path}");
    }
    let listed = site.ask("otto", "GET", "/accounts/ada/tokens", &Value::Null).await;
    assert_eq!(listed.status, 404, "an owner of a workspace owns nobody's account");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_gone_is_nobody_and_what_is_gone_is_nothing() {
    let site = Site::new(&["--registration", "open"]).await;
    let mut gone = Vec::new();
    for name in ["deleted", "disabled", "revoked", "rotated"] {
        let session = newcomer(&site, name).await;
        let ask = async |method: &str, path: &str, body: Value| {
            site.ask_with(Some(&session), method, path, &body).await
        };
        let token =
            value(&ask("POST", "/tokens", json!({ "name": "x", "scope": "all", "proof": proof() })).await);
        let (secret, id) = (token["secret"].as_str().unwrap(), token["token"]["id"].as_str().unwrap());
        gone.push((name, secret.to_owned()));
        let answer = match name {
            "deleted" => site.ask("admin", "DELETE", "/accounts/deleted", &Value::Null).await,
            "disabled" => {
                site.ask("admin", "PATCH", "/accounts/disabled", &json!({ "standing": "disabled" })).await
            }
            "revoked" => ask("DELETE", &format!("/accounts/revoked/tokens/{id}"), Value::Null).await,
            _ => {
                ask("POST", &format!("/accounts/rotated/tokens/{id}/rotation"), json!({ "proof": proof() }))
                    .await
            }
        };
        assert!(answer.status < 300, "{name}: {}", answer.body);
    }
    // A workspace and a job that were there.
    site.ask("admin", "PUT", "/workspaces/closed", &json!({})).await;
    site.ask("admin", "DELETE", "/workspaces/closed", &Value::Null).await;
    let job = site.job(false).await;
    site.ask("ada", "POST", &format!("/jobs/{job}/stop"), &json!({ "grace": "0s" })).await;
    site.server.wait_for_end(danlu_types::JobId(job)).await;
    assert_eq!(site.ask("ada", "DELETE", &format!("/jobs/{job}"), &Value::Null).await.status, 204);

    let document = value(&site.ask("admin", "GET", "/openapi.json", &Value::Null).await);
    let mut tried = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
            let operation = format!("{method} {path}");
            // These change what is asked with or answer differently each time: guesses are counted.
            if path == "/session"
                || path == "/password"
                || path == "/registration"
                || path.starts_with("/oidc")
            {
                continue;
            }
            let (filled, body) = recipe(&operation, job, "deleted", "nowhere").unwrap();
            let filled = filled.replace("/workspaces/lab", "/workspaces/closed");
            let nobody = site.ask("nobody", &method, &filled, &body).await;
            for (who, secret) in &gone {
                let answer = site.ask_with(Some(secret), &method, &filled, &body).await;
                assert_eq!(
                    (answer.status, &answer.body),
                    (nobody.status, &nobody.body),
                    "{who}: {operation}"
                );
            }
            // Making it anew is what `PUT` is for.
            let names_what_is_gone = path.starts_with("/jobs/{id}")
                || path.starts_with("/accounts/{name}")
                || (path.starts_with("/workspaces/{name}") && operation != "PUT /workspaces/{name}");
            if names_what_is_gone {
                let answer = site.ask("admin", &method, &filled, &body).await;
                // Some secrets are only ever their owner's to be given, whoever asks.
                assert!(
                    [403, 404, 409, 422].contains(&answer.status),
                    "{operation}: {} {}",
                    answer.status,
                    answer.body
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 30, "only {tried} were tried");
}
