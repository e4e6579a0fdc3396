//! Jobs that run as users of their own: what one account's programs can reach of another's. Needs root; where the tests do
//! not run as root they say so and do nothing.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use danlu_client::Client;
use danlu_testkit::{TestServer, eventually, spec};
use danlu_types::account::Standing;
use danlu_types::api::{
    AccountChange, AuditQuery, JobOutcome, JobState, NewAccount, NewRegistration, NewSecret, SignIn,
};
use danlu_types::session::{FrameKind, OpenSession, TerminalSize};
use danlu_types::{Framework, JobId, JobSpec, SecretForm, SecretUse, Span, WorkerIndex};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const PASSWORD: &str = "correct horse battery";
const FIRST: u32 = 1_900_000_000;

/// In a folder that others can pass through.
async fn server(flags: &[&str]) -> Option<TestServer> {
    if !nix::unistd::geteuid().is_root() {
        danlu_testkit::skip("jobs run as other users only where the tests run as root");
        return None;
    }
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o711)).unwrap();
    let range = format!("{FIRST}-{}", FIRST + 10);
    let flags = [&["--unix-users", &range], flags].concat();
    Some(TestServer::start_in(DANLU, &flags, folder, &[("SSH_AUTH_SOCK", "/root/agent")]).await)
}

/// A client of an account that is made for it.
async fn person(server: &TestServer, name: &str) -> Client {
    let admin = server.client();
    let new = NewAccount {
        name: name.parse().unwrap(),
        display_name: None,
        email: None,
        password: Some(PASSWORD.to_owned()),
    };
    admin.account_create(&new).await.unwrap();
    sign_in(server, name).await
}

async fn sign_in(server: &TestServer, name: &str) -> Client {
    let sign_in =
        SignIn { name: Some(name.to_owned()), password: Some(PASSWORD.to_owned()), ..SignIn::default() };
    Client::new(&server.client().address(), &server.client().sign_in(&sign_in).await.unwrap())
}

async fn submit(person: &Client, spec: &JobSpec) -> JobId {
    person.job_submit(spec, None).await.unwrap().id
}

/// What a job of this person prints, which must succeed.
async fn output(server: &TestServer, person: &Client, spec: &JobSpec) -> Vec<String> {
    let id = submit(person, spec).await;
    let ended = server.wait_for_end(id).await;
    let lines = server.texts(id).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?} {lines:?} {}", ended.reason, server.log());
    lines
}

async fn said(server: &TestServer, id: JobId, line: &str) {
    eventually(line, || async { server.texts(id).await.iter().any(|text| text == line).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_accounts_jobs_run_as_a_user_of_their_own() {
    let Some(mut server) = server(&[]).await else { return };
    let (ada, bob) = (person(&server, "ada").await, person(&server, "bob").await);
    let who = "echo $(id -u) $(id -g) $(id -G) $USER $LOGNAME; umask; pwd -P; echo ${SSH_AUTH_SOCK-none}; \
               grep NoNewPrivs /proc/self/status; cd ~ && stat -c '%u %a %n' . && pwd; echo to stderr > /dev/stderr";
    let lines = output(&server, &ada, &spec(who)).await;
    let (data, text) = (server.data().display().to_string(), lines.join("\n"));
    let text = text.replace(&data, "DATA").replace(&FIRST.to_string(), "FIRST");
    insta::assert_snapshot!(text, @r"
    FIRST FIRST FIRST ada ada
    0022
    DATA/runs/1/1.0/work
    none
    NoNewPrivs:	1
    FIRST 700 .
    DATA/homes/ada
    to stderr
    ");
    let uid = |lines: &[String]| lines[0].split(' ').next().unwrap().parse::<u32>().unwrap();
    let hers = uid(&lines);
    let his = uid(&output(&server, &bob, &spec("id -u")).await);
    assert!(hers != his && [hers, his].iter().all(|uid| (FIRST..=FIRST + 10).contains(uid)), "{hers} {his}");
    server.kill();
    server.restart().await;
    let bob = sign_in(&server, "bob").await;
    assert_eq!(uid(&output(&server, &bob, &spec("id -u")).await), his, "a number is kept");
}

/// Says of each attempt whether it was allowed.
const TRY: &str = "try() { what=$1; shift; if ( \"$@\" ) >/dev/null 2>&1; then echo \"$what: allowed\"; \
                   else echo \"$what: refused\"; fi; }\n";

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reaches_what_belongs_to_anothers_job() {
    let Some(server) = server(&[]).await else { return };
    let (ada, bob) = (person(&server, "ada").await, person(&server, "bob").await);
    let work = "echo secret > ~/notes; echo 7 > ckpt/step; echo done > $DANLU_OUTPUT_DIR/result; echo mine > here; \
                echo x > $TMPDIR/scratch; echo pid $$; echo ready; exec sleep 1000";
    let mut hers = JobSpec {
        checkpoint: Some("ckpt".to_owned()),
        framework: Framework::Mpi,
        grace: Span::default(),
        ..spec(work)
    };
    hers.env.insert("PASSPHRASE".to_owned(), "swordfish".to_owned());
    let id = submit(&ada, &hers).await;
    said(&server, id, "ready").await;
    // Sessions can be opened from here on.
    server.wait_for(id, JobState::Running).await;
    let lines = server.texts(id).await;
    let pid: i32 = lines.iter().find_map(|line| line.strip_prefix("pid ")?.parse().ok()).unwrap();
    let data = server.data();
    let (job, run) = (data.join(format!("runs/{id}")), data.join(format!("runs/{id}/1.0")));
    let launcher = launcher_of(pid);
    let script = [
        TRY,
        &format!(
            "data={} job={} run={} pid={pid} launcher={launcher}\n",
            data.display(),
            job.display(),
            run.display()
        ),
        "try 'list the data folder' ls $data\n\
         try 'list all jobs' ls $data/runs\n\
         try 'list the homes' ls $data/homes\n\
         try 'list the code' ls $data/code\n\
         try 'read the server token' cat $data/token\n\
         try 'read the database' cat $data/danlu.db\n\
         try 'list the job folder' ls $job\n\
         try 'write into the job folder' touch $job/new\n\
         try 'list the run folder' ls $run\n\
         try 'write into the run folder' touch $run/new\n\
         try 'read the launch file' cat $run/launch.json\n\
         try 'read the status' cat $run/status.jsonl\n\
         try 'read the log' cat $run/rank-0.log\n\
         try 'order a stop' touch $run/stop.json\n\
         try 'open a session' test -w $run/session.sock\n\
         try 'read the hostfile' cat $run/hostfile\n\
         try 'enter the working directory' cd $run/work\n\
         try 'read the code' cat $run/work/here\n\
         try 'read temporary files' cat $run/tmp/scratch\n\
         try 'read the checkpoint' cat $job/checkpoint/step\n\
         try 'write the checkpoint' touch $job/checkpoint/new\n\
         try 'read the output' cat $job/output/result\n\
         try 'enter the home' cd $data/homes/ada\n\
         try 'read the home' cat $data/homes/ada/notes\n\
         try 'read the environment' grep -q swordfish /proc/$pid/environ\n\
         try 'read open files' ls /proc/$pid/fd\n\
         try 'signal the program' kill -0 $pid\n\
         try 'kill the launcher' kill -9 $launcher\n\
         try 'read the launcher environment' cat /proc/$launcher/environ\n\
         try 'import danlu' test -r $data/python/danlu.py\n",
    ]
    .concat();
    let his = output(&server, &bob, &spec(&script)).await;
    insta::assert_snapshot!(his.join("\n"), @r"
    list the data folder: refused
    list all jobs: refused
    list the homes: refused
    list the code: refused
    read the server token: refused
    read the database: refused
    list the job folder: refused
    write into the job folder: refused
    list the run folder: refused
    write into the run folder: refused
    read the launch file: refused
    read the status: refused
    read the log: refused
    order a stop: refused
    open a session: refused
    read the hostfile: refused
    enter the working directory: refused
    read the code: refused
    read temporary files: refused
    read the checkpoint: refused
    write the checkpoint: refused
    read the output: refused
    enter the home: refused
    read the home: refused
    read the environment: refused
    read open files: refused
    signal the program: refused
    kill the launcher: refused
    read the launcher environment: refused
    import danlu: allowed
    ");
    // The same script finds what is there, where it may: no wonder that refuses everything.
    let own = output(&server, &ada, &spec(&script)).await;
    insta::assert_snapshot!(own.join("\n"), @r"
    list the data folder: refused
    list all jobs: refused
    list the homes: refused
    list the code: refused
    read the server token: refused
    read the database: refused
    list the job folder: refused
    write into the job folder: refused
    list the run folder: refused
    write into the run folder: refused
    read the launch file: refused
    read the status: refused
    read the log: refused
    order a stop: refused
    open a session: refused
    read the hostfile: allowed
    enter the working directory: allowed
    read the code: allowed
    read temporary files: allowed
    read the checkpoint: allowed
    write the checkpoint: allowed
    read the output: allowed
    enter the home: allowed
    read the home: allowed
    read the environment: allowed
    read open files: allowed
    signal the program: allowed
    kill the launcher: refused
    read the launcher environment: refused
    import danlu: allowed
    ");
    server.wait_for(id, JobState::Running).await;
}

fn launcher_of(pid: i32) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_run_as_the_jobs_user_with_and_without_a_terminal() {
    let Some(server) = server(&[]).await else { return };
    let ada = person(&server, "ada").await;
    let id = submit(&ada, &JobSpec { grace: Span::default(), ..spec("sleep 1000") }).await;
    server.wait_for(id, JobState::Running).await;
    for terminal in [None, Some(TerminalSize { rows: 24, columns: 80 })] {
        let script = "id -u; test -t 0 && stat -c %u $(tty); echo again > /dev/stdout; echo $HOME";
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let open = OpenSession { command, terminal, env: vec![] };
        // The administrator's session, too.
        let (_sender, mut receiver) = server.client().session_open(id, WorkerIndex(0), &open).await.unwrap();
        let mut out = Vec::new();
        while let Some(frame) = receiver.next().await.unwrap() {
            match frame.kind {
                FrameKind::Stdout => out.extend(frame.payload),
                FrameKind::Exit => break,
                other => panic!("unexpected frame {other:?}: {}", String::from_utf8_lossy(&frame.payload)),
            }
        }
        let out = String::from_utf8(out).unwrap().replace('\r', "");
        let uid = out.lines().next().unwrap().to_owned();
        assert!(uid.parse::<u32>().unwrap() >= FIRST, "{out}");
        let tty = if terminal.is_some() { format!("{uid}\n") } else { String::new() };
        let home = server.data().join("homes/ada");
        assert_eq!(out, format!("{uid}\n{tty}again\n{}\n", home.display()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preempted_job_finds_its_checkpoint_again() {
    let Some(server) = server(&["--simulate", "2x2:nvidia:A100"]).await else { return };
    let ada = person(&server, "ada").await;
    let command = "if [ -n \"$DANLU_RESUME_DIR\" ]; then cat ckpt/step && echo 8 > ckpt/step && id -u; \
                   else echo 7 > ckpt/step; echo saved; sleep 1000; fi";
    let soft = JobSpec {
        devices: "1".parse().unwrap(),
        preemptible: true,
        checkpoint: Some("ckpt".to_owned()),
        grace: Span::default(),
        ..spec(command)
    };
    let id = submit(&ada, &soft).await;
    said(&server, id, "saved").await;
    let node = server.job(id).await.attempts[0].workers[0].node.0.clone();
    server.client().node_drain(&node, "being drained").await.unwrap();
    let ended = server.wait_for_end(id).await;
    let lines = server.texts(id).await;
    assert_eq!((ended.outcome, ended.attempts.len()), (Some(JobOutcome::Succeeded), 2), "{lines:?}");
    assert_eq!(lines[0], "7");
    let kept = server.data().join(format!("runs/{id}/checkpoint"));
    let uid: u32 = lines[1].parse().unwrap();
    assert_eq!(kept.metadata().unwrap().uid(), uid);
    assert_eq!(
        std::fs::read_to_string(kept.join("step")).unwrap(),
        "8\n",
        "the server reads what is the job's"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn code_is_unpacked_for_its_user_and_a_gang_meets() {
    let Some(server) = server(&["--simulate", "2x2:nvidia:A100"]).await else { return };
    let ada = person(&server, "ada").await;
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("code");
    std::fs::create_dir(&code).unwrap();
    std::fs::write(code.join("train.sh"), "stat -c '%U %u %a %n' train.sh | sed \"s/ $(id -u) / own /\"\n")
        .unwrap();
    let archive = folder.path().join("archive");
    let packed = danlu_objects::pack(&code, std::fs::File::create(&archive).unwrap(), |_| ()).unwrap();
    ada.code_put(&packed.digest, &archive, |_| ()).await.unwrap();
    let spec = JobSpec {
        code: Some(packed.digest),
        workers: 2,
        devices: "1".parse().unwrap(),
        setup: Some("echo made > by-setup".to_owned()),
        ..spec("sh train.sh; cat by-setup; echo $MASTER_ADDR")
    };
    let mut lines = output(&server, &ada, &spec).await;
    lines.sort();
    insta::assert_snapshot!(lines.join("\n"), @r"
    127.0.0.1
    127.0.0.1
    UNKNOWN own 644 train.sh
    UNKNOWN own 644 train.sh
    made
    made
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_a_file_is_for_the_jobs_user() {
    let Some(server) = server(&[]).await else { return };
    let ada = person(&server, "ada").await;
    ada.secret_set("ada", "key", &NewSecret { value: "open sesame".to_owned() }).await.unwrap();
    let mut spec =
        JobSpec { workspace: "ada".to_owned(), ..spec("stat -c '%u %a' $KEY; id -u; wc -c < $KEY") };
    spec.secrets.insert("KEY".to_owned(), SecretUse { name: "key".to_owned(), form: SecretForm::File });
    let lines = output(&server, &ada, &spec).await;
    assert_eq!(lines, [format!("{} 600", lines[1]), lines[1].clone(), "11".to_owned()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_closed_to_the_user_is_no_working_directory() {
    let Some(server) = server(&[]).await else { return };
    let ada = person(&server, "ada").await;
    let closed = closed_folder();
    let path = closed.path().to_str().unwrap().to_owned();
    let id = submit(&ada, &JobSpec { working_directory: Some(path.clone()), ..spec("ls") }).await;
    let ended = server.wait_for_end(id).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Failed));
    assert!(ended.reason.to_string().contains(&path), "{:?}", ended.reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_jobs_left_before_they_had_users_is_handed_over() {
    let Some(mut server) = server(&["--simulate", "1x2:nvidia:A100"]).await else { return };
    let ada = person(&server, "ada").await;
    let spec = JobSpec {
        devices: "1".parse().unwrap(),
        preemptible: true,
        checkpoint: Some("ckpt".to_owned()),
        grace: Span::default(),
        ..spec(
            "if [ -e ckpt/step ]; then echo 8 > ckpt/step; else echo 7 > ckpt/step; echo saved; sleep 1000; fi",
        )
    };
    let id = submit(&ada, &spec).await;
    said(&server, id, "saved").await;
    // As an earlier server would have left it.
    server.terminate();
    let job = server.data().join(format!("runs/{id}"));
    assert!(
        Command::new("chown").args(["-R", "0:0"]).arg(job.join("checkpoint")).status().unwrap().success()
    );
    std::fs::set_permissions(&job, PermissionsExt::from_mode(0o700)).unwrap();
    server.restart().await;
    let node = server.job(id).await.attempts[0].workers[0].node.0.clone();
    server.client().node_drain(&node, "being drained").await.unwrap();
    server.wait_for(id, JobState::Queued).await;
    server.client().node_uncordon(&node).await.unwrap();
    let ended = server.wait_for_end(id).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?} {:?}", ended.reason, server.texts(id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn same_name_means_users_that_the_machine_has() {
    if !nix::unistd::geteuid().is_root() {
        return danlu_testkit::skip("jobs run as other users only where the tests run as root");
    }
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o711)).unwrap();
    // The server sees a machine that has one more user.
    let home = folder.path().join("ada");
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(FIRST), Some(FIRST + 1)).unwrap();
    let program = folder.path().join("danlu");
    let script = format!(
        "#!/bin/sh -e\ncd {0}\n(cat /etc/passwd; echo ada:x:{FIRST}:{1}::{0}/ada:/bin/sh) > passwd\n\
         (cat /etc/group; echo lab:x:{2}:ada) > group\n\
         exec unshare --mount sh -ec 'for file in passwd group; do mount --bind $file /etc/$file; done; exec \"$0\" \"$@\"' {DANLU} \"$@\"\n",
        folder.path().display(),
        FIRST + 1,
        FIRST + 2
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let program = program.display().to_string();
    let flags = ["--unix-users", "same-name", "--registration", "open"];
    let server = TestServer::start_in(&program, &flags, folder, &[]).await;
    let said = server.log();
    assert!(said.contains("people choose the names of their accounts here"), "{said}");
    // Whoever takes the name of the machine's user has to be meant by an administrator.
    let new = NewRegistration {
        name: "ada".parse().unwrap(),
        display_name: None,
        email: None,
        password: PASSWORD.to_owned(),
        invitation: None,
        workspace: None,
    };
    server.client().account_register(&new).await.unwrap();
    let name = new.name;
    let approve = AccountChange { standing: Some(Standing::Active), ..AccountChange::default() };
    server.client().account_change(&name, &approve).await.unwrap();
    let ada = sign_in(&server, "ada").await;
    let refused = ada.job_submit(&spec("true"), None).await.unwrap_err().to_string();
    assert!(
        refused.contains("no administrator has said that jobs of the account `ada` may run as"),
        "{refused}"
    );
    let own = AccountChange { unix_user: Some(true), ..AccountChange::default() };
    assert!(ada.account_change(&name, &own).await.is_err(), "nobody says so of themselves");
    server.client().account_change(&name, &own).await.unwrap();
    let lines =
        output(&server, &ada, &spec("echo $(id -u) $(id -G) $USER; cd; stat -c %u .; touch mine")).await;
    let (group, further) = (FIRST + 1, FIRST + 2);
    assert_eq!(lines, [format!("{FIRST} {group} {further} ada"), FIRST.to_string()]);
    for (name, said) in [
        ("no-such-user", "this machine has no user `no-such-user`"),
        ("daemon", "jobs do not run as `daemon` (user id 1), which is not a person's user"),
    ] {
        let refused =
            person(&server, name).await.job_submit(&spec("true"), None).await.unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_beside_the_proxy_does_not_say_where_requests_come_from() {
    let Some(server) = server(&["--behind-proxy"]).await else { return };
    let ada = person(&server, "ada").await;
    let come = "import os, json, urllib.request as r\n\
                body = json.dumps({'name': 'ada', 'password': 'correct horse battery'}).encode()\n\
                heads = {'content-type': 'application/json', 'x-forwarded-for': '203.0.113.9'}\n\
                print(r.urlopen(r.Request(os.environ['DANLU_SERVER'] + '/api/v1/session', body, heads)).status)";
    let lines = output(&server, &ada, &spec(&format!("python3 -c \"{come}\""))).await;
    assert_eq!(lines, ["200"]);
    let begun = async || {
        let query =
            AuditQuery { subject: Some("ada".to_owned()), limit: Some(1000), ..AuditQuery::default() };
        let entries = server.client().audit_list(&query).await.unwrap().items;
        entries.into_iter().rfind(|entry| entry.action == "session.begin").unwrap().from
    };
    assert_eq!(begun().await, "127.0.0.1", "the job is on this machine, whatever it says");
    // A program of the system is believed, as a proxy is.
    let body = format!("{{\"name\":\"ada\",\"password\":\"{PASSWORD}\"}}");
    let headers = [("content-type", "application/json"), ("x-forwarded-for", "203.0.113.9")];
    let address = server.client().address();
    let signed_in =
        danlu_testkit::wire::send(&address, "POST", "/api/v1/session", &headers, body.as_bytes()).await;
    assert_eq!((signed_in.status, begun().await.as_str()), (200, "203.0.113.9"));
}

#[tokio::test]
async fn a_server_says_what_keeps_it_from_isolating() {
    if !nix::unistd::geteuid().is_root() {
        return danlu_testkit::skip("jobs run as other users only where the tests run as root");
    }
    let closed = closed_folder();
    let up = tokio::process::Command::new(DANLU)
        .args(["up", "--listen", "127.0.0.1:0", "--unix-users", "200000-299999", "--data"])
        .arg(closed.path().join("data"))
        .kill_on_drop(true)
        .output();
    let ended = tokio::time::timeout(danlu_testkit::DEADLINE, up).await.expect("it does not start").unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success() && said.contains("cannot pass through"), "{said}");
}

/// Where only its owner may go.
fn closed_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
    folder
}
