//! A small language for scheduling fixtures. Each line is a command; the transcript repeats it and says what came of it.
//!
//! ```text
//! node a 8 ascend:910B3 islands 4 cpus 64 memory 512Gi
//! job 1 workers 2 devices ascend:910B*:8 cpus 8 memory 64Gi priority 9
//! job 2 back-off 30s                       (until 30 s after the start of the fixture)
//! plan [at 40s]                            (and take what it says)
//! end 1 · hold 2 · fail a:3 · lose b · explain 2 · offer devices ascend:16
//! ```

use std::fmt::Write;
use std::sync::Arc;

use danlu_core::job::Waiting as Why;
use danlu_core::{Event, Grant, Job, Life, Step, apply};
use danlu_sched::{Cluster, Waiting, can_ever_run, explain, plan};
use danlu_types::{
    AttemptNumber, Bytes, Cpus, Device, DeviceKind, Health, JobId, JobSpec, Node, NodeCapacity, NodeName,
    Span,
};
use jiff::{SignedDuration, Timestamp};

pub(crate) fn start_of_time() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// A node whose devices stand in islands of the given size.
pub(crate) fn node(
    name: &str,
    devices: &[(u32, DeviceKind, &str)],
    island: u32,
    cpus: u64,
    memory: Bytes,
) -> Node {
    let mut all = Vec::new();
    for (count, kind, model) in devices {
        for _ in 0..*count {
            let index = u32::try_from(all.len()).unwrap();
            let memory = Bytes(64 << 30);
            let (model, health) = ((*model).to_owned(), Health::Ok);
            all.push(Device { index, kind: *kind, model, memory, island: index / island, health });
        }
    }
    Node {
        name: NodeName(name.to_owned()),
        architecture: "aarch64".to_owned(),
        capacity: NodeCapacity { cpus: Cpus::whole(cpus), memory },
        devices: all,
        address: "127.0.0.1".to_owned(),
        simulated: true,
    }
}

pub(crate) fn queued(id: u64, spec: JobSpec) -> Job {
    Job::submitted(JobId(id), "ada".to_owned(), Arc::new(spec), start_of_time())
}

/// `a[0-3 5], b[0]`
pub(crate) fn shown(grants: &[Grant]) -> String {
    let one = |grant: &Grant| format!("{}{}", grant.node, ranges(&grant.devices));
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

/// Runs a fixture and gives its transcript.
pub(crate) fn transcript(fixture: &str) -> String {
    let mut world =
        World { nodes: Vec::new(), cluster: Cluster::default(), jobs: Vec::new(), out: String::new() };
    for line in fixture.lines().map(str::trim).filter(|line| !line.is_empty()) {
        writeln!(world.out, "{line}").unwrap();
        if !line.starts_with('#') {
            world.run(&line.split_whitespace().collect::<Vec<_>>());
        }
    }
    world.out
}

struct World {
    nodes: Vec<Node>,
    cluster: Cluster,
    jobs: Vec<Job>,
    out: String,
}

impl World {
    fn run(&mut self, words: &[&str]) {
        match words {
            ["node", name, rest @ ..] => self.nodes.push(read_node(name, rest)),
            ["lose", name] => self.nodes.retain(|node| node.name.0 != *name),
            ["fail", device] => {
                let (name, index) = device.split_once(':').unwrap();
                let node = self.nodes.iter_mut().find(|node| node.name.0 == name).unwrap();
                node.devices[index.parse::<usize>().unwrap()].health = Health::Failed;
            }
            ["job", id, rest @ ..] => {
                let (spec, back_off) = read_spec(rest);
                let mut job = queued(id.parse().unwrap(), spec);
                if let Some(wait) = back_off {
                    let why = Why::Retry { attempt: AttemptNumber(1), not_before: start_of_time() + wait };
                    job.life = Life::Queued { since: start_of_time(), why };
                }
                self.jobs.push(job);
                self.jobs.sort_by_key(Job::place);
            }
            ["hold", id] => {
                let job = self.job(id);
                let Step::Next { job: held, .. } =
                    apply(job, Event::Hold { by: "ada".to_owned() }, start_of_time())
                else {
                    panic!("cannot hold {id}")
                };
                *job = *held;
            }
            ["end", id] => {
                let id = self.job(id).id;
                self.cluster.give_back(id);
                self.jobs.retain(|job| job.id != id);
            }
            ["plan", rest @ ..] => self.plan(read_time(rest)),
            ["explain", id, rest @ ..] => self.explain(id, read_time(rest)),
            ["offer", rest @ ..] => match can_ever_run(&self.nodes, &read_spec(rest).0) {
                Ok(()) => self.out.push_str("    accepted\n"),
                Err(error) => writeln!(self.out, "    refused: `{}` {}", error.field, error.message).unwrap(),
            },
            _ => panic!("not a command: {words:?}"),
        }
        self.cluster.update_nodes(&self.nodes);
    }

    fn job(&mut self, id: &str) -> &mut Job {
        let id: JobId = id.parse().unwrap();
        self.jobs.iter_mut().find(|job| job.id == id).unwrap()
    }

    fn plan(&mut self, now: Timestamp) {
        let plan = plan(&self.cluster, self.jobs.iter().map(|job| Waiting { job }), now);
        for start in plan.starts {
            writeln!(self.out, "    start {} on {}", start.job, shown(&start.grants)).unwrap();
            self.cluster.take(start.job, &start.grants).unwrap();
            let job = self.jobs.iter_mut().find(|job| job.id == start.job).unwrap();
            let Step::Next { job: placed, .. } = apply(job, Event::Place { grants: start.grants }, now)
            else {
                panic!("cannot place {}", start.job)
            };
            *job = *placed;
        }
        for (id, wait) in plan.waiting {
            let reason = wait.reason(&self.jobs.iter().find(|job| job.id == id).unwrap().spec);
            writeln!(self.out, "    {id} waits, {}: {}", reason.code, reason.text).unwrap();
        }
    }

    fn explain(&mut self, id: &str, now: Timestamp) {
        let job = self.job(id).clone();
        let told = explain(&self.cluster, self.jobs.iter().map(|job| Waiting { job }), &job, now);
        let position = told.position.map(|position| format!(", number {position} in the queue"));
        let state = told.state.as_str();
        writeln!(self.out, "    {state}{}", position.unwrap_or_default()).unwrap();
        writeln!(self.out, "    {}: {}", told.reason.code, told.reason.text).unwrap();
        for line in told.details {
            writeln!(self.out, "    - {line}").unwrap();
        }
    }
}

fn read_time(words: &[&str]) -> Timestamp {
    match words {
        ["at", time] => start_of_time() + span(time),
        [] => start_of_time(),
        _ => panic!("not a time: {words:?}"),
    }
}

fn span(text: &str) -> SignedDuration {
    match text.strip_prefix('-') {
        Some(text) => -span(text),
        None => text.parse::<Span>().unwrap().to_duration().try_into().unwrap(),
    }
}

fn read_node(name: &str, words: &[&str]) -> Node {
    let (mut devices, mut island, mut cpus, mut memory) = (Vec::new(), 64, 64, Bytes(512 << 30));
    for pair in words.chunks(2) {
        match pair {
            ["islands", size] => island = size.parse().unwrap(),
            ["cpus", count] => cpus = count.parse().unwrap(),
            ["memory", amount] => memory = amount.parse().unwrap(),
            [count, device] => {
                let (kind, model) = device.split_once(':').unwrap();
                devices.push((count.parse().unwrap(), kind.parse().unwrap(), model));
            }
            _ => panic!("not a node: {words:?}"),
        }
    }
    node(name, &devices, island, cpus, memory)
}

fn read_spec(words: &[&str]) -> (JobSpec, Option<SignedDuration>) {
    let mut spec = JobSpec::of_command("true");
    let mut back_off = None;
    for pair in words.chunks(2) {
        match pair {
            ["workers", count] => spec.workers = count.parse().unwrap(),
            ["devices", request] => spec.devices = request.parse().unwrap(),
            ["cpus", count] => spec.cpus = count.parse().unwrap(),
            ["memory", amount] => spec.memory = Some(amount.parse().unwrap()),
            ["priority", number] => spec.priority = number.parse().unwrap(),
            ["back-off", time] => back_off = Some(span(time)),
            _ => panic!("not a job: {words:?}"),
        }
    }
    (spec, back_off)
}
