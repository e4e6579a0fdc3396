//! What the worker uses, asked of the kernel every few seconds and written down.
//!
//! The first sample is taken when a worker has run for one interval, so short jobs have no file for it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use danlu_core::launch::{LaunchFile, RunLayout};
use danlu_core::sample::{
    Counters, DeviceUse, HangWatch, MOST_SAMPLE_BYTES, NodeReadings, SAMPLES_FILE, STALE, is_busy, sample,
};
use danlu_device::cgroup::WorkerGroup;
use danlu_device::process;
use jiff::Timestamp;
use nix::unistd::{SysconfVar, getpid, sysconf};

const EVERY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Sampling {
    every: Duration,
    last: Instant,
    counters: Counters,
    file: Option<File>,
    bytes: u64,
    readings: PathBuf,
    watch: Option<HangWatch>,
}

impl Sampling {
    pub(crate) fn new(launch: &LaunchFile) -> Self {
        let hang_after = launch.options.hang_after.map(danlu_types::Span::to_duration);
        let data = launch.folders.hints.parent().unwrap_or(Path::new("/")).to_owned();
        Sampling {
            // Twice within the time after which it counts as hung, so that one late look does not double it.
            every: hang_after.map_or(EVERY, |after| EVERY.min(after / 2)),
            last: Instant::now(),
            counters: Counters::default(),
            file: None,
            bytes: 0,
            readings: RunLayout { data }.readings_file(&launch.node),
            watch: hang_after.map(HangWatch::new),
        }
    }

    pub(crate) fn due(&self) -> Instant {
        self.last + self.every
    }

    /// Whether the worker hung when it was last looked at.
    pub(crate) fn hangs(&self) -> bool {
        self.watch.is_some_and(|watch| watch.hangs())
    }

    /// True where the worker has begun to hang. `silent_for`: how long it has printed nothing.
    pub(crate) fn take(&mut self, launch: &LaunchFile, group: &WorkerGroup, silent_for: Duration) -> bool {
        let (now, at) = (Instant::now(), Timestamp::now());
        let passed = now.duration_since(self.last);
        let counters = counters(group);
        let sample = sample(&self.counters, &counters, passed, at, self.devices(launch, at));
        (self.last, self.counters) = (now, counters);
        if let Ok(mut line) = serde_json::to_vec(&sample) {
            line.push(b'\n');
            self.write(&line);
        }
        let busy = is_busy(&sample, !launch.devices.is_empty());
        self.watch.as_mut().is_some_and(|watch| watch.on_sample(passed, silent_for, busy))
    }

    /// A line that cannot be written is a gap in a chart.
    fn write(&mut self, line: &[u8]) {
        self.bytes += line.len() as u64;
        if self.bytes > MOST_SAMPLE_BYTES {
            return;
        }
        if self.file.is_none() {
            self.file = OpenOptions::new().create(true).append(true).open(SAMPLES_FILE).ok();
        }
        if let Some(file) = &mut self.file {
            let _ = file.write_all(line);
        }
    }

    fn devices(&self, launch: &LaunchFile, now: Timestamp) -> BTreeMap<u32, DeviceUse> {
        if launch.devices.is_empty() {
            return BTreeMap::new();
        }
        let read = || serde_json::from_slice::<NodeReadings>(&fs::read(&self.readings).ok()?).ok();
        let fresh = |found: &NodeReadings| now.duration_since(found.at).unsigned_abs() <= STALE;
        let Some(found) = read().filter(fresh) else { return BTreeMap::new() };
        let own = |(index, _): &(u32, DeviceUse)| launch.devices.iter().any(|device| device.index == *index);
        found.devices.into_iter().filter(own).collect()
    }
}

fn counters(group: &WorkerGroup) -> Counters {
    let mut counters = group.counters();
    if counters.processor.is_none() || counters.memory.is_none() {
        let of_processes = count_processes();
        counters.processor = counters.processor.or(of_processes.processor);
        counters.memory = counters.memory.or(of_processes.memory);
    }
    (counters.received, counters.sent) =
        network().map_or((None, None), |(received, sent)| (Some(received), Some(sent)));
    counters
}

/// Without groups: the sum over what lives now. What ended in between is missing.
fn count_processes() -> Counters {
    let ticks = sysconf(SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .and_then(|ticks| u64::try_from(ticks).ok())
        .unwrap_or(100);
    let page = sysconf(SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .and_then(|page| u64::try_from(page).ok())
        .unwrap_or(4096);
    let (mut used, mut memory) = (0, 0);
    for pid in process::descendants(getpid().as_raw()) {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<u64> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_ascii_whitespace()
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        // Counted from the field after the name: utime and stime are 14 and 15 of the whole line, rss is 24.
        let at = |number: usize| fields.get(number - 3).copied().unwrap_or(0);
        used += at(14) + at(15);
        memory += at(24) * page;
    }
    let processor = Some(Duration::from_millis(used * 1000 / ticks));
    Counters { processor, memory: Some(memory), ..Counters::default() }
}

/// Bytes received and sent by all interfaces but the loopback.
fn network() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/net/dev").ok()?;
    let mut total = (0, 0);
    for line in text.lines() {
        let Some((name, counts)) = line.split_once(':') else { continue };
        let counts: Vec<u64> =
            counts.split_ascii_whitespace().filter_map(|count| count.parse().ok()).collect();
        if let (false, Some(received), Some(sent)) = (name.trim() == "lo", counts.first(), counts.get(8)) {
            total = (total.0 + received, total.1 + sent);
        }
    }
    Some(total)
}
