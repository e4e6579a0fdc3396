//! What sidecars show, leave and tell on their nodes.

use std::path::PathBuf;

use danlu_testkit::{alive, eventually, spec};
use danlu_types::api::{JobOutcome, JobState, StopRequest};
use danlu_types::{JobSpec, Span};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{DANLU, Site};

/// Processes in whose environment or command line a text is.
fn processes_that_show(text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        for name in ["environ", "cmdline"] {
            let path = process.path().join(name);
            let shown = std::fs::read(&path).unwrap_or_default();
            if shown.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

/// Other programs of the same user read both of each process, and these are root's: we read those of all.
#[tokio::test(flavor = "multi_thread")]
async fn no_process_shows_the_sidecars_token_while_a_program_runs() {
    let Some(site) = Site::start(Some(DANLU)).await else { return };
    for workers in [1, 2] {
        let id = site.server.submit(&JobSpec { workers, ..spec("echo up; exec sleep 600") }).await;
        site.server.wait_for(id, JobState::Running).await;
        eventually("all programs to run", || async {
            (site.printed(id).await.len() == workers as usize).then_some(())
        })
        .await;
        let token = site.token_of(&format!("{id}.1"));
        let said = crate::ask(&site, &token, "GET", "workers/0/files/launch.json", "").await;
        assert_eq!(said.status, 200, "it is the token: {}", said.body);
        let shown = processes_that_show(&token);
        assert!(shown.is_empty(), "{workers} workers: {shown:?}");
        site.server.client().job_stop(id, &StopRequest::default()).await.unwrap();
        site.server.wait_for_end(id).await;
    }
}

/// The sidecars of a site, below their guards.
fn sidecars(site: &Site) -> Vec<i32> {
    let command = |pid: &str| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let address = site.relay.address();
    let is_ours = |pid: &str| {
        let text = String::from_utf8_lossy(&command(pid)).into_owned();
        text.contains("slurm-sidecar") && text.contains(address) && !text.contains("sh\0-c")
    };
    let parent = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")?.1.split(' ').nth(1).map(str::to_owned)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let pids = pids.filter(|pid| is_ours(pid) && parent(pid).is_some_and(|parent| is_ours(&parent)));
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn slurm_ends_the_job_of_a_frozen_sidecar_or_of_its_launcher() {
    let Some(site) = Site::start(Some(DANLU)).await else { return };
    let mut frozen = Vec::new();
    for is_sidecar in [true, false] {
        let id =
            site.server.submit(&JobSpec { grace: Span::from_seconds(0), ..spec("exec sleep 600") }).await;
        site.server.wait_for(id, JobState::Running).await;
        let pid = if is_sidecar {
            sidecars(&site)[0]
        } else {
            let status = site.server.data().join(format!("runs/{id}/1.0/status.jsonl"));
            let status = std::fs::read_to_string(status).unwrap();
            let status: serde_json::Value =
                serde_json::from_str(status.lines().next_back().unwrap()).unwrap();
            i32::try_from(status["launcher"]["pid"].as_i64().unwrap()).unwrap()
        };
        kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
        site.server.client().job_stop(id, &StopRequest::default()).await.unwrap();
        frozen.push((id, pid));
    }
    for (id, pid) in frozen {
        let ended = site.server.wait_for_end(id).await;
        assert_eq!(ended.outcome, Some(JobOutcome::Stopped), "{:?}\n{}", ended.reason, site.server.log());
        eventually("nothing of it to be left", || async { (!alive(pid)).then_some(()) }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_the_folder_to_work_in_is_told_as_such() {
    let Some(site) = Site::start(Some(DANLU)).await else { return };
    let make = format!("echo in the way > {}", site.work.display());
    site.rig.ask("srun", &["--overcommit", "--nodes=4", "--ntasks=4", "sh", "-c", &make]);
    let ended = site.server.run(&spec("true")).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Failed), "{:?}", ended.reason);
    let said = ended.reason.to_string();
    assert!(said.contains("its node has not the folder that it works in, or may not write there"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_on_a_node_for_a_week_goes_with_the_next_sidecar() {
    let Some(site) = Site::start(Some(DANLU)).await else { return };
    let work = site.work.display();
    let (old, new) = ("danlu-900.1-0-00000000000000ab", "danlu-901.1-0-00000000000000ab");
    let make = format!(
        "mkdir -p {work}/bin {work}/{old}/0/run {work}/{new}/0/run && cd {work} && \
         touch {old}/0/run/launch.json {new}/0/run/launch.json {old}.log {new}.log bin/danlu-0a && echo kept > notes && \
         touch -d '8 days ago' {old}.log {old}/0/run/launch.json {old}/0/run {old}/0 {old} bin/danlu-0a notes"
    );
    site.rig.ask("srun", &["--overcommit", "--nodes=4", "--ntasks=4", "sh", "-c", &make]);
    let id = site.server.submit(&spec("echo $SLURMD_NODENAME")).await;
    site.succeeded(id).await;
    let node = format!("--nodelist={}", site.printed(id).await[0]);
    let list = format!("cd {work} && ls . bin");
    // The job's own folder and log go with it.
    let left = eventually("its sidecar to be gone", || async {
        let left = site.rig.ask("srun", &["--overcommit", &node, "--nodes=1", "sh", "-c", &list]);
        (!left.contains(&format!("danlu-{id}."))).then_some(left)
    })
    .await;
    let names: Vec<&str> = left.lines().collect();
    assert_eq!(names, [".:", "bin", new, &format!("{new}.log"), "notes", "", "bin:"]);
}
