//! Situations in which a job waits: why, who is in its way, and what would start it.

use danlu_types::account::WorkspaceRole;
use danlu_types::api::{EstimateBound, JobState, StopRequest};
use danlu_types::{JobId, Reason};

use crate::site::Site;

/// Sets a situation up again and again until each suggestion that is printed was taken once: pasted into a shell, it starts
/// the job. Says what was suggested the first time.
async fn take_each(site: &Site, who: &str, held: &[(&str, &str)], flags: &str, code: &str) -> Vec<String> {
    let mut first = Vec::new();
    for round in 0.. {
        for (owner, flags) in held {
            site.start(owner, flags).await;
        }
        let id = site.submit(who, flags);
        site.waits_for(id, code).await;
        let suggestions = site.suggestions(who, &format!("danlu why {id}"));
        if round == 0 {
            first.clone_from(&suggestions);
        }
        let Some(command) = suggestions.get(round) else { break };
        site.printed(who, command);
        site.has_started(id).await;
        site.clear().await;
    }
    site.clear().await;
    first.iter().map(|command| command.split_once(" --set ").unwrap().1.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_suggested_where_devices_are_busy_starts_the_job() {
    let site = Site::new("1x8:ascend:910A,1x8:ascend:910B3", "").await;
    // Three in one ring and two in the other leave three.
    let ring = [
        ("admin", "--devices ascend:910A:2"),
        ("admin", "--devices ascend:910A:1"),
        ("admin", "--devices ascend:910A:2"),
    ];
    let taken = take_each(&site, "admin", &ring, "--devices ascend:910A:8", "devices_busy").await;
    assert_eq!(taken, ["devices.count=2", "devices.model=910B3"]);

    let gang = [("admin", "--devices ascend:910B3:8"), ("admin", "--devices ascend:910A:2")];
    let taken = take_each(&site, "admin", &gang, "--workers 2 --devices ascend:4", "devices_busy").await;
    assert!(taken.contains(&"workers=1".to_owned()), "{taken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_suggested_before_submission_is_submitted_as_it_is_printed() {
    let site = Site::new("2x8:nvidia:A100", "").await;
    site.start("admin", "--devices nvidia:6").await;
    for round in 0.. {
        let question =
            "danlu submit --dry-run --name two-nodes --workers 2 --devices nvidia:A100:8 -- sleep 1000";
        let suggestions = site.suggestions("admin", question);
        assert!(suggestions.len() >= 2, "{suggestions:?}");
        let Some(command) = suggestions.get(round) else { break };
        let id: JobId = site.printed("admin", command).trim().parse().unwrap();
        site.has_started(id).await;
        assert_eq!(site.server.job(id).await.name, "two-nodes");
        let at_once = StopRequest { grace: Some(danlu_types::Span::default()) };
        site.server.client().job_stop(id, &at_once).await.unwrap();
        site.server.wait_for_end(id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cpus_memory_and_reservations_have_suggestions_that_start_the_job() {
    let site = Site::new("1x8:nvidia:A100", "").await;
    let hog = [("admin", "--memory 1500Gi"), ("admin", "--devices nvidia:1")];
    let taken = take_each(&site, "admin", &hog, "--devices nvidia:1 --memory 64Gi", "memory_busy").await;
    assert_eq!(taken, ["memory=36Gi"]);
    let hog = [("admin", "--cpus 180"), ("admin", "--devices nvidia:1")];
    let taken = take_each(&site, "admin", &hog, "--devices nvidia:1 --cpus 32", "cpus_busy").await;
    assert_eq!(taken, ["cpus=11"]);

    for (hog, flags, code) in [
        ("--cpus 180", "--cpus 32", "cpus_busy"),
        ("--memory 1500Gi", "--devices nvidia:1 --memory 64Gi", "memory_busy"),
    ] {
        site.start("admin", "--devices nvidia:1").await;
        let hog = site.start("admin", hog).await;
        let id = site.submit("admin", flags);
        site.waits_for(id, code).await;
        let explanation = site.why(id).await;
        assert_eq!(explanation.holders[0].job, Some(hog), "{}", explanation.text);
        site.clear().await;
    }

    // A head that wants all keeps what is free; whoever ends before it starts may have that. By names of their own, they are
    // not expected to be as short as those before.
    site.start("admin", "--name filler --devices nvidia:6 --max-time 2h").await;
    let head = site.submit("admin", "--name head --devices nvidia:8 --max-time 1h");
    site.waits_for(head, "devices_busy").await;
    let id = site.submit("admin", "--name long --devices nvidia:2 --max-time 24h");
    site.waits_for(id, "reserved").await;
    let explanation = site.why(id).await;
    let head_starts = site.why(head).await.estimate.unwrap().earliest;
    assert!(explanation.estimate.unwrap().earliest >= head_starts, "{}", explanation.text);
    let suggestions = site.suggestions("admin", &format!("danlu why {id}"));
    assert!(suggestions.iter().any(|command| command.contains("max_time=")), "{suggestions:?}");
    site.printed("admin", &suggestions[0]);
    site.has_started(id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_name_what_is_asked_for_and_suggest_only_where_one_may_submit() {
    let rules = "\
workspaces:
  gpu: { guaranteed: { nvidia: 4 } }
  vision: { limit: { nvidia: 4 }, per_user: { nvidia: 3 }, approve_above: { nvidia: 4 } }
  strict: { approve_above: { nvidia: 1 } }
";
    let mut site = Site::new("1x8:nvidia:A100", rules).await;
    let member = WorkspaceRole::Member;
    let bob =
        site.person("bob", &[("vision", member), ("strict", member), ("gpu", WorkspaceRole::Viewer)]).await;
    site.person("eve", &[("vision", member)]).await;
    site.person("vera", &[("vision", WorkspaceRole::Viewer)]).await;

    let held = [("bob", "--workspace vision --devices nvidia:2")];
    let taken = take_each(&site, "bob", &held, "--workspace vision --devices nvidia:2", "user_limit").await;
    // Neither `gpu`, where bob only looks on, nor `strict`, where two need approval.
    assert_eq!(taken, ["devices.count=1", "workspace=bob"]);

    site.start("bob", "--workspace vision --devices nvidia:3").await;
    let id = site.submit("eve", "--workspace vision --devices nvidia:2");
    let job = site.waits_for(id, "workspace_limit").await;
    assert_eq!(
        job.reason.to_string(),
        "waiting for quota of workspace `vision` (NVIDIA devices: 3 used, limit 4, 2 requested)"
    );
    // Who may not change the job is offered nothing; neither is one who may, what only its owner may.
    assert!(site.suggestions("vera", &format!("danlu why {id}")).is_empty());
    assert!(bob.job_why(id).await.unwrap().offers.is_empty());
    let for_admin = site.suggestions("admin", &format!("danlu why {id}"));
    assert_eq!(for_admin, [format!("danlu change {id} --set devices.count=1")]);
    site.printed("admin", &for_admin[0]);
    site.has_started(id).await;
    site.clear().await;

    // What is guaranteed to others may be borrowed.
    let held = [("admin", "--devices nvidia:4")];
    let taken = take_each(&site, "admin", &held, "--devices nvidia:2", "guaranteed_to_others").await;
    assert!(taken.contains(&"preemptible=true".to_owned()), "{taken:?}");

    // Held, and waiting for approval: nothing is suggested, and what to do is said.
    let id = site.submit("bob", "--workspace strict --devices nvidia:2");
    let explanation = site.why(id).await;
    assert_eq!((explanation.state, explanation.reason.word()), (JobState::Held, "needs_approval"));
    assert!(explanation.text.contains(&format!("danlu approve {id}")), "{}", explanation.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn preemption_progress_and_past_durations_are_counted_on() {
    let site = Site::new("1x8:nvidia:A100", "minimum_run_time: 1h\n").await;
    let holder = site.start("admin", "--devices nvidia:8 --preemptible --priority 1").await;
    let id = site.submit("admin", "--devices nvidia:8 --priority 9");
    site.waits_for(id, "devices_busy").await;
    let estimate = site.why(id).await.estimate.unwrap();
    let placed_at = site.server.job(holder).await.attempts[0].placed_at;
    assert_eq!(estimate.earliest, placed_at + danlu_types::Span::from_seconds(3600).to_duration());
    assert_eq!((estimate.bound, estimate.basis.preemptions), (EstimateBound::Range, 1));
    site.clear().await;

    let script = "echo '::danlu progress 0.1'; sleep 1; echo '::danlu progress 0.2'; sleep 1000";
    let line = format!("danlu submit --set grace=1s --devices nvidia:8 -- sh -c \"{script}\"");
    let holder: JobId = site.printed("admin", &line).trim().parse().unwrap();
    site.server.wait_for(holder, JobState::Running).await;
    let id = site.submit("admin", "--devices nvidia:8");
    site.waits_for(id, "devices_busy").await;
    danlu_testkit::eventually("an estimate that rests on progress", || async {
        let explanation = site.why(id).await;
        let estimate = explanation.estimate?;
        let is_told = explanation.holders[0].expected_end.is_some();
        (estimate.basis.progress == 1 && estimate.bound == EstimateBound::Range && is_told).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cordons_back_off_running_and_ended_jobs_are_explained() {
    let site = Site::new("2x8:nvidia:A100", "").await;
    let nodes = site.server.client().nodes_list().await.unwrap().items;
    for node in &nodes {
        site.printed("admin", &format!("danlu nodes cordon {} --why 'new fans'", node.node.name));
    }
    let id = site.submit("admin", "--devices nvidia:8");
    site.waits_for(id, "nodes_cordoned").await;
    let explanation = site.why(id).await;
    assert!(explanation.text.contains("is cordoned: new fans"), "{}", explanation.text);
    assert_eq!(explanation.cordoned.len(), 2);
    for node in &nodes {
        site.printed("admin", &format!("danlu nodes uncordon {}", node.node.name));
    }
    site.server.wait_for(id, JobState::Running).await;
    let running = site.why(id).await;
    let is_told = running.text.starts_with("Running for ")
        && running.text.contains("(devices 0, 1, 2, 3, 4, 5, 6, 7).");
    assert!(is_told && nodes.iter().any(|node| running.text.contains(&node.node.name.0)), "{}", running.text);

    let line = "danlu submit --retry 9 --set retry.on=[exit] -- 'exit 5'";
    let id: JobId = site.printed("admin", line).trim().parse().unwrap();
    let job = site.waits_for(id, "retry_backoff").await;
    let Reason::RetryBackoff { failure: Some(failure), .. } = &job.reason else { panic!("{:?}", job.reason) };
    assert_eq!(failure.word(), "exit");
    let explanation = danlu_testkit::eventually("an explanation of a back-off", || async {
        let explanation = site.why(id).await;
        (explanation.reason.word() == "retry_backoff").then_some(explanation)
    })
    .await;
    assert!(explanation.text.contains("exited with code 5"), "{}", explanation.text);
    assert!(explanation.offers.is_empty() && explanation.holders.is_empty() && explanation.supply.is_empty());
    site.clear().await;
    assert!(site.why(id).await.text.starts_with("Stopped by admin"), "{}", site.why(id).await.text);
}
