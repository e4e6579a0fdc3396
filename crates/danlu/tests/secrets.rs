//! Secrets of jobs: they reach the program, and stay nowhere.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use danlu_client::{Client, ClientError};
use danlu_testkit::{TestServer, eventually, spec};
use danlu_types::api::{JobOutcome, JobState, NewAccount, NewSecret, SignIn};
use danlu_types::{JobSpec, SecretForm, SecretUse, Span, Workspace};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const VALUE: &str = "hf_swordfish-0123456789";
const FILE: &str = "machine example.org\n  password open-sesame-42\n";

async fn set(client: &Client, workspace: &str, name: &str, value: &str) {
    client.secret_set(workspace, name, &NewSecret { value: value.to_owned() }).await.unwrap();
}

fn with_secrets(command: &str) -> JobSpec {
    let asked = |name: &str, form| SecretUse { name: name.to_owned(), form };
    let mut spec = JobSpec { grace: Span::default(), ..spec(command) };
    spec.secrets.insert("HF_TOKEN".to_owned(), asked("hf-token", SecretForm::Env));
    spec.secrets.insert("NETRC".to_owned(), asked("netrc", SecretForm::File));
    spec
}

async fn server_with_secrets() -> TestServer {
    let server = TestServer::start(DANLU, &[]).await;
    set(server.client(), "default", "hf-token", VALUE).await;
    set(server.client(), "default", "netrc", FILE).await;
    server
}

/// The files below a folder that hold one of the texts.
fn holding(folder: &Path, texts: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            found.extend(holding(&path, texts));
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let holds = |text: &&str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
            if texts.iter().any(holds) {
                found.push(path);
            }
        }
    }
    found
}

#[tokio::test]
async fn a_secret_reaches_the_program_and_is_nowhere_afterwards() {
    let mut server = server_with_secrets().await;
    // Sealed in the database, it is there after a restart.
    server.kill();
    server.restart().await;
    let command = "echo token $HF_TOKEN of ${#HF_TOKEN}; echo again $HF_TOKEN >&2; stat -c %a $NETRC; wc -c < $NETRC; \
                   cat $NETRC; printf %s \"::danlu metric $HF_TOKEN=1\"";
    let job = server.run(&with_secrets(command)).await;
    assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{:?}", job.reason);
    let mut lines = server.texts(job.id).await;
    lines.sort();
    insta::assert_snapshot!(lines.join("\n"), @r"
      ***
    ***
    46
    600
    ::danlu metric ***=1
    again ***
    token *** of 23
    ");
    let texts = [VALUE, "open-sesame-42", "machine example.org"];
    assert_eq!(holding(&server.data(), &texts), Vec::<PathBuf>::new());
    assert!(!server.log().contains(VALUE));
    let shown = serde_json::to_string(&server.job(job.id).await).unwrap();
    assert!(shown.contains("hf-token") && !shown.contains(VALUE), "{shown}");
    let listed = serde_json::to_string(&server.client().secrets_list("default").await.unwrap()).unwrap();
    assert!(listed.contains("hf-token") && !listed.contains(VALUE), "{listed}");
}

#[tokio::test]
async fn a_launcher_that_dies_leaves_none_behind() {
    let server = server_with_secrets().await;
    let id = server.submit(&with_secrets("test -s $NETRC && echo pid $PPID; exec sleep 1000")).await;
    server.wait_for(id, JobState::Running).await;
    let launcher = eventually("the launcher's number", || async {
        server.texts(id).await.iter().find_map(|line| line.strip_prefix("pid ")?.parse::<i32>().ok())
    })
    .await;
    let run = server.data().join(format!("runs/{id}/1.0"));
    assert!(!run.join("secrets.json").exists(), "values are not left where the launcher found them");
    assert_eq!(holding(&server.data(), &["open-sesame-42"]), [run.join("secrets/NETRC")]);
    kill(Pid::from_raw(launcher), Signal::SIGKILL).unwrap();
    server.wait_for_end(id).await;
    assert_eq!(holding(&server.data(), &[VALUE, "open-sesame-42"]), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn only_jobs_of_its_workspace_get_a_secret() {
    let server = server_with_secrets().await;
    let admin = server.client();
    let password = "correct horse battery".to_owned();
    let new = NewAccount {
        name: "ada".parse().unwrap(),
        display_name: None,
        email: None,
        password: Some(password.clone()),
    };
    admin.account_create(&new).await.unwrap();
    let token = admin
        .sign_in(&SignIn { name: Some("ada".to_owned()), password: Some(password), ..SignIn::default() })
        .await
        .unwrap();
    let ada = Client::new(&admin.address(), &token);
    server.client().workspace_set("lab", &Workspace::default()).await.unwrap();
    set(admin, "lab", "hf-token", VALUE).await;

    let asking = |workspace: &str, name: &str| {
        let mut spec = JobSpec { workspace: workspace.to_owned(), ..spec("true") };
        spec.secrets.insert("X".to_owned(), SecretUse { name: name.to_owned(), form: SecretForm::Env });
        spec
    };
    let refusal = async |spec: &JobSpec| match ada.job_submit(spec, None).await {
        Err(ClientError::Problem(problem)) => (problem.status, problem.errors[0].message.clone()),
        other => panic!("{other:?}"),
    };
    // What is another's and what is nobody's sound the same.
    for name in ["hf-token", "no-such"] {
        let said = format!("the workspace `ada` has no secret `{name}`");
        assert_eq!(refusal(&asking("ada", name)).await, (422, said));
    }
    assert_eq!(refusal(&asking("lab", "hf-token")).await.0, 422);
    for workspace in ["lab", "no-such"] {
        assert!(ada.secrets_list(workspace).await.unwrap_err().to_string().contains("not found"));
    }
    // A member of `default` uses what is there, and does not change it.
    assert!(ada.job_submit(&asking("default", "hf-token"), None).await.is_ok());
    assert!(ada.secret_delete("default", "hf-token").await.is_err());
    set(&ada, "ada", "mine", VALUE).await;
    assert!(ada.job_submit(&asking("ada", "mine"), None).await.is_ok());

    // With her account goes her workspace, and what was secret there.
    admin.account_delete(&"ada".parse().unwrap(), true).await.unwrap();
    let gone = admin.secrets_list("ada").await.unwrap_err().to_string();
    assert!(gone.contains("workspace `ada` not found"), "{gone}");
}

#[tokio::test]
async fn a_secret_that_is_gone_fails_the_start_with_its_name() {
    let server = server_with_secrets().await;
    let node = server.client().nodes_list().await.unwrap().items[0].node.name.0.clone();
    server.client().node_cordon(&node, "so that it waits").await.unwrap();
    let id = server.submit(&with_secrets("true")).await;
    server.client().secret_delete("default", "netrc").await.unwrap();
    server.client().node_uncordon(&node).await.unwrap();
    let ended = server.wait_for_end(id).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Failed));
    assert!(ended.reason.to_string().contains("has no secret `netrc`"), "{:?}", ended.reason);
}

#[test]
fn the_command_line_takes_values_from_standard_input_only() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(TestServer::start(DANLU, &[]));
    let danlu = |arguments: &[&str], input: &str| {
        let mut command = Command::new(DANLU);
        command.arg("--data").arg(server.data()).args(arguments);
        for name in ["DANLU_SERVER", "DANLU_TOKEN", "DANLU_DATA"] {
            command.env_remove(name);
        }
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, out, err) =
        danlu(&["secrets", "set", "hf-token", "--workspace", "default"], &format!("{VALUE}\n"));
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    let (_, out, _) = danlu(&["secrets", "list", "--workspace", "default"], "");
    assert!(out.contains("hf-token") && !out.contains(VALUE), "{out}");
    let (_, out, err) =
        danlu(&["run", "--set", "secrets.HF_TOKEN=hf-token", "--", "sh", "-c", "echo ${#HF_TOKEN}"], "");
    assert_eq!(out, "23\n", "without the line feed that `echo` adds: {err}");
    assert_ne!(
        danlu(&["secrets", "set", "x", VALUE], "").0,
        Some(0),
        "nobody types a secret into a command line"
    );
    assert_eq!(danlu(&["secrets", "delete", "hf-token", "-w", "default"], "").0, Some(0));
    assert_ne!(danlu(&["secrets", "delete", "hf-token", "-w", "default"], "").0, Some(0));
}
