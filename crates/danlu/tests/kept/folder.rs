//! Puts a kept data folder and its database back on the disk, and a process in the place of the launcher that ran then.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use danlu_testkit::{PostgresServer, TestServer};
use serde_json::{Value, json};
use tempfile::TempDir;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
/// The kept files have this instead of the path of the data folder.
const DATA: &str = "@DATA@";
/// Waits for its file, then writes what the launcher of then wrote: the last lines of the rank, and how the worker ended.
const STAND_IN: &str = r#"
    while ! [ -e "$1/go" ]; do sleep 0.02; done
    cat "$1/later.log" >> "$2/rank-0.log"
    cat "$1/later.jsonl" >> "$2/status.jsonl"
"#;

/// What was kept of one server.
pub(crate) struct Kept {
    folder: PathBuf,
    /// The secrets that people hold.
    pub(crate) held: Value,
    /// What the API said, by path.
    pub(crate) said: Value,
    /// What the launcher wrote after the server was gone, by file.
    later: Value,
}

impl Kept {
    pub(crate) fn of(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept").join(name);
        let read = |name: &str| serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap();
        Kept { held: read("held.json"), said: read("said.json"), later: read("later.json"), folder }
    }

    /// Today's server on the kept folder, with its database where the name of it says.
    pub(crate) async fn start(&self, flags: &[&str], environment: &[(&str, &str)]) -> Option<TestServer> {
        let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
        self.start_in(folder, flags, environment).await
    }

    pub(crate) async fn start_in(
        &self,
        folder: TempDir,
        flags: &[&str],
        environment: &[(&str, &str)],
    ) -> Option<TestServer> {
        let data = folder.path().join("data");
        let sql = fs::read_to_string(self.folder.join("database.sql")).unwrap();
        let mut all = vec!["--simulate", "1x8:ascend:910B3", "--registration", "open"];
        all.extend(flags);
        let url;
        if self.folder.ends_with("postgres") {
            let server = PostgresServer::shared()?;
            url = server.create_database();
            server.load(&url, &sql);
            all.extend(["--database", &url]);
        }
        lay_down(&self.folder.join("data"), &data, &data);
        if !self.folder.ends_with("postgres") {
            load_sqlite(&data.join("danlu.db"), &sql);
        }
        claim_identity(&data.join("identity.json"));
        self.stand_in(&data, folder.path());
        Some(TestServer::start_in(DANLU, &all, folder, environment).await)
    }

    /// Of the launcher that ran when the server was killed, a repository can keep its files and not itself. So a process
    /// takes its place, which does what the server of then left it to do: it holds the lock of the run folder as its standard
    /// input, is named in the status as its launcher, and at the end writes what that one wrote.
    fn stand_in(&self, data: &Path, beside: &Path) {
        let run = data.join(format!("runs/{}/1.0", self.held["jobs"]["runs"]));
        let lock = File::options().read(true).append(true).open(run.join("launcher.log")).unwrap();
        lock.try_lock().unwrap();
        let mut program = Command::new("sh")
            .args(["-c", STAND_IN, "launcher"])
            .args([beside, &run])
            .stdin(Stdio::from(lock.try_clone().unwrap()))
            .stdout(Stdio::from(lock.try_clone().unwrap()))
            .stderr(Stdio::from(lock))
            .spawn()
            .unwrap();
        let own = identity_of(program.id());
        std::thread::spawn(move || program.wait());
        let as_own = |text: &str| {
            let lines = text.lines().map(|line| match serde_json::from_str::<Value>(line) {
                Ok(mut status) => {
                    status["launcher"] = own.clone();
                    status.to_string()
                }
                Err(_) => line.to_owned(),
            });
            lines.map(|line| line + "\n").collect::<String>()
        };
        let status = run.join("status.jsonl");
        let text = fs::read_to_string(&status).unwrap();
        // A line is begun by a line feed, so that half of an earlier one does not spoil it.
        fs::write(&status, as_own(&text)).unwrap();
        fs::write(beside.join("later.jsonl"), as_own(self.later["status.jsonl"].as_str().unwrap())).unwrap();
        fs::write(beside.join("later.log"), self.later["rank-0.log"].as_str().unwrap()).unwrap();
    }
}

/// Copies the kept files, with the path of this data folder in them.
fn lay_down(from: &Path, to: &Path, data: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            // As deep as we have made it.
            lay_down(&path, &target, data);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        match String::from_utf8(bytes) {
            Ok(text) => fs::write(&target, text.replace(DATA, data.to_str().unwrap())).unwrap(),
            Err(key) => fs::write(&target, key.into_bytes()).unwrap(),
        }
        fs::set_permissions(&target, Permissions::from_mode(0o600)).unwrap();
    }
}

/// With Python's: the command-line program is not everywhere, and our store opens nothing that it has not made.
fn load_sqlite(file: &Path, sql: &str) {
    const LOAD: &str = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\ndb.executescript(sys.stdin.read())\ndb.commit()";
    let mut python = Command::new("python3")
        .args(["-c", LOAD])
        .arg(file)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that has ended early says why.
    let _ = python.stdin.take().unwrap().write_all(sql.as_bytes());
    let done = python.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The folder is that of then, not a copy of it: `--restored` would excuse what the audit finds.
fn claim_identity(path: &Path) {
    let mut identity: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let metadata = fs::metadata(path).unwrap();
    let made = metadata.created().ok().map(|made| made.duration_since(std::time::UNIX_EPOCH).unwrap());
    identity["inode"] = json!(metadata.ino());
    identity["made_at_nanoseconds"] = json!(made.map(|made| u64::try_from(made.as_nanos()).unwrap()));
    // Into the same file, whose number it names.
    fs::write(path, identity.to_string()).unwrap();
}

/// As launchers write it: the number, and field 22 of its `stat`.
fn identity_of(pid: u32) -> Value {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let start: u64 = after_name.split_ascii_whitespace().nth(19).unwrap().parse().unwrap();
    json!({ "pid": pid, "start_ticks": start })
}
