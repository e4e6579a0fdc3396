//! What programs of jobs learn of the server that started them, and what they leave behind.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use danlu_testkit::{TestServer, eventually, skip, spec};
use danlu_types::api::JobOutcome;
use danlu_types::{JobId, JobSpec};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

/// The security review's H2.
#[tokio::test(flavor = "multi_thread")]
async fn the_servers_secrets_are_not_its_jobs() {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let secrets = [
        ("PGPASSWORD", "swordfish-1"),
        ("AWS_SECRET_ACCESS_KEY", "swordfish-2"),
        ("NVIDIA_API_KEY", "swordfish-3"),
        ("DANLU_SECRET", "swordfish-4"),
        ("SITE_MODEL", "shown"),
        ("CUDA_HOME", "/opt/cuda"),
        ("HTTPS_PROXY", "http://user:swordfish-5@proxy:3128"),
        ("HTTP_PROXY", "http://proxy:3128"),
    ];
    let server = TestServer::start_in(DANLU, &["--pass-environment", "SITE_*"], folder, &secrets).await;
    // The rank's own environment, its launcher's, and the nursery's.
    let tell = "env; up() { cut -d' ' -f4 /proc/$1/stat; }; l=$(up $$); for p in $$ $l $(up $l); do tr '\\0' '\\n' < /proc/$p/environ; done";
    let ended = server.run(&spec(tell)).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}", ended.reason);
    let lines = server.texts(ended.id).await;
    assert!(!lines.iter().any(|line| line.contains("swordfish")), "{lines:#?}");
    for shown in ["SITE_MODEL=shown", "CUDA_HOME=/opt/cuda", "HTTP_PROXY=http://proxy:3128"] {
        assert!(lines.iter().any(|line| line == shown), "{shown}: {lines:#?}");
    }
    assert!(lines.iter().any(|line| line.starts_with("PATH=")));
    let log = server.log();
    assert!(log.contains("`--pass-environment HTTPS_PROXY`") && !log.contains("swordfish"), "{log}");
}

/// A program that is `danlu` after something else.
fn wrapped(folder: &Path, before: &str, danlu: &str) -> String {
    let program = folder.join("danlu-wrapped");
    std::fs::write(&program, format!("#!/bin/sh\n{before} {danlu} \"$@\"\n")).expect("a script");
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it can be run");
    program.display().to_string()
}

/// The security review's L6.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_writes_is_its_own_whatever_its_umask() {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let program = wrapped(folder.path(), "umask 000; exec", DANLU);
    let server = TestServer::start_in(&program, &[], folder, &[]).await;
    let mut spec = spec("umask; until test -S ../session.sock; do sleep 0.01; done");
    spec.checkpoint = Some("ckpt".to_owned());
    let ended = server.run(&spec).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}", ended.reason);
    assert_eq!(server.texts(ended.id).await, ["0000"], "what ranks write is their own affair");
    let mut open = Vec::new();
    let mut seen = 0;
    let mut folders = vec![server.data()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let found = path.symlink_metadata().unwrap();
            seen += 1;
            let mode = found.permissions().mode() & 0o7777;
            if !found.is_symlink() && mode & 0o077 != 0 {
                open.push(format!("{} {mode:o}", path.strip_prefix(server.data()).unwrap().display()));
            }
            if found.is_dir() {
                folders.push(path);
            }
        }
    }
    let mode = server.data().metadata().unwrap().permissions().mode() & 0o7777;
    open.sort();
    // That one is for everybody's Python, behind a folder that is not.
    let readable = vec!["python 755".to_owned(), "python/danlu.py 644".to_owned()];
    assert_eq!((mode, open, seen > 20), (0o700, readable, true));
}

/// A folder above which nothing is that user's, and which that user can pass through, with this build's program in it; none where
/// this is not root.
fn place_of_another(user: u32) -> Option<tempfile::TempDir> {
    if !nix::unistd::geteuid().is_root() {
        skip("only root starts a server as another user");
        return None;
    }
    let is_way = |path: &Path| path.metadata().is_ok_and(|found| found.permissions().mode() & 0o003 == 0o001);
    // Temporary folders are everybody's to write to, and builds may lie in a home that is closed.
    let places = [env!("CARGO_TARGET_TMPDIR"), "/var/lib"];
    let Some(place) = places.into_iter().find(|place| Path::new(place).ancestors().all(is_way)) else {
        skip("another user reaches no folder here that nobody else writes to");
        return None;
    };
    let folder =
        tempfile::Builder::new().prefix("danlu-test-").tempdir_in(place).expect("a temporary folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("others pass");
    for own in ["data", "home"] {
        std::fs::create_dir(folder.path().join(own)).expect("a folder");
        std::os::unix::fs::chown(folder.path().join(own), Some(user), Some(user))
            .expect("root gives it away");
    }
    let program = folder.path().join("danlu");
    std::fs::hard_link(DANLU, &program)
        .or_else(|_| std::fs::copy(DANLU, &program).map(drop))
        .expect("a program");
    Some(folder)
}

/// Where jobs run as the server's own user, only Landlock keeps them from its token.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_does_not_reach_the_data_folder() {
    const USER: u32 = 399_872;
    let Some(folder) = place_of_another(USER) else { return };
    let danlu = folder.path().join("danlu").display().to_string();
    let before = format!("exec setpriv --reuid {USER} --regid {USER} --clear-groups");
    let program = wrapped(folder.path(), &before, &danlu);
    let home = folder.path().join("home").display().to_string();
    let mut server = TestServer::start_in(&program, &[], folder, &[("HOME", &home)]).await;
    if server.log().contains("no Landlock") {
        skip("this kernel has no Landlock");
        return;
    }
    assert!(server.log().contains("the data folder is closed to programs of jobs"), "{}", server.log());
    let other = server.run(&spec("echo of another | tee $DANLU_OUTPUT_DIR/result")).await.id;
    let data = server.data().display().to_string();
    let (log, result) = (format!("runs/{other}/1.0/rank-0.log"), format!("runs/{other}/output/result"));
    let steal = format!(
        "cd {data} && for file in token secret.key attempts.key danlu.db server.json {log} {result}; do \
         test -e $file || echo no $file; cat $file >/dev/null 2>&1 && echo read $file; ln $file $TMPDIR/taken 2>&1 | grep -v -e denied -e cross-device; done; \
         (echo > fresh) 2>&1 | grep -v -e denied -e cross-device"
    );
    let own = "set -e; echo one > $DANLU_OUTPUT_DIR/a; mv $DANLU_OUTPUT_DIR/a ckpt/a; ln ckpt/a b; mv b $TMPDIR; cat $TMPDIR/b; mkdir ~/.cache; \
               if command -v git >/dev/null; then git init -q ~/origin; \
               git -C ~/origin -c user.name=a -c user.email=a@b commit -q --allow-empty -m first; git clone -q ~/origin clone 2>&1; fi; \
               python3 -c 'import danlu, os; os.listdir(\"/\")'; sleep 1000 & cat /proc/$!/environ >/dev/null; kill $!; echo two >/dev/shm/$$; rm /dev/shm/$$";
    let mut spec = spec(&format!("({steal}); ({own}); echo three; exec sleep 1000"));
    spec.setup = Some(format!("({steal}); true"));
    spec.checkpoint = Some("ckpt".to_owned());
    let id = server.submit(&spec).await;
    eventually("the last word", || async {
        server.texts(id).await.contains(&"three".to_owned()).then_some(())
    })
    .await;
    assert_eq!(server.texts(id).await, ["one", "three"]);
    let session = |words: String| {
        let mut command = std::process::Command::new(DANLU);
        command.arg("--data").arg(server.data()).args(["exec", &id.to_string(), "--", "sh", "-c", &words]);
        async { tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap() }
    };
    // As a debugger would, it looks into its launcher, which is inside, and not into the one above, which is not.
    let look = "up() { cut -d' ' -f4 /proc/$1/stat; }; for p in $(up $$) $(up $(up $$)); do head -c 0 /proc/$p/environ 2>/dev/null && echo saw; done";
    let output = session(format!("({steal}); {look}; echo over")).await;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "saw\nover\n", "{output:?}");

    // Landlock leaves sockets open, so the launcher asks for a key, which only the server and the job's own programs can read.
    let enter = "import json, os, socket, struct, sys\n\
        name = sys.argv[1]\n\
        s = socket.socket(socket.AF_UNIX); s.connect(f'/proc/self/fd/{os.open(os.path.dirname(name), os.O_PATH)}/session.sock')\n\
        frame = lambda kind, text: s.sendall(struct.pack('>BI', kind, len(text)) + text)\n\
        try: frame(9, json.load(open(os.path.dirname(name) + '/session.key')).encode())\n\
        except OSError: print('no key')\n\
        frame(0, json.dumps({'command': ['echo', 'inside']}).encode())\n\
        answer = b''\n\
        while part := s.recv(4096): answer += part\n\
        print('entered' if b'inside' in answer else 'refused' if b'only the server' in answer else answer)";
    let socket = |id: JobId| format!("{data}/runs/{id}/1.0/session.sock");
    let mut thief = danlu_testkit::spec(&format!(
        "python3 -c \"$ENTER\" {}; python3 -c \"$ENTER\" $DANLU_RUN_DIR/session.sock",
        socket(id)
    ));
    thief.env.insert("ENTER".to_owned(), enter.to_owned());
    let thief = server.run(&thief).await.id;
    assert_eq!(server.texts(thief).await, ["no key", "refused", "entered"]);

    // The same job with the folder left open reads all of it.
    server.kill();
    server.add_flags(&["--open-data-folder"]);
    server.restart().await;
    let ended = server.run(&danlu_testkit::spec(&format!("({steal}) | grep -c ^read"))).await;
    assert_eq!(server.texts(ended.id).await, ["7"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_in_the_arguments_is_refused_with_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(DANLU);
    command.arg("--data").arg(folder.path()).args([
        "up",
        "--database",
        "postgres://danlu:swordfish@localhost/danlu",
    ]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--database-file") && !said.contains("swordfish"), "{said}");
}

/// The security review's H3, from outside: what 15,000 levels did to the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_leaves_a_folder_without_a_bottom_is_deleted() {
    const DIG: &str = "python3 -c \"import os; os.chdir(os.environ['DANLU_OUTPUT_DIR']); [(os.mkdir('d'), os.chdir('d')) for _ in range(20000)]\"";
    // In memory where there is such a disk: so many folders are much for a busy one.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let mut server = TestServer::start_in(DANLU, &[], folder, &[]).await;
    let id = server.run(&spec(DIG)).await.id;
    let other = server.run(&spec("true")).await.id;
    let folder = |id: JobId| server.data().join("runs").join(id.to_string());
    let (gone, aside) = (folder(id), server.data().join("forgotten"));
    server.client().job_delete(id).await.unwrap();
    assert!(!gone.exists());
    // Whether it is done by now or not.
    server.kill();
    server.restart().await;
    eventually("the folder to be gone", || async {
        (std::fs::read_dir(&aside).unwrap().count() == 0).then_some(())
    })
    .await;
    assert_eq!(server.job(other).await.outcome, Some(JobOutcome::Succeeded));
}

/// The security review's M7: a job said itself which devices it had.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_does_not_name_devices_that_it_was_not_given() {
    let server = TestServer::start(DANLU, &["--simulate", "1x8:nvidia:A100"]).await;
    let mut spec: JobSpec = spec("echo [$CUDA_VISIBLE_DEVICES]");
    spec.env.insert("CUDA_VISIBLE_DEVICES".to_owned(), "0,1,2,3,4,5,6,7".to_owned());
    let refused = server.client().job_submit(&spec, None).await.unwrap_err();
    assert!(format!("{refused:?}").contains("env.CUDA_VISIBLE_DEVICES"), "{refused:?}");
}
