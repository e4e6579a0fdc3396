//! Batch scripts that are run twice on one cluster, by Slurm's own `sbatch` and `srun` and by Danlu: what they print is the same,
//! but for what submission has named.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod cases;
mod options;

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use danlu_testkit::{SlurmRig, TestServer, eventually};
use danlu_types::JobId;
use danlu_types::api::JobView;

use self::cases::{CASES, Case, Same};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

/// `tell WORD...` says which task one is, and how many devices one sees.
const TELL: &str = r#"#!/bin/sh
gpus=$(printf '%s' "${CUDA_VISIBLE_DEVICES-}" | tr , '\n' | grep -c .)
echo "$*: task $SLURM_PROCID of $SLURM_NTASKS, local $SLURM_LOCALID, node $SLURM_NODEID of $SLURM_NNODES, gpus $gpus"
"#;

struct Bench {
    folder: PathBuf,
}

impl Bench {
    /// Each case has a folder of its own for either side.
    fn new(folder: PathBuf) -> Self {
        let bin = folder.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("tell"), TELL).unwrap();
        std::fs::set_permissions(bin.join("tell"), PermissionsExt::from_mode(0o755)).unwrap();
        Bench { folder }
    }

    fn script(&self, case: &Case, side: &str) -> PathBuf {
        let folder = self.folder.join(side).join(case.name);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("job.sbatch");
        let bin = self.folder.join("bin");
        let body = case.body.trim_start_matches('\n');
        let header: String = case.header.lines().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "#SBATCH {}", line.trim());
            text
        });
        let text = format!("#!/bin/bash\n{header}PATH=$PATH:{}\n{body}\n", bin.display());
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// All lines in an order of their own: tasks write when they like.
fn sorted(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.into_iter().map(|line| line.trim_end().to_owned()).collect();
    lines.retain(|line| !line.is_empty());
    lines.sort_unstable();
    lines
}

fn submit_to_slurm(rig: &SlurmRig, script: &Path) -> String {
    let folder = script.parent().unwrap();
    let sbatch = Command::new("sbatch")
        .args(["--parsable", "--time=10", "--output=printed", "--error=said"])
        .arg(script)
        .current_dir(folder)
        .env("SLURM_CONF", rig.configuration())
        .output()
        .unwrap();
    assert!(sbatch.status.success(), "{}: {}", script.display(), String::from_utf8_lossy(&sbatch.stderr));
    String::from_utf8(sbatch.stdout).unwrap().trim().to_owned()
}

/// What it printed, and how it ended, once it has.
async fn ended_on_slurm(rig: &SlurmRig, script: &Path, id: &str) -> (Vec<String>, i32) {
    let shown = eventually(&format!("{} to end on Slurm", script.display()), || async {
        let shown = rig.ask("scontrol", &["--oneliner", "show", "job", id]);
        let is_over = !["RUNNING", "PENDING", "COMPLETING"]
            .iter()
            .any(|state| shown.contains(&format!("JobState={state}")));
        is_over.then_some(shown)
    })
    .await;
    let code = shown.split("ExitCode=").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
    let printed = std::fs::read_to_string(script.with_file_name("printed")).unwrap();
    (sorted(printed.lines().map(str::to_owned)), code)
}

fn danlu(server: &TestServer, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(DANLU);
    command.arg("--data").arg(server.data()).args(arguments).current_dir(folder);
    command.output().unwrap()
}

async fn printed_by_danlu(server: &TestServer, job: &JobView) -> Vec<String> {
    let lines = server.lines(job.id).await;
    let program = lines.into_iter().filter(|line| line.stream == danlu_types::api::LogStream::Stdout);
    sorted(program.map(|line| line.text))
}

pub(crate) async fn start(rig: &SlurmRig) -> TestServer {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let settings = folder.path().join("slurm.yaml");
    std::fs::write(&settings, format!("configuration: {}\npoll: 200ms\n", rig.configuration().display()))
        .unwrap();
    let settings = settings.to_str().unwrap().to_owned();
    TestServer::start_in(DANLU, &["--engine", "slurm", "--slurm", &settings], folder, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_do_what_they_do_under_slurm_or_say_what_they_will_not() {
    let Some(rig) = SlurmRig::start() else { return };
    // A label by which a job is sent there.
    rig.ask("scontrol", &["update", "NodeName=n4", "AvailableFeatures=alone", "ActiveFeatures=alone"]);
    let server = start(&rig).await;
    let bench = Bench::new(server.folder().join("scripts"));
    let only = std::env::var("DANLU_ONLY_SCRIPT").ok();
    let cases: Vec<&Case> =
        CASES.iter().filter(|case| only.as_deref().is_none_or(|only| case.name == only)).collect();
    let mut under_slurm = Vec::new();
    for case in &cases {
        let script = bench.script(case, "slurm");
        under_slurm.push((submit_to_slurm(&rig, &script), script));
    }
    let mut of_slurm = Vec::new();
    for (id, script) in &under_slurm {
        of_slurm.push(ended_on_slurm(&rig, script, id).await);
    }
    let mut under_danlu = Vec::new();
    for case in &cases {
        let script = bench.script(case, "danlu");
        let place: &[&str] = if case.on_one_node { &["--set", "nodes.labels.alone=true"] } else { &[] };
        let words = [&["submit", script.to_str().unwrap()], place].concat();
        let submitted = danlu(&server, script.parent().unwrap(), &words);
        let (out, told) =
            (String::from_utf8(submitted.stdout).unwrap(), String::from_utf8(submitted.stderr).unwrap());
        assert!(submitted.status.success(), "{}: {told}", case.name);
        let id: JobId =
            out.split(|letter: char| !letter.is_ascii_digit()).find_map(|word| word.parse().ok()).unwrap();
        under_danlu.push((id, told));
    }
    let mut wrong = String::new();
    for ((case, (id, told)), (lines, code)) in cases.iter().zip(under_danlu).zip(of_slurm) {
        let job = server.wait_for_end(id).await;
        let ours = printed_by_danlu(&server, &job).await;
        if case.on_one_node {
            let workers = &job.attempts.last().unwrap().workers;
            let nodes: Vec<&str> = workers.iter().map(|worker| worker.node.0.as_str()).collect();
            assert_eq!(nodes, ["n4", "n4"], "{}", case.name);
        }
        let own_code = job.exit_code.unwrap_or(-1);
        let is_same = ours == lines && own_code == code;
        let is_as_said = match case.same {
            Same::Yes => is_same,
            Same::But { named, prints } => {
                told.contains(named) && sorted(prints.trim().lines().map(str::to_owned)) == ours
            }
        };
        if !is_as_said {
            let said = std::fs::read_to_string(bench.folder.join("slurm").join(case.name).join("said"));
            let all = server.texts(id).await.join("\n  ");
            let _ = writeln!(
                wrong,
                "--- {}\nSlurm, code {code}:\n  {}\n{}\nDanlu, code {own_code}, {:?}:\n  {}\nall of it:\n  {all}\nsubmission said:\n{told}",
                case.name,
                lines.join("\n  "),
                said.unwrap_or_default(),
                job.reason.to_string(),
                ours.join("\n  "),
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
