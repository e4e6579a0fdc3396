//! A PostgreSQL server for the tests of one process: its own data folder, its own socket, gone with the process.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::{DEADLINE, skip};

/// PostgreSQL from its installed programs.
#[derive(Debug)]
pub struct PostgresServer {
    binaries: PathBuf,
    socket_folder: PathBuf,
    port: u16,
}

static DATABASES: AtomicU32 = AtomicU32::new(0);

impl PostgresServer {
    /// The server of this process, started by the first test that asks. `None` where PostgreSQL is not installed; with
    /// `CI=true` that is a failure.
    pub fn shared() -> Option<&'static PostgresServer> {
        static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
        let server = SERVER.get_or_init(|| {
            let Some(binaries) = binaries() else {
                skip(
                    "PostgreSQL is not installed (Debian: `apt-get install postgresql`), \
                     and DANLU_TEST_PG_BIN does not name its programs",
                );
                return None;
            };
            Some(PostgresServer::start(&binaries))
        });
        server.as_ref()
    }

    /// Creates an empty database; its address.
    pub fn create_database(&self) -> String {
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let created = Command::new(self.binaries.join("createdb"))
            .arg("-h")
            .arg(&self.socket_folder)
            .args(["-p", &self.port.to_string(), "-U", "danlu", "-T", "template0", &name])
            .output()
            .expect("createdb is installed with the server");
        assert!(created.status.success(), "createdb failed: {}", String::from_utf8_lossy(&created.stderr));
        self.url(&name)
    }

    /// Runs statements in a database and returns once they are done. They must succeed, before the deadline of tests.
    pub fn execute(&self, url: &str, statements: &str) {
        let done = Command::new(self.binaries.join("psql"))
            .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--command", statements, url])
            .env("PGOPTIONS", format!("-c statement_timeout={}", DEADLINE.as_millis()))
            .stdin(Stdio::null())
            .output()
            .expect("psql is installed with the server");
        assert!(done.status.success(), "psql failed: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Runs SQL, such as what `pg_dump --inserts` has written, in an empty database.
    pub fn load(&self, url: &str, sql: &str) {
        use std::io::Write as _;
        let database = url.rsplit('/').next().expect("an address ends with a name");
        let mut psql = Command::new(self.binaries.join("psql"))
            .arg("-h")
            .arg(&self.socket_folder)
            .args(["-p", &self.port.to_string(), "-U", "danlu", "-d", database])
            .args(["-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("psql is installed with the server");
        // One that has ended early says why.
        let _ = psql.stdin.take().expect("it is piped").write_all(sql.as_bytes());
        let done = psql.wait_with_output().expect("it can be waited for");
        assert!(done.status.success(), "psql failed: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn url(&self, database: &str) -> String {
        let folder = self.socket_folder.display().to_string().replace('/', "%2F");
        format!("postgres://danlu@{folder}:{}/{database}", self.port)
    }

    fn start(binaries: &Path) -> PostgresServer {
        // Not a `TempDir`: statics are not dropped. The server is told to remove the folder when it ends.
        let folder =
            tempfile::Builder::new().prefix("danlu-pg-").tempdir().expect("a temporary folder").keep();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777))
            .expect("the folder is ours");
        let data = folder.join("data");
        // The port only names the socket file, but another server on it would still confuse; ask for a free one.
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();

        let initdb = as_other_user(&binaries.join("initdb"))
            .args([
                "--auth=trust",
                "--username=danlu",
                "--no-sync",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "-D",
            ])
            .arg(&data)
            .output()
            .expect("initdb is installed with the server");
        assert!(initdb.status.success(), "initdb failed: {}", String::from_utf8_lossy(&initdb.stderr));

        spawn_server(binaries, &folder, &data, port);
        let server = PostgresServer { binaries: binaries.to_owned(), socket_folder: folder, port };
        let deadline = Instant::now() + Duration::from_mins(1);
        let ready = || {
            let mut asked = Command::new(binaries.join("pg_isready"));
            asked.arg("-q").arg("-h").arg(&server.socket_folder).args([
                "-p",
                &port.to_string(),
                "-U",
                "danlu",
            ]);
            asked.status().is_ok_and(|status| status.success())
        };
        while !ready() {
            assert!(
                Instant::now() < deadline,
                "PostgreSQL did not start; see {}",
                server.socket_folder.display()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

/// Starts the server under a shell that waits for the end of its input, which this process holds open and never
/// writes to. However we end, the kernel closes it; then the shell stops the server and removes its folder.
fn spawn_server(binaries: &Path, folder: &Path, data: &Path, port: u16) {
    const WATCH: &str = r#"
        trap '' INT
        folder=$1
        shift
        "$@" >"$folder/server.log" 2>&1 </dev/null &
        while read -r _; do :; done
        kill -QUIT $!
        wait
        rm -rf "$folder"
    "#;
    let mut server = as_other_user(&binaries.join("postgres"));
    server.arg("-D").arg(data).arg("-k").arg(folder).args(["-p", &port.to_string()]);
    server.args(["-c", "listen_addresses=", "-c", "max_connections=200"]);
    let watcher = Command::new("sh")
        .args(["-c", WATCH, "sh"])
        .arg(folder)
        .arg(server.get_program())
        .args(server.get_args())
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell is everywhere");
    // The pipe must stay open as long as the process lives.
    std::mem::forget(watcher);
}

/// PostgreSQL does not run as root: there, its package's user runs it.
fn as_other_user(program: &Path) -> Command {
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir("/");
    command
}

/// The newest installed PostgreSQL's programs.
fn binaries() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("DANLU_TEST_PG_BIN") {
        return Some(PathBuf::from(folder));
    }
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let installed = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path());
    let newest =
        installed.filter(|path| path.join("bin/postgres").exists()).max_by_key(|path| version(path))?;
    Some(newest.join("bin"))
}
