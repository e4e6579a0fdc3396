//! Every operation of the API, asked for by everybody.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::site::{ASKERS, PASSWORD, Site, proof, value};

const SSH_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

/// How to ask for an operation so that it could be granted: the path's parts, and a body. `None`: nobody has thought about
/// it, and the test fails.
pub(crate) fn recipe(operation: &str, job: u64, account: &str, node: &str) -> Option<(String, Value)> {
    let (_, path) = operation.split_once(' ')?;
    let body = match operation {
        "POST /jobs" => json!({ "command": "true", "workspace": "lab", "cpus": "10m" }),
        "POST /jobs/parse" => json!({ "text": "command: true\n" }),
        "POST /session" => json!({ "name": "ada", "password": PASSWORD }),
        "POST /registration" => json!({ "name": format!("new-{account}"), "password": PASSWORD }),
        "POST /password" => json!({ "account": account, "password": PASSWORD, "current": PASSWORD }),
        "POST /accounts" => json!({ "name": format!("made-by-{account}"), "password": PASSWORD }),
        "PATCH /jobs/{id}" => json!({ "max_time": "1h" }),
        "PATCH /accounts/{name}" => json!({ "display_name": "Ada" }),
        "POST /sidecar/claim" => {
            json!({ "allocation": "1.slurm.0", "job": 1, "nonce": "0123456789abcdef" })
        }
        "POST /attempt/reports" => json!({ "lines": ["::danlu progress 0.5"] }),
        "POST /tokens" => json!({ "name": "script", "scope": "read", "proof": proof() }),
        "POST /simulations" => {
            json!({ "trace": "submit,duration\n0s,1h\n", "runs": [{ "name": "x", "nodes": "1x8:nvidia:A100" }] })
        }
        "POST /migrations" => json!({ "code": format!("sha256:{}", "0".repeat(64)) }),
        "POST /accounts/{name}/ssh_keys" => {
            json!({ "key": format!("{SSH_KEY} {account}"), "proof": proof() })
        }
        "POST /accounts/{name}/s3_keys" => json!({ "name": "bucket", "proof": proof() }),
        "POST /accounts/{name}/password_link" | "POST /accounts/{name}/tokens/{id}/rotation" => {
            json!({ "proof": proof() })
        }
        // Held, it has changed once.
        "POST /jobs/{id}/approval" => json!({ "generation": 2 }),
        "POST /oidc/link" | "POST /accounts/{name}/totp" => json!({ "password": PASSWORD }),
        "POST /accounts/{name}/totp/confirmation" => json!({ "code": "000000" }),
        "POST /workspaces/{name}/invitations" => json!({ "role": "member" }),
        "PUT /workspaces/{name}" => json!({ "default_priority": 4 }),
        "PUT /sharing" => json!({ "lending": true, "minimum_run_time": "5m" }),
        "PUT /workspaces/{name}/secrets/{secret}" => json!({ "value": "swordfish" }),
        "PUT /workspaces/{name}/members/{account}" => json!({ "role": "viewer" }),
        "POST /nodes/{name}/cordon" | "POST /nodes/{name}/drain" => json!({ "why": "new fans" }),
        "GET /jobs"
        | "GET /jobs/counts"
        | "GET /jobs/{id}"
        | "DELETE /jobs/{id}"
        | "POST /jobs/{id}/stop"
        | "POST /jobs/{id}/hold"
        | "POST /jobs/{id}/release"
        | "POST /jobs/{id}/clone"
        | "GET /jobs/{id}/why"
        | "GET /jobs/{id}/logs"
        | "GET /jobs/{id}/logs/follow"
        | "GET /jobs/{id}/metrics"
        | "GET /jobs/{id}/samples"
        | "GET /jobs/{id}/workers/{worker}/session"
        | "GET /jobs/{id}/files"
        | "GET /jobs/{id}/files/content"
        | "GET /usage"
        | "GET /attempt"
        | "GET /sidecar/allocations/{allocation}/files/{file}"
        | "GET /sidecar/workers/{worker}/files/{file}"
        | "PUT /sidecar/workers/{worker}/files/{file}"
        | "GET /sidecar/workers/{worker}/news"
        | "GET /sidecar/workers/{worker}/code"
        | "GET /sidecar/programs/{digest}"
        | "GET /sidecar/workers/{worker}/trees/{area}"
        | "GET /sidecar/workers/{worker}/trees/{area}/content"
        | "PUT /sidecar/workers/{worker}/trees/{area}/content"
        | "DELETE /sidecar/workers/{worker}/trees/{area}/content"
        | "GET /events"
        | "GET /nodes"
        | "POST /nodes/{name}/uncordon"
        | "POST /nodes/{name}/devices/{index}/restore"
        | "GET /devices"
        | "GET /metrics"
        | "GET /workspaces"
        | "GET /workspaces/{name}"
        | "DELETE /workspaces/{name}"
        | "GET /quota"
        | "GET /sharing"
        | "GET /hints"
        | "PUT /code/{digest}"
        | "HEAD /code/{digest}"
        | "GET /migrations/{code}/reports/{report}"
        | "DELETE /session"
        | "POST /sign_in_link"
        | "GET /whoami"
        | "GET /accounts"
        | "GET /accounts/{name}"
        | "DELETE /accounts/{name}"
        | "GET /accounts/{name}/tokens"
        | "DELETE /accounts/{name}/tokens/{id}"
        | "GET /ways_in"
        | "GET /oidc/start"
        | "GET /oidc/callback"
        | "GET /accounts/{name}/identities"
        | "DELETE /accounts/{name}/identities/{id}"
        | "DELETE /accounts/{name}/totp"
        | "GET /accounts/{name}/ssh_keys"
        | "DELETE /accounts/{name}/ssh_keys/{id}"
        | "GET /accounts/{name}/s3_keys"
        | "DELETE /accounts/{name}/s3_keys/{access_key}"
        | "GET /workspaces/{name}/invitations"
        | "DELETE /workspaces/{name}/invitations/{id}"
        | "GET /workspaces/{name}/applicants"
        | "POST /workspaces/{name}/applicants/{account}"
        | "DELETE /workspaces/{name}/applicants/{account}"
        | "GET /workspaces/{name}/members"
        | "DELETE /workspaces/{name}/members/{account}"
        | "GET /workspaces/{name}/secrets"
        | "DELETE /workspaces/{name}/secrets/{secret}"
        | "GET /audit"
        | "GET /audit/verification" => Value::Null,
        _ => return None,
    };
    let name = match path {
        path if path.starts_with("/nodes/") => node,
        path if path.starts_with("/workspaces/") => "lab",
        _ => account,
    };
    // Who may not look is told so before the path, which nobody may use, is.
    let path = if path.ends_with("/files/content") { &format!("{path}?path=..") } else { path };
    let filled = path
        .replace("{id}", &job.to_string())
        .replace("{worker}", "0")
        .replace("{index}", "0")
        .replace("{allocation}", "1.slurm.0")
        .replace("{file}", "launch.json")
        .replace("{area}", "output")
        .replace("{name}", name)
        .replace("{account}", account)
        .replace("{secret}", "hf-token")
        .replace("{report}", "report.html")
        .replace("{code}", "{digest}")
        .replace("{digest}", &format!("sha256:{}", "0".repeat(64)));
    Some((filled, body))
}

/// What an answer says about permission. A thing that is missing and a thing that is hidden look the same, as they should:
/// where the path names something that is really there, 404 means hidden.
fn word(operation: &str, status: u16) -> &'static str {
    let names_nothing = ["{digest}", "{code}", "{index}"].iter().any(|part| operation.contains(part));
    match status {
        401 => "who?",
        403 => "no",
        // A workspace that one is not in is a wrong value of a field, like one that does not exist.
        422 if operation == "POST /jobs" => "hidden",
        404 if !names_nothing => "hidden",
        429 => "later",
        500.. => "BROKEN",
        _ => "yes",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_is_for_those_whom_the_policy_names() {
    let mut site = Site::new(&["--registration", "open"]).await;
    site.start_attempt().await;
    let openapi: Value = value(&site.ask("admin", "GET", "/openapi.json", &Value::Null).await);
    let node = value(&site.ask("admin", "GET", "/nodes", &Value::Null).await)["items"][0]["name"].clone();
    let node = node.as_str().unwrap().to_owned();
    let mut matrix = String::new();
    let _ = writeln!(matrix, "{:<48}{}", "", ASKERS.map(|name| format!("{name:<8}")).concat().trim_end());
    for (path, methods) in openapi["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let operation = format!("{} {path}", method.to_uppercase());
            let mut words = String::new();
            for who in ASKERS {
                let word = ask_afresh(&site, &operation, who, &node).await;
                let _ = write!(words, "{word:<8}");
            }
            // Long ones too are told from the first word.
            let named = format!("{operation} ");
            let _ = writeln!(matrix, "{named:<48}{}", words.trim_end());
        }
    }
    insta::assert_snapshot!(matrix);
}

/// Asks on a thing of its own, so that what one is allowed to do does not change what the next one finds.
async fn ask_afresh(site: &Site, operation: &str, who: &str, node: &str) -> &'static str {
    let enters = operation.contains("/workers/");
    let job = if operation.contains("/jobs/{id}") { site.job(!enters).await } else { 0 };
    let subject = if operation.contains("/accounts/{name}")
        || operation.contains("{account}")
        || operation == "POST /password"
    {
        // For ada's own account she is its author; a copy of it for each, because some delete it.
        "ada"
    } else {
        who
    };
    let (path, body) = recipe(operation, job, subject, node).unwrap_or_else(|| {
        panic!("nobody has said how to ask for `{operation}`: add it to `recipe`, and to the policy")
    });
    let method = operation.split(' ').next().unwrap();
    // What would end the account or the session of the one who asks is asked for last, by refusing it a body.
    let answer = match operation {
        "DELETE /session" => {
            let fresh = value(
                &site
                    .sign_in(
                        if ["nobody", "admin", "attempt"].contains(&who) { "sam" } else { who },
                        PASSWORD,
                    )
                    .await,
            );
            let token = match who {
                "nobody" => None,
                "attempt" => site.token(who).map(str::to_owned),
                _ => Some(fresh["secret"].as_str().unwrap().to_owned()),
            };
            site.ask_with(token.as_deref(), method, &path, &body).await
        }
        "DELETE /accounts/{name}" => {
            let name = format!("gone-{who}");
            site.ask("admin", "POST", "/accounts", &json!({ "name": name, "password": PASSWORD })).await;
            site.ask(who, method, &format!("/accounts/{name}"), &body).await
        }
        _ if path.starts_with("/accounts/ada/") && operation.contains("/{id}") => {
            let (made, id) = if operation.contains("ssh_keys") {
                let made = site
                    .ask(
                        "ada",
                        "POST",
                        "/accounts/ada/ssh_keys",
                        &json!({ "key": SSH_KEY, "proof": proof() }),
                    )
                    .await;
                (value(&made), "/id")
            } else {
                let new = json!({ "name": "script", "scope": "read", "proof": proof() });
                (value(&site.ask("ada", "POST", "/tokens", &new).await), "/token/id")
            };
            let id = made.pointer(id).and_then(Value::as_str).unwrap();
            let filled = operation.split_once(' ').unwrap().1.replace("{name}", "ada").replace("{id}", id);
            let answer = site.ask(who, method, &filled, &body).await;
            site.ask("ada", "DELETE", &format!("/accounts/ada/ssh_keys/{id}"), &Value::Null).await;
            answer
        }
        "POST /accounts/{name}/ssh_keys" => {
            let answer = site.ask(who, method, &path, &body).await;
            let keys = value(&site.ask("ada", "GET", &path, &Value::Null).await);
            for key in keys["items"].as_array().unwrap() {
                let key = format!("{path}/{}", key["id"].as_str().unwrap());
                site.ask("ada", "DELETE", &key, &Value::Null).await;
            }
            answer
        }
        "DELETE /accounts/{name}/totp" | "POST /accounts/{name}/totp/confirmation" => {
            site.ask("ada", "POST", "/accounts/ada/totp", &json!({ "password": PASSWORD })).await;
            site.ask(who, method, &path, &body).await
        }
        "DELETE /accounts/{name}/s3_keys/{access_key}" => {
            let made = site
                .ask("ada", "POST", "/accounts/ada/s3_keys", &json!({ "name": "bucket", "proof": proof() }))
                .await;
            let key = value(&made)["key"]["access_key"].as_str().unwrap().to_owned();
            site.ask(who, method, &path.replace("{access_key}", &key), &body).await
        }
        "DELETE /workspaces/{name}/invitations/{id}" => {
            let made =
                site.ask("otto", "POST", "/workspaces/lab/invitations", &json!({ "role": "member" })).await;
            let id = value(&made)["invitation"]["id"].as_str().unwrap().to_owned();
            site.ask(who, method, &format!("/workspaces/lab/invitations/{id}"), &body).await
        }
        "POST /workspaces/{name}/applicants/{account}" | "DELETE /workspaces/{name}/applicants/{account}" => {
            let name = format!("asks-{who}-{}", method.to_lowercase());
            let asked = json!({ "name": name, "password": PASSWORD, "workspace": "lab" });
            assert_eq!(site.ask("nobody", "POST", "/registration", &asked).await.status, 201);
            site.ask(who, method, &format!("/workspaces/lab/applicants/{name}"), &body).await
        }
        "POST /password" => {
            // Sets the same password again; it ends sessions, so on an account that nobody asks with.
            let name = format!("pass-{who}");
            site.ask("admin", "POST", "/accounts", &json!({ "name": name, "password": PASSWORD })).await;
            let body = json!({ "account": name, "password": PASSWORD, "current": PASSWORD });
            site.ask(who, method, &path, &body).await
        }
        // Not the lab itself, which the others still need.
        "DELETE /workspaces/{name}" => {
            let name = format!("closed-{who}");
            site.ask("admin", "PUT", &format!("/workspaces/{name}"), &json!({})).await;
            site.ask(who, method, &format!("/workspaces/{name}"), &body).await
        }
        "PUT /workspaces/{name}/members/{account}" | "DELETE /workspaces/{name}/members/{account}" => {
            let name = format!("role-{who}-{}", method.to_lowercase());
            site.ask("admin", "POST", "/accounts", &json!({ "name": name, "password": PASSWORD })).await;
            let path = format!("/workspaces/lab/members/{name}");
            site.ask("admin", "PUT", &path, &json!({ "role": "viewer" })).await;
            site.ask(who, method, &path, &body).await
        }
        "DELETE /workspaces/{name}/secrets/{secret}" => {
            site.ask("admin", "PUT", &path, &json!({ "value": "swordfish" })).await;
            site.ask(who, method, &path, &body).await
        }
        _ => site.ask(who, method, &path, &body).await,
    };
    word(operation, answer.status)
}
