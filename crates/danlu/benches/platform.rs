//! The platform's own figures: `cargo bench --bench platform`, or `make bench` beside other systems.
//!
//! Each line is a name, a value and a unit, separated by tabs; `bench/README.md` says what the names mean. The clients are plain sockets, so that what is measured on
//! two cores is the server and not its caller.

#![expect(clippy::print_stdout, reason = "a benchmark's output is its figures")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const JOBS: usize = 2000;
const SUBMISSIONS: usize = 10_000;
const CLIENTS: usize = 16;
const LATENCY_ROUNDS: usize = 60;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return; // `cargo test` runs benchmarks too; figures are only taken on purpose.
    }
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let all: [(&str, fn()); 4] = [
        ("start", start_and_memory),
        ("latency", latency),
        ("submit", submissions),
        ("throughput", throughput),
    ];
    for (name, measure) in all {
        if wanted.is_empty() || wanted.iter().any(|wanted| *wanted == name) {
            measure();
        }
    }
    let _ = std::fs::remove_dir_all(FOLDER.path());
}

fn figure(name: &str, value: f64, unit: &str) {
    println!("{name}\t{value:.1}\t{unit}");
}

fn start_and_memory() {
    let mut times = Vec::new();
    let mut memory = 0.0;
    for _ in 0..5 {
        let begin = Instant::now();
        let server = Server::start(&[]);
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        memory = server.resident_megabytes();
    }
    figure("start", median(&mut times), "ms");
    figure("memory", memory, "MB");
}

fn latency() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let mut times = Vec::new();
    for _ in 0..LATENCY_ROUNDS {
        let begin = nanoseconds_now();
        let job = client.submit(&json!({ "command": "date +%s%N", "cpus": "0.1" }));
        let id = job["id"].as_u64().expect("a submitted job has an id");
        let ended = client.wait_for_end(id);
        assert_eq!(ended["outcome"], "succeeded", "{ended}");
        let page = client.get(&format!("/api/v1/jobs/{id}/logs"));
        let text = page["items"][0]["text"].as_str().expect("`date` printed a line");
        let printed: u128 = text.parse().expect("`date +%s%N` prints a number");
        times.push(printed.saturating_sub(begin) as f64 / 1e6);
    }
    figure("latency", median(&mut times), "ms");
    times.sort_by(f64::total_cmp);
    figure("latency, 95th percentile", times[times.len() * 95 / 100], "ms");
}

/// Jobs that cannot start, so that only submitting is measured: one device, and a blocker that holds it.
fn submissions() {
    let server = Server::start(&["--simulate", "1x1:ascend:910B3"]);
    let mut client = server.client();
    let blocker =
        client.submit(&json!({ "command": "sleep 1000", "devices": { "count": 1 }, "grace": "0s" }));
    let body = json!({ "command": "true", "devices": { "count": 1 } });
    let begin = Instant::now();
    server.submit_concurrently(&body, SUBMISSIONS);
    let rate = SUBMISSIONS as f64 / begin.elapsed().as_secs_f64();
    figure("submit", rate, "jobs/s");
    client.post(&format!("/api/v1/jobs/{}/stop", blocker["id"]), &json!({ "grace": "0s" }));
}

fn throughput() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let begin = Instant::now();
    // What `danlu submit --cpus 0.02 -- true` sends: a hundred of them fit on two cores, so that what is measured is work and
    // not waiting. Slurm's nodes claim 64 processors each for the same reason.
    let job = json!({ "command": "true", "cpus": "0.02", "working_directory": env!("CARGO_MANIFEST_DIR") });
    server.submit_concurrently(&job, JOBS);
    let submitted = begin.elapsed();
    loop {
        let left = client.get("/api/v1/jobs?state=queued,starting,running,stopping&limit=1");
        if left["items"].as_array().is_some_and(Vec::is_empty) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let total = begin.elapsed();
    let mut succeeded = 0;
    let mut cursor = String::new();
    loop {
        let page = client.get(&format!("/api/v1/jobs?state=succeeded&limit=1000{cursor}"));
        succeeded += page["items"].as_array().map_or(0, Vec::len);
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(succeeded, JOBS, "every job must have succeeded");
    figure("throughput", JOBS as f64 / total.as_secs_f64(), "jobs/s");
    figure("throughput, time spent submitting", submitted.as_secs_f64(), "s");
}

struct Server {
    process: Child,
    address: String,
    token: String,
}

/// One folder for all servers, removed when all is measured: ext4 looks past recently deleted inodes each time it makes a
/// file, so removing a server's folder would slow down the next one.
static FOLDER: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder"));

impl Server {
    fn start(flags: &[&str]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let data = FOLDER.path().join(COUNT.fetch_add(1, Ordering::Relaxed).to_string());
        let process = Command::new(env!("CARGO_BIN_EXE_danlu"))
            .args(["up", "--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .args(flags)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let deadline = Instant::now() + Duration::from_secs(20);
        let address = loop {
            assert!(Instant::now() < deadline, "the server did not announce itself");
            if let Some(address) = announced(&data)
                && Client::connect(&address, "")
                    .is_some_and(|mut client| client.status("GET", "/readyz", "") == 200)
            {
                break address;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let token =
            std::fs::read_to_string(data.join("token")).expect("the token was written").trim().to_owned();
        Server { process, address, token }
    }

    fn client(&self) -> Client {
        Client::connect(&self.address, &self.token).expect("the server accepts connections")
    }

    fn submit_concurrently(&self, body: &Value, count: usize) {
        std::thread::scope(|scope| {
            for share in 0..CLIENTS {
                let mut client = self.client();
                let count = count / CLIENTS + usize::from(share < count % CLIENTS);
                scope.spawn(move || {
                    for _ in 0..count {
                        client.submit(body);
                    }
                });
            }
        });
    }

    fn resident_megabytes(&self) -> f64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0.0);
        kilobytes / 1000.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Jobs outlive a server on purpose: end what still runs before the server goes.
        if let Some(mut client) = Client::connect(&self.address, &self.token) {
            let live = client.get("/api/v1/jobs?state=starting,running&limit=1000");
            for job in live["items"].as_array().into_iter().flatten() {
                client.post(&format!("/api/v1/jobs/{}/stop", job["id"]), &json!({ "grace": "0s" }));
                client.wait_for_end(job["id"].as_u64().unwrap_or_default());
            }
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn announced(data: &Path) -> Option<String> {
    let text = std::fs::read_to_string(data.join("server.json")).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    Some(value["address"].as_str()?.trim_start_matches("http://").to_owned())
}

/// One kept-open HTTP/1.1 connection.
struct Client {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Client {
    fn connect(address: &str, token: &str) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Client { stream: BufReader::new(stream), token: token.to_owned() })
    }

    fn submit(&mut self, body: &Value) -> Value {
        let (status, answer) = self.request("POST", "/api/v1/jobs", &body.to_string());
        assert_eq!(status, 201, "{answer}");
        answer
    }

    fn post(&mut self, path: &str, body: &Value) -> Value {
        self.request("POST", path, &body.to_string()).1
    }

    fn get(&mut self, path: &str) -> Value {
        let (status, answer) = self.request("GET", path, "");
        assert_eq!(status, 200, "{answer}");
        answer
    }

    fn status(&mut self, method: &str, path: &str, body: &str) -> u16 {
        self.request(method, path, body).0
    }

    fn wait_for_end(&mut self, id: u64) -> Value {
        loop {
            let job = self.get(&format!("/api/v1/jobs/{id}"));
            if job["state"] == "ended" {
                return job;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn request(&mut self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("the server reads requests");
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the server answers");
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("an HTTP status line");
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("the server sends headers");
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("the whole body");
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }
}

fn nanoseconds_now() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_nanos())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
