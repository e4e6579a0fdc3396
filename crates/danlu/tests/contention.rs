//! Several people who submit at once into a full workspace: its limits hold exactly, whatever the database.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use danlu_client::Client;
use danlu_testkit::{PostgresServer, TestServer, eventually, spec};
use danlu_types::account::WorkspaceRole;
use danlu_types::api::{JobOutcome, JobState, JobView, NewAccount, NewRole, SignIn};
use danlu_types::{JobId, JobSpec};
use tokio::task::JoinSet;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const PASSWORD: &str = "correct horse battery";
/// Of eight devices. Both are below what two people ask for.
const RULES: &str = "workspaces: { lab: { limit: { nvidia: 4 }, per_user: { nvidia: 3 } } }\n";
const IN_ALL: usize = 4;
const FOR_ONE: usize = 3;
const JOBS_EACH: usize = 10;

async fn member(server: &TestServer, name: &str) -> Client {
    let admin = server.client();
    let new = NewAccount {
        name: name.parse().unwrap(),
        display_name: None,
        email: None,
        password: Some(PASSWORD.to_owned()),
    };
    admin.account_create(&new).await.unwrap();
    admin.member_set("lab", &new.name, &NewRole { role: WorkspaceRole::Member }).await.unwrap();
    let sign_in =
        SignIn { name: Some(name.to_owned()), password: Some(PASSWORD.to_owned()), ..SignIn::default() };
    Client::new(&admin.address(), &admin.sign_in(&sign_in).await.unwrap())
}

/// The most that held devices at one time. Who ended at the instant at which another began made room for it.
fn most_at_once<'a>(jobs: impl Iterator<Item = &'a JobView>) -> usize {
    let mut moments = Vec::new();
    for attempt in jobs.flat_map(|job| &job.attempts) {
        moments.push((attempt.placed_at, true));
        moments.push((attempt.ended_at.unwrap(), false));
    }
    moments.sort_unstable();
    let (mut now, mut most) = (0usize, 0);
    for (_, begins) in moments {
        now = if begins { now + 1 } else { now - 1 };
        most = most.max(now);
    }
    most
}

async fn limits_hold(database: &[&str]) {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let (rules, go) = (folder.path().join("workspaces.yaml"), folder.path().join("go"));
    std::fs::write(&rules, RULES).unwrap();
    let flags =
        [&["--simulate", "1x8:nvidia:A100", "--workspaces", rules.to_str().unwrap()], database].concat();
    let server = TestServer::start_in(DANLU, &flags, folder, &[]).await;
    let people = [member(&server, "ada").await, member(&server, "bob").await];

    let waiting = JobSpec {
        workspace: "lab".to_owned(),
        devices: "1".parse().unwrap(),
        ..spec(&format!("while ! [ -e {} ]; do sleep 0.02; done", go.display()))
    };
    let mut submissions = JoinSet::new();
    for number in 0..JOBS_EACH * people.len() {
        let (person, spec) = (people[number % people.len()].clone(), waiting.clone());
        submissions.spawn(async move { person.job_submit(&spec, None).await.unwrap().id });
    }
    let ids: Vec<JobId> = submissions.join_all().await;
    assert_eq!(ids.len(), JOBS_EACH * people.len());

    let jobs = async || {
        let mut jobs = Vec::new();
        for id in &ids {
            jobs.push(server.job(*id).await);
        }
        jobs
    };
    eventually("a full workspace", || async {
        let running = jobs().await.iter().filter(|job| job.state == JobState::Running).count();
        (running == IN_ALL).then_some(())
    })
    .await;
    // Nobody gets in who finds it full, however many come at once.
    let late = people[0].job_submit(&waiting, None).await.unwrap().id;
    assert_eq!(server.job(late).await.state, JobState::Queued);
    std::fs::write(&go, "").unwrap();
    server.wait_for_end(late).await;
    for id in &ids {
        assert_eq!(server.wait_for_end(*id).await.outcome, Some(JobOutcome::Succeeded));
    }

    let jobs = jobs().await;
    assert_eq!(most_at_once(jobs.iter()), IN_ALL, "the limit is reached and not passed");
    for owner in ["ada", "bob"] {
        let most = most_at_once(jobs.iter().filter(|job| job.owner == owner));
        assert!((1..=FOR_ONE).contains(&most), "{owner} held {most} devices at once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_exactly_while_two_submit_at_once() {
    limits_hold(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_exactly_on_postgresql_too() {
    let Some(postgres) = PostgresServer::shared() else { return };
    limits_hold(&["--database", &postgres.create_database()]).await;
}
