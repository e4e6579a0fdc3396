//! The command line as scripts use it: what goes to stdout, what to stderr, and the exit codes.

#![expect(clippy::unwrap_used, reason = "a panic is how a test says no, in its helpers too")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use danlu_testkit::{TestServer, eventually};
use danlu_types::JobId;
use danlu_types::api::{JobState, LogQuery};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

fn danlu(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(DANLU);
    command.arg("--data").arg(data).args(arguments).stdin(Stdio::null());
    for name in ["DANLU_SERVER", "DANLU_TOKEN", "DANLU_DATA"] {
        command.env_remove(name);
    }
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn shown(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

async fn run(data: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = danlu(data, arguments);
    tokio::task::spawn_blocking(move || shown(&command.output().unwrap())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn run_exits_as_the_job_and_keeps_talk_off_stdout() {
    let server = TestServer::start(DANLU, &["--simulate", "1x8:ascend:910B3"]).await;
    let data = server.data();
    let (code, out, err) = run(&data, &["run", "--", "sh", "-c", "echo \"a  b\"; exit 7"]).await;
    assert_eq!((code, out.as_str()), (Some(7), "a  b\n"), "{err}");
    assert!(err.contains("exited with code 7"), "{err}");

    let (code, out, _) =
        run(&data, &["run", "--workers", "2", "--name", "pair", "--", "echo rank $DANLU_RANK"]).await;
    assert_eq!(code, Some(0));
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[rank 0] rank 0", "[rank 1] rank 1"]);

    let (_, out, _) = run(&data, &["logs", "pair", "--rank", "1"]).await;
    assert_eq!(out, "rank 1\n");
    let (_, out, _) = run(&data, &["jobs", "--json"]).await;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap().as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn following_survives_a_killed_server() {
    let mut server = TestServer::start(DANLU, &[]).await;
    let script = "i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); sleep 0.05; done";
    let follower = danlu(&server.data(), &["run", "--", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let client = server.client().clone();
    eventually("a first line", || async {
        let page = client.logs_read(JobId(1), &LogQuery::default()).await.ok()?;
        (!page.items.is_empty()).then_some(())
    })
    .await;
    server.kill();
    server.restart().await;
    let output = tokio::task::spawn_blocking(move || follower.wait_with_output().unwrap()).await.unwrap();
    let (code, out, err) = shown(&output);
    let expected: String = (0..40).map(|i| format!("line {i}\n")).collect::<Vec<_>>().concat();
    assert_eq!((code, out), (Some(0), expected), "{err}");
    assert!(err.contains("the server is back"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn code_goes_with_the_job_file() {
    let server = TestServer::start(DANLU, &[]).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("code")).unwrap();
    std::fs::write(folder.path().join("code/hello.txt"), "from the snapshot\n").unwrap();
    let file = folder.path().join("job.yaml");
    std::fs::write(&file, "name: coded\ncode: code\ncommand: cat hello.txt\n").unwrap();
    let (code, out, err) = run(&server.data(), &["run", file.to_str().unwrap()]).await;
    assert_eq!((code, out.as_str()), (Some(0), "from the snapshot\n"), "{err}");
    assert!(err.contains("uploaded"), "{err}");
    let (_, out, err) = run(&server.data(), &["run", file.to_str().unwrap(), "--set", "command=ls"]).await;
    assert_eq!(out, "hello.txt\n");
    assert!(!err.contains("uploaded"), "the same content is sent once: {err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_tell_failures_apart() {
    let server = TestServer::start(DANLU, &["--simulate", "1x8:ascend:910B3"]).await;
    let data = server.data();
    let nowhere = tempfile::tempdir().unwrap();
    for (data, arguments, code, said) in [
        (data.as_path(), &["show", "99"][..], 3, "job 99 not found"),
        (&data, &["show", "nobody"], 3, "job `nobody` not found"),
        (&data, &["submit"], 2, "there is nothing to run"),
        (&data, &["bogus"], 2, "unrecognized subcommand"),
        (&data, &["up", "--listen", "0.0.0.0:0"], 2, "will not listen"),
        (&data, &["submit", "--devices", "ascend:64", "--", "true"], 1, "devices.count"),
        (&data, &["submit", "--memory", "1Q", "--", "true"], 1, "write an amount with a unit"),
        (nowhere.path(), &["jobs"], 4, "no server has run with the data folder"),
    ] {
        let (found, out, err) = run(data, arguments).await;
        assert_eq!((found, out.as_str()), (Some(code), ""), "{arguments:?}: {err}");
        assert!(err.contains("error") && err.contains(said), "{arguments:?}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn submit_prints_the_number_alone_and_exec_is_binary_clean() {
    let server = TestServer::start(DANLU, &[]).await;
    let data = server.data();
    let (_, out, err) = run(&data, &["submit", "--name", "digits", "--", "sleep", "600"]).await;
    assert_eq!((out.as_str(), err.as_str()), ("1\n", "submitted job 1 (digits)\n"));
    server.wait_for(JobId(1), JobState::Running).await;
    let bytes: Vec<u8> = (0..200_000u32).map(|i| i.to_le_bytes()[usize::from(i % 3 == 0)]).collect();
    let mut child = danlu(&data, &["exec", "digits", "--", "sh", "-c", "cat; exit 5"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    writer.join().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(output.stdout == bytes, "{} of {} bytes came back", output.stdout.len(), bytes.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_script_of_slurms_is_a_job_file_too() {
    let server = TestServer::start(DANLU, &["--simulate", "2x8:nvidia:A100"]).await;
    let data = server.data();
    let script = server.folder().join("train.sbatch");
    std::fs::write(
        &script,
        "#!/bin/bash\n#SBATCH -J two -p gpu --gres=gpu:a100:8\n#SBATCH -N 2 --ntasks-per-node=2\n\
         echo \"$SLURM_JOB_NAME with $1 on $SLURM_NNODES nodes\"\nsrun bash -c 'echo \"task $SLURM_PROCID of $SLURM_NTASKS\"'\n",
    )
    .unwrap();
    let script = script.to_str().unwrap();
    let (code, out, err) = run(&data, &["run", script, "--", "a word"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(err.contains("train.sbatch:2: `-p gpu` is not honoured: any node may be taken"), "{err}");
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "[rank 0] task 0 of 4",
            "[rank 0] two with a word on 2 nodes",
            "[rank 1] task 1 of 4",
            "[rank 2] task 2 of 4",
            "[rank 3] task 3 of 4",
        ]
    );
    let (code, out, err) = run(&data, &["submit", script, "--dry-run"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "would start now\n"), "{err}");
    let (code, out, err) = run(&data, &["adopt"]).await;
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(err.contains("`danlu devices`") && err.contains("`danlu sweep`"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_is_as_many_jobs() {
    let server = TestServer::start(DANLU, &["--simulate", "2x8:nvidia:A100"]).await;
    let data = server.data();
    let script = server.folder().join("sweep.sbatch");
    let text = "#!/bin/sh\n#SBATCH --array=1-5:2%1 --gres=gpu:1\n\
                echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT up to $SLURM_ARRAY_TASK_MAX in $SLURM_ARRAY_JOB_ID\n";
    std::fs::write(&script, text).unwrap();
    let script = script.to_str().unwrap();
    let (code, out, err) = run(&data, &["submit", script, "--key", "once"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "1\n2\n3\n"), "{err}");
    assert!(err.contains("sweep.sbatch:2: `%1` is not honoured"), "{err}");
    for (id, task) in (1..).zip([1, 3, 5]) {
        server.wait_for_end(JobId(id)).await;
        assert_eq!(server.texts(JobId(id)).await, [format!("{task} of 3 up to 5 in 1")]);
    }
    // Once more submits nothing more, and names what was submitted.
    let (_, out, err) = run(&data, &["submit", script, "--key", "once"]).await;
    assert_eq!(out, "1\n2\n3\n");
    let label = err.split("array=").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    let label = format!("array={label}");
    let (_, out, _) = run(&data, &["jobs", "--label", &label, "--count"]).await;
    assert!(out.contains('3'), "{out}");
    let (code, _, err) = run(&data, &["submit", script, "--dry-run"]).await;
    assert_eq!(code, Some(0));
    assert!(err.contains("an array of 3 jobs, 1 to 5"), "{err}");
    let (code, _, err) = run(&data, &["run", script]).await;
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("an array is many jobs"), "{err}");
    let (code, out, err) = run(&data, &["run", script, "--env", "SLURM_ARRAY_TASK_ID=4"]).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("4 of"), "{out}");
}
