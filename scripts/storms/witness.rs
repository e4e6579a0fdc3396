//! A rank that keeps a record of its own, which Danlu neither writes nor reads.
//!
//! Usage: `witness MARKS [key=value ...]`. Appends marks to `MARKS/JOB.RANK` (start, a beat every 50 ms, end), holds a kernel
//! lock per (job, rank) and per (node, device) for as long as it lives, and prints numbered lines. Locks die with their
//! process and are not inherited: whoever does not get one at once has met another attempt, or another holder of its device.
//! Only the standard library, so that `rustc` alone builds it.

use std::env::var;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

struct Marks {
    file: File,
    attempt: String,
}

impl Marks {
    /// One write, so that marks of several processes never mix.
    fn add(&self, kind: &str, rest: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_nanos();
        let line = format!("{kind}\t{now}\t{}\t{rest}\n", self.attempt);
        (&self.file).write_all(line.as_bytes()).expect("the marks can be written");
    }
}

fn number(name: &str) -> usize {
    let prefix = format!("{name}=");
    let given = std::env::args().find_map(|argument| Some(argument.strip_prefix(&prefix)?.to_owned()));
    given.map_or(0, |text| text.parse().expect("a number"))
}

fn lock(marks: &Marks, path: PathBuf) -> File {
    let file = OpenOptions::new().create(true).append(true).open(&path).expect("a lock file");
    if file.try_lock().is_err() {
        marks.add("violation", &format!("somebody else holds {}", path.display()));
    }
    file
}

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("usage: witness MARKS [key=value ...]"));
    let word = |name: &str| var(name).unwrap_or_default();
    let (job, rank) = (word("DANLU_JOB_ID"), word("DANLU_RANK"));
    let path = folder.join(format!("{job}.{rank}"));
    let earlier = fs::read_to_string(&path).unwrap_or_default();
    let file = OpenOptions::new().create(true).append(true).open(&path).expect("the marks can be opened");
    let marks = Arc::new(Marks { file, attempt: word("DANLU_ATTEMPT") });

    let is_child = number("linger") > 0;
    let name = format!("job-{job}-{rank}{}", if is_child { "-child" } else { "" });
    let _own = lock(&marks, folder.join("locks").join(name));
    if is_child {
        loop {
            marks.add("child", &std::process::id().to_string());
            thread::sleep(Duration::from_millis(50));
        }
    }
    // Its share of the worker's devices, so that each is locked for as long as one of the ranks lives that may use it.
    let (local, ranks) = (word("LOCAL_RANK"), word("LOCAL_WORLD_SIZE"));
    let (local, ranks) = (local.parse().unwrap_or(0), ranks.parse().unwrap_or(1));
    let devices = word("ASCEND_RT_VISIBLE_DEVICES");
    let mine = devices.split(',').filter(|text| !text.is_empty()).enumerate();
    let _devices: Vec<File> = mine
        .filter(|(index, _)| index % ranks == local)
        .map(|(_, device)| lock(&marks, folder.join("locks").join(format!("{}-{device}", word("DANLU_NODE")))))
        .collect();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default().replace('\n', ";");
    marks.add(
        "start",
        &format!("{}\t{}\t{devices}\t{}\t{groups}", std::process::id(), word("DANLU_NODE"), word("DANLU_WORKER")),
    );
    if number("child") > 0 {
        // As programs do that make themselves daemons: a session of their own, and nothing of ours open.
        let mut child = Command::new("setsid");
        child.arg(std::env::current_exe().expect("a path")).arg(&folder).arg("linger=1");
        child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("setsid");
    }

    let printed = Arc::new(AtomicUsize::new(0));
    thread::spawn({
        let (marks, printed) = (marks.clone(), printed.clone());
        move || {
            loop {
                marks.add("beat", &printed.load(Ordering::SeqCst).to_string());
                thread::sleep(Duration::from_millis(50));
            }
        }
    });
    let lines = number("lines");
    let pause = Duration::from_millis(number("pause") as u64);
    for line in 0..lines {
        println!("line {line} of {lines} of job {job} attempt {} rank {rank}", marks.attempt);
        printed.fetch_add(1, Ordering::SeqCst);
        if !pause.is_zero() {
            thread::sleep(pause);
        }
    }
    let mut code = number("code");
    let steps = number("steps");
    if steps > 0 {
        code = usize::from(!all_steps_done(&marks, steps));
    }
    let failed = earlier.lines().filter(|line| line.starts_with("end\t") && !line.contains("\t0\t")).count();
    if failed < number("fail_first") {
        code = 1;
    }
    if number("crash") > 0 {
        marks.add("end", &format!("134\t{lines}"));
        std::process::abort();
    }
    marks.add("end", &format!("{code}\t{lines}"));
    exit(i32::try_from(code).expect("a small number"));
}

/// A third of the steps from where an earlier attempt left off; true when there are no more.
fn all_steps_done(marks: &Marks, steps: usize) -> bool {
    let file = |name: &str| var(name).map(|folder| PathBuf::from(folder).join("step"));
    let read = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<usize>().ok();
    let begun = file("DANLU_RESUME_DIR").ok().and_then(read).unwrap_or(0);
    marks.add("resumed", &begun.to_string());
    let saved = file("DANLU_CHECKPOINT_DIR").expect("the job has a checkpoint folder");
    let end = steps.min(begun + steps.div_ceil(3));
    for step in begun + 1..=end {
        thread::sleep(Duration::from_millis(60));
        let aside = saved.with_extension("new");
        // A full disk is no reason to say that a step is safe.
        if fs::write(&aside, step.to_string()).and_then(|()| fs::rename(&aside, &saved)).is_err() {
            return false;
        }
        marks.add("saved", &step.to_string());
    }
    end == steps
}
