//! A job that waits is changed in place: it keeps its turn, for whoever may, durably, and never half.

use danlu_types::account::WorkspaceRole;
use danlu_types::api::{JobQuery, JobState};
use danlu_types::{JobId, Span};

use crate::site::Site;

const ONE_NODE: &str = "1x8:nvidia:A100";

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_job_keeps_its_turn_and_survives_a_kill() {
    let mut site = Site::new(ONE_NODE, "workspaces: { default: { head_of_line: strict } }\n").await;
    let holder = site.start("admin", "--devices nvidia:8").await;
    let first = site.submit("admin", "--devices nvidia:8 --label project=ocr");
    let second = site.submit("admin", "--devices nvidia:8");
    site.printed(
        "admin",
        &format!("danlu change {first} --set devices.count=4 --set name=smaller --set labels.project=nlp"),
    );
    site.server.kill();
    site.server.restart().await;

    let job = site.server.job(first).await;
    assert_eq!(
        (job.name.as_str(), job.spec.devices.count.devices(), job.state),
        ("smaller", 4, JobState::Queued)
    );
    let labelled = JobQuery { label: Some("project=nlp".to_owned()), ..JobQuery::default() };
    assert_eq!(site.server.client().jobs_list(&labelled).await.unwrap().items[0].id, first);
    assert_eq!(site.why(first).await.position, Some(1));
    assert_eq!(site.why(second).await.position, Some(2));
    let events = site.printed("admin", &format!("danlu events {first}"));
    assert!(events.contains("changed `devices.count` from 8 to 4"), "{events}");

    let said = site.refused("admin", &format!("danlu change {holder} --set devices.count=4"));
    assert!(
        said.contains(&format!("job {holder} is running, and only queued and held jobs can be changed")),
        "{said}"
    );
    site.printed("admin", &format!("danlu stop {holder} --grace 0s"));
    site.server.wait_for(first, JobState::Running).await;
    assert_eq!(site.server.job(second).await.state, JobState::Queued);
    let said = site.refused("admin", &format!("danlu change {holder} --set devices.count=4"));
    assert!(said.contains("is ended"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_changes_at_once_none_is_lost_and_none_is_half() {
    let site = Site::new(ONE_NODE, "").await;
    site.start("admin", "--devices nvidia:8").await;
    let id = site.submit("admin", "--devices nvidia:8");
    let mut changes = tokio::task::JoinSet::new();
    for number in 0..8 {
        let client = site.server.client().clone();
        changes.spawn(async move {
            let patch = serde_json::json!({ "env": { format!("N{number}"): "x" } });
            client.job_change(id, &patch).await.unwrap()
        });
    }
    changes.join_all().await;
    let job = site.server.job(id).await;
    assert_eq!(job.spec.env.len(), 8, "{:?}", job.spec.env);
    assert_eq!(job.generation, 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_admitted_as_a_submission_is_with_the_rights_of_who_makes_it() {
    let rules = "workspaces: { lab: { approve_above: { nvidia: 4 } }, closed: {} }\n";
    let mut site = Site::new(ONE_NODE, rules).await;
    site.person("ada", &[("lab", WorkspaceRole::Member)]).await;
    site.person("mia", &[("lab", WorkspaceRole::Member)]).await;
    site.person("otto", &[("lab", WorkspaceRole::Owner)]).await;
    site.start("admin", "--devices nvidia:8").await;
    let id = site.submit("ada", "--workspace lab --devices nvidia:2");
    let change = |set: &str| format!("danlu change {id} --set {set}");

    for (who, set, said) in [
        ("ada", "devices.count=9", "the largest node has 8"),
        ("ada", "workers=0", "workers"),
        ("ada", "workerz=1", "did you mean `workers`?"),
        ("ada", "workspace=closed", "`ada` is not a member"),
        ("mia", "devices.count=1", "may not do this"),
        // What a job runs, it runs in its owner's name.
        ("otto", "command=id", "`otto` may not change what job 2 of `ada` runs"),
        ("admin", "env.X=1", "`admin` may not change what job 2 of `ada` runs"),
    ] {
        let refused = site.refused(who, &change(set));
        assert!(refused.contains(said), "{who}, {set}: {refused}");
    }
    site.printed("otto", &change("devices.count=3"));
    site.printed("ada", &change("devices.model=A100"));
    assert_eq!(site.server.job(id).await.spec.devices.to_string(), "3 × NVIDIA A100");

    // More than may be had without approval is approved again, less is not.
    site.printed("ada", &change("devices.count=6"));
    assert_eq!(site.server.job(id).await.reason.word(), "needs_approval");
    site.printed("otto", &format!("danlu approve {id}"));
    site.printed("ada", &change("max_time=1h"));
    assert_eq!(site.server.job(id).await.state, JobState::Queued, "as much was approved already");
    site.printed("ada", &change("devices.count=7"));
    assert_eq!(site.server.job(id).await.state, JobState::Held);
    site.printed("ada", &change("devices.count=4"));
    assert_eq!(site.server.job(id).await.state, JobState::Queued);
    assert_eq!(site.server.job(id).await.owner, "ada");

    // Part of a field is changed in a copy too.
    let copy: JobId =
        site.printed("ada", &format!("danlu clone {id} --set devices.count=1")).trim().parse().unwrap();
    assert_eq!(site.server.job(copy).await.spec.devices.to_string(), "1 × NVIDIA A100");
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_and_runs_of_a_preempted_job_are_counted_apart() {
    let site = Site::new(ONE_NODE, "minimum_run_time: 0s\n").await;
    let victim = site.start("admin", "--devices nvidia:8 --preemptible --priority 1").await;
    let began = site.server.job(victim).await.running_since.unwrap();
    let urgent = site.submit("admin", "--devices nvidia:8 --priority 9");
    site.server.wait_for(urgent, JobState::Running).await;
    let job = site.server.wait_for(victim, JobState::Queued).await;
    let ended = job.attempts[0].ended_at.unwrap();
    assert_eq!((job.queued_since, job.running_since), (Some(ended), None));
    let ran = ended.duration_since(began).as_millis();
    assert_eq!(i128::from(job.ran.milliseconds), ran);
    let first_wait = job.attempts[0].placed_at.duration_since(job.submitted_at).as_millis();
    assert_eq!(i128::from(job.waited.milliseconds), first_wait);
    // The longest wait began when it was pushed out, not when it was submitted.
    let counts = site.server.client().jobs_count(&JobQuery::default()).await.unwrap();
    assert_eq!(counts.oldest_queued_at, Some(ended));
    let stopped = site.printed("admin", &format!("danlu stop {urgent} --grace 0s"));
    assert!(stopped.is_empty());
    let job = site.server.wait_for(victim, JobState::Running).await;
    let waits = [job.submitted_at, ended].into_iter().zip(&job.attempts);
    let waited: i128 =
        waits.map(|(since, attempt)| attempt.placed_at.duration_since(since).as_millis()).sum();
    assert!((i128::from(job.waited.milliseconds) - waited).abs() <= 1, "each wait is rounded by itself");
    assert!(job.waited > Span::default());
}
