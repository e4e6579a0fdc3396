//! Code that comes from CUDA: migrated by the server, and run on Ascend devices.

#![expect(clippy::unwrap_used, reason = "a panic is how a test says no, in its helpers too")]

use std::path::Path;
use std::process::{Command, Stdio};

use danlu_client::ClientError;
use danlu_testkit::wire::{Answer, send};
use danlu_testkit::{TestServer, spec};
use danlu_types::api::{MigrationEntry, MigrationRequest, MigrationStatus};
use danlu_types::{JobSpec, ProblemCode};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

/// With an ignore file that names what reports are made of: they have to come along all the same.
fn project(folder: &Path) {
    let write = |path: &str, text: &str| std::fs::write(folder.join(path), text).unwrap();
    write(
        "train.py",
        "import torch\nmodel = torch.nn.Linear(2, 2).cuda()\nfor epoch in range(2):\n    pass\n",
    );
    write("broken.py", "def f(:\n");
    write("quiet.py", "print('hello')\n");
    write(".gitignore", "*.html\n*.json\n*.csv\n");
}

async fn uploaded(server: &TestServer, folder: &Path) -> String {
    let archive = tempfile::NamedTempFile::new().unwrap();
    let snapshot = danlu_objects::pack(folder, archive.as_file(), |_| {}).unwrap();
    server.client().code_put(&snapshot.digest, archive.path(), |_| {}).await.unwrap();
    snapshot.digest
}

async fn report(server: &TestServer, code: &str, name: &str) -> Answer {
    let token = std::fs::read_to_string(server.data().join("token")).unwrap();
    let bearer = format!("Bearer {}", token.trim());
    let path = format!("/api/v1/migrations/{code}/reports/{name}");
    send(&server.client().address(), "GET", &path, &[("authorization", &bearer)], b"").await
}

#[tokio::test]
async fn uploaded_code_comes_back_migrated_with_its_reports() {
    let server = TestServer::start(DANLU, &[]).await;
    let folder = tempfile::tempdir().unwrap();
    project(folder.path());
    let code = uploaded(&server, folder.path()).await;
    let request = MigrationRequest { code: code.clone(), ..MigrationRequest::default() };
    let done = server.client().code_migrate(&request).await.unwrap();
    assert_ne!(done.code, code);
    let shown: Vec<_> = done.files.iter().map(|file| (file.path.as_str(), file.status)).collect();
    assert_eq!(shown, [("broken.py", MigrationStatus::Broken), ("train.py", MigrationStatus::Changed)]);
    let train = &done.files[1];
    assert!(train.before.as_ref().unwrap().contains(".cuda()"));
    assert!(train.after.as_ref().unwrap().contains("import torch_npu"));
    assert_eq!((train.changes[1].rule.as_str(), train.changes[1].line), ("cuda-method", 2));
    assert_eq!((done.summary.files, done.summary.changed_files, done.summary.findings.broken), (4, 1, 1));
    assert!(!done.truncated);

    let again = server.client().code_migrate(&request).await.unwrap();
    assert_eq!(again.code, done.code, "the same code gives the same copy");
    let job = JobSpec { code: Some(done.code.clone()), ..spec("cat train.py; ls danlu-migration | head -3") };
    let job = server.run(&job).await;
    let texts = server.texts(job.id).await;
    assert!(texts[0..4].concat().contains(".npu()"), "{texts:?}");
    assert_eq!(texts.last().unwrap(), "change_list.csv");

    for (name, begins) in [
        ("report.html", "<!doctype html>"),
        ("report.json", "{\"torch\":"),
        ("report.sarif", "{\"$schema\":"),
        ("change_list.csv", "File,Start Line,"),
    ] {
        assert!(done.reports.iter().any(|known| known == name), "{:?}", done.reports);
        let answer = report(&server, &done.code, name).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.body);
        assert!(answer.body.contains(begins), "{name}: {}", answer.body);
        assert!(answer.header("content-security-policy").unwrap().starts_with("sandbox"), "{}", answer.head);
        assert!(answer.header("content-disposition").unwrap().starts_with("attachment"), "{}", answer.head);
    }
    for name in ["train.py", "..%2ftrain.py", "%2e%2e%2f%2e%2e%2ftoken", "report.html%00", "REPORT.HTML"] {
        let answer = report(&server, &done.code, name).await;
        assert_eq!(answer.status, 404, "{name}: {}", answer.body);
    }
    assert_eq!(report(&server, &code, "report.html").await.status, 404, "what was not migrated has none");
    let left: Vec<_> = std::fs::read_dir(server.data().join("code")).unwrap().flatten().collect();
    assert_eq!(left.len(), 2, "nothing but the two snapshots is left: {left:?}");
}

#[tokio::test]
async fn what_cannot_be_migrated_is_refused_by_the_field_that_is_wrong() {
    let server = TestServer::start(DANLU, &[]).await;
    let folder = tempfile::tempdir().unwrap();
    project(folder.path());
    let code = uploaded(&server, folder.path()).await;
    let entry =
        |main: &str, model: &str| Some(MigrationEntry { main: main.to_owned(), model: model.to_owned() });
    let base = MigrationRequest { code, ..MigrationRequest::default() };
    let unknown = format!("sha256:{}", "0".repeat(64));
    for (request, field) in [
        (MigrationRequest { code: unknown, ..base.clone() }, "code"),
        (MigrationRequest { code: "../../token".to_owned(), ..base.clone() }, "code"),
        (MigrationRequest { torch: Some("newest".to_owned()), ..base.clone() }, "torch"),
        (MigrationRequest { distributed: entry("nothing.py", "model"), ..base.clone() }, "distributed.main"),
        (MigrationRequest { distributed: entry("../../token", "model"), ..base.clone() }, "distributed.main"),
        (
            MigrationRequest { distributed: entry("train.py", "x; import os"), ..base.clone() },
            "distributed.model",
        ),
    ] {
        match server.client().code_migrate(&request).await {
            Err(ClientError::Problem(problem)) => {
                assert_eq!(problem.code, ProblemCode::InvalidFields, "{problem:?}");
                assert_eq!(problem.errors[0].field, field, "{problem:?}");
            }
            other => panic!("{request:?}: {other:?}"),
        }
    }
    let request = MigrationRequest { distributed: entry("train.py", "model"), ..base };
    let done = server.client().code_migrate(&request).await.unwrap();
    assert!(done.reports.contains(&"run_distributed_npu.sh".to_owned()), "{:?}", done.reports);
}

/// The process that migrates for the server with this data folder, once there is one.
async fn migrator_of(data: &Path) -> nix::unistd::Pid {
    let data = data.as_os_str().as_encoded_bytes();
    loop {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(id) = entry.file_name().to_string_lossy().parse() else { continue };
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let has = |word: &[u8]| command.windows(word.len()).any(|window| window == word);
            if has(b"migrate-snapshot") && has(data) {
                return nix::unistd::Pid::from_raw(id);
            }
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migrator_that_crashes_costs_its_request_only() {
    let server = TestServer::start(DANLU, &[]).await;
    let folder = tempfile::tempdir().unwrap();
    // Names in a circle, which once took the server with them, and enough else to be at work when it is looked for.
    std::fs::write(folder.path().join("circle.py"), "import torch\ni = 0\ni = i + 1\nx.to(i)\n").unwrap();
    let circle =
        MigrationRequest { code: uploaded(&server, folder.path()).await, ..MigrationRequest::default() };
    for number in 0..200 {
        let text = "x = torch.ones(3).cuda()\n".repeat(200);
        std::fs::write(folder.path().join(format!("f{number}.py")), format!("import torch\n{text}")).unwrap();
    }
    let request =
        MigrationRequest { code: uploaded(&server, folder.path()).await, ..MigrationRequest::default() };
    let client = server.client();
    // One that was done before it was found is asked for again.
    let problem = loop {
        let asked = client.code_migrate(&request);
        let killed = async {
            let migrator = migrator_of(&server.data()).await;
            let _ = nix::sys::signal::kill(migrator, nix::sys::signal::Signal::SIGKILL);
            std::future::pending::<()>().await;
        };
        let answer = tokio::select! { answer = asked => answer, () = killed => unreachable!() };
        match answer {
            Err(ClientError::Problem(problem)) => break problem,
            Err(other) => panic!("{other}"),
            Ok(_) => {}
        }
    };
    assert_eq!(problem.errors[0].field, "code", "{problem:?}");
    assert!(problem.errors[0].message.contains("SIGKILL"), "{problem:?}");
    let left = std::fs::read_dir(server.data().join("code")).unwrap().flatten();
    let left: Vec<_> = left.filter(|entry| entry.path().is_dir()).collect();
    assert!(left.is_empty(), "no folder is left: {left:?}");
    let done = server.client().code_migrate(&circle).await.unwrap();
    assert_eq!((done.summary.files, done.summary.edits.likely, done.summary.findings.broken), (1, 1, 0));
}

#[test]
fn a_migrator_keeps_to_its_limits() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("before")).unwrap();
    std::fs::write(folder.path().join("before/a.py"), "import torch\nx = y.cuda()\n").unwrap();
    let migrate = |memory: u64, file: u64| {
        let limits = serde_json::json!({ "seconds": 60, "memory_bytes": memory, "file_bytes": file });
        let order = serde_json::json!({ "request": { "code": "" }, "limits": limits });
        std::fs::write(folder.path().join("order.json"), order.to_string()).unwrap();
        let _ = std::fs::remove_file(folder.path().join("answer.json"));
        let ended = Command::new(DANLU)
            .arg("migrate-snapshot")
            .arg(folder.path())
            .env_clear()
            .stderr(Stdio::null())
            .status()
            .unwrap();
        ended.success() && folder.path().join("answer.json").exists()
    };
    assert!(migrate(8 << 30, 1 << 20), "within its limits");
    assert!(!migrate(8 << 30, 100), "more written than allowed");
    assert!(!migrate(200 << 20, 1 << 20), "more memory than allowed");
}

async fn danlu(data: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(DANLU);
    command.arg("--data").arg(data).args(arguments).stdin(Stdio::null());
    for name in ["DANLU_SERVER", "DANLU_TOKEN", "DANLU_DATA"] {
        command.env_remove(name);
    }
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_migrated_runs_the_copy_on_ascend_devices() {
    let server = TestServer::start(DANLU, &["--simulate", "1x2:nvidia:A100,1x4:ascend:910B3"]).await;
    let folder = tempfile::tempdir().unwrap();
    project(folder.path());
    let code = folder.path().to_str().unwrap();
    let command = "echo [$ASCEND_RT_VISIBLE_DEVICES] [$CUDA_VISIBLE_DEVICES]; grep -c npu train.py; ls danlu-migration/report.html";
    let migrated = ["run", "--migrate", "--code", code, "--devices", "2", "--ranks", "1", "--", command];
    let (exit, out, err) = danlu(&server.data(), &migrated).await;
    assert_eq!((exit, out.as_str()), (Some(0), "[0,1] []\n2\ndanlu-migration/report.html\n"), "{err}");
    assert!(err.contains("migrated the code to Ascend NPU: 2 changes in 1 of 4 files"), "{err}");
    assert!(err.contains("one place is left to you"), "{err}");
    let (_, page, _) = danlu(&server.data(), &["show", "1"]).await;
    assert!(page.contains("migrated   from sha256:"), "{page}");

    for (arguments, said) in [
        (
            &["submit", "--migrate", "--code", code, "--devices", "nvidia:1", "--", "true"][..],
            "asks for NVIDIA only",
        ),
        (&["submit", "--migrate", "--", "true"], "no code to migrate"),
        (&["submit", "--migrate-version", "2.1.0", "--", "true"], "--migrate"),
    ] {
        let (exit, _, err) = danlu(&server.data(), arguments).await;
        assert_eq!(exit, Some(2), "{arguments:?}: {err}");
        assert!(err.contains(said), "{arguments:?}: {err}");
    }
}

/// An entry of a tar archive, as nobody's `tar` writes it.
fn entry(name: &[u8], kind: u8, content: &[u8]) -> Vec<u8> {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name);
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[148..156].fill(b' ');
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar  \0");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let padding = vec![0; content.len().next_multiple_of(512) - content.len()];
    [&header, content, &padding].concat()
}

/// A frame of zstd whose blocks are as they are (RFC 8878, 3.1.1.2.2).
fn frame(bytes: &[u8]) -> Vec<u8> {
    // No checksum and no length; a window of 2 MiB.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
    let mut blocks = bytes.chunks(100_000).peekable();
    while let Some(block) = blocks.next() {
        let is_last = u32::from(blocks.peek().is_none());
        let size = u32::try_from(block.len()).unwrap();
        frame.extend_from_slice(&(size << 3 | is_last).to_le_bytes()[..3]);
        frame.extend_from_slice(block);
    }
    frame
}

#[tokio::test]
async fn an_archive_that_is_wrong_is_the_fault_of_who_sent_it() {
    let server = TestServer::start(DANLU, &[]).await;
    let migrate = async |entries: &[Vec<u8>]| {
        let archive = frame(&[&entries.concat()[..], &[0; 1024]].concat());
        let digest = ring::digest::digest(&ring::digest::SHA256, &archive);
        let code = format!("sha256:{}", data_encoding::HEXLOWER.encode(digest.as_ref()));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &archive).unwrap();
        server.client().code_put(&code, file.path(), |_| {}).await.unwrap();
        server.client().code_migrate(&MigrationRequest { code, ..MigrationRequest::default() }).await
    };
    let good = entry(b"train.py", b'0', b"print(1)\n");
    migrate(std::slice::from_ref(&good)).await.expect("what this test makes is an archive");
    let long = ["folder/".repeat(714), "x.py".to_owned()].concat();
    let component = "n".repeat(5000);
    for (what, entries, said) in [
        ("a file twice", vec![good.clone(), good.clone()], "there already"),
        ("an empty name", vec![entry(b"", b'0', b"print(1)\n")], "empty"),
        (
            "a path of 5,000",
            vec![entry(b"././@LongLink", b'L', format!("{long}\0").as_bytes()), good.clone()],
            "",
        ),
        (
            "a name of 5,000",
            vec![entry(b"././@LongLink", b'L', format!("{component}\0").as_bytes()), good.clone()],
            "",
        ),
        ("a file as a folder", vec![good.clone(), entry(b"train.py/x.py", b'0', b"")], "folder"),
    ] {
        let Err(ClientError::Problem(problem)) = migrate(&entries).await else { panic!("{what} was taken") };
        assert_eq!((problem.code, problem.status), (ProblemCode::InvalidFields, 422), "{what}: {problem:?}");
        assert!(problem.errors.iter().any(|error| error.field == "code"), "{what}: {problem:?}");
        assert!(format!("{problem:?}").contains(said), "{what}: {problem:?}");
    }
}
