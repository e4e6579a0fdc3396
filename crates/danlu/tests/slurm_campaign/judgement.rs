//! What Danlu says of each job, held against what its ranks did.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Write as _};

use danlu_types::JobId;
use danlu_types::api::{JobOutcome, JobState, JobView};
use jiff::Timestamp;

use super::cluster::uptime;
use super::course::Plan;
use super::faults::Fault;
use super::witness::{Deeds, Marks};

#[derive(Debug)]
pub(crate) struct Found {
    plan: Plan,
    done: BTreeMap<Fault, usize>,
    outcomes: BTreeMap<String, usize>,
    reasons: BTreeMap<String, usize>,
    starts: usize,
    /// What must not be.
    wrongs: BTreeMap<&'static str, Vec<String>>,
    /// When the server could be reached, where only sidecars tell it of ends.
    ups: Vec<(f64, f64)>,
    undelivered: usize,
    /// What is told of jobs whose ends were nobody's fault but the campaign's.
    told: Vec<String>,
    pub(crate) noteworthy: BTreeSet<JobId>,
}

/// How long a sidecar whose server comes back may take until it has delivered all, on a busy machine.
const TOLD_WITHIN: f64 = 10.0;

const OPEN: &str = "not ended";
const TWICE: &str = "same attempt and worker begun twice";
const BESIDE: &str = "two attempts alive at once";
const OTHERWISE: &str = "work finished, told as ended otherwise";
const UNFINISHED: &str = "\"succeeded\" without the last line of each rank";
const UNKNOWN: &str = "attempts that nobody ordered";
const BLAMED: &str = "the program blamed for what was done to it";
const FORGOTTEN: &str = "a later attempt began before what the one before it had saved";
const LEFT: &str = "left in squeue";
const ALIVE: &str = "ranks that nobody ended";
const ALL: [&str; 10] = [OPEN, TWICE, BESIDE, OTHERWISE, UNFINISHED, UNKNOWN, BLAMED, FORGOTTEN, LEFT, ALIVE];

impl Found {
    pub(crate) fn new(
        plan: Plan,
        done: &BTreeMap<Fault, usize>,
        alive: Vec<String>,
        left: Vec<String>,
        ups: Vec<(f64, f64)>,
    ) -> Self {
        let mut found = Found {
            plan,
            done: done.clone(),
            outcomes: BTreeMap::new(),
            reasons: BTreeMap::new(),
            starts: 0,
            wrongs: ALL.map(|what| (what, Vec::new())).into(),
            ups,
            undelivered: 0,
            told: Vec::new(),
            noteworthy: BTreeSet::new(),
        };
        found.wrongs.insert(ALIVE, alive);
        found.wrongs.insert(LEFT, left);
        found
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.wrongs.values().all(Vec::is_empty)
    }

    /// Whether an end could be told before whoever was to tell it was killed with its node's files.
    fn could_be_told(&self, done: f64, over: Option<Timestamp>) -> bool {
        let over =
            over.map_or(f64::INFINITY, |at| uptime() - Timestamp::now().duration_since(at).as_secs_f64());
        let within = self.ups.iter().map(|(from, until)| (until.min(over) - from.max(done)).max(0.0));
        self.ups.is_empty() || within.sum::<f64>() > TOLD_WITHIN
    }

    fn wrong(&mut self, what: &'static str, job: &JobView, detail: String) {
        self.noteworthy.insert(job.id);
        self.wrongs.entry(what).or_default().push(format!("job {}: {detail}", job.id));
    }
}

/// `last_words` says of each rank of the last attempt whether its last line is in its log.
pub(crate) fn judge(
    found: &mut Found,
    index: usize,
    job: &JobView,
    marks: &Marks,
    last_words: &[bool],
    is_shared: bool,
) {
    let outcome = job.outcome.map_or("open".to_owned(), |outcome| format!("{outcome:?}").to_lowercase());
    *found.outcomes.entry(outcome).or_default() += 1;
    if job.state != JobState::Ended {
        found.wrong(OPEN, job, format!("{:?}", job.reason));
    }
    for ((attempt, rank), deeds) in marks {
        found.starts += 1;
        let who = format!("{attempt}.{rank} ({index}): {deeds:?}");
        if deeds.begun > 1 || deeds.twice > 0 || deeds.ended > 1 {
            found.wrong(TWICE, job, who.clone());
        }
        if !deeds.beside.is_empty() {
            found.wrong(BESIDE, job, who.clone());
        }
        if !job.attempts.iter().any(|it| it.number.0 == *attempt) {
            found.wrong(UNKNOWN, job, who.clone());
        }
        let before = marks.iter().filter(|((other, same), _)| other < attempt && same == rank);
        let saved = before.clone().map(|(_, deeds)| deeds.saved).max().unwrap_or(0);
        let resumed = deeds.resumed_from.unwrap_or(saved);
        // What a sidecar had not carried yet when it was killed is lost on purpose.
        if (is_shared && resumed < saved) || resumed > saved + 1 {
            found.wrong(FORGOTTEN, job, format!("saved {saved}, and {who}"));
        }
        let overlap = before.map(|(_, other)| other.last).fold(0.0, f64::max) - deeds.first;
        if overlap > 0.0 {
            found.wrong(BESIDE, job, format!("by {overlap:.2} s, {who}"));
        }
    }
    for attempt in &job.attempts {
        let code = attempt.reason.word();
        *found.reasons.entry(code.to_owned()).or_default() += 1;
        let of_attempt: Vec<&Deeds> = marks
            .iter()
            .filter(|((number, _), _)| *number == attempt.number.0)
            .map(|(_, deeds)| deeds)
            .collect();
        let all = |what: fn(&Deeds) -> bool| {
            of_attempt.len() == job.spec.workers as usize && of_attempt.iter().all(|deeds| what(deeds))
        };
        let said = format!("attempt {}: {code}: {}", attempt.number.0, attempt.reason);
        if all(|deeds| deeds.ended == 1) && code != "succeeded" {
            let done = of_attempt.iter().map(|deeds| deeds.last).fold(0.0, f64::max);
            if found.could_be_told(done, attempt.ended_at) {
                found.wrong(OTHERWISE, job, said.clone());
            } else {
                found.undelivered += 1;
            }
        }
        let blames = ["exit", "program_error", "device_error", "out_of_memory", "setup_failed", "hang"];
        if blames.contains(&code) && !of_attempt.iter().any(|deeds| deeds.failed) {
            found.wrong(BLAMED, job, format!("{said}; {of_attempt:?}"));
        }
        if code == "succeeded" && !all(|deeds| deeds.ended == 1) {
            found.wrong(UNFINISHED, job, format!("{said}; {of_attempt:?}"));
        }
        if code != "succeeded" {
            found.told.push(format!("job {} {said}", job.id));
        }
    }
    if job.outcome == Some(JobOutcome::Succeeded) && !last_words.iter().all(|is_there| *is_there) {
        found.wrong(UNFINISHED, job, format!("lines missing: {last_words:?}"));
    }
}

impl Display for Found {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { is_shared, seed, jobs, faults } = self.plan;
        let disk = if is_shared { "a shared disk" } else { "no shared disk" };
        writeln!(text, "campaign on {disk}, seed {seed}: {jobs} jobs, {faults} faults")?;
        let done: Vec<String> =
            self.done.iter().map(|(fault, count)| format!("{} ×{count}", fault.name())).collect();
        writeln!(text, "faults: {}", done.join(", "))?;
        writeln!(text, "outcomes: {:?}; reasons of attempts: {:?}", self.outcomes, self.reasons)?;
        writeln!(text, "starts of ranks: {}", self.starts)?;
        for what in ALL {
            writeln!(text, "{what}: {}", self.wrongs[what].len())?;
        }
        if !self.ups.is_empty() {
            let what =
                "work finished, and lost with its sidecar or node before the server had been reachable for";
            writeln!(text, "{what} {TOLD_WITHIN} s: {}", self.undelivered)?;
        }
        let mut details = String::new();
        for what in ALL {
            for wrong in &self.wrongs[what] {
                writeln!(details, "WRONG {what}: {wrong}")?;
            }
        }
        for told in &self.told {
            writeln!(details, "{told}")?;
        }
        text.write_str(&details)
    }
}
