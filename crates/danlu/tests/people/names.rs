//! Names and the rules that go with them: what nobody escapes, inherits or finds out by asking.

use serde_json::{Value, json};

use crate::site::{PASSWORD, Site, value};

const NODE: [&str; 2] = ["--simulate", "1x8:nvidia:A100"];

fn job(workspace: &str, devices: u32, priority: u8) -> Value {
    let devices = json!({ "kind": "nvidia", "count": devices });
    json!({ "command": "true", "workspace": workspace, "cpus": "10m", "devices": devices, "priority": priority })
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_exempts_their_own_workspace_from_rules_that_come_later() {
    let site = Site::new(&NODE).await;
    let set = async |who: &str, workspace: &str, rules: Value| {
        site.ask(who, "PUT", &format!("/workspaces/{workspace}"), &rules).await
    };
    let try_out = async |who: &str, devices: u32, priority: u8| {
        site.ask(who, "POST", "/jobs?dry_run=true", &job(who, devices, priority)).await
    };
    let own = json!({ "default_priority": 9, "per_user": { "nvidia": 8 }, "images": ["*"], "head_of_line": "skip" });
    assert_eq!(set("sam", "sam", own).await.status, 200);
    let personal = json!({
        "limit": { "nvidia": 2 }, "approve_above": { "nvidia": 1 }, "highest_priority": 3,
        "per_user": { "nvidia": 2 }, "images": ["lab/*", "host"],
    });
    let rules = json!({ "lending": true, "minimum_run_time": "5m", "personal": personal });
    assert_eq!(site.ask("admin", "PUT", "/sharing", &rules).await.status, 204);
    for who in ["sam", "ada"] {
        let shown = value(&site.ask(who, "GET", &format!("/workspaces/{who}"), &Value::Null).await);
        for field in ["limit", "approve_above", "highest_priority", "per_user", "images"] {
            assert_eq!(shown[field], personal[field], "{who} {field}: {shown}");
        }
        let greedy = try_out(who, 8, 3).await;
        assert!(greedy.status == 422 && greedy.body.contains('2'), "{who}: {}", greedy.body);
        assert_eq!(try_out(who, 1, 9).await.status, 422, "{who}");
        let fine = try_out(who, 1, 3).await;
        assert_eq!(fine.status, 200, "{who}: {}", fine.body);
    }
    // What a form sends back as it was read is no change of the share, and stays the owner's to send.
    let mut again = value(&site.ask("sam", "GET", "/workspaces/sam", &Value::Null).await);
    for derived in ["name", "used", "borrowed", "lent"] {
        again.as_object_mut().unwrap().remove(derived);
    }
    again["default_priority"] = json!(2);
    let answer = set("sam", "sam", again).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(value(&answer)["head_of_line"], "skip");
    assert_eq!(try_out("sam", 8, 3).await.status, 422);
    let looser = json!({ "lending": true, "minimum_run_time": "5m", "personal": {} });
    assert_eq!(site.ask("admin", "PUT", "/sharing", &looser).await.status, 204);
    assert_eq!(try_out("sam", 8, 9).await.status, 200, "nothing of the old rules was kept");
    // One for all: what belongs to everybody is not given to one person's own, whoever says so.
    let refused = set("admin", "sam", json!({ "limit": { "nvidia": 8 } })).await;
    assert!(refused.status == 422 && refused.body.contains("personal"), "{}", refused.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_inherits_what_a_deleted_workspace_left() {
    let mut site = Site::new(&["--registration", "open"]).await;
    let job = site.job(true).await;
    site.ask("ada", "POST", &format!("/jobs/{job}/stop"), &Value::Null).await;
    site.server.wait_for_end(danlu_types::JobId(job)).await;
    assert_eq!(site.ask("admin", "DELETE", "/workspaces/lab", &Value::Null).await.status, 204);
    site.server.kill();
    site.server.restart().await;
    site.again();
    let lab = json!({ "name": "lab", "password": PASSWORD });
    for (who, method, path, body) in [
        ("nobody", "POST", "/registration", lab.clone()),
        ("admin", "POST", "/accounts", lab),
        ("admin", "PUT", "/workspaces/lab", json!({})),
    ] {
        let refused = site.ask(who, method, path, &body).await;
        assert!(
            refused.status == 409 && refused.body.contains("was the name of a workspace"),
            "{who} {method} {path}: {}",
            refused.body
        );
    }
    assert_eq!(site.ask("sam", "GET", &format!("/jobs/{job}"), &Value::Null).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_is_worth_what_its_maker_is() {
    let site = Site::new(&["--registration", "invitation"]).await;
    let invite = async |who: &str| {
        let made = site.ask(who, "POST", "/workspaces/lab/invitations", &json!({ "role": "owner" })).await;
        value(&made)["secret"].clone()
    };
    let come = async |name: &str, secret: &Value| {
        let body = json!({ "name": name, "password": PASSWORD, "invitation": secret });
        site.ask("nobody", "POST", "/registration", &body).await.status
    };
    let role = async |name: &str, role: &str| {
        let path = format!("/workspaces/lab/members/{name}");
        assert_eq!(site.ask("admin", "PUT", &path, &json!({ "role": role })).await.status, 204);
    };
    let invited = invite("otto").await;
    role("otto", "member").await;
    assert_eq!(come("eve", &invited).await, 403, "its maker owns the workspace no more");
    role("otto", "owner").await;
    let invited = invite("otto").await;
    site.ask("admin", "DELETE", "/workspaces/lab/members/otto", &Value::Null).await;
    assert_eq!(come("eve", &invited).await, 403);
    role("otto", "owner").await;
    let invited = invite("otto").await;
    site.ask("admin", "PATCH", "/accounts/otto", &json!({ "standing": "disabled" })).await;
    assert_eq!(come("eve", &invited).await, 403);
    let listed = value(&site.ask("admin", "GET", "/workspaces/lab/invitations", &Value::Null).await);
    assert_eq!(listed["items"], json!([]), "what is worth nothing is not listed");
    site.ask("admin", "PATCH", "/accounts/mia", &json!({ "admin": true })).await;
    let invited = invite("mia").await;
    site.ask("admin", "PATCH", "/accounts/mia", &json!({ "admin": false })).await;
    assert_eq!(come("eve", &invited).await, 403);
    let invited = invite("admin").await;
    assert_eq!(come("nina", &invited).await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_accounts_are_not_found_out_by_asking() {
    let site = Site::new(&[]).await;
    // Rules of her own, and a job: what used to list a workspace.
    site.ask("vera", "PUT", "/workspaces/vera", &json!({ "default_priority": 4 })).await;
    let spec = json!({ "command": "sleep 1000", "workspace": "vera", "cpus": "10m", "grace": "0s" });
    assert_eq!(site.ask("vera", "POST", "/jobs", &spec).await.status, 201);
    for (method, path, body) in [
        ("GET", "/workspaces/NAME", Value::Null),
        ("PUT", "/workspaces/NAME", json!({})),
        ("DELETE", "/workspaces/NAME", Value::Null),
        ("GET", "/quota?workspace=NAME", Value::Null),
        ("PUT", "/workspaces/sam/members/NAME", json!({ "role": "viewer" })),
        ("DELETE", "/workspaces/sam/members/NAME", Value::Null),
        ("GET", "/workspaces/NAME/members", Value::Null),
        ("GET", "/workspaces/NAME/secrets", Value::Null),
        ("GET", "/workspaces/NAME/invitations", Value::Null),
        ("GET", "/accounts/NAME", Value::Null),
        ("DELETE", "/accounts/NAME/totp", Value::Null),
        ("GET", "/jobs?workspace=NAME", Value::Null),
        ("POST", "/jobs", json!({ "command": "true", "workspace": "NAME", "cpus": "10m" })),
        ("POST", "/session", json!({ "name": "NAME", "password": "not the password" })),
        ("POST", "/password", json!({ "account": "NAME", "password": PASSWORD, "current": "wrong" })),
    ] {
        let ask = async |name: &str| {
            let body = serde_json::from_str(&body.to_string().replace("NAME", name)).unwrap();
            let answer = site.ask("sam", method, &path.replace("NAME", name), &body).await;
            (answer.status, answer.body.replace(name, "NAME"))
        };
        assert_eq!(ask("vera").await, ask("nobody-here").await, "{method} {path}");
    }
    for path in ["/workspaces", "/quota"] {
        let listed = site.ask("sam", "GET", path, &Value::Null).await;
        assert!(!listed.body.contains("vera"), "{path}: {}", listed.body);
        let own = site.ask("vera", "GET", path, &Value::Null).await;
        assert!(own.body.contains("vera"), "{path}: {}", own.body);
    }
    // People who work together find each other, and whoever answers for a workspace finds anybody.
    let add = async |who: &str, workspace: &str, name: &str| {
        let path = format!("/workspaces/{workspace}/members/{name}");
        site.ask(who, "PUT", &path, &json!({ "role": "viewer" })).await.status
    };
    assert_eq!((add("ada", "ada", "mia").await, add("otto", "lab", "sam").await), (204, 204));
}
