//! Mistakes that people make on their first days, and what each is answered with: what was wrong, where, and what to write.

#![expect(clippy::unwrap_used, reason = "a panic is how a test says no, in its helpers too")]

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use danlu_testkit::{TestServer, spec};
use danlu_types::JobSpec;
use danlu_types::api::JobState;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

/// What a person types in a shell, and all that is said, without what differs from run to run.
struct Desk {
    server: TestServer,
    said: String,
}

impl Desk {
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.server.folder().join(name), text).unwrap();
    }

    async fn type_in(&mut self, line: &str) {
        let programs = Path::new(DANLU).parent().unwrap().display().to_string();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.server.folder()).stdin(Stdio::null()).env("PATH", path);
        for name in
            ["DANLU_SERVER", "DANLU_TOKEN", "DANLU_PROFILE", "VIRTUAL_ENV", "CONDA_PREFIX", "RUST_LOG"]
        {
            shell.env_remove(name);
        }
        shell
            .env("DANLU_DATA", self.server.data())
            .env("XDG_CONFIG_HOME", self.server.folder().join("config"));
        let done = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let all = format!("{}{}", text(&done.stdout), text(&done.stderr));
        let all = all.replace(&self.server.folder().display().to_string(), "[FOLDER]");
        let all = all.replace(&self.server.client().address(), "[SERVER]");
        let code = done.status.code().unwrap();
        writeln!(self.said, "$ {line}   [{code}]").unwrap();
        for line in all.lines() {
            writeln!(self.said, "{}", format!("    {line}").trim_end()).unwrap();
        }
    }

    /// A job file with this line beside its command.
    async fn file_with(&mut self, line: &str) {
        self.write("job.yaml", &format!("command: python3 x.py\n{line}\n"));
        writeln!(self.said, "# job.yaml with `{line}`").unwrap();
        self.type_in("danlu submit --dry-run job.yaml").await;
    }

    fn told(&mut self) -> String {
        std::mem::take(&mut self.said)
    }
}

async fn desk() -> Desk {
    let flags = ["--simulate", "2x8:ascend:910A,1x8:ascend:910B3,1x8:nvidia:A100"];
    Desk { server: TestServer::start(DANLU, &flags).await, said: String::new() }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_job_files_are_answered_with_what_to_write() {
    let mut desk = desk().await;
    for line in [
        "comand: x",
        "memory: 64GB",
        "memory: 64",
        "max_time: 24",
        "max_time: '01:30:00'",
        "devices: { kind: ascend, model: 910C, count: 1 }",
        "devices: { kind: ascend, count: 16 }",
        "devices: { kind: ascend, model: 910A, count: 3 }",
        "workers: 3\ndevices: { kind: ascend, model: 910A, count: 8 }",
        "name: my job!",
        "priority: 99",
        "workers: 0",
        "devices: 8",
        "retry: 3",
        "framework: torch",
        "devices: { kind: Ascend, count: 1 }",
        "devices: { kind: nvidia, count: 1.5 }",
        "memory: 9Ti",
        "cpus: 500",
        "code: ./nowhere",
        "workspace: nowhere",
        "image: tf:1.15",
    ] {
        desk.file_with(line).await;
    }
    insta::assert_snapshot!(desk.told());

    for (name, text) in [
        ("list.yaml", "command: [python3, x.py]\n"),
        ("deep.yaml", "name: a\n  command: x\n"),
        ("tabs.yaml", "name: a\ndevices:\n\tkind: nvidia\n\tcount: 1\ncommand: x\n"),
        ("empty.yaml", ""),
        ("nothing.yaml", "name: a\n"),
        ("job.params", "name=a\nkind=PyTorchJob\nworker_count=1\nworker_memory=4\n"),
        ("modelarts_config.py", "import os\nconfig = {'a': 1}\n"),
        ("sky.yaml", "resources:\n  accelerators: A100:8\nrun: python x.py\n"),
    ] {
        desk.write(name, text);
        desk.type_in(&format!("danlu submit --dry-run {name}")).await;
    }
    insta::assert_snapshot!("whole_files", desk.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_on_the_command_line_are_answered_with_what_to_write() {
    let mut desk = desk().await;
    for line in [
        "danlu submit --dry-run --devices gpu:1 -- true",
        "danlu submit --dry-run --devices npu:8 -- true",
        "danlu submit --devices nvidia:1.5 -- true",
        "danlu submit --devices ascend:910C:1 -- true",
        "danlu submit no-such-file.yaml",
        "danlu submit",
        "danlu run python3 train.py",
        "danlu submit --set workerz=3 -- true",
        "danlu jobs --state runing",
        "danlu sumbit job.yaml",
        "danlu show 4711",
        "danlu show seven",
    ] {
        desk.type_in(line).await;
    }
    insta::assert_snapshot!(desk.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_to_a_job_says_what_can() {
    let mut desk = desk().await;
    let running = desk.server.submit(&JobSpec { name: "busy".into(), ..spec("sleep 600") }).await;
    desk.server.wait_for(running, JobState::Running).await;
    let held =
        desk.server.submit(&JobSpec { devices: "nvidia:8".parse().unwrap(), ..spec("sleep 600") }).await;
    desk.server.wait_for(held, JobState::Running).await;
    let queued = desk.server.submit(&JobSpec { devices: "nvidia:8".parse().unwrap(), ..spec("true") }).await;
    assert_eq!((running.0, held.0, queued.0), (1, 2, 3));
    for line in [
        "danlu logs 3",
        "danlu exec 3 -- id",
        "danlu delete 1",
        "danlu hold 1",
        "danlu release 3",
        "danlu logs 1 --rank 7",
        "danlu logs 1 --attempt 9",
        "danlu exec 1 --worker 5 -- id",
        "danlu change 1 --set workers=2",
        "danlu approve 3",
        "danlu stop 3",
        "danlu stop 3",
        "danlu delete 4711",
    ] {
        desk.type_in(line).await;
    }
    let away = JobSpec { working_directory: Some("/home/me/on-my-laptop".to_owned()), ..spec("true") };
    let away = desk.server.run(&away).await.id;
    desk.type_in(&format!("danlu show {away} | grep state")).await;
    insta::assert_snapshot!(desk.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_start_says_why() {
    let mut desk = desk().await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for line in [
        "danlu up --listen 127.0.0.1:0".to_owned(),
        format!("danlu up --data other --listen 127.0.0.1:{port}"),
        "danlu up --data other --listen 0.0.0.0:0".to_owned(),
        "danlu up --data other --listen 127.0.0.1:0 --simulate 8:ascend".to_owned(),
        "danlu up --data other --listen here".to_owned(),
    ] {
        desk.type_in(&line).await;
    }
    let told = desk.told().replace(&port.to_string(), "[PORT]");
    // Remarks on this machine, and times.
    let lines = told.lines().filter(|line| !line.contains(" INFO ") && !line.contains(" WARN "));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}
