//! The guide's blocks, run as they are written: what stands between its fences is taken from `docs/guide/slurm.md` when the test
//! runs, and a block that no test knows is a failure. Only this differs from what a reader types: `/shared` is a folder of the test's,
//! the binary is the one that was built, and the server takes a free port.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use danlu_testkit::{Relay, SlurmRig, eventually, processes_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const GUIDE: &str = include_str!("../../../docs/guide/slurm.md");

/// What stands between fences: its language, and its lines without what they are indented by.
fn blocks() -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut open: Option<usize> = None;
    for line in GUIDE.lines() {
        let bare = line.trim_start();
        match (open, bare.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(line.len() - bare.len());
                blocks.push((language.to_owned(), String::new()));
            }
            (Some(_), Some(_)) => open = None,
            (Some(indent), None) => {
                let text = &mut blocks.last_mut().unwrap().1;
                text.push_str(line.get(indent..).unwrap_or_default());
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// The only block that holds these words.
fn block(words: &str) -> String {
    let mut found = blocks().into_iter().filter(|(_, text)| text.contains(words));
    let (_, text) = found.next().unwrap_or_else(|| panic!("the guide has no block with `{words}`"));
    assert!(found.next().is_none(), "the guide has several blocks with `{words}`");
    text
}

/// What a reader types: the lines after `$`.
fn typed(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect()
}

struct Reader<'a> {
    rig: &'a SlurmRig,
    home: tempfile::TempDir,
    servers: Vec<Child>,
}

impl<'a> Reader<'a> {
    fn new(rig: &'a SlurmRig) -> Self {
        let home = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
        std::fs::create_dir_all(home.path().join("shared/bin")).unwrap();
        // A machine has some `python`; which one is no matter here.
        let python = "#!/bin/sh\necho \"$1: rank $RANK of $WORLD_SIZE, arguments $*\"\n";
        let path = home.path().join("shared/bin/python");
        std::fs::write(&path, python).unwrap();
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(home.path().join("train.py"), "print('trained')\n").unwrap();
        Reader { rig, home, servers: Vec::new() }
    }

    fn here(&self, text: &str) -> String {
        let shared = self.home.path().join("shared");
        text.replace("target/release/danlu", DANLU)
            .replace("/shared", shared.to_str().unwrap())
            .replace("danlu up ", "danlu up --listen 127.0.0.1:0 ")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let bin = self.home.path().join("shared/bin");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        command.current_dir(self.home.path()).stdin(Stdio::null());
        command.env("SLURM_CONF", self.rig.configuration()).env("PATH", path);
        command.env("DANLU_DATA", self.home.path().join("shared/danlu"));
        command
    }

    /// All lines pasted at once, into one shell that gives up at the first that fails.
    fn paste(&self, lines: &[String]) -> Output {
        // Without what `command` would set: the lines must say it themselves.
        let mut shell = Command::new("bash");
        shell.current_dir(self.home.path()).stdin(Stdio::null()).env("SLURM_CONF", self.rig.configuration());
        shell.env_remove("DANLU_DATA").env_remove("DANLU_SERVER").env("HOME", self.home.path());
        // The server in its background would hold what is read here.
        shell.args(["-e", "-c", &format!("trap 'kill %1' EXIT\n{}\n", self.here(&lines.join("\n")))]);
        shell.output().unwrap()
    }

    fn danlu(&self, arguments: &[&str]) -> Output {
        self.command(DANLU).args(arguments).output().unwrap()
    }

    /// `danlu up` with these settings, and how it is called.
    async fn serve(&mut self, settings: &str) -> String {
        let file = self.home.path().join("settings.yaml");
        std::fs::write(&file, settings).unwrap();
        let mut up = self.command(DANLU);
        up.args(["up", "--listen", "127.0.0.1:0", "--engine", "slurm", "--slurm", file.to_str().unwrap()]);
        let log = self.home.path().join("server.log");
        up.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        self.servers.push(up.spawn().unwrap());
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        let what = "the server to serve";
        eventually(what, || async {
            let running = self.danlu(&["nodes"]).status.success();
            running.then_some(())
        })
        .await;
        let text = said();
        text.split_once("serving on ").unwrap().1.split_whitespace().next().unwrap().to_owned()
    }

    fn stop(&mut self) {
        for mut server in self.servers.drain(..) {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.stop();
        for pid in processes_of(self.home.path()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_block_of_the_guide_is_run_by_a_test() {
    let known = [
        "mkdir -p /shared/bin",
        "partition: train",
        "danlu submit train.sbatch",
        "danlu adopt",
        "shared: false",
        "NOPASSWD",
    ];
    for (language, text) in blocks() {
        let is_known = known.iter().any(|words| text.contains(words));
        assert!(is_known, "nothing runs this block ({language}):\n{text}");
    }
    for words in known {
        block(words);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_cluster_to_the_first_job_and_on_to_batch_scripts() {
    let Some(rig) = SlurmRig::start() else { return };
    let reader = Reader::new(&rig);
    let script = "#!/bin/bash\n#SBATCH --nodes=2 --gres=gpu:8\nsrun python train.py \"$@\"\n";
    std::fs::write(reader.home.path().join("train.sbatch"), script).unwrap();
    let mut lines = typed(&block("mkdir -p /shared/bin"));
    lines.extend(typed(&block("danlu submit train.sbatch")));
    let pasted = reader.paste(&lines);
    let (out, said) = (text(&pasted.stdout), text(&pasted.stderr));
    assert!(pasted.status.success(), "{out}\n{said}");
    for rank in 0..16 {
        assert!(out.contains(&format!("rank {rank} of 16")), "{out}\n{said}");
    }
    for node in SlurmRig::nodes() {
        assert!(out.contains(&node), "{out}\n{said}");
    }
    assert!(out.contains("arguments train.py --epochs 3"), "{out}\n{said}");

    // What the guide says lies where, of the first job.
    let rows = GUIDE.split_once("## What is written where").unwrap().1;
    let rows = rows.split_once("\n## ").unwrap().0;
    let cells =
        rows.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" |")).map(|(cell, _)| cell);
    let mut folder = PathBuf::new();
    let mut seen = 0;
    for name in cells.flat_map(|cell| cell.split("`, `").collect::<Vec<_>>()) {
        let name =
            name.trim_matches('`').replace("<job>", "1").replace("<attempt>", "1").replace("<worker>", "0");
        let path = match name.strip_prefix("…/") {
            Some(rest) => folder.join(rest),
            None => reader.home.path().join("shared/danlu").join(&name),
        };
        folder = path.parent().unwrap().to_owned();
        // Of GPUs Slurm says in the environment which they are.
        let is_asked_for = !name.ends_with("granted");
        assert!(path.exists() || !is_asked_for, "{} is not there", path.display());
        seen += 1;
    }
    assert!(seen >= 6, "{rows}");
    let queued = text(
        &reader
            .command("squeue")
            .args(["--states=all", "--noheader", "--format=%i %k"])
            .output()
            .unwrap()
            .stdout,
    );
    assert!(
        queued.contains("job 1")
            || queued.contains("job=1")
            || queued.lines().any(|line| line.contains(" 1 ")),
        "{queued}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_taken_as_they_are_printed() {
    let Some(rig) = SlurmRig::start() else { return };
    rig.ask("scontrol", &["create", "PartitionName=train", "Nodes=n[1-4]", "State=UP"]);
    let night = [
        "create",
        "reservation",
        "ReservationName=night",
        "StartTime=now",
        "Duration=600",
        "Users=root",
        "Nodes=n1,n2",
    ];
    rig.ask("scontrol", &night);
    let mut reader = Reader::new(&rig);
    let slurms = reader.home.path().join("slurm/bin");
    std::fs::create_dir_all(&slurms).unwrap();
    for program in ["sbatch", "squeue", "scancel", "scontrol", "srun", "sinfo", "sacct"] {
        if Path::new("/usr/bin").join(program).exists() {
            std::os::unix::fs::symlink(Path::new("/usr/bin").join(program), slurms.join(program)).unwrap();
        }
    }
    std::fs::copy(DANLU, reader.home.path().join("shared/bin/danlu")).unwrap();
    let settings = reader.here(&block("partition: train"));
    let settings = settings.replace("/opt/slurm/bin", slurms.to_str().unwrap());
    let settings = settings.replace("/etc/slurm/slurm.conf", rig.configuration().to_str().unwrap());
    reader.serve(&settings).await;
    let ran = reader.danlu(&[
        "run",
        "--devices",
        "nvidia:8",
        "--workspace",
        "default",
        "--",
        "sh",
        "-c",
        "echo on $SLURM_JOB_PARTITION",
    ]);
    let (out, said) = (text(&ran.stdout), text(&ran.stderr));
    assert!(ran.status.success() && out.contains("on train"), "{out}\n{said}");
    let nodes = text(&reader.danlu(&["nodes"]).stdout);
    assert!(nodes.contains("Ascend") || nodes.contains("910B3"), "{nodes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_without_a_shared_disk_are_taken_as_they_are_printed() {
    let Some(rig) = SlurmRig::start() else { return };
    let mut reader = Reader::new(&rig);
    let relay = Relay::start().await;
    let program = reader.home.path().join("opt/danlu");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::copy(DANLU, &program).unwrap();
    let work = reader.home.path().join("work");
    let settings = block("shared: false").replace("https://head.lab.example:8765", relay.address());
    let settings = settings.replace("/var/tmp/danlu", work.to_str().unwrap());
    let settings = settings.replace("/opt/danlu/bin/danlu", program.to_str().unwrap());
    let address = reader.serve(&settings).await;
    relay.lead_to(&address);
    let ran = reader.danlu(&["run", "--", "echo", "carried"]);
    let (out, said) = (text(&ran.stdout), text(&ran.stderr));
    assert!(ran.status.success() && out.contains("carried"), "{out}\n{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_others_are_listed_under_the_columns_that_are_printed() {
    let Some(rig) = SlurmRig::start() else { return };
    let mut reader = Reader::new(&rig);
    let printed = block("danlu adopt");
    let header = printed.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>();
    reader.serve("poll: 1s\n").await;
    let foreign = [
        "--parsable",
        "--nodelist=n1",
        "--gres=gpu:6",
        "--cpus-per-task=12",
        "--mem=64G",
        "--job-name=train it",
        "--time=200",
        "--output=/dev/null",
        "--wrap=sleep 600",
    ];
    let job = rig.ask("sbatch", &foreign);
    let listed = eventually("the foreign job to be seen", || async {
        let listed = text(&reader.danlu(&["adopt"]).stdout);
        listed.contains("train it").then_some(listed)
    })
    .await;
    let mut lines = listed.lines();
    assert_eq!(lines.next().unwrap().split_whitespace().collect::<Vec<_>>(), header, "{listed}");
    let row = lines.next().unwrap();
    for word in [job.trim(), "n1", "0-5", "12", "64 GiB", "at most"] {
        assert!(row.contains(word), "no `{word}`: {listed}");
    }
}

#[test]
fn the_rule_for_sudo_is_one() {
    let rule = block("NOPASSWD");
    if !Path::new("/usr/sbin/visudo").exists() {
        danlu_testkit::skip("sudo is not installed (Debian: `apt-get install sudo`)");
        return;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), rule).unwrap();
    let checked = Command::new("/usr/sbin/visudo").arg("-cf").arg(file.path()).output().unwrap();
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}
