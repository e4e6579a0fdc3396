//! What people see of their jobs: hangs, shares of devices, and tables that fit.

#![expect(clippy::unwrap_used, reason = "a panic is how a test says no, in its helpers too")]

use std::process::Command;

use danlu_testkit::{Terminal, TestServer, eventually, spec};
use danlu_types::api::{EventQuery, JobState};
use danlu_types::{JobId, JobSpec, OnHang, Span};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

fn printed(server: &TestServer, arguments: &[&str]) -> String {
    let done = Command::new(DANLU).arg("--data").arg(server.data()).args(arguments).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

async fn event(server: &TestServer, job: JobId, kind: &str) -> String {
    eventually(&format!("an event {kind}"), || async {
        let query = EventQuery { job: Some(job), ..EventQuery::default() };
        let events = server.client().events_list(&query).await.ok()?.items;
        assert!(events.iter().filter(|event| event.kind == kind).count() <= 1, "told once: {events:?}");
        events.into_iter().find(|event| event.kind == kind).map(|event| event.message)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hang_is_told_by_history_why_show_and_log_and_so_is_its_end() {
    let mut server = TestServer::start(DANLU, &[]).await;
    let go = server.folder().join("go");
    let job = server
        .submit(&JobSpec {
            hang_after: Some(Span::from_seconds(2)),
            on_hang: OnHang::Notify,
            ..spec(&format!(
                "echo begun; while ! [ -e {0} ]; do sleep 1; done; echo again; sleep 600",
                go.display()
            ))
        })
        .await;
    let said = event(&server, job, "worker_hangs").await;
    assert!(said.starts_with("worker 0 seems to hang: ") && said.contains("printed nothing"), "{said}");
    let (id, hangs) = (job.to_string(), said.split_once(": ").unwrap().1.to_owned());
    for page in [&["why", &id][..], &["show", &id], &["logs", &id], &["events", &id]] {
        // Lines are broken to the width of the terminal.
        let page_text = printed(&server, page).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            page_text.to_lowercase().contains("seem") && page_text.contains(&hangs),
            "{page:?}: {page_text}"
        );
    }
    // A server that starts anew does not tell it again.
    server.kill();
    server.restart().await;
    std::fs::write(&go, "").unwrap();
    let said = event(&server, job, "worker_goes_on").await;
    assert_eq!(said, "worker 0 goes on");
    event(&server, job, "worker_hangs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_device_shows_all_who_hold_it() {
    let server = TestServer::start(DANLU, &["--simulate", "1x1:nvidia:A100"]).await;
    let mut jobs = Vec::new();
    for share in ["nvidia:0.5", "nvidia:0.25", "nvidia:0.25"] {
        let job = JobSpec { devices: share.parse().unwrap(), ..spec("sleep 600") };
        jobs.push(server.submit(&job).await);
    }
    for job in &jobs {
        server.wait_for(*job, JobState::Running).await;
    }
    let device = server.client().devices_list().await.unwrap().items.remove(0);
    let held: Vec<JobId> = device.holders.iter().filter_map(|held| held.job).collect();
    assert_eq!(held, jobs);
    let page = printed(&server, &["devices"]);
    for job in &jobs {
        assert!(page.contains(&format!("job {job}")), "{page}");
    }
}

/// How many columns a terminal needs for a line: characters of East Asia are two wide.
fn columns(line: &str) -> usize {
    line.chars().map(|character| if u32::from(character) < 0x1100 || character == '…' { 1 } else { 2 }).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_jobs_fits_its_terminal_and_is_whole_when_asked_for() {
    let server = TestServer::start(DANLU, &["--simulate", "1x8:nvidia:A100-SXM4-80GB"]).await;
    let name = "a-name-of-sixty-three-characters-which-is-all-that-a-name-may-be";
    let all = || JobSpec { devices: "nvidia:A100-SXM4-80GB:8".parse().unwrap(), ..spec("sleep 600") };
    let holder = server.submit(&JobSpec { name: name[..63].into(), ..all() }).await;
    server.wait_for(holder, JobState::Running).await;
    let waits = server.submit(&JobSpec { name: name[..63].into(), ..all() }).await;
    let failed = JobSpec {
        working_directory: Some("/nowhere/文件夹/很长的名字/没有这样的文件夹".into()),
        ..spec("true")
    };
    server.run(&failed).await;
    let reason = eventually("a reason", || async {
        let reason = server.job(waits).await.reason;
        (reason.word() == "devices_busy").then_some(reason.to_string())
    })
    .await;
    for width in [80, 100, 72] {
        let terminal = Terminal::start(DANLU, &server.data(), &["jobs"], (24, width));
        let (code, shown) = terminal.end().await;
        assert_eq!(code, Some(0), "{shown}");
        let lines: Vec<&str> = shown.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 4, "one line for each job, and the header: {shown}");
        for line in lines {
            assert!(columns(line) <= usize::from(width), "{} columns of {width}: {line}", columns(line));
        }
        assert!(shown.contains("queued"), "{shown}");
    }
    let whole = format!("queued: {reason}");
    let wide = Terminal::start(DANLU, &server.data(), &["jobs", "--wide"], (24, 80)).end().await.1;
    assert!(wide.replace('\n', "").contains(&whole) && wide.contains(&name[..63]), "{wide}");
    assert!(printed(&server, &["jobs"]).contains(&whole), "what is not a terminal gets all of it");
}
