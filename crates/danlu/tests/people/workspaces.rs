//! Workspaces made and changed while the server runs: rules that act at once, approval, and quotas that explain themselves.

use danlu_testkit::eventually;
use danlu_types::JobId;
use danlu_types::api::JobState;
use serde_json::{Value, json};

use crate::site::{DANLU, PASSWORD, Site, run_danlu, value};

const NODE: [&str; 2] = ["--simulate", "1x8:nvidia:A100"];

fn job(workspace: &str, devices: u32) -> Value {
    let devices = json!({ "kind": "nvidia", "count": devices });
    json!({ "command": "sleep 1000", "workspace": workspace, "cpus": "10m", "grace": "0s", "devices": devices })
}

async fn submit(site: &Site, who: &str, job: &Value) -> JobId {
    let answer = site.ask(who, "POST", "/jobs", job).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    JobId(value(&answer)["id"].as_u64().unwrap())
}

async fn set(site: &Site, who: &str, workspace: &str, rules: &Value) -> u16 {
    site.ask(who, "PUT", &format!("/workspaces/{workspace}"), rules).await.status
}

async fn nvidia_quota(site: &Site, who: &str, workspace: &str) -> Value {
    let page = value(&site.ask(who, "GET", &format!("/quota?workspace={workspace}"), &Value::Null).await);
    let of_nvidia = |view: &&Value| view["resource"] == "nvidia";
    page["items"].as_array().unwrap().iter().find(of_nvidia).expect("there are such devices").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_change_acts_on_the_next_look_at_the_queue() {
    let site = Site::new(&NODE).await;
    assert_eq!(set(&site, "admin", "lab", &json!({ "limit": { "nvidia": 1 } })).await, 200);
    let first = submit(&site, "ada", &job("lab", 1)).await;
    site.server.wait_for(first, JobState::Running).await;
    let second = submit(&site, "mia", &job("lab", 1)).await;
    eventually("the limit to hold", || async {
        (site.server.job(second).await.reason.code == "workspace_limit").then_some(())
    })
    .await;
    assert_eq!(set(&site, "admin", "lab", &json!({ "limit": { "nvidia": 2 } })).await, 200);
    site.server.wait_for(second, JobState::Running).await;

    // Kept over a restart, with its trail.
    let audit = value(&site.ask("admin", "GET", "/audit?subject=lab", &Value::Null).await);
    let last = audit["items"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["action"], &last["by"]), (&json!("workspace.change"), &json!("admin")));
    assert_eq!(
        (&last["before"]["limit"], &last["after"]["limit"]),
        (&json!({"nvidia": 1}), &json!({"nvidia": 2}))
    );
    let mut server = site.server;
    server.kill();
    server.restart().await;
    let after = server.client().workspace_show("lab").await.unwrap();
    assert_eq!(after.rules.limit.nvidia.map(|count| count.to_string()).as_deref(), Some("2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_rule_over_their_people_and_administrators_over_shares() {
    let site = Site::new(&NODE).await;
    assert_eq!(
        set(&site, "otto", "lab", &json!({ "per_user": { "nvidia": 2 }, "default_priority": 4 })).await,
        200
    );
    let greedy = json!({ "per_user": { "nvidia": 2 }, "guaranteed": { "nvidia": 8 } });
    assert_eq!(set(&site, "otto", "lab", &greedy).await, 403);
    assert_eq!(set(&site, "mia", "lab", &json!({ "default_priority": 9 })).await, 403);
    assert_eq!(set(&site, "sam", "lab", &json!({})).await, 404, "sam has no part in it");
    assert_eq!(
        set(&site, "ada", "ada", &json!({ "limit": { "nvidia": 8 } })).await,
        403,
        "her own, but not her share"
    );
    let job = value(&site.ask("ada", "POST", "/jobs", &job("lab", 1)).await);
    assert_eq!(job["priority"], 4);
    for (rules, field) in [
        (json!({ "guaranteed": { "nvidia": 4 }, "limit": { "nvidia": 2 } }), "guaranteed.nvidia"),
        (json!({ "highest_priority": 12 }), "highest_priority"),
        (json!({ "shared_folder": "../../etc" }), "shared_folder"),
        (json!({ "shared_bucket": "https://elsewhere" }), "shared_bucket"),
        (json!({ "limt": {} }), "limt"),
    ] {
        let answer = site.ask("admin", "PUT", "/workspaces/lab", &rules).await;
        assert!(answer.status == 422 && answer.body.contains(field), "{}", answer.body);
    }
    assert_eq!(site.ask("admin", "PUT", "/workspaces/a%2Fb", &json!({})).await.status, 422);
    let busy = site.ask("admin", "DELETE", "/workspaces/lab", &Value::Null).await;
    assert!(busy.status == 409 && busy.body.contains("1 jobs that have not ended"), "{}", busy.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_asks_for_much_waits_for_an_owner() {
    let site = Site::new(&NODE).await;
    let approve = async |who: &str, id: JobId| {
        let seen = json!({ "generation": site.server.job(id).await.generation });
        site.ask(who, "POST", &format!("/jobs/{id}/approval"), &seen).await.status
    };
    assert_eq!(set(&site, "admin", "lab", &json!({ "approve_above": { "nvidia": 2 } })).await, 200);
    let small = submit(&site, "ada", &job("lab", 2)).await;
    site.server.wait_for(small, JobState::Running).await;
    let dry = value(&site.ask("ada", "POST", "/jobs?dry_run=true", &job("lab", 4)).await);
    assert_eq!(dry["reason"]["code"], "needs_approval", "{dry}");
    let large = submit(&site, "ada", &job("lab", 4)).await;
    let held = site.server.job(large).await;
    assert_eq!((held.state, held.reason.code.as_str()), (JobState::Held, "needs_approval"));
    let expected = "asks for 4 NVIDIA devices, and 2 is the most in workspace `lab` without approval";
    assert!(held.reason.text.starts_with(expected), "{}", held.reason.text);

    assert_eq!(site.ask("ada", "POST", &format!("/jobs/{large}/release"), &Value::Null).await.status, 409);
    assert_eq!(approve("ada", large).await, 403);
    assert_eq!(approve("otto", large).await, 200);
    site.server.wait_for(large, JobState::Running).await;

    // Everybody owns their own workspace; what is beyond it is not theirs to approve.
    let rules = json!({ "lending": true, "minimum_run_time": "0s", "personal": { "approve_above": { "nvidia": 0 } } });
    assert_eq!(site.ask("admin", "PUT", "/sharing", &rules).await.status, 204);
    let own = submit(&site, "ada", &job("ada", 1)).await;
    assert_eq!(approve("ada", own).await, 403);
    assert_eq!(approve("admin", own).await, 200);
    site.server.wait_for(own, JobState::Running).await;
}

/// An owner makes a held job larger between an administrator's look and the approval.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_changed_since_it_was_looked_at_is_not_approved() {
    let site = Site::new(&NODE).await;
    assert_eq!(set(&site, "admin", "lab", &json!({ "approve_above": { "nvidia": 2 } })).await, 200);
    let id = submit(&site, "ada", &job("lab", 4)).await;
    let seen = json!({ "generation": site.server.job(id).await.generation });
    let larger = json!({ "devices": { "count": 8 } });
    assert_eq!(site.ask("ada", "PATCH", &format!("/jobs/{id}"), &larger).await.status, 200);
    let approval = format!("/jobs/{id}/approval");
    let stale = site.ask("otto", "POST", &approval, &seen).await;
    assert_eq!((stale.status, value(&stale)["code"].clone()), (409, json!("wrong_state")), "{}", stale.body);
    let problem = value(&stale);
    assert_eq!(problem["detail"], format!("job {id} changed since you looked"));
    assert!(problem["hint"].as_str().unwrap().contains(&format!("danlu show {id}")), "{problem}");
    assert_eq!(site.server.job(id).await.state, JobState::Held);
    assert_eq!(site.ask("otto", "POST", &approval, &Value::Null).await.status, 400, "nothing was looked at");

    // The command line tells what it approves, or approves what was looked at.
    let home = tempfile::tempdir().unwrap();
    let data = site.server.data().display().to_string();
    let run = async |arguments: &[&str]| {
        let arguments = [&["--data", &data], arguments].concat();
        run_danlu(home.path(), &arguments, "").await
    };
    let number = id.to_string();
    let (_, page, said) = run(&["show", &number]).await;
    assert!(page.contains(&format!("danlu approve {id} --generation 2")), "{page} {said}");
    let (code, _, said) = run(&["approve", &number, "--generation", "1"]).await;
    assert!(code == Some(1) && said.contains("changed since you looked"), "{said}");
    assert!(said.contains("hint: look at it again"), "{said}");
    let (code, _, said) = run(&["approve", &number]).await;
    assert!(code == Some(0) && said.contains(&format!("job {id} of ada: 8 NVIDIA")), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_says_who_has_what_and_when_it_comes_back() {
    let site = Site::new(&NODE).await;
    let rules = json!({ "lending": true, "minimum_run_time": "1h" });
    assert_eq!(site.ask("admin", "PUT", "/sharing", &rules).await.status, 204);
    for (name, guaranteed) in [("lab", 6), ("guests", 2)] {
        assert_eq!(set(&site, "admin", name, &json!({ "guaranteed": { "nvidia": guaranteed } })).await, 200);
    }
    let mut borrowing = job("guests", 5);
    borrowing["preemptible"] = json!(true);
    let borrowing = submit(&site, "admin", &borrowing).await;
    site.server.wait_for(borrowing, JobState::Running).await;

    let lab = nvidia_quota(&site, "admin", "lab").await;
    let of = |view: &Value| {
        let keys = ["guaranteed", "broken", "used", "borrowed", "lent", "free"];
        Value::from(keys.map(|key| view[key].clone()).to_vec())
    };
    assert_eq!(of(&lab), json!([6.0, 0.0, 0.0, 0.0, 3.0, 3.0]));
    let loan = &lab["loans"][0];
    assert_eq!(
        (&loan["workspace"], &loan["amount"], &loan["jobs"]),
        (&json!("guests"), &json!(3.0), &json!([borrowing]))
    );
    assert!(loan["on_demand_from"].is_string(), "{lab}");
    assert!(lab["text"].as_str().unwrap().contains("3 lent to `guests`, back on demand from"), "{lab}");
    let guests = nvidia_quota(&site, "admin", "guests").await;
    assert_eq!(of(&guests), json!([2.0, 0.0, 5.0, 3.0, 0.0, 3.0]));
    assert_eq!(guests["users"], json!([{ "user": "admin", "used": 5.0 }]));
    let seen_by_others =
        (nvidia_quota(&site, "sam", "lab").await, nvidia_quota(&site, "sam", "guests").await);
    assert_eq!(seen_by_others.0["loans"][0]["jobs"], json!([]), "sam may not see that job");
    assert_eq!(seen_by_others.1.get("users"), None, "nor who uses what in a workspace of others");

    // A node that takes no jobs keeps no promise.
    let node = value(&site.ask("sam", "GET", "/nodes", &Value::Null).await)["items"][0]["name"].clone();
    let path = format!("/nodes/{}/cordon", node.as_str().unwrap());
    assert_eq!(site.ask("admin", "POST", &path, &json!({ "why": "new fans" })).await.status, 200);
    assert_eq!(nvidia_quota(&site, "admin", "lab").await["broken"], 6.0);

    let table = std::process::Command::new(DANLU)
        .arg("--data")
        .arg(site.server.data())
        .args(["quota", "lab"])
        .output()
        .expect("danlu runs");
    let (told, also) = (String::from_utf8_lossy(&table.stdout), String::from_utf8_lossy(&table.stderr));
    assert!(told.contains("lab") && also.contains("3 lent to `guests`"), "{told}{also}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_makes_changes_and_deletes_a_workspace() {
    let site = Site::new(&NODE).await;
    let danlu = |arguments: &str| {
        let mut command = std::process::Command::new(DANLU);
        command.arg("--data").arg(site.server.data()).args(arguments.split(' '));
        let output = command.output().expect("danlu runs");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let made =
        danlu("admin workspace create vision --guaranteed nvidia=4 --limit nvidia=6 --idle 2h:restart");
    assert!(made.contains("4 NVIDIA") && made.contains("started again after 2h"), "{made}");
    assert!(danlu("admin workspace create vision").contains("there is a workspace `vision` already"));
    assert!(danlu("workspace members vision add ada --role owner").contains("ada is owner of `vision`"));
    assert!(danlu("workspace members visoin add ada").contains("danlu admin workspace create visoin"));
    let changed = danlu("admin quota set vision --limit nvidia=none");
    assert!(changed.contains("4 NVIDIA") && !changed.contains("6 NVIDIA"), "{changed}");
    assert!(danlu("admin quota lending off --minimum-run-time 10m").contains("not lent"));
    assert!(danlu("workspace show vision").contains("vision"));
    assert!(danlu("admin workspace delete vision").contains("is gone"));
    assert!(danlu("workspace show vision").contains("there is no workspace `vision`"));
    let ada = value(&site.sign_in("ada", PASSWORD).await);
    assert_eq!(ada["account"]["workspaces"], json!([{ "workspace": "lab", "role": "member" }]));
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_find_what_their_workspace_shares() {
    let site = Site::new(&NODE).await;
    let folder = site.server.folder().join("shared").display().to_string();
    let shared = json!({ "shared_folder": folder, "shared_bucket": "s3://lab/data" });
    assert_eq!(set(&site, "admin", "lab", &shared).await, 200);
    let both = format!("{folder} s3://lab/data");
    for (workspace, found) in [("lab", both.as_str()), ("ada", "none none")] {
        let command = "echo ${DANLU_SHARED_DIR-none} ${DANLU_SHARED_BUCKET-none}";
        let job = json!({ "command": command, "workspace": workspace, "cpus": "10m" });
        let job = submit(&site, "ada", &job).await;
        site.server.wait_for_end(job).await;
        assert_eq!(site.server.texts(job).await, [found]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_may_ask_what_would_have_been_of_what_they_may_see() {
    let site = Site::new(&NODE).await;
    for (who, workspace) in [("ada", "lab"), ("ada", "ada"), ("mia", "mia")] {
        let job = json!({ "command": "true", "workspace": workspace, "cpus": "10m" });
        let job = submit(&site, who, &job).await;
        site.server.wait_for_end(job).await;
    }
    let runs =
        json!([{ "name": "as it is" }, { "name": "more", "nodes": "+2x8:ascend:910B3", "policy": "strict" }]);
    let ask = async |who: &str, request: Value| site.ask(who, "POST", "/simulations", &request).await;
    let told = value(&ask("ada", json!({ "runs": runs })).await);
    let of = |at: usize| (told["runs"][at]["name"].clone(), told["runs"][at]["nodes"].clone());
    assert_eq!((of(0), of(1)), ((json!("as it is"), json!(1)), (json!("more"), json!(3))), "{told}");
    assert_eq!(told["runs"][0]["jobs"]["succeeded"], 2, "mia's own is hers");
    let none = ask("sam", json!({ "runs": [{ "name": "x" }] })).await;
    assert!(none.status == 422 && none.body.contains("no history to replay"), "{}", none.body);
    for (request, hint) in [
        (json!({ "runs": [] }), "name one to 6"),
        (json!({ "runs": [{ "name": "x", "nodes": "8xmany" }] }), "runs.0.nodes"),
        (json!({ "trace": "submit\nsoon\n", "runs": [{ "name": "x" }] }), "trace"),
    ] {
        let answer = ask("ada", request).await;
        assert!(answer.status == 422 && answer.body.contains(hint), "{}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_lead_to_nothing_of_who_had_them_before() {
    let site = Site::new(&["--registration", "invitation"]).await;
    let asked = async |who: &str, method: &str, path: &str, body: Value| {
        let answer = site.ask(who, method, path, &body).await;
        assert!((200..300).contains(&answer.status), "{method} {path}: {}", answer.body);
        answer
    };
    let list = async |path: &str| value(&asked("admin", "GET", path, Value::Null).await)["items"].clone();
    let secret = json!({ "value": "swordfish" });
    for workspace in ["lab", "ada"] {
        asked("admin", "PUT", &format!("/workspaces/{workspace}/secrets/key"), secret.clone()).await;
        asked("admin", "POST", &format!("/workspaces/{workspace}/invitations"), json!({ "role": "member" }))
            .await;
        asked("admin", "PUT", &format!("/workspaces/{workspace}/members/mia"), json!({ "role": "owner" }))
            .await;
    }
    let nowhere = site.ask("admin", "PUT", "/workspaces/nowhere/secrets/key", &secret).await;
    assert_eq!(nowhere.status, 404, "{}", nowhere.body);

    asked("admin", "DELETE", "/workspaces/lab", Value::Null).await;
    for kind in ["secrets", "invitations", "members"] {
        let path = format!("/workspaces/lab/{kind}");
        assert_eq!(site.ask("admin", "GET", &path, &Value::Null).await.status, 404, "{kind}");
    }
    asked("admin", "PUT", "/workspaces/lab2", json!({})).await;
    for kind in ["secrets", "invitations", "members"] {
        assert_eq!(list(&format!("/workspaces/lab2/{kind}")).await, json!([]), "{kind}");
    }

    // Jobs and files of an account stay, so nobody gets its name, in whichever way.
    asked("admin", "DELETE", "/accounts/ada", Value::Null).await;
    assert_eq!(site.ask("admin", "GET", "/workspaces/ada/secrets", &Value::Null).await.status, 404);
    let invited =
        value(&asked("admin", "POST", "/workspaces/lab2/invitations", json!({ "role": "member" })).await);
    let ada = json!({ "name": "ada", "password": PASSWORD, "invitation": invited["secret"] });
    for (who, method, path, body) in [
        ("admin", "POST", "/accounts", json!({ "name": "ada", "password": PASSWORD })),
        ("nobody", "POST", "/registration", ada.clone()),
        ("admin", "PUT", "/workspaces/ada", json!({})),
    ] {
        let refused = site.ask(who, method, path, &body).await;
        assert!(
            refused.status == 409 && refused.body.contains("was the name of an account"),
            "{}",
            refused.body
        );
    }
    let somebody = json!({ "name": "ada2", "password": PASSWORD, "invitation": invited["secret"] });
    asked("nobody", "POST", "/registration", somebody).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_approved_is_not_made_larger() {
    let site = Site::new(&["--simulate", "1x8:nvidia:A100,1x8:ascend:910B3"]).await;
    let above = json!({ "nvidia": 2, "ascend": 4, "cpus": 2, "memory": "1Gi" });
    assert_eq!(set(&site, "admin", "lab", &json!({ "approve_above": above })).await, 200);
    assert_eq!(set(&site, "admin", "guests", &json!({})).await, 200);
    let rules = json!({ "lending": true, "minimum_run_time": "0s", "personal": { "approve_above": above } });
    assert_eq!(site.ask("admin", "PUT", "/sharing", &rules).await.status, 204);
    let change = async |id: JobId, patch: Value| {
        let changed = site.ask("ada", "PATCH", &format!("/jobs/{id}"), &patch).await;
        assert_eq!(changed.status, 200, "{patch}: {}", changed.body);
        site.server.job(id).await
    };
    let any_of = |ascend: u32| json!({ "devices": null, "any_of": [{ "kind": "nvidia", "count": 8 }, { "kind": "ascend", "count": ascend }] });
    // What is approved goes on waiting: all devices are taken.
    for kind in ["nvidia", "ascend"] {
        let mut taken = job("guests", 8);
        taken["devices"]["kind"] = json!(kind);
        let taken = submit(&site, "admin", &taken).await;
        site.server.wait_for(taken, JobState::Running).await;
    }
    for (workspace, approver) in [("lab", "otto"), ("ada", "admin")] {
        let asked = job(workspace, 8);
        let approved = async || {
            let id = submit(&site, "ada", &asked).await;
            assert_eq!(site.server.job(id).await.reason.code, "needs_approval");
            let approval = format!("/jobs/{id}/approval");
            let seen = json!({ "generation": site.server.job(id).await.generation });
            assert_eq!(site.ask("ada", "POST", &approval, &seen).await.status, 403);
            assert_eq!(site.ask(approver, "POST", &approval, &seen).await.status, 200);
            assert_eq!(site.server.job(id).await.state, JobState::Queued);
            id
        };
        for (larger, resource) in [
            (json!({ "cpus": 3 }), "CPUs"),
            (json!({ "memory": "2Gi" }), "memory"),
            (json!({ "cpus": 3, "memory": "2Gi" }), "CPUs"),
            (any_of(8), "Ascend"),
        ] {
            let id = approved().await;
            let held = change(id, larger.clone()).await;
            assert_eq!(
                (held.state, held.reason.code.as_str()),
                (JobState::Held, "needs_approval"),
                "{larger}"
            );
            assert!(held.reason.text.contains(resource), "{larger}: {}", held.reason.text);
        }
        // As much as was approved, or less, is approved.
        let id = approved().await;
        for within in [json!({ "cpus": 2, "memory": "1Gi" }), any_of(4), json!({ "priority": 2 })] {
            assert_eq!(change(id, within.clone()).await.state, JobState::Queued, "{within}");
        }
        // A copy is another job, and what is approved in one workspace is not in another.
        let copy = value(&site.ask("ada", "POST", &format!("/jobs/{id}/clone"), &Value::Null).await);
        assert_eq!(copy["reason"]["code"], "needs_approval", "{copy}");
        let elsewhere = if workspace == "lab" { "ada" } else { "lab" };
        assert_eq!(change(id, json!({ "workspace": elsewhere })).await.reason.code, "needs_approval");
    }
}
