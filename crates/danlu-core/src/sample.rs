//! What a worker uses while it runs, and whether it still does anything.
//!
//! Launchers write a [`Sample`] every few seconds as a line of [`SAMPLES_FILE`]. What devices do is not theirs to ask: vendors'
//! tools are slow and large, and one process per node is enough for them. Whoever asks them lays the answer down as a
//! [`NodeReadings`], and launchers read that.

use std::collections::BTreeMap;
use std::time::Duration;

pub use danlu_types::sample::{DeviceUse, Sample};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub const SAMPLES_FILE: &str = "samples.jsonl";
/// A launcher stops writing there: half a year for a worker without devices, three weeks with eight.
pub const MOST_SAMPLE_BYTES: u64 = 256 << 20;
/// Answers older than this say nothing about now.
pub const STALE: Duration = Duration::from_mins(1);
/// Below this a device does nothing worth mentioning.
const IDLE_PERCENT: u32 = 5;
/// The same for processors: a program that only waits takes less of a core.
const IDLE_CORES: f64 = 0.02;

/// What the devices of a node did at a moment, in `RunLayout::readings_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReadings {
    pub at: Timestamp,
    pub devices: BTreeMap<u32, DeviceUse>,
}

/// Counters that only grow, as the kernel has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    pub processor: Option<Duration>,
    pub memory: Option<u64>,
    pub read: Option<u64>,
    pub written: Option<u64>,
    pub received: Option<u64>,
    pub sent: Option<u64>,
}

/// What happened between two looks at the counters, `passed` apart.
pub fn sample(
    before: &Counters,
    now: &Counters,
    passed: Duration,
    at: Timestamp,
    devices: BTreeMap<u32, DeviceUse>,
) -> Sample {
    let seconds = passed.as_secs_f64().max(0.001);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "bytes"
    )]
    let rate =
        |before: Option<u64>, now: Option<u64>| Some((now?.saturating_sub(before?) as f64 / seconds) as u64);
    let cores = |before: Duration, now: Duration| now.saturating_sub(before).as_secs_f64() / seconds;
    Sample {
        at,
        cores: before
            .processor
            .zip(now.processor)
            .map(|(before, now)| (cores(before, now) * 1000.0).round() / 1000.0),
        memory: now.memory,
        read: rate(before.read, now.read),
        written: rate(before.written, now.written),
        received: rate(before.received, now.received),
        sent: rate(before.sent, now.sent),
        devices,
    }
}

/// Whether a worker does something. Where it has devices they decide: a rank that waits for another in a collective
/// operation keeps a processor busy. `None` where nobody knows.
pub fn is_busy(sample: &Sample, has_devices: bool) -> Option<bool> {
    if has_devices {
        let percents: Vec<u32> = sample.devices.values().filter_map(|device| device.percent).collect();
        return (!percents.is_empty()).then(|| percents.iter().any(|percent| *percent >= IDLE_PERCENT));
    }
    sample.cores.map(|cores| cores > IDLE_CORES)
}

/// Looks for workers that hang: silent, and seen to be idle.
#[derive(Debug, Clone, Copy)]
pub struct HangWatch {
    after: Duration,
    idle_for: Duration,
    told: bool,
}

impl HangWatch {
    pub fn new(after: Duration) -> Self {
        HangWatch { after, idle_for: Duration::ZERO, told: false }
    }

    /// Whether the worker hung when it was last looked at.
    pub fn hangs(&self) -> bool {
        self.told
    }

    /// A sample was taken, `passed` after the last one. True once for each hang; a worker that speaks again may hang again.
    pub fn on_sample(&mut self, passed: Duration, silent_for: Duration, busy: Option<bool>) -> bool {
        match busy {
            Some(true) => self.idle_for = Duration::ZERO,
            Some(false) => self.idle_for += passed,
            // Nobody can tell: the server that reads devices may be down, which must not end anybody's training.
            None => {}
        }
        // What was printed since the last sample counts, however late this one is on a busy machine.
        let spoke = silent_for < passed;
        let hangs = !spoke && silent_for >= self.after && self.idle_for >= self.after;
        let news = hangs && !self.told;
        self.told = hangs;
        news
    }
}
