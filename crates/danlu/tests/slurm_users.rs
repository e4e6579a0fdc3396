//! Jobs that their owners submit to Slurm: on a cluster whose machines have two more users than this one.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use danlu_client::Client;
use danlu_testkit::{Relay, SlurmRig, TestServer, eventually, spec};
use danlu_types::api::{JobOutcome, JobState, NewAccount, SignIn, StopRequest};
use danlu_types::{JobId, JobSpec};
use tempfile::TempDir;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const PASSWORD: &str = "correct horse battery";
const ADA: u32 = 1_900_000_000;
const BOB: u32 = 1_900_000_001;
/// Whom a server runs as that is not root.
const SERVER: u32 = 1_900_000_002;
/// Set where those users are.
const INSIDE: &str = "DANLU_TEST_HAS_USERS";

/// A file to mount over may be missing, or be on a disk that cannot be written.
const MOUNT: &str = "for file in passwd sudoers; do
    [ -e /etc/$file ] || touch /etc/$file
    mount --bind $0/$file /etc/$file
  done; exec \"$@\"";

/// Runs a test of this program once more where `/etc/passwd` has these users; true where this is that run.
fn is_where_users_are(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if !nix::unistd::geteuid().is_root() {
        danlu_testkit::skip("jobs run as other users only where the tests run as root");
        return false;
    }
    let folder = tempfile::tempdir().unwrap();
    let users = [("ada", ADA), ("bob", BOB), ("server", SERVER)];
    // Whoever has such a name on this machine is somebody else.
    let is_another = |line: &&str| users.iter().all(|(name, _)| line.split(':').next() != Some(name));
    let known = fs::read_to_string("/etc/passwd").unwrap();
    let known: Vec<&str> = known.lines().filter(is_another).collect();
    let mut known = known.join("\n") + "\n";
    for (name, uid) in users {
        writeln!(known, "{name}:*:{uid}:{uid}::/tmp:/bin/sh").unwrap();
    }
    fs::write(folder.path().join("passwd"), known).unwrap();
    // As the guide has it, with users in place of a group. `sudo` reads no file that others may write.
    let programs = "/usr/bin/sbatch, /usr/bin/scancel, /usr/bin/squeue, /usr/bin/srun";
    let sudoers = format!("server ALL=(ada,bob) NOPASSWD:SETENV: {programs}\n");
    let file = folder.path().join("sudoers");
    fs::write(&file, sudoers).unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o440)).unwrap();
    let status = Command::new("unshare")
        .args(["--mount", "sh", "-ec", MOUNT])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "`{test}` failed where the users are: see above");
    false
}

/// Where nodes see nothing of it: their users have the program from the server.
fn folder(rig: &SlurmRig) -> TempDir {
    tempfile::Builder::new().prefix("danlu-test-").tempdir_in(rig.hidden()).unwrap()
}

async fn start(rig: &SlurmRig, relay: &Relay, program: &str, folder: TempDir) -> TestServer {
    let settings = folder.path().join("slurm.yaml");
    let text = format!(
        "configuration: {}\npoll: 200ms\nshared: false\nserver: {}\nwork: {}\n",
        rig.configuration().display(),
        relay.address(),
        rig.of_node().join("danlu").display(),
    );
    fs::write(&settings, text).unwrap();
    let settings = settings.to_str().unwrap().to_owned();
    let flags = ["--engine", "slurm", "--slurm", &settings, "--unix-users", "same-name"];
    let server = TestServer::start_in(program, &flags, folder, &[]).await;
    relay.lead_to(&server.client().address());
    server
}

async fn person(server: &TestServer, relay: &Relay, name: &str) -> Client {
    let new = NewAccount {
        name: name.parse().unwrap(),
        display_name: None,
        email: None,
        password: Some(PASSWORD.to_owned()),
    };
    server.client().account_create(&new).await.unwrap();
    let (name, password) = (Some(name.to_owned()), Some(PASSWORD.to_owned()));
    let sign_in = SignIn { name, password, ..SignIn::default() };
    // Which leads to the server that comes later, too.
    Client::new(relay.address(), &server.client().sign_in(&sign_in).await.unwrap())
}

async fn submit(person: &Client, job: &JobSpec) -> JobId {
    person.job_submit(job, None).await.unwrap().id
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_submits_their_own_jobs() {
    if !is_where_users_are("everybody_submits_their_own_jobs") {
        return;
    }
    let Some(rig) = SlurmRig::apart() else { return };
    let relay = Relay::start().await;
    let mut server = start(rig, &relay, DANLU, folder(rig)).await;
    let (ada, bob) = (person(&server, &relay, "ada").await, person(&server, &relay, "bob").await);
    let command = "echo $(id -u) $USER; touch \"$DANLU_OUTPUT_DIR/mine\"; \
                   until [ -e \"$DANLU_OUTPUT_DIR/go\" ] || [ $DANLU_JOB_ID != 1 ]; do sleep 0.05; done";
    let first = submit(&ada, &spec(command)).await;
    server.wait_for(first, JobState::Running).await;
    let listed = rig.ask("squeue", &["--noheader", "--format=%u %T"]);
    assert_eq!(listed.trim(), "ada RUNNING", "and root has none");

    // A server that comes later finds jobs that are not its own user's.
    server.kill();
    server.restart().await;
    relay.lead_to(&server.client().address());
    let second = submit(&bob, &JobSpec { workers: 2, ..spec(command) }).await;
    let ended = server.wait_for_end(second).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
    let lines: Vec<String> =
        server.texts(second).await.into_iter().filter(|it| it.ends_with(" bob")).collect();
    assert_eq!(lines, [format!("{BOB} bob"), format!("{BOB} bob")]);

    ada.job_stop(first, &StopRequest::default()).await.unwrap();
    assert_eq!(server.wait_for_end(first).await.outcome, Some(JobOutcome::Stopped));
    assert!(server.texts(first).await.contains(&format!("{ADA} ada")));
    assert!(server.data().join(format!("runs/{first}/output/mine")).exists());
    let foreign = ["--parsable", "--nodes=4", "--exclusive", "--output=/dev/null", "--wrap=sleep 600"];
    let foreign = rig.ask("sbatch", &foreign);
    // One that waits in Slurm is taken back by whoever submitted it.
    let third = submit(&bob, &spec("true")).await;
    let queue = || rig.ask("squeue", &["--noheader", "--format=%u %T"]);
    eventually("the job to wait in Slurm", || async { queue().contains("bob PENDING").then_some(()) }).await;
    bob.job_stop(third, &StopRequest::default()).await.unwrap();
    assert_eq!(server.wait_for_end(third).await.outcome, Some(JobOutcome::Stopped));
    eventually("Slurm to forget it", || async { (!queue().contains("bob")).then_some(()) }).await;
    rig.ask("scancel", &[foreign.trim()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_root_has_leave_of_sudo() {
    if !Path::new("/usr/bin/sudo").exists() {
        return danlu_testkit::skip("sudo is not installed (Debian: `apt-get install sudo`)");
    }
    if !is_where_users_are("a_server_that_is_not_root_has_leave_of_sudo") {
        return;
    }
    let Some(rig) = SlurmRig::apart() else { return };
    let (relay, folder) = (Relay::start().await, folder(rig));
    // The binary may lie where only root comes.
    let binary = folder.path().join("binary");
    fs::copy(DANLU, &binary).unwrap();
    let program = folder.path().join("danlu");
    let become_it =
        format!("exec setpriv --reuid={SERVER} --regid={SERVER} --clear-groups {}", binary.display());
    fs::write(&program, format!("#!/bin/sh\n{become_it} \"$@\"\n")).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    chown(folder.path(), Some(SERVER), Some(SERVER)).unwrap();
    let program = program.display().to_string();
    let server = start(rig, &relay, &program, folder).await;
    let ada = person(&server, &relay, "ada").await;
    let id = submit(&ada, &spec("id -u; sleep 600")).await;
    server.wait_for(id, JobState::Running).await;
    assert_eq!(rig.ask("squeue", &["--noheader", "--format=%u %T"]).trim(), "ada RUNNING");
    ada.job_stop(id, &StopRequest::default()).await.unwrap();
    assert_eq!(server.wait_for_end(id).await.outcome, Some(JobOutcome::Stopped), "{}", server.log());
    assert!(server.texts(id).await.contains(&ADA.to_string()));
}
