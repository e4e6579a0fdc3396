//! `kill -9` at random moments: nothing is lost, doubled or left behind.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use danlu_client::Client;
use danlu_testkit::{DEADLINE, TestServer, alive, eventually, eventually_within, processes_of, spec};
use danlu_types::api::{EventQuery, JobOutcome, JobQuery, JobState, JobView};
use danlu_types::{JobSpec, RanksPerWorker, Span};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Semaphore;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const JOBS: usize = 200;
const KILLS: usize = 50;
/// So many at once, for a queue; the others come between kills, so that there is work under way at the last one too,
/// however slow or quick the machine is.
const JOBS_AT_FIRST: usize = 50;
const JOBS_PER_KILL: usize = (JOBS - JOBS_AT_FIRST) / KILLS;

/// A small generator, so that a failing run can be repeated: the seed is printed.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let given = std::env::var("DANLU_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            u64::from(time.subsec_nanos())
        });
        eprintln!("DANLU_TEST_SEED={seed}");
        Random(seed | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Every job counts aloud, and takes a lock for each device it was given: two holders of one device make a job fail.
fn counting_job(index: usize, random: &mut Random) -> JobSpec {
    let lines = 3 + random.below(12);
    let program = format!(
        "for d in $(echo $ASCEND_RT_VISIBLE_DEVICES | tr , ' '); do
           [ $LOCAL_RANK = 0 ] && {{ mkdir $LOCKS/$DANLU_NODE-$d || {{ echo DOUBLE $d; exit 3; }} ; }}
         done
         i=0; while [ $i -lt {lines} ]; do echo line $i of {lines}; i=$((i+1)); sleep 0.0{}; done
         for d in $(echo $ASCEND_RT_VISIBLE_DEVICES | tr , ' '); do [ $LOCAL_RANK = 0 ] && rmdir $LOCKS/$DANLU_NODE-$d; done
         true",
        1 + random.below(9)
    );
    let base = JobSpec { name: format!("count-{index}"), ..spec(&program) };
    match index % 4 {
        0 => JobSpec { devices: "ascend:2".parse().unwrap(), ..base },
        1 => JobSpec { devices: "ascend:1".parse().unwrap(), workers: 2, ..base },
        2 => JobSpec { ranks: Some(RanksPerWorker::Count(2)), ..base },
        _ => base,
    }
}

async fn all_jobs(client: &Client) -> Option<Vec<JobView>> {
    let query = JobQuery { limit: Some(1000), ..JobQuery::default() };
    client.jobs_list(&query).await.ok().map(|page| page.items)
}

async fn last_event(client: &Client) -> Option<u64> {
    let mut query = EventQuery { limit: Some(1000), ..EventQuery::default() };
    let mut last = 0;
    loop {
        let page = client.events_list(&query).await.ok()?;
        last = page.items.last().map_or(last, |event| event.number);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Some(last),
        }
    }
}

/// What lies in the run folders of a job, and who still runs for it.
fn traces_of(server: &TestServer, job: &JobView) -> String {
    let folder = server.data().join(format!("runs/{}", job.id));
    let script = "for f in $(find . -type f | sort); do echo \"== $f\"; tail -c 600 $f; done; ls -lR; \
                  for p in /proc/[0-9]*; do case \"$(readlink $p/cwd)\" in \"$PWD\"/*) \
                  echo \"== $p $(tr '\\0' ' ' < $p/cmdline) $(cat $p/wchan $p/syscall)\" ;; esac; done";
    let shown = std::process::Command::new("sh").args(["-c", script]).current_dir(folder).output();
    shown.map_or_else(|error| error.to_string(), |shown| String::from_utf8_lossy(&shown.stdout).into_owned())
}

/// No two attempts may have held one device at the same time, by the record.
fn assert_no_device_held_twice(jobs: &[JobView]) {
    let mut spans: BTreeMap<(String, u32), Vec<_>> = BTreeMap::new();
    for job in jobs {
        for attempt in &job.attempts {
            for worker in &attempt.workers {
                for device in &worker.devices {
                    let key = (worker.node.0.clone(), *device);
                    spans.entry(key).or_default().push((attempt.placed_at, attempt.ended_at, job.id));
                }
            }
        }
    }
    for ((node, device), mut held) in spans {
        held.sort();
        for pair in held.windows(2) {
            let (_, ended, first) = pair[0];
            let (placed, _, second) = pair[1];
            assert!(
                ended.is_some_and(|ended| ended <= placed),
                "device {device} of {node} was held by jobs {first} (until {ended:?}) and {second} (from {placed}) at once"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_is_accounted_for_exactly_once_after_fifty_kills_of_the_server() {
    let mut random = Random::new();
    let mut server = TestServer::start(DANLU, &["--simulate", "4x4:ascend:910B3"]).await;
    let locks = server.folder().join("locks");
    std::fs::create_dir(&locks).unwrap();
    let specs: Vec<JobSpec> = (0..JOBS)
        .map(|index| {
            let mut job = counting_job(index, &mut random);
            job.env.insert("LOCKS".to_owned(), locks.display().to_string());
            job
        })
        .collect();

    // Clients that do not give up: each submission is repeated, under its key, until it is answered.
    let data = server.data();
    let submitted = Arc::new(AtomicUsize::new(0));
    let due = Arc::new(Semaphore::new(JOBS_AT_FIRST));
    let submitter = tokio::spawn({
        let (submitted, due, specs) = (submitted.clone(), due.clone(), specs.clone());
        async move {
            for (index, job) in specs.iter().enumerate() {
                due.acquire().await.unwrap().forget();
                let key = format!("submission-{index}");
                eventually("a submission to be answered", || async {
                    let client = Client::discover(Some(&data)).ok()?;
                    client.job_submit(job, Some(&key)).await.ok()
                })
                .await;
                submitted.fetch_add(1, Ordering::Relaxed);
            }
        }
    });

    let mut kills_under_way = 0;
    for round in 0..KILLS {
        due.add_permits(JOBS_PER_KILL);
        let due_by_now = JOBS_AT_FIRST + (round + 1) * JOBS_PER_KILL;
        // A random moment, counted in things that happened rather than in time; nothing may be left to happen before.
        let start = last_event(server.client()).await.unwrap_or(0);
        let wanted = random.below(12);
        let moment = eventually("the random moment to come", || async {
            let now = last_event(server.client()).await?;
            let everything = submitted.load(Ordering::Relaxed) == due_by_now;
            let ended = async {
                let jobs = all_jobs(server.client()).await?;
                Some(jobs.iter().all(|job| job.state == JobState::Ended))
            };
            (now >= start + wanted || (everything && ended.await?)).then_some(())
        });
        if tokio::time::timeout(DEADLINE / 2, moment).await.is_err() {
            let jobs = all_jobs(server.client()).await.unwrap_or_default();
            let open: Vec<_> = jobs.iter().filter(|job| job.state != JobState::Ended).collect();
            let submitted = submitted.load(Ordering::Relaxed);
            panic!(
                "round {round}: nothing happens; {submitted} of {due_by_now} submitted, still open: {open:#?}\n{}",
                server.log()
            );
        }
        let before = all_jobs(server.client()).await.expect("a running server lists its jobs");
        kills_under_way += usize::from(before.iter().any(|job| job.state != JobState::Ended));
        server.kill();
        server.restart().await;
        let jobs = all_jobs(server.client()).await.expect("a restarted server lists its jobs");
        let names: BTreeSet<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names.len(), jobs.len(), "round {round}: a job is there twice");
        assert!(jobs.len() >= before.len(), "round {round}: a job that was listed is gone");
        assert_no_device_held_twice(&jobs);
    }
    submitter.await.unwrap();
    eprintln!("{kills_under_way} of {KILLS} kills fell into work under way");
    assert!(
        kills_under_way > KILLS / 2,
        "only {kills_under_way} kills fell into work under way: this proves nothing"
    );

    let all_end = eventually_within(2 * DEADLINE, "all jobs to end", || async {
        let jobs = all_jobs(server.client()).await?;
        jobs.iter().all(|job| job.state == JobState::Ended).then_some(jobs)
    });
    let Ok(jobs) = tokio::time::timeout(DEADLINE, all_end).await else {
        let jobs = all_jobs(server.client()).await.unwrap_or_default();
        let open: Vec<_> = jobs.iter().filter(|job| job.state != JobState::Ended).collect();
        let left: String = open.iter().map(|job| traces_of(&server, job)).collect();
        panic!("{} of {} jobs do not end: {open:#?}\n{left}\n{}", open.len(), jobs.len(), server.log());
    };
    assert_eq!(jobs.len(), JOBS);
    assert_no_device_held_twice(&jobs);
    for job in &jobs {
        assert_eq!(
            job.outcome,
            Some(JobOutcome::Succeeded),
            "{}: {:?}\n{}",
            job.name,
            job.reason,
            server.log()
        );
        assert_eq!(job.attempts.len(), 1, "{} was started again although only the server died", job.name);
        let index: usize = job.name.trim_start_matches("count-").parse().unwrap();
        let mut by_rank: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for line in server.lines(job.id).await {
            by_rank.entry(line.rank.0).or_default().push(line.text);
        }
        let ranks = specs[index].workers * specs[index].ranks_per_worker(0);
        assert_eq!(by_rank.len(), ranks as usize, "{}", job.name);
        for (rank, lines) in by_rank {
            let count = lines.len();
            let expected: Vec<String> = (0..count).map(|line| format!("line {line} of {count}")).collect();
            assert_eq!(lines, expected, "{} rank {rank}: a line is missing or doubled", job.name);
        }
    }
    assert_eq!(std::fs::read_dir(&locks).unwrap().count(), 0, "a device's lock was left behind");
}

fn launcher_pid(server: &TestServer, job: &JobView) -> Option<i32> {
    let path = server.data().join(format!("runs/{}/1.0/status.jsonl", job.id));
    let text = std::fs::read_to_string(path).ok()?;
    let status: serde_json::Value = serde_json::from_str(text.lines().last()?).ok()?;
    i32::try_from(status["launcher"]["pid"].as_i64()?).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_launcher_ends_its_attempt_with_a_reason_and_its_ranks_are_gone() {
    let server = TestServer::start(DANLU, &[]).await;
    let folder = server.folder().display().to_string();
    let mut victims = Vec::new();
    for index in 0..20 {
        // Each rank has a child that left its process group, and so is nobody's to signal.
        let program = format!(
            "setsid sleep 1000 & echo $! > {folder}/child-{index}; echo $$ > {folder}/rank-{index}; sleep 1000"
        );
        let id = server.submit(&JobSpec { grace: Span::default(), ..spec(&program) }).await;
        let rank: i32 = server.file(&format!("rank-{index}")).await.trim().parse().unwrap();
        let child: i32 = server.file(&format!("child-{index}")).await.trim().parse().unwrap();
        victims.push((id, rank, child));
    }
    for (id, _, _) in &victims {
        let job = server.wait_for(*id, JobState::Running).await;
        let launcher = launcher_pid(&server, &job).expect("a running worker has a status");
        kill(Pid::from_raw(launcher), Signal::SIGKILL).unwrap();
    }
    for (id, rank, child) in victims {
        let job = server.wait_for_end(id).await;
        assert_eq!(job.reason.word(), "launcher_lost", "{:?}", job.reason);
        assert!(!alive(rank), "rank {rank} of job {id} outlived its launcher");
        assert!(!alive(child), "child {child} of job {id} outlived its launcher");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graceful_shutdown_leaves_jobs_running_and_the_next_server_finds_them() {
    let mut server = TestServer::start(DANLU, &[]).await;
    let folder = server.folder().display().to_string();
    let program = format!(
        "echo $$ > {folder}/rank; echo before; while ! [ -e {folder}/go ]; do sleep 0.02; done; echo after"
    );
    let id = server.submit(&spec(&program)).await;
    let rank: i32 = server.file("rank").await.trim().parse().unwrap();
    server.terminate();
    assert!(alive(rank), "a job must outlive its server");
    std::fs::write(server.folder().join("go"), "").unwrap();
    eventually("the rank to end while no server runs", || async { (!alive(rank)).then_some(()) }).await;
    server.restart().await;
    let job = server.wait_for_end(id).await;
    assert_eq!((job.outcome, job.attempts.len()), (Some(JobOutcome::Succeeded), 1), "{:?}", job.reason);
    assert_eq!(server.texts(id).await, ["before", "after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_one_data_folder_is_refused_and_the_first_goes_on() {
    let server = TestServer::start(DANLU, &[]).await;
    let mut second = tokio::process::Command::new(DANLU)
        .args(["up", "--listen", "127.0.0.1:0", "--data"])
        .arg(server.data())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let status = tokio::time::timeout(DEADLINE, second.wait()).await.expect("it does not serve").unwrap();
    assert!(!status.success());
    let mut text = String::new();
    second.stderr.take().unwrap().read_to_string(&mut text).await.unwrap();
    assert!(text.contains("another `danlu up` is using the data folder"), "{text}");
    assert_eq!(server.run(&spec("true")).await.outcome, Some(JobOutcome::Succeeded));
}

/// As a child does that a killed server was about to turn into a launcher.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_outlives_its_server_for_a_moment_refuses_nobody() {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let path = data.join("server.lock");
    let lock = std::fs::File::create(&path).unwrap();
    lock.lock().unwrap();
    let asks_for_it = |pid: i32| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.into_iter().any(|file| std::fs::read_link(file.path()).is_ok_and(|target| target == path))
    };
    let release = async {
        eventually("a server to ask for the lock", || async {
            processes_of(&data).into_iter().any(asks_for_it).then_some(())
        })
        .await;
        lock.unlock().unwrap();
    };
    let (server, ()) = tokio::join!(TestServer::start_in(DANLU, &[], folder, &[]), release);
    assert_eq!(server.run(&spec("true")).await.outcome, Some(JobOutcome::Succeeded));
}
