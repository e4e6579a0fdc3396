//! Jobs on nodes that share no disk with the server: each node of the cluster has mounts of its own, and sees neither the data
//! folder nor another node's files.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

#[path = "unshared/nodes.rs"]
mod nodes;

use std::fmt::Write as _;
use std::path::PathBuf;

use danlu_objects::pack_all;
use danlu_testkit::wire::{Answer, send};
use danlu_testkit::{Relay, SlurmRig, TestServer, eventually, spec};
use danlu_types::api::{JobOutcome, JobQuery, JobState, StopRequest};
use danlu_types::session::{FrameKind, OpenSession};
use danlu_types::{JobId, JobSpec, Span, WorkerIndex};
use data_encoding::HEXLOWER;
use ring::hmac;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

struct Site {
    rig: &'static SlurmRig,
    server: TestServer,
    relay: Relay,
    /// On every node.
    work: PathBuf,
}

impl Site {
    /// Where nodes have the program already, or fetch it.
    async fn start(program: Option<&str>) -> Option<Self> {
        let program = program.map(|program| format!("program: {program}\n")).unwrap_or_default();
        Self::start_with(&program, &[]).await
    }

    /// With further settings and flags.
    async fn start_with(settings_of_its_own: &str, flags_of_its_own: &[&str]) -> Option<Self> {
        let rig = SlurmRig::apart()?;
        let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir_in(rig.hidden()).unwrap();
        let relay = Relay::start().await;
        let settings = folder.path().join("slurm.yaml");
        let scheme = if flags_of_its_own.contains(&"--tls") { "https" } else { "http" };
        let work = rig.of_node().join(folder.path().file_name().unwrap());
        let text = format!(
            "configuration: {}\npoll: 200ms\nshared: false\nserver: {}\nwork: {}\n{settings_of_its_own}",
            rig.configuration().display(),
            relay.address().replace("http", scheme),
            work.display(),
        );
        std::fs::write(&settings, text).unwrap();
        let settings = settings.to_str().unwrap().to_owned();
        let flags = [&["--engine", "slurm", "--slurm", &settings], flags_of_its_own].concat();
        let server = TestServer::start_in(DANLU, &flags, folder, &[]).await;
        relay.lead_to(&server.client().address());
        Some(Site { rig, server, relay, work })
    }

    async fn restart(&mut self) {
        self.server.restart().await;
        self.relay.lead_to(&self.server.client().address());
    }

    async fn succeeded(&self, id: JobId) {
        let ended = self.server.wait_for_end(id).await;
        assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, self.server.log());
    }

    fn output(&self, id: JobId, name: &str) -> PathBuf {
        self.server.data().join(format!("runs/{id}/output/{name}"))
    }

    /// What the ranks printed, by themselves.
    async fn printed(&self, id: JobId) -> Vec<String> {
        let mut lines = self.server.texts(id).await;
        lines.retain(|line| !line.starts_with("launcher started") && !line.starts_with("sidecar: "));
        lines
    }

    /// The token of the sidecars of an attempt, `7.1`.
    fn token_of(&self, attempt: &str) -> String {
        let key = std::fs::read_to_string(self.server.data().join("attempts.key")).unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.trim().as_bytes());
        let seal = hmac::sign(&key, format!("danlu courier\0{attempt}").as_bytes());
        format!("danlu_sidecar_{attempt}_{}", HEXLOWER.encode(seal.as_ref()))
    }

    /// What is in the nodes' own folders.
    fn left_on_nodes(&self) -> String {
        let look = format!("ls -A {} 2>/dev/null || true", self.work.display());
        self.rig.ask("srun", &["--overcommit", "--nodes=4", "--ntasks=4", "sh", "-c", &look])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_meets_and_leaves_what_it_made() {
    let Some(site) = Site::start(Some(DANLU)).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("code");
    std::fs::create_dir(&code).unwrap();
    std::fs::write(code.join("train.sh"), "echo trained by $RANK > \"$DANLU_OUTPUT_DIR/made/$RANK\"\n")
        .unwrap();
    let archive = folder.path().join("code.tar.zst");
    let packed = pack_all(&code, std::fs::File::create(&archive).unwrap()).unwrap();
    site.server.client().code_put(&packed.digest, &archive, |_| {}).await.unwrap();
    let data = site.server.data();
    let command = format!(
        "ls {} > /dev/null 2>&1 && echo sees the data folder; env | grep -c SIDECAR; mkdir -p \"$DANLU_OUTPUT_DIR/made\"; . ./train.sh; \
         ln -s made/$RANK \"$DANLU_OUTPUT_DIR/latest-$RANK\"; echo $RANK of $WORLD_SIZE meets at $MASTER_ADDR:$MASTER_PORT on $SLURMD_NODENAME",
        data.display()
    );
    let job = JobSpec {
        workers: 2,
        devices: "nvidia:1".parse().unwrap(),
        framework: danlu_types::Framework::Pytorch,
        code: Some(packed.digest),
        ..spec(&command)
    };
    let id = site.server.submit(&job).await;
    site.succeeded(id).await;
    let mut lines = site.printed(id).await;
    lines.sort_unstable();
    let [none, nothing, first, second] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((none.as_str(), nothing.as_str()), ("0", "0"), "no sidecar's token in the environment");
    let (zero, one) = (first.strip_prefix("0 of 2 meets at "), second.strip_prefix("1 of 2 meets at "));
    let place = |line: Option<&str>| line.and_then(|line| Some(line.split_once(" on ")?.0.to_owned()));
    assert!(place(zero).is_some() && place(zero) == place(one), "{lines:?}");
    for rank in 0..2 {
        let text = std::fs::read_to_string(site.output(id, &format!("made/{rank}"))).unwrap();
        assert_eq!(text, format!("trained by {rank}\n"));
        let link = std::fs::read_link(site.output(id, &format!("latest-{rank}"))).unwrap();
        assert_eq!(link, PathBuf::from(format!("made/{rank}")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_stopped_has_its_grace_and_a_session_reaches_it() {
    let Some(site) = Site::start(Some(DANLU)).await else { return };
    let command =
        "trap 'echo saved > \"$DANLU_OUTPUT_DIR/saved\"; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    let id = site.server.submit(&JobSpec { grace: Span::from_seconds(60), ..spec(command) }).await;
    site.server.wait_for(id, JobState::Running).await;
    let open = OpenSession {
        command: ["sh", "-c", "echo inside $DANLU_JOB_ID"].map(str::to_owned).to_vec(),
        terminal: None,
        env: Vec::new(),
    };
    let (_sender, mut receiver) = site.server.client().session_open(id, WorkerIndex(0), &open).await.unwrap();
    let mut said = Vec::new();
    while let Some(frame) = receiver.next().await.unwrap() {
        match frame.kind {
            FrameKind::Stdout => said.extend(frame.payload),
            FrameKind::Exit => break,
            other => panic!("{other:?}: {}", String::from_utf8_lossy(&frame.payload)),
        }
    }
    assert_eq!(String::from_utf8(said).unwrap(), format!("inside {id}\n"));
    site.server.client().job_stop(id, &StopRequest::default()).await.unwrap();
    site.server.wait_for_end(id).await;
    assert_eq!(std::fs::read_to_string(site.output(id, "saved")).unwrap(), "saved\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_attempt_finds_what_the_last_one_saved() {
    let Some(site) = Site::start(Some(DANLU)).await else { return };
    let command = "echo had $(cat ckpt/step 2>/dev/null || echo nothing) from ${DANLU_RESUME_DIR:+$(ls \"$DANLU_RESUME_DIR\")}; \
                   [ -e ckpt/step ] && rm ckpt/step && exit 0; mkdir -p ckpt/deep; echo 7 > ckpt/step; ln -s ../step ckpt/deep/link; exit 1";
    let retry = serde_json::from_value(serde_json::json!({ "limit": 1, "on": ["exit"] }));
    let job = JobSpec { checkpoint: Some("ckpt".to_owned()), retry: retry.unwrap(), ..spec(command) };
    let id = site.server.submit(&job).await;
    site.succeeded(id).await;
    assert!(site.printed(id).await[0].starts_with("had 7"), "{:?}", site.printed(id).await);
    let kept = site.server.data().join(format!("runs/{id}/checkpoint"));
    assert!(!kept.join("step").exists(), "what the program removed is gone");
    assert_eq!(std::fs::read_link(kept.join("deep/link")).unwrap(), PathBuf::from("../step"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_line_is_lost_or_doubled_while_the_server_dies_and_the_way_is_cut() {
    let Some(mut site) = Site::start(Some(DANLU)).await else { return };
    let command = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i + 1)); [ $((i % 100)) = 0 ] && sleep 0.01; done; \
                   echo done > \"$DANLU_OUTPUT_DIR/done\"";
    let id = site.server.submit(&spec(command)).await;
    let has = |site: &Site, count: usize| {
        let path = site.server.data().join(format!("runs/{id}/1.0/rank-0.log"));
        std::fs::read_to_string(path).is_ok_and(|text| text.lines().count() >= count)
    };
    for count in [1, 4000] {
        eventually("some lines to be here", || async { has(&site, count).then_some(()) }).await;
        site.relay.cut();
        site.server.kill();
        site.restart().await;
    }
    eventually("more lines to be here", || async { has(&site, 8000).then_some(()) }).await;
    site.relay.cut();
    site.relay.lead_to(&site.server.client().address());
    site.succeeded(id).await;
    let expected: Vec<String> = (0..20_000).map(|number| format!("line {number}")).collect();
    assert!(site.printed(id).await == expected, "lines are missing, doubled or in disorder");
    assert_eq!(std::fs::read_to_string(site.output(id, "done")).unwrap(), "done\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_comes_while_the_server_is_away_waits_for_it() {
    let Some(mut site) = Site::start(Some(DANLU)).await else { return };
    let flag = site.rig.configuration().with_file_name(format!("flag-{}", std::process::id()));
    let command = format!("echo up; until [ -e {} ]; do sleep 0.02; done; echo last words", flag.display());
    let id = site.server.submit(&spec(&command)).await;
    site.server.wait_for(id, JobState::Running).await;
    site.relay.cut();
    site.server.kill();
    std::fs::write(&flag, "").unwrap();
    // The rank has gone; its job in Slurm has not, because its sidecar waits.
    site.restart().await;
    site.succeeded(id).await;
    assert_eq!(site.printed(id).await, ["up", "last words"]);
    // The sidecar goes after the end was heard.
    eventually("nothing to be left on nodes", || async {
        site.left_on_nodes().trim().is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_fetch_the_program_where_they_have_none() {
    let Some(site) = Site::start(None).await else { return };
    let id = site.server.submit(&JobSpec { workers: 2, ..spec("echo ran") }).await;
    site.succeeded(id).await;
    assert_eq!(site.printed(id).await, ["ran", "ran"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sidecars_know_a_server_by_its_certificate_that_nobody_vouches_for() {
    let program = format!("program: {DANLU}\n");
    let Some(mut site) = Site::start_with(&program, &["--tls"]).await else { return };
    let id = site.server.submit(&spec("echo ran")).await;
    site.server.kill();
    site.restart().await;
    site.succeeded(id).await;
    assert_eq!(site.printed(id).await, ["ran"]);
}

async fn ask(site: &Site, token: &str, method: &str, path: &str, body: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/octet-stream")];
    let address = site.server.client().address();
    send(&address, method, &format!("/api/v1/sidecar/{path}"), &headers, body.as_bytes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecars_token_opens_its_own_attempt_and_nothing_else() {
    let Some(site) = Site::start(Some(DANLU)).await else { return };
    let id = site
        .server
        .submit(&JobSpec { grace: Span::default(), ..spec("echo token $DANLU_TOKEN; exec sleep 600") })
        .await;
    site.server.wait_for(id, JobState::Running).await;
    let token_of = |attempt: &str| site.token_of(attempt);
    let own = token_of(&format!("{id}.1"));
    let said = ask(&site, &own, "GET", "workers/0/files/launch.json", "").await;
    assert_eq!(said.status, 200, "{}", said.body);
    // As a sidecar asks that an earlier version started.
    let former = own.replace("danlu_sidecar_", "danlu_courier_");
    let bearer = format!("Bearer {former}");
    let path = "/api/v1/courier/workers/0/files/launch.json";
    let headers = [("authorization", bearer.as_str())];
    let answer = send(&site.server.client().address(), "GET", path, &headers, b"").await;
    assert_eq!((answer.status, &answer.body), (200, &said.body));
    let log = site.server.data().join(format!("runs/{id}/1.0/rank-0.log"));
    let before =
        eventually("its first line", || async { std::fs::read(&log).ok().filter(|text| !text.is_empty()) })
            .await;

    let mut table = String::new();
    for (method, path) in [
        ("PUT", "workers/0/files/rank-0.log?offset=0"),
        ("PUT", "workers/0/files/rank-0.log?offset=999999"),
        ("PUT", "workers/0/files/rank-0.log"),
        ("PUT", "workers/0/files/rank-1.log?offset=0"),
        ("PUT", "workers/0/files/launch.json"),
        ("PUT", "workers/0/files/stop.json"),
        ("PUT", "workers/0/files/verdict.json"),
        ("PUT", "workers/0/files/..%2F1.0%2Fstatus.jsonl?offset=0"),
        ("PUT", "workers/1/files/status.jsonl?offset=0"),
        ("GET", "workers/0/files/status.jsonl"),
        ("GET", "workers/0/files/..%2F..%2F..%2Ftoken"),
        ("GET", "allocations/2.slurm.0/files/order.json"),
        ("GET", "allocations/..%2F..%2F..%2Ftoken/files/order.json"),
        ("GET", "allocations/1.slurm.0/files/batch.sh"),
        ("GET", "programs/..%2Ftoken"),
        ("PUT", "workers/0/trees/output/content?path=..%2Fevil&size=4&modified_at=2026-01-01T00:00:00Z"),
        ("PUT", "workers/0/trees/output/content?path=%2Fetc%2Fevil&size=4&modified_at=2026-01-01T00:00:00Z"),
        ("PUT", "workers/0/trees/output/content?path=good&size=3&modified_at=2026-01-01T00:00:00Z"),
        ("PUT", "workers/0/trees/work/content?path=evil&size=4&modified_at=2026-01-01T00:00:00Z"),
        ("GET", "workers/0/trees/checkpoint/content?path=..%2F1.0%2Flaunch.json"),
        ("DELETE", "workers/0/trees/output/content?path=..%2F1.0"),
    ] {
        let said = ask(&site, &own, method, path, "evil").await;
        let _ = writeln!(table, "{} {method} {path}", said.status);
    }
    insta::assert_snapshot!(table, @r"
    400 PUT workers/0/files/rank-0.log?offset=0
    200 PUT workers/0/files/rank-0.log?offset=999999
    400 PUT workers/0/files/rank-0.log
    404 PUT workers/0/files/rank-1.log?offset=0
    404 PUT workers/0/files/launch.json
    404 PUT workers/0/files/stop.json
    404 PUT workers/0/files/verdict.json
    404 PUT workers/0/files/..%2F1.0%2Fstatus.jsonl?offset=0
    404 PUT workers/1/files/status.jsonl?offset=0
    404 GET workers/0/files/status.jsonl
    404 GET workers/0/files/..%2F..%2F..%2Ftoken
    404 GET allocations/2.slurm.0/files/order.json
    404 GET allocations/..%2F..%2F..%2Ftoken/files/order.json
    404 GET allocations/1.slurm.0/files/batch.sh
    404 GET programs/..%2Ftoken
    400 PUT workers/0/trees/output/content?path=..%2Fevil&size=4&modified_at=2026-01-01T00:00:00Z
    400 PUT workers/0/trees/output/content?path=%2Fetc%2Fevil&size=4&modified_at=2026-01-01T00:00:00Z
    400 PUT workers/0/trees/output/content?path=good&size=3&modified_at=2026-01-01T00:00:00Z
    404 PUT workers/0/trees/work/content?path=evil&size=4&modified_at=2026-01-01T00:00:00Z
    400 GET workers/0/trees/checkpoint/content?path=..%2F1.0%2Flaunch.json
    400 DELETE workers/0/trees/output/content?path=..%2F1.0
    ");
    assert_eq!(std::fs::read(&log).unwrap(), before);

    let attempt = site.printed(id).await[0].strip_prefix("token ").unwrap().to_owned();
    let another = token_of(&format!("{}.1", id.0 + 1));
    let mut answers = Vec::new();
    for token in
        [another.as_str(), &token_of(&format!("{id}.2")), &attempt, &format!("{own}0"), "danlu_sidecar_1.1_"]
    {
        answers.push(ask(&site, token, "GET", "workers/0/files/launch.json", "").await.status);
    }
    assert_eq!(answers, [409, 409, 403, 401, 401]);
    let headers = [("authorization", format!("Bearer {own}"))];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for path in ["/api/v1/jobs", "/api/v1/attempt", "/api/v1/whoami"] {
        let said = send(&site.server.client().address(), "GET", path, &headers, b"").await;
        assert_eq!(said.status, 403, "{path}");
    }
    site.server.client().job_stop(id, &StopRequest::default()).await.unwrap();
    site.server.wait_for_end(id).await;
    assert_eq!(ask(&site, &own, "GET", "workers/0/news", "").await.status, 409, "it is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn sidecars_say_where_slurm_has_put_them() {
    let settings = format!("program: {DANLU}\nplacement: engine\n");
    let Some(site) = Site::start_with(&settings, &[]).await else { return };
    let job = JobSpec {
        workers: 2,
        devices: "nvidia:8".parse().unwrap(),
        ranks: Some(danlu_types::RanksPerWorker::PerWorker),
        ..spec("echo worker $RANK on $DANLU_NODE is on $SLURMD_NODENAME; exec sleep 600")
    };
    // Danlu plans with the first nodes, Slurm would rather have the last.
    for (weight, node) in [40, 30, 20, 10].into_iter().zip(SlurmRig::nodes()) {
        site.rig.ask("scontrol", &["update", &format!("NodeName={node}"), &format!("Weight={weight}")]);
    }
    let id = site.server.submit(&job).await;
    site.server.wait_for(id, JobState::Running).await;
    let by_slurm = site.rig.ask("squeue", &["--noheader", "--states=running", "--format=%j|%N"]);
    let nodes = site.server.client().nodes_list().await.unwrap().items;
    let held = nodes.iter().filter(|view| view.held.iter().any(|held| held.job == Some(id)));
    let held: Vec<&str> = held.map(|view| view.node.name.0.as_str()).collect();
    assert_eq!(held, ["n3", "n4"], "{by_slurm}");
    assert!(by_slurm.lines().any(|line| line.ends_with("|n[3-4]")), "{by_slurm}");
    for (worker, node) in held.iter().enumerate() {
        let line = format!("worker {worker} on {node} is on {node}");
        eventually(&line, || async { site.printed(id).await.contains(&line).then_some(()) }).await;
    }
    site.server.client().job_stop(id, &StopRequest::default()).await.unwrap();
    site.server.wait_for_end(id).await;
}

/// Tasks of a script on several nodes meet in a folder that all of them must see.
#[tokio::test(flavor = "multi_thread")]
async fn scripts_of_several_nodes_are_refused_when_they_are_submitted_and_those_of_one_run() {
    let Some(site) = Site::start(Some(DANLU)).await else { return };
    let submit = |nodes: u32| {
        let script = site.server.folder().join("train.sbatch");
        let text = format!(
            "#!/bin/bash\n#SBATCH -N {nodes} --ntasks-per-node=2\nsrun sh -c 'echo task $SLURM_PROCID'\n"
        );
        std::fs::write(&script, text).unwrap();
        let mut danlu = std::process::Command::new(DANLU);
        danlu.arg("--data").arg(site.server.data()).arg("run").arg(&script).current_dir("/").output().unwrap()
    };
    let refused = submit(2);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("only where they share a disk"), "{said}");
    // The cluster is also that of the tests beside this one, so its queue says nothing.
    let jobs = site.server.client().jobs_list(&JobQuery::default()).await.unwrap().items;
    assert!(jobs.is_empty(), "{jobs:?}\n{said}");
    let ran = submit(1);
    let (out, said) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && out.contains("task 0") && out.contains("task 1"), "{out}\n{said}");
}
