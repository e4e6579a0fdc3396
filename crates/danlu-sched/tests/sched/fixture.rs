//! A small language for scheduling fixtures. Each line is a command; the transcript repeats it and says what came of it.
//!
//! ```text
//! node a 8 ascend:910B3 islands 4 cpus 64 memory 512Gi arch x86_64 rack r1 label zone=east
//! foreign a 2 until 2h                     (a job of the cluster's own has two of its devices) · gone a
//! workspace red guaranteed ascend=8,cpus=64 limit ascend=16 per-user ascend=4 policy strict
//! lending off · minimum-run 5m
//! job 1 workspace red owner ada workers 2 devices ascend:910B*:8 priority 9 preemptible yes max-time 1h
//! job 2 any-of nvidia:8,ascend:4 arch aarch64 label zone=east same-rack yes retries 3
//! plan [at 40s]                            (and do what it says)
//! change 1 devices ascend:4 · end 1 · stopped 1 · fail 1 node_lost · hold 2 · release 2
//! break a:3 · mend a:3 · lose b · cordon a · uncordon a
//! why 2 · when 2 · offers 2 · check devices ascend:16
//! ```
//!
//! Every command may end in `at TIME`, counted from the start of the fixture; the clock stays there.

use std::fmt::Write;

use danlu_core::job::{FailureCause, WorkerEnd};
use danlu_core::{Grant, Trigger};
use danlu_types::{
    Amounts, AttemptNumber, Cpus, DeviceRequest, HeadOfLine, Health, JobId, JobSpec, Node, RetryCause,
    Sharing, Span, Workspace,
};
use jiff::{SignedDuration, Timestamp};

use crate::world::{World, foreign, node, start_of_time};

/// Runs a fixture and gives its transcript.
pub(crate) fn transcript(fixture: &str) -> String {
    run(fixture).out
}

/// Runs a fixture and gives what it leaves.
pub(crate) fn world(fixture: &str) -> World {
    run(fixture).world
}

fn run(fixture: &str) -> Run {
    let world = World::new(Vec::new(), Sharing::default());
    let mut run = Run { world, out: String::new() };
    for line in fixture.lines().map(str::trim).filter(|line| !line.is_empty()) {
        writeln!(run.out, "{line}").unwrap();
        if !line.starts_with('#') {
            run.command(line);
        }
    }
    run
}

/// `a[0-3 5], b[0]×0.5`
pub(crate) fn shown(grants: &[Grant]) -> String {
    let one = |grant: &Grant| {
        let share = Cpus { milli: u64::from(grant.share) };
        let share = if grant.share < 1000 { format!("×{share}") } else { String::new() };
        format!("{}{}{share}", grant.node, ranges(&grant.devices))
    };
    grants.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn ranges(devices: &[u32]) -> String {
    if devices.is_empty() {
        return String::new();
    }
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &device in devices {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == device => *last = device,
            _ => parts.push((device, device)),
        }
    }
    let text = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    format!("[{}]", parts.iter().map(text).collect::<Vec<_>>().join(" "))
}

struct Run {
    world: World,
    out: String,
}

impl Run {
    fn command(&mut self, line: &str) {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if let [.., "at", time] = words[..] {
            self.world.now = start_of_time() + span(time);
            words.truncate(words.len() - 2);
        }
        match words[..] {
            ["node", name, ref rest @ ..] => self.world.nodes.push(read_node(name, rest)),
            ["lose", name] => self.world.nodes.retain(|node| node.name.0 != name),
            ["foreign", name, devices, ref rest @ ..] => {
                let until = match rest {
                    ["until", time] => Some(start_of_time() + span(time)),
                    _ => None,
                };
                self.node(name).foreign.push(foreign(devices.parse().unwrap(), 0, until));
            }
            ["gone", name] => self.node(name).foreign.clear(),
            ["break", device] => self.set_health(device, Health::Failed),
            ["mend", device] => self.set_health(device, Health::Ok),
            ["cordon", name] => self.node(name).cordoned = Some("maintenance".to_owned()),
            ["uncordon", name] => self.node(name).cordoned = None,
            ["workspace", name, ref rest @ ..] => {
                self.world.sharing.workspaces.insert(name.to_owned(), read_workspace(rest));
            }
            ["lending", "off"] => self.world.sharing.lending = false,
            ["minimum-run", time] => self.world.sharing.minimum_run_time = time.parse().unwrap(),
            ["job", id, ref rest @ ..] => {
                let (owner, mut spec) = read_spec(rest);
                spec.name = format!("job-{id}");
                self.world.submit(id.parse().unwrap(), &owner, spec);
            }
            ["change", id, ref rest @ ..] => self.change(job(id), rest),
            ["hold", id] => self.world.apply(job(id), Trigger::Hold { by: "ada".to_owned() }),
            ["release", id] => self.world.apply(job(id), Trigger::Release { by: "ada".to_owned() }),
            ["saved", id] => {
                let attempt = self.world.jobs[&job(id)].next_attempt().0 - 1;
                self.world.apply(job(id), Trigger::Saved { attempt: AttemptNumber(attempt) });
            }
            ["end", id] => self.world.end(job(id), &WorkerEnd::Succeeded),
            ["stopped", id] => self.world.end(job(id), &WorkerEnd::Stopped),
            ["fail", id, cause] => self.world.fail(job(id), 0, cause_of(cause)),
            ["plan"] => self.plan(),
            ["why", id] => self.why(job(id)),
            ["when", id] => self.when(job(id)),
            ["offers", id] => self.offers(job(id)),
            ["check", ref rest @ ..] => match self.world.scheduler.check(&read_spec(rest).1) {
                Ok(()) => self.out.push_str("    accepted\n"),
                Err(error) => writeln!(self.out, "    refused: `{}` {}", error.field, error.message).unwrap(),
            },
            _ => panic!("not a command: {line}"),
        }
        self.world.refresh();
    }

    /// Replaces the fields that are named.
    fn change(&mut self, id: JobId, words: &[&str]) {
        let job = &self.world.jobs[&id];
        let (_, spec) = read_spec_onto(JobSpec::clone(&job.spec), words);
        let (spec, seen) = (std::sync::Arc::new(spec), job.generation);
        self.world.apply(id, Trigger::Change { by: "ada".to_owned(), spec, approval: None, seen });
    }

    fn when(&mut self, job: JobId) {
        let explanation = self.world.scheduler.explain(&self.world.jobs[&job], self.world.now);
        let Some(estimate) = explanation.estimate else {
            writeln!(self.out, "    nobody knows when").unwrap();
            return;
        };
        let latest = estimate.latest.map_or_else(|| "?".to_owned(), since_start);
        let earliest = since_start(estimate.earliest);
        writeln!(self.out, "    between {earliest} and {latest}, going by {}", estimate.rests_on).unwrap();
    }

    fn offers(&mut self, job: JobId) {
        let explanation = self.world.scheduler.explain(&self.world.jobs[&job], self.world.now);
        for offer in &explanation.offers {
            writeln!(self.out, "    offered {:?}: {}", offer.set, offer.text).unwrap();
        }
        if explanation.offers.is_empty() {
            self.out.push_str("    nothing is offered\n");
        }
    }

    fn node(&mut self, name: &str) -> &mut Node {
        self.world.nodes.iter_mut().find(|node| node.name.0 == name).unwrap()
    }

    fn set_health(&mut self, device: &str, health: Health) {
        let (name, index) = device.split_once(':').unwrap();
        self.node(name).devices[index.parse::<usize>().unwrap()].health = health;
    }

    fn plan(&mut self) {
        let plan = self.world.plan();
        for start in &plan.starts {
            writeln!(self.out, "    start {} on {}", start.job, shown(&start.grants)).unwrap();
        }
        for preemption in &plan.preemptions {
            writeln!(self.out, "    preempt {} for {}", preemption.victim, preemption.for_job).unwrap();
        }
        for reservation in &plan.reservations {
            let (at, on) = (since_start(reservation.at), shown(&reservation.grants));
            writeln!(self.out, "    reserve for {} at {at}: {on}", reservation.job).unwrap();
        }
        let waiting: Vec<JobId> = self.world.queued().map(|job| job.id).collect();
        for id in waiting {
            self.why(id);
        }
        if let Some(wake) = plan.next_wake {
            writeln!(self.out, "    wake at {}", since_start(wake)).unwrap();
        }
    }

    fn why(&mut self, id: JobId) {
        let Some(reason) = self.world.scheduler.wait_reason(id) else {
            writeln!(self.out, "    {id} does not wait").unwrap();
            return;
        };
        let job = &self.world.jobs[&id];
        let reason = danlu_core::view::reason(job, reason.reason(&job.spec));
        writeln!(self.out, "    {id} waits, {}: {reason}", reason.word()).unwrap();
    }
}

fn job(id: &str) -> JobId {
    id.parse().unwrap()
}

fn cause_of(word: &str) -> FailureCause {
    match word {
        "node_lost" => FailureCause::NodeLost,
        "device_error" => FailureCause::DeviceError,
        "exit" => FailureCause::Exit,
        _ => panic!("not a cause: {word}"),
    }
}

fn since_start(time: Timestamp) -> String {
    let milliseconds = u64::try_from(time.duration_since(start_of_time()).as_millis()).unwrap();
    Span { milliseconds }.to_string()
}

fn span(text: &str) -> SignedDuration {
    match text.strip_prefix('-') {
        Some(text) => -span(text),
        None => text.parse::<Span>().unwrap().to_duration().try_into().unwrap(),
    }
}

fn read_node(name: &str, words: &[&str]) -> Node {
    let (mut devices, mut island) = (Vec::new(), 64);
    let mut read = node(name, &[], 1);
    for pair in words.chunks(2) {
        match pair {
            ["islands", size] => island = size.parse().unwrap(),
            ["cpus", count] => read.capacity.cpus = count.parse().unwrap(),
            ["memory", amount] => read.capacity.memory = amount.parse().unwrap(),
            ["arch", word] => (*word).clone_into(&mut read.architecture),
            ["rack", word] => drop(read.labels.insert("rack".to_owned(), (*word).to_owned())),
            ["label", label] => read.labels.extend([pair_of(label)]),
            [count, device] => {
                let (kind, model) = device.split_once(':').unwrap();
                devices.push((count.parse().unwrap(), kind.parse().unwrap(), model));
            }
            _ => panic!("not a node: {words:?}"),
        }
    }
    Node { devices: node(name, &devices, island).devices, ..read }
}

fn read_workspace(words: &[&str]) -> Workspace {
    let mut workspace = Workspace::default();
    for pair in words.chunks(2) {
        match pair {
            ["guaranteed", amounts] => workspace.guaranteed = read_amounts(amounts),
            ["limit", amounts] => workspace.limit = read_amounts(amounts),
            ["per-user", amounts] => workspace.per_user = read_amounts(amounts),
            ["policy", word] => {
                workspace.head_of_line = match *word {
                    "backfill" => HeadOfLine::Backfill,
                    "strict" => HeadOfLine::Strict,
                    "skip" => HeadOfLine::Skip,
                    "balance" => HeadOfLine::Balance,
                    _ => panic!("not a policy: {word}"),
                }
            }
            _ => panic!("not a workspace: {words:?}"),
        }
    }
    workspace
}

fn read_amounts(text: &str) -> Amounts {
    let mut amounts = Amounts::default();
    for (name, amount) in text.split(',').map(|pair| pair.split_once('=').unwrap()) {
        match name {
            "nvidia" => amounts.nvidia = Some(amount.parse().unwrap()),
            "ascend" => amounts.ascend = Some(amount.parse().unwrap()),
            "cpus" => amounts.cpus = Some(amount.parse().unwrap()),
            "memory" => amounts.memory = Some(amount.parse().unwrap()),
            _ => panic!("not a resource: {name}"),
        }
    }
    amounts
}

fn read_spec(words: &[&str]) -> (String, JobSpec) {
    read_spec_onto(JobSpec::of_command("true"), words)
}

fn read_spec_onto(mut spec: JobSpec, words: &[&str]) -> (String, JobSpec) {
    let mut owner = "ada".to_owned();
    for pair in words.chunks(2) {
        match pair {
            ["owner", name] => (*name).clone_into(&mut owner),
            ["workspace", name] => (*name).clone_into(&mut spec.workspace),
            ["workers", count] => spec.workers = count.parse().unwrap(),
            ["devices", request] => spec.devices = request.parse().unwrap(),
            ["any-of", requests] => spec.any_of = requests.split(',').map(read_request).collect(),
            ["cpus", count] => spec.cpus = count.parse().unwrap(),
            ["memory", amount] => spec.memory = Some(amount.parse().unwrap()),
            ["priority", number] => spec.priority = Some(number.parse().unwrap()),
            ["preemptible", "yes"] => spec.preemptible = true,
            ["max-time", time] => spec.max_time = Some(time.parse().unwrap()),
            ["arch", word] => spec.nodes.architecture = Some((*word).to_owned()),
            ["label", label] => spec.nodes.labels.extend([pair_of(label)]),
            ["same-rack", "yes"] => spec.nodes.same_rack = true,
            ["retries", count] => {
                spec.retry.limit = count.parse().unwrap();
                spec.retry.on.push(RetryCause::Exit);
            }
            _ => panic!("not a job: {words:?}"),
        }
    }
    (owner, spec)
}

fn read_request(text: &str) -> DeviceRequest {
    text.parse().unwrap()
}

fn pair_of(label: &str) -> (String, String) {
    let (name, value) = label.split_once('=').unwrap();
    (name.to_owned(), value.to_owned())
}
