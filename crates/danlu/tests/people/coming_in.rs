//! Invitations, applicants, keys, rotation: how people come in, and what they carry.

use danlu_testkit::eventually;
use danlu_types::api::JobState;
use danlu_types::link::Link;
use serde_json::{Value, json};

use crate::site::{PASSWORD, Site, proof, run_danlu, value};

const INVITATIONS: &str = "/workspaces/lab/invitations";
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ada@laptop";

async fn register(site: &Site, body: Value) -> u16 {
    site.ask("nobody", "POST", "/registration", &body).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_makes_one_account_with_a_role() {
    let site = Site::new(&["--registration", "invitation"]).await;
    let uninvited = json!({ "name": "nina", "password": PASSWORD });
    assert_eq!(register(&site, uninvited).await, 403);
    let invite = async |who: &str, role: &str| {
        value(&site.ask(who, "POST", INVITATIONS, &json!({ "role": role })).await)["secret"].clone()
    };
    let secret = invite("otto", "viewer").await;
    let come = async |name: &str, secret: &Value| {
        register(&site, json!({ "name": name, "password": PASSWORD, "invitation": secret })).await
    };
    // Two at once: one gets in, and the other may try again with another invitation.
    let (one, two) = tokio::join!(come("nina", &secret), come("nino", &secret));
    let mut both = [one, two];
    both.sort_unstable();
    assert_eq!(both, [201, 403]);
    let name = if one == 201 { "nina" } else { "nino" };
    let signed_in = value(&site.sign_in(name, PASSWORD).await);
    assert_eq!(signed_in["account"]["workspaces"], json!([{ "workspace": "lab", "role": "viewer" }]));

    let taken_back = invite("admin", "owner").await;
    let listed = value(&site.ask("otto", "GET", INVITATIONS, &Value::Null).await);
    assert!(!listed.to_string().contains("danlu_"), "a list has no secrets");
    let id = listed["items"][0]["id"].as_str().unwrap();
    assert_eq!(site.ask("otto", "DELETE", &format!("{INVITATIONS}/{id}"), &Value::Null).await.status, 204);
    assert_eq!(come("eve", &taken_back).await, 403);
    assert_eq!(come("eve", &json!("danlu_0")).await, 403);
    let longer = json!({ "role": "member", "lasts": "31d" });
    assert_eq!(site.ask("otto", "POST", INVITATIONS, &longer).await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_lets_others_in_through_a_workspace_of_their_own() {
    let site = Site::new(&["--registration", "open"]).await;
    let own = site.ask("sam", "POST", "/workspaces/sam/invitations", &json!({ "role": "member" })).await;
    assert_eq!(own.status, 403, "{}", own.body);
    assert_eq!(
        register(&site, json!({ "name": "eve", "password": PASSWORD, "workspace": "sam" })).await,
        201
    );
    let approve = site.ask("sam", "POST", "/workspaces/sam/applicants/eve", &Value::Null).await;
    assert_eq!(approve.status, 403, "{}", approve.body);
    assert_eq!(site.sign_in("eve", PASSWORD).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_let_in_those_who_ask_for_their_workspace() {
    let site = Site::new(&["--registration", "open"]).await;
    for name in ["nina", "eve"] {
        assert_eq!(
            register(&site, json!({ "name": name, "password": PASSWORD, "workspace": "lab" })).await,
            201
        );
    }
    let applicants = async |who: &str| site.ask(who, "GET", "/workspaces/lab/applicants", &Value::Null).await;
    let asking = value(&applicants("otto").await);
    let names: Vec<_> =
        asking["items"].as_array().unwrap().iter().map(|one| one["account"].clone()).collect();
    assert_eq!(names, ["eve", "nina"]);
    assert_eq!(applicants("mia").await.status, 403);
    assert_eq!(applicants("sam").await.status, 404);

    let decide = async |method: &str, name: &str| {
        site.ask("otto", method, &format!("/workspaces/lab/applicants/{name}"), &Value::Null).await.status
    };
    assert_eq!((decide("POST", "nina").await, decide("DELETE", "eve").await), (200, 204));
    assert_eq!((decide("POST", "nina").await, decide("POST", "eve").await), (404, 404), "decided");
    assert_eq!(decide("POST", "sam").await, 404, "nobody is drawn in who has not asked");
    assert_eq!(site.sign_in("eve", PASSWORD).await.status, 401);
    let nina = value(&site.sign_in("nina", PASSWORD).await);
    assert_eq!(nina["account"]["workspaces"], json!([{ "workspace": "lab", "role": "member" }]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_invites_and_registers() {
    let site = Site::new(&["--registration", "invitation"]).await;
    let home = tempfile::tempdir().unwrap();
    let data = site.server.data().display().to_string();
    let invite = ["--data", &data, "invitations", "lab", "add", "--role", "viewer"];
    let (code, page, said) = run_danlu(home.path(), &invite, "").await;
    assert!(code == Some(0) && page.contains("/register#link="), "{said}");
    assert_eq!(Link::read(&page).server.as_deref(), Some(site.address.as_str()));
    let register = ["register", "nina", "--link", page.trim()];
    let (code, _, said) = run_danlu(home.path(), &register, &format!("{PASSWORD}\n")).await;
    assert_eq!((code, said.as_str()), (Some(0), "nina may sign in: `danlu login nina`\n"));
    assert_eq!(site.sign_in("nina", PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_token_has_one_secret_and_its_old_powers() {
    let site = Site::new(&[]).await;
    let made = json!({ "name": "nightly", "scope": "read", "lasts": "90d", "proof": proof() });
    let made = value(&site.ask("ada", "POST", "/tokens", &made).await);
    let id = made["token"]["id"].as_str().unwrap();
    let path = format!("/accounts/ada/tokens/{id}/rotation");
    assert_eq!(site.ask("admin", "POST", &path, &Value::Null).await.status, 403, "it is ada's secret");
    assert_eq!(site.ask("otto", "POST", &path, &Value::Null).await.status, 404);
    // The token itself may, though it may do little else.
    let rotated = value(&site.ask_with(made["secret"].as_str(), "POST", &path, &Value::Null).await);
    let whoami = async |secret: &Value| site.ask_with(secret.as_str(), "GET", "/whoami", &Value::Null).await;
    assert_eq!(whoami(&made["secret"]).await.status, 401);
    assert_eq!(value(&whoami(&rotated["secret"]).await)["scope"], "read");
    assert_eq!(rotated["token"]["id"], made["token"]["id"]);
    assert!(rotated["token"]["expires_at"].is_string(), "{rotated}");
    let session = value(&site.sign_in("ada", PASSWORD).await);
    let sessions = value(&site.ask("ada", "GET", "/accounts/ada/tokens", &Value::Null).await);
    let one = sessions["items"].as_array().unwrap().iter().find(|token| token["kind"] == "session").unwrap();
    let path = format!("/accounts/ada/tokens/{}/rotation", one["id"].as_str().unwrap());
    assert_eq!(site.ask_with(session["secret"].as_str(), "POST", &path, &Value::Null).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ssh_key_is_one_persons() {
    let site = Site::new(&[]).await;
    let add = async |who: &str, key: &str| {
        site.ask(who, "POST", &format!("/accounts/{who}/ssh_keys"), &json!({ "key": key, "proof": proof() }))
            .await
    };
    let added = value(&add("ada", KEY).await);
    assert_eq!(added["name"], "ada@laptop");
    assert!(added["fingerprint"].as_str().unwrap().starts_with("SHA256:"), "{added}");
    assert_eq!(add("mia", KEY).await.status, 409);
    let broken = add("mia", "ssh-ed25519 AAAA").await;
    assert!(broken.status == 422 && broken.body.contains("damaged"), "{}", broken.body);
    let path = format!("/accounts/ada/ssh_keys/{}", added["id"].as_str().unwrap());
    assert_eq!(site.ask("mia", "DELETE", &path, &Value::Null).await.status, 404);
    assert_eq!(site.ask("ada", "DELETE", &path, &Value::Null).await.status, 204);
    assert_eq!(add("mia", KEY).await.status, 201);
    site.ask("admin", "DELETE", "/accounts/mia", &Value::Null).await;
    assert_eq!(add("ada", KEY).await.status, 201, "what belonged to an account goes with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_s3_secret_is_shown_once_and_lies_nowhere_in_the_open() {
    let mut site = Site::new(&[]).await;
    let made = value(
        &site
            .ask("ada", "POST", "/accounts/ada/s3_keys", &json!({ "name": "bucket", "proof": proof() }))
            .await,
    );
    let secret = made["secret_key"].as_str().unwrap().to_owned();
    assert_eq!((made["key"]["access_key"].as_str().unwrap().len(), secret.len()), (20, 40));
    let listed = site.ask("ada", "GET", "/accounts/ada/s3_keys", &Value::Null).await;
    assert!(listed.body.contains("bucket") && !listed.body.contains(&secret), "{}", listed.body);
    assert_eq!(site.ask("admin", "POST", "/accounts/ada/s3_keys", &json!({ "name": "x" })).await.status, 403);

    site.server.terminate();
    for entry in std::fs::read_dir(site.server.data()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "the secret is in {}", path.display());
    }
    // Another key opens nothing, and says so.
    std::fs::remove_file(site.server.data().join("secret.key")).unwrap();
    site.server.restart().await;
    assert!(site.server.log().contains("was not sealed with this server's key"), "{}", site.server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_disabled_account_end_if_it_is_said() {
    let site = Site::new(&[]).await;
    let job = danlu_types::JobId(site.job(false).await);
    let disable = async |jobs: &str| {
        let change = json!({ "standing": "disabled", "jobs": jobs });
        site.ask("admin", "PATCH", "/accounts/ada", &change).await.status
    };
    assert_eq!(disable("keep").await, 200);
    assert_eq!(site.server.job(job).await.state, JobState::Running);
    let alone = json!({ "jobs": "stop" });
    assert_eq!(site.ask("admin", "PATCH", "/accounts/ada", &alone).await.status, 422);
    assert_eq!(disable("stop").await, 200);
    eventually("the job to end", || async {
        (site.server.job(job).await.state == JobState::Ended).then_some(())
    })
    .await;
}
