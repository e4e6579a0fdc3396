//! The behaviours. Each ends with nothing running; after one that fails its site cleans up.

use std::time::Duration;

use danlu_core::job::{Exit, FailureCause, WorkerExit};
use danlu_core::launch::StopOrder;
use danlu_device::process;
use danlu_types::session::{Frame, FrameKind, OpenSession, SessionExit};
use danlu_types::{DeviceKind, Span};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Draft, Scheduling, Site};
use crate::{Engine, EngineError, Seen, Which};

const AT_ONCE: StopOrder = StopOrder { grace: Span { milliseconds: 0 } };
const SHORTLY: StopOrder = StopOrder { grace: Span { milliseconds: 300 } };
const PATIENTLY: StopOrder = StopOrder { grace: Span::from_seconds(60) };

pub async fn a_worker_runs_and_ends(site: &Site) {
    let engine = site.engine();
    let draft = site.draft("echo hello from $RANK of $WORLD_SIZE");
    launch(&*engine, &draft).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Succeeded);
    assert_eq!(site.printed(draft.worker(0), 0), ["hello from 0 of 1"]);
    let Seen::Ended { running_since: Some(since), at, .. } = site.seen(&*engine, draft.worker(0)).await
    else {
        panic!("a worker that ran says since when")
    };
    assert!(since <= at);
}

pub async fn exit_codes_are_told(site: &Site) {
    let engine = site.engine();
    for (command, expected) in [("exit 7", Exit::Code(7)), ("kill -KILL $$", Exit::Signal(9))] {
        let draft = site.draft(command);
        launch(&*engine, &draft).await;
        match site.until_ended(&*engine, draft.worker(0)).await {
            WorkerExit::Failed(failure) => {
                assert_eq!(failure.cause, FailureCause::Exit, "{command}");
                assert_eq!(failure.exit, Some(expected), "{command}");
            }
            other => panic!("`{command}` ended as {other:?}"),
        }
    }
}

pub async fn launching_again_runs_nothing_twice(site: &Site) {
    let engine = site.engine();
    let draft = site.draft("echo ran >> \"$DANLU_OUTPUT_DIR/count\"");
    let file = draft.launch_file(0);
    let (a, b, c) = tokio::join!(engine.launch(&file), engine.launch(&file), engine.launch(&file));
    for launched in [a, b, c] {
        launched.expect("launching again is no error");
    }
    site.until_ended(&*engine, draft.worker(0)).await;
    engine.launch(&file).await.expect("launching an ended worker is no error");
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Succeeded);
    assert_eq!(site.until_written(draft.job, "count").await, "ran");
}

pub async fn a_gang_starts_together_or_not_at_all(site: &Site) {
    let engine = site.engine();
    let draft = Draft { workers: 2, ranks: 2, ..site.draft("echo $RANK/$WORLD_SIZE") };
    engine.launch(&draft.launch_file(0)).await.expect("a worker can be launched");
    if site.scheduling() == Scheduling::Ours {
        let gang = site.layout().gang_folder(draft.job, draft.worker(0).attempt).join("worker-0.json");
        site.until("the first worker is present", async || gang.exists().then_some(())).await;
    }
    assert_eq!(site.seen(&*engine, draft.worker(0)).await, Seen::Preparing, "it waits for the second");

    engine.launch(&draft.launch_file(1)).await.expect("a worker can be launched");
    for worker in [0, 1] {
        assert_eq!(site.until_ended(&*engine, draft.worker(worker)).await, WorkerExit::Succeeded);
        for rank in [2 * worker, 2 * worker + 1] {
            assert_eq!(site.printed(draft.worker(worker), rank), [format!("{rank}/4")]);
        }
    }
}

pub async fn the_first_failing_rank_ends_its_worker(site: &Site) {
    let engine = site.engine();
    let command = "if [ $RANK = 1 ]; then until [ -s \"$DANLU_OUTPUT_DIR/pid\" ]; do :; done; exit 3; fi; \
                   echo $$ > \"$DANLU_OUTPUT_DIR/pid\"; exec sleep 600";
    let draft = Draft { ranks: 2, ..site.draft(command) };
    launch(&*engine, &draft).await;
    match site.until_ended(&*engine, draft.worker(0)).await {
        WorkerExit::Failed(failure) => {
            assert_eq!(failure.rank.map(|rank| rank.0), Some(1), "the culprit is named");
            assert_eq!(failure.exit, Some(Exit::Code(3)));
        }
        other => panic!("ended as {other:?}"),
    }
    assert_gone(&site.until_written(draft.job, "pid").await);
}

pub async fn a_stop_gives_grace(site: &Site) {
    let engine = site.engine();
    let command = "trap 'echo saved > \"$DANLU_OUTPUT_DIR/saved\"; exit 0' TERM; \
                   echo $$ > \"$DANLU_OUTPUT_DIR/pid\"; while :; do sleep 0.01; done";
    let draft = site.draft(command);
    launch(&*engine, &draft).await;
    let pid = site.until_written(draft.job, "pid").await;
    stop(&*engine, &draft, &PATIENTLY).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Stopped);
    assert_eq!(site.until_written(draft.job, "saved").await, "saved");
    assert_gone(&pid);
    stop(&*engine, &draft, &AT_ONCE).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Stopped);
}

pub async fn a_stop_kills_what_does_not_listen(site: &Site) {
    let engine = site.engine();
    let draft = site.draft("trap '' TERM; echo $$ > \"$DANLU_OUTPUT_DIR/pid\"; while :; do sleep 0.01; done");
    launch(&*engine, &draft).await;
    let pid = site.until_written(draft.job, "pid").await;
    stop(&*engine, &draft, &SHORTLY).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Stopped);
    assert_gone(&pid);
}

pub async fn no_process_outlives_its_worker(site: &Site) {
    let engine = site.engine();
    // A daemon in a session of its own whose parent is gone, deaf to all but the last signal.
    let command = "setsid sh -c 'trap \"\" TERM HUP INT; (echo $$ > \"$DANLU_OUTPUT_DIR/daemon\"; \
                   while :; do sleep 0.01; done) & while :; do sleep 0.01; done' > /dev/null 2>&1 & \
                   until [ -s \"$DANLU_OUTPUT_DIR/daemon\" ]; do :; done; echo up; ";
    for (ending, expected) in [("exit 0", WorkerExit::Succeeded), ("sleep 600", WorkerExit::Stopped)] {
        let draft = site.draft(&format!("{command}{ending}"));
        launch(&*engine, &draft).await;
        let pid = site.until_written(draft.job, "daemon").await;
        if expected == WorkerExit::Stopped {
            stop(&*engine, &draft, &SHORTLY).await;
        }
        assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, expected);
        engine.release(draft.worker(0)).await.expect("an ended worker can be released");
        assert_gone(&pid);
    }
}

pub async fn a_stop_before_the_start_starts_nothing(site: &Site) {
    let engine = site.engine();
    let stranger = site.draft("");
    stop(&*engine, &stranger, &AT_ONCE).await;
    assert_eq!(site.seen(&*engine, stranger.worker(0)).await, Seen::Unknown);

    // Its gang is not complete, so it has not started when the order comes.
    let draft = Draft { workers: 2, ..site.draft("echo ran > \"$DANLU_OUTPUT_DIR/ran\"") };
    engine.launch(&draft.launch_file(0)).await.expect("a worker can be launched");
    stop(&*engine, &draft, &PATIENTLY).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Stopped);
    assert!(!site.layout().output_folder(draft.job).join("ran").exists());
}

pub async fn a_restarted_server_adopts_what_runs(site: &Site) {
    let first = site.engine();
    let draft = site.draft("echo $$ > \"$DANLU_OUTPUT_DIR/pid\"; exec sleep 600");
    launch(&*first, &draft).await;
    site.until_running(&*first, draft.worker(0)).await;
    let pid = site.until_written(draft.job, "pid").await;
    let before = site.seen(&*first, draft.worker(0)).await;
    drop(first);

    let second = site.engine();
    let all = second.observe(Which::All).await.expect("workers can be looked at");
    let found: Vec<&Seen> = all.iter().filter(|it| it.worker == draft.worker(0)).map(|it| &it.seen).collect();
    assert_eq!(found, [&before]);
    second.launch(&draft.launch_file(0)).await.expect("launching again is no error");
    stop(&*second, &draft, &AT_ONCE).await;
    assert_eq!(site.until_ended(&*second, draft.worker(0)).await, WorkerExit::Stopped);
    assert_gone(&pid);
}

pub async fn workers_run_on_while_no_server_does(site: &Site) {
    let first = site.engine();
    let draft = site.draft(
        "echo up > \"$DANLU_OUTPUT_DIR/up\"; until [ -e \"$DANLU_OUTPUT_DIR/go\" ]; do sleep 0.01; done; \
         echo line; echo done > \"$DANLU_OUTPUT_DIR/done\"",
    );
    launch(&*first, &draft).await;
    site.until_written(draft.job, "up").await;
    drop(first);
    std::fs::write(site.layout().output_folder(draft.job).join("go"), "").expect("outputs can be written");
    site.until_written(draft.job, "done").await;

    let second = site.engine();
    assert_eq!(site.until_ended(&*second, draft.worker(0)).await, WorkerExit::Succeeded);
    assert_eq!(site.printed(draft.worker(0), 0), ["line"]);
}

pub async fn no_log_line_is_lost(site: &Site) {
    let engine = site.engine();
    let draft = site.draft("seq 1 20000; printf 'no line feed'");
    launch(&*engine, &draft).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Succeeded);
    let mut expected: Vec<String> = (1..=20_000).map(|number| number.to_string()).collect();
    expected.push("no line feed".to_owned());
    assert!(site.printed(draft.worker(0), 0) == expected, "lines are missing, doubled or out of order");
}

pub async fn workers_see_their_devices_and_no_others(site: &Site) {
    let engine = site.engine();
    let command = "echo \"ascend=$ASCEND_RT_VISIBLE_DEVICES nvidia=$CUDA_VISIBLE_DEVICES\"";
    for (kind, numbers, expected) in [
        (DeviceKind::Ascend, vec![2, 5], "ascend=2,5 nvidia="),
        (DeviceKind::Nvidia, vec![7], "ascend= nvidia=7"),
        (DeviceKind::Nvidia, vec![], "ascend= nvidia="),
    ] {
        let devices = numbers.into_iter().map(|number| site.device(kind, number)).collect();
        let draft = Draft { devices, ..site.draft(command) };
        launch(&*engine, &draft).await;
        assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Succeeded);
        let printed = site.printed(draft.worker(0), 0);
        match site.scheduling() {
            Scheduling::Ours => assert_eq!(printed, [expected]),
            // Which ones is not ours to say; how many is.
            Scheduling::Theirs => {
                let without_digits = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
                assert_eq!(without_digits(&printed.join("\n")), without_digits(expected), "{printed:?}");
            }
        }
    }
}

pub async fn workers_at_the_same_time_share_no_device(site: &Site) {
    let engine = site.engine();
    let command = "echo $CUDA_VISIBLE_DEVICES > \"$DANLU_OUTPUT_DIR/devices\"; exec sleep 600";
    let mut drafts = Vec::new();
    let mut seen = Vec::new();
    for numbers in [[0, 1], [2, 3], [4, 5]] {
        let devices = numbers.iter().map(|number| site.device(DeviceKind::Nvidia, *number)).collect();
        let draft = Draft { devices, ..site.draft(command) };
        launch(&*engine, &draft).await;
        let devices = site.until_written(draft.job, "devices").await;
        seen.extend(devices.split(',').map(str::to_owned));
        drafts.push(draft);
    }
    seen.sort();
    let all = seen.len();
    seen.dedup();
    assert_eq!((all, seen.len()), (6, 6), "{seen:?}");
    for draft in drafts {
        stop(&*engine, &draft, &AT_ONCE).await;
        assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerExit::Stopped);
    }
}

pub async fn changes_are_hinted(site: &Site) {
    let engine = site.engine();
    let draft = site.draft("true");
    launch(&*engine, &draft).await;
    // Looks only when hinted: without hints this waits for ever.
    let ended = async {
        while !matches!(site.seen(&*engine, draft.worker(0)).await, Seen::Ended { .. }) {
            while !engine.changed().await.contains(&draft.worker(0)) {}
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended).await.expect("the end of a worker is hinted");
}

pub async fn released_workers_are_unknown(site: &Site) {
    let engine = site.engine();
    let draft = site.draft("exec sleep 600");
    launch(&*engine, &draft).await;
    site.until_running(&*engine, draft.worker(0)).await;
    engine.release(draft.worker(0)).await.expect_err("a worker that runs is not released");

    stop(&*engine, &draft, &AT_ONCE).await;
    site.until_ended(&*engine, draft.worker(0)).await;
    for _ in 0..2 {
        engine.release(draft.worker(0)).await.expect("releasing again is no error");
        assert_eq!(site.seen(&*engine, draft.worker(0)).await, Seen::Unknown);
    }
    let all = engine.observe(Which::All).await.expect("workers can be looked at");
    assert!(all.iter().all(|it| it.worker != draft.worker(0)));
    assert!(site.layout().run_folder(draft.worker(0)).join("rank-0.log").exists(), "logs stay");
}

pub async fn commands_run_inside_a_worker(site: &Site) {
    let engine = site.engine();
    let draft = site.draft("exec sleep 600");
    match engine.connect(draft.worker(0)).await {
        Err(EngineError::NotReachable { .. }) => {}
        Err(other) => panic!("a worker that does not run is not reachable, but: {other:?}"),
        Ok(_) => panic!("a worker that does not run was reached"),
    }
    launch(&*engine, &draft).await;
    site.until_running(&*engine, draft.worker(0)).await;

    let mut stream = engine.connect(draft.worker(0)).await.expect("a running worker can be reached");
    let command = ["sh", "-c", "read line; echo \"$line in $DANLU_JOB_ID\"; exit 5"].map(str::to_owned);
    let open = OpenSession { command: command.to_vec(), terminal: None, env: Vec::new() };
    for frame in [Frame::json(FrameKind::Open, &open), Frame::new(FrameKind::Stdin, "said\n")] {
        stream.write_all(&frame.encode()).await.expect("the launcher reads");
    }
    let (mut buffer, mut printed) = (Vec::new(), Vec::new());
    let exit: SessionExit = loop {
        match Frame::decode(&mut buffer).expect("the launcher writes frames") {
            Some(Frame { kind: FrameKind::Stdout, payload }) => printed.extend(payload),
            Some(Frame { kind: FrameKind::Exit, payload }) => {
                break serde_json::from_slice(&payload).expect("an exit is told as JSON");
            }
            Some(other) => panic!("unexpected frame {other:?}"),
            None => {
                let read = stream.read_buf(&mut buffer).await.expect("the launcher answers");
                assert_ne!(read, 0, "the session was cut before its exit was told");
            }
        }
    };
    assert_eq!(exit, SessionExit::Code(5));
    assert_eq!(String::from_utf8_lossy(&printed), format!("said in {}\n", draft.job));
    stop(&*engine, &draft, &AT_ONCE).await;
    site.until_ended(&*engine, draft.worker(0)).await;
}

async fn launch(engine: &dyn Engine, draft: &Draft) {
    for index in 0..draft.workers {
        engine.launch(&draft.launch_file(index)).await.expect("a worker can be launched");
    }
}

async fn stop(engine: &dyn Engine, draft: &Draft, order: &StopOrder) {
    for index in 0..draft.workers {
        engine.signal(draft.worker(index), order).await.expect("a worker can be stopped");
    }
}

/// A worker has ended only when its processes have.
fn assert_gone(pid: &str) {
    let pid = pid.parse().expect("the worker wrote a process number");
    assert_eq!(process::identity(pid), None, "process {pid} outlived its worker");
}
