//! What people do every day with the command line, their mistakes included (issue 15).

#![expect(clippy::unwrap_used, reason = "a panic is how a test says no, in its helpers too")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use danlu_testkit::{TestServer, spec};
use danlu_types::api::{FileArea, FileQuery, JobState};
use danlu_types::{JobId, JobSpec, ProblemCode, Retry};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

/// The command with nothing of this shell but what is said.
fn danlu(server: &TestServer, arguments: &[&str]) -> Command {
    let mut command = Command::new(DANLU);
    command.args(arguments).stdin(Stdio::null());
    for name in
        ["DANLU_SERVER", "DANLU_TOKEN", "DANLU_PROFILE", "VIRTUAL_ENV", "CONDA_PREFIX", "XDG_DATA_HOME"]
    {
        command.env_remove(name);
    }
    command.env("DANLU_DATA", server.data()).env("XDG_CONFIG_HOME", server.folder().join("config"));
    command
}

async fn output(mut command: Command) -> (Option<i32>, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    (status.code(), text(stdout), text(stderr))
}

async fn run(server: &TestServer, arguments: &[&str]) -> (Option<i32>, String, String) {
    output(danlu(server, arguments)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_named_job_is_stopped_whatever_became_of_the_others() {
    let server = TestServer::start(DANLU, &[]).await;
    server.run(&spec("true")).await;
    let running = server.submit(&spec("sleep 600")).await;
    server.wait_for(running, JobState::Running).await;
    let (code, _, err) = run(&server, &["stop", "1", "99", &running.to_string(), "--grace", "0s"]).await;
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("job 1 has already ended") && err.contains("job 99 not found"), "{err}");
    assert!(err.contains("1 of 3 jobs: done"), "{err}");
    server.wait_for_end(running).await;

    let (code, _, err) = run(&server, &["delete", "98", "99", "1"]).await;
    assert_eq!(code, Some(3), "all that failed were not found: {err}");
    assert!(err.contains("deleted job 1"), "{err}");
    let (code, _, err) = run(&server, &["delete", &running.to_string()]).await;
    assert_eq!(code, Some(0), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_stands_for_one_job_only() {
    let server = TestServer::start(DANLU, &[]).await;
    let submit = ["submit", "--key", "idem", "--name", "first", "--", "true"];
    let (code, out, err) = run(&server, &submit).await;
    assert_eq!((code, out.as_str()), (Some(0), "1\n"), "{err}");
    server.wait_for_end(JobId(1)).await;
    let (code, out, err) = run(&server, &submit).await;
    assert_eq!((code, out.as_str()), (Some(0), "1\n"), "the same again: {err}");
    let (code, out, err) = run(&server, &["submit", "--key", "idem", "--name", "other", "--", "false"]).await;
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("job 1 (`first`)") && err.contains("nothing was submitted"), "{err}");
    let refused = server.client().job_submit(&spec("false"), Some("idem")).await.unwrap_err();
    let danlu_client::ClientError::Problem(problem) = refused else { panic!("{refused:?}") };
    assert_eq!((problem.code, problem.status), (ProblemCode::KeyReused, 409));
}

#[tokio::test(flavor = "multi_thread")]
async fn amounts_without_a_unit_are_refused_everywhere() {
    let server = TestServer::start(DANLU, &[]).await;
    let file = server.folder().join("job.yaml");
    let file = file.to_str().unwrap();
    for (field, wrong, right) in [
        ("memory", "64", "`64Gi`"),
        ("memory", "'64'", "`64Gi`"),
        ("shared_memory", "8", "`8Gi`"),
        ("max_time", "24", "`24h`"),
        ("grace", "30", "`30s`"),
    ] {
        std::fs::write(file, format!("name: a\ncommand: 'true'\n{field}: {wrong}\n")).unwrap();
        let (code, _, err) = run(&server, &["submit", file]).await;
        assert_eq!(code, Some(1), "{field}: {err}");
        assert!(err.contains("has no unit") && err.contains(right), "{field}: {err}");
    }
    for arguments in [
        &["submit", "--memory", "64", "--", "true"][..],
        &["submit", "--max-time", "24", "--", "true"],
        &["submit", "--set", "memory=64", "--", "true"],
        &["stop", "--grace", "10", "1"],
        &["admin", "workspace", "set", "default", "--limit", "memory=512"],
    ] {
        let (code, _, err) = run(&server, arguments).await;
        assert!(code != Some(0) && err.contains("has no unit"), "{arguments:?}: {err}");
    }
    let (_, out, err) =
        run(&server, &["submit", "--memory", "64GB", "--dry-run", "--json", "--", "true"]).await;
    assert!(!err.contains("62500000Ki") && !out.contains("62500000Ki"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_of_a_job_that_waits_say_so() {
    let server = TestServer::start(DANLU, &[]).await;
    let mut needs_all = spec("echo started");
    needs_all.cpus = server.client().nodes_list().await.unwrap().items[0].node.capacity.cpus;
    let mut holder = needs_all.clone();
    holder.command = "sleep 600".to_owned();
    let holder = server.submit(&holder).await;
    server.wait_for(holder, JobState::Running).await;
    let waits = server.submit(&needs_all).await;
    let (code, out, err) = run(&server, &["logs", &waits.to_string()]).await;
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(err.contains(&format!("job {waits} has no output yet: it is queued")), "{err}");

    let follower = danlu(&server, &["logs", "-f", &waits.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    run(&server, &["stop", "--grace", "0s", &holder.to_string()]).await;
    let followed = tokio::task::spawn_blocking(move || follower.wait_with_output().unwrap()).await.unwrap();
    assert_eq!(String::from_utf8(followed.stdout).unwrap(), "started\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_are_left_out_of_logs_unless_asked_for() {
    let server = TestServer::start(DANLU, &[]).await;
    let script =
        "echo one; echo ::danlu progress 0.5; echo ::danlu metric loss=0.1; echo ::danlu nonsense; echo two";
    let (_, out, err) = run(&server, &["run", "--", script]).await;
    assert_eq!(out, "one\n::danlu nonsense\ntwo\n", "{err}");
    let (_, out, _) = run(&server, &["logs", "1"]).await;
    assert_eq!(out, "one\n::danlu nonsense\ntwo\n");
    for flag in ["--reports", "--raw"] {
        let (_, out, _) = run(&server, &["logs", "1", flag]).await;
        assert_eq!(out.lines().count(), 5, "{out}");
    }
    let (_, out, _) = run(&server, &["logs", "1", "--tail", "3"]).await;
    assert_eq!(out, "one\n::danlu nonsense\ntwo\n", "reports do not count among the last lines");
    let (_, out, _) = run(&server, &["logs", "1", "--search", "::danlu metric"]).await;
    assert_eq!(out, "::danlu metric loss=0.1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_looks_through_every_attempt_and_says_which() {
    let server = TestServer::start(DANLU, &[]).await;
    let retry = Retry { limit: 1, on: vec![danlu_types::RetryCause::Exit] };
    let job = JobSpec { retry, ..spec("echo needle of $DANLU_ATTEMPT; test $DANLU_ATTEMPT = 2") };
    let id = server.run(&job).await.id;
    let (code, out, err) = run(&server, &["logs", &id.to_string(), "--search", "needle"]).await;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out, "[attempt 1] needle of 1\n[attempt 2] needle of 2\n");
    let (_, out, _) = run(&server, &["logs", &id.to_string()]).await;
    assert_eq!(out, "needle of 2\n", "without a search, the last attempt");
}

async fn sign_in(server: &TestServer, environment: &[(&str, &str)], arguments: &[&str]) -> String {
    let mut command = danlu(server, arguments);
    command.envs(environment.iter().copied()).stdin(Stdio::piped()).stderr(Stdio::piped());
    tokio::task::spawn_blocking(move || {
        use std::io::Write as _;
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"correct horse battery\n").unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_signs_in_is_who_they_are_afterwards() {
    let mut server = TestServer::start(DANLU, &[]).await;
    for name in ["alice", "bob"] {
        let (code, out, err) = run(&server, &["admin", "user", "add", name]).await;
        assert_eq!(code, Some(0), "{err}");
        let link = format!("{out}{err}");
        let link = link.split_whitespace().find(|word| word.contains("http")).unwrap();
        let said = sign_in(&server, &[], &["password", "--link", link]).await;
        assert!(said.contains("is set"), "{said}");
    }
    let who = async |server: &TestServer, environment: &[(&str, &str)]| {
        let mut command = danlu(server, &["whoami"]);
        command.envs(environment.iter().copied());
        let (_, out, err) = output(command).await;
        format!("{}{err}", out.lines().next().unwrap_or_default())
    };
    assert_eq!(
        who(&server, &[]).await,
        "admin, an administrator",
        "the folder's own, before anybody signed in"
    );
    let said = sign_in(&server, &[], &["login", "alice"]).await;
    assert!(said.contains("signed in as alice") && !said.contains("by themselves"), "{said}");
    assert_eq!(who(&server, &[]).await, "alice");
    // It listens on another port afterwards.
    server.terminate();
    server.restart().await;
    assert_eq!(who(&server, &[]).await, "alice");

    let said = sign_in(&server, &[("DANLU_PROFILE", "second")], &["login", "bob"]).await;
    assert!(!said.contains("by themselves"), "{said}");
    assert_eq!(who(&server, &[("DANLU_PROFILE", "second")]).await, "bob");
    assert_eq!(who(&server, &[]).await, "alice");
    let said = sign_in(&server, &[], &["--profile", "third", "login", "bob"]).await;
    assert!(said.contains("`danlu --profile third …`"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_of_a_job_are_fetched_whole_and_links_are_not_followed() {
    let server = TestServer::start(DANLU, &[]).await;
    let script = "cd $DANLU_OUTPUT_DIR && mkdir -p m/deep && echo weights > m/deep/w && echo top > m/t && ln -s /etc/passwd m/link";
    let id = server.run(&spec(script)).await.id;
    let query = FileQuery { area: FileArea::Output, path: "m/link".to_owned(), attempt: None, worker: None };
    assert!(server.client().file_read(id, &query, |_| Ok::<_, danlu_client::ClientError>(())).await.is_err());
    let (code, _, err) = run(&server, &["files", &id.to_string(), "m", "--get"]).await;
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("`m` is a folder") && err.contains("-o"), "{err}");
    let into = server.folder().join("fetched");
    let (code, _, err) =
        run(&server, &["files", &id.to_string(), "m", "--get", "-o", into.to_str().unwrap()]).await;
    assert!(err.contains("left out `m/link`") && err.contains("fetched 2 files"), "{err}");
    assert_eq!(code, Some(1), "something was left out");
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert_eq!(text(&into.join("deep/w")), "weights\n");
    assert_eq!(text(&into.join("t")), "top\n");
    assert!(!into.join("link").exists());
    let (code, _, err) =
        run(&server, &["files", &id.to_string(), "m/t", "--get", "-o", into.join("one").to_str().unwrap()])
            .await;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(text(&into.join("one/t")), "top\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_of_the_shell_goes_with_a_typed_command() {
    let server = TestServer::start(DANLU, &[]).await;
    let environment = server.folder().join("venv");
    std::fs::create_dir_all(environment.join("bin")).unwrap();
    let program = environment.join("bin/mine");
    std::fs::write(&program, "#!/bin/sh\necho mine in $VIRTUAL_ENV\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = danlu(&server, &["run", "--", "mine"]);
    let path = format!("{}:{}", environment.join("bin").display(), std::env::var("PATH").unwrap());
    command.env("VIRTUAL_ENV", &environment).env("PATH", path);
    let (code, out, err) = output(command).await;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out, format!("mine in {}\n", environment.display()));
    assert!(err.contains("this shell's environment"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn common_mistakes_are_answered_with_what_to_write() {
    let server = TestServer::start(DANLU, &[]).await;
    let write = |name: &str, text: &str| {
        let path = server.folder().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let tabs = write("tabs.yaml", "name: a\ndevices:\n\tkind: nvidia\n\tcount: 1\ncommand: x\n");
    let deep = write("deep.yaml", "name: a\n  command: x\n");
    let params = write("job.params", "name=a\nkind=PyTorchJob\nworker_count=1\nworker_memory=4\n");
    let config = write("modelarts_config.py", "import os\nconfig = {'a': 1}\n");
    let sky = write("sky.yaml", "resources:\n  accelerators: A100:8\nrun: python x.py\n");
    for (arguments, code, said) in [
        (&["submit", &tabs][..], 1, &["line 3 is indented with a tab", "spaces"][..]),
        (&["submit", &deep], 1, &["deep.yaml:2", "indented deeper", "same column"]),
        (&["submit", &params], 1, &["DLC", "`worker_memory=4` is `memory: 4Gi`"]),
        (&["submit", &config], 1, &["ModelArts", "write a job file"]),
        (&["submit", &sky], 1, &["SkyPilot", "`run:` is `command:`"]),
        (&["run", "python3", "train.py"], 2, &["`danlu run -- python3 train.py`"]),
        (
            &["run", "--workers", "2", "python3", "x.py", "--lr", "1"],
            2,
            &["`danlu run --workers 2 -- python3 x.py --lr 1`"],
        ),
        (&["run", "nosuchprogram"], 1, &["`danlu run -- nosuchprogram`"]),
        (&["submit", "--workspace", "nowhere", "--", "true"], 1, &["`workspace` cannot be `nowhere`"]),
        (
            &["submit", "--set", "image=tf:1.15", "--", "true"],
            1,
            &["`image` cannot be `tf:1.15`: only `host`"],
        ),
    ] {
        let (found, _, err) = run(&server, arguments).await;
        assert_eq!(found, Some(code), "{arguments:?}: {err}");
        for words in said {
            assert!(err.contains(words), "{arguments:?} does not say {words:?}:\n{err}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_its_folder_says_how_to_take_it_along() {
    let server = TestServer::start(DANLU, &[]).await;
    let job = JobSpec { working_directory: Some("/nowhere/at/all".to_owned()), ..spec("true") };
    let ended = server.run(&job).await;
    assert!(ended.reason.to_string().contains("--code ."), "{:?}", ended.reason);
    let (_, out, _) = run(&server, &["show", &ended.id.to_string()]).await;
    assert_eq!(out.matches("--code .").count(), 1, "a diagnosis is told once:\n{out}");
}
