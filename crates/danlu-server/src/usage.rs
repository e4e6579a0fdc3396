//! How much of the cluster was in use: a look every minute, kept for a week in a file beside the database.
//!
//! It is for charts only. What cannot be written is forgotten with the server.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use danlu_types::api::{DeviceUsage, DeviceView, JobState, NodeView, UsagePoint};
use danlu_types::{DeviceKind, NodeName};
use jiff::{SignedDuration, Timestamp};

use crate::app::App;

pub(crate) const LOOK_EVERY: Duration = Duration::from_mins(1);
const KEEP: SignedDuration = SignedDuration::from_hours(24 * 7);
const FILE: &str = "usage.jsonl";

#[derive(Debug)]
pub(crate) struct UsageLog {
    file: PathBuf,
    /// Oldest first.
    points: Mutex<VecDeque<UsagePoint>>,
}

impl UsageLog {
    /// Reads what earlier servers have seen, and drops what is too old to show.
    pub(crate) fn open(data: &std::path::Path, now: Timestamp) -> Self {
        let file = data.join(FILE);
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let points: VecDeque<UsagePoint> =
            lines.filter(|point: &UsagePoint| now.duration_since(point.at) < KEEP).collect();
        let log = UsageLog { file, points: Mutex::new(points) };
        if log.points().len() < text.lines().count() {
            log.write_all();
        }
        log
    }

    fn points(&self) -> std::sync::MutexGuard<'_, VecDeque<UsagePoint>> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self) {
        let lines = self.points().iter().fold(Vec::new(), |mut lines, point| {
            let _ = serde_json::to_writer(&mut lines, point);
            lines.push(b'\n');
            lines
        });
        let next = self.file.with_extension("new");
        let written = std::fs::write(&next, lines).and_then(|()| std::fs::rename(&next, &self.file));
        if let Err(error) = written {
            tracing::debug!("cannot write {}: {error}", self.file.display());
        }
    }

    fn add(&self, point: UsagePoint) {
        let mut line = serde_json::to_vec(&point).unwrap_or_default();
        line.push(b'\n');
        let file = std::fs::OpenOptions::new().append(true).create(true).open(&self.file);
        if let Err(error) = file.and_then(|mut file| file.write_all(&line)) {
            tracing::debug!("cannot write {}: {error}", self.file.display());
        }
        let mut points = self.points();
        let oldest = point.at;
        points.push_back(point);
        while points.front().is_some_and(|first| oldest.duration_since(first.at) >= KEEP) {
            points.pop_front();
        }
    }

    /// At most `limit` points after `since`, evenly spread, the newest always among them.
    pub(crate) fn since(&self, since: Timestamp, limit: usize) -> Vec<UsagePoint> {
        let points = self.points();
        let first = points.partition_point(|point| point.at <= since);
        thinned(points.range(first..), limit)
    }
}

fn thinned<'a>(
    points: impl ExactSizeIterator<Item = &'a UsagePoint> + DoubleEndedIterator,
    limit: usize,
) -> Vec<UsagePoint> {
    let step = points.len().div_ceil(limit.max(1)).max(1);
    let mut thinned: Vec<UsagePoint> = points.rev().step_by(step).cloned().collect();
    thinned.reverse();
    thinned
}

impl App {
    /// Looks at the cluster and notes what it sees.
    pub(crate) async fn note_usage(&self) {
        let devices = self.devices_read().await;
        let point = summary(&devices, &self.node_views(), self.jobs_counted(), Timestamp::now());
        self.usage.add(point);
    }

    /// Jobs that wait, and jobs that have their devices.
    fn jobs_counted(&self) -> (usize, usize) {
        let pages = self.live_state.read();
        let queued = pages.jobs().filter(|job| job.state() == JobState::Queued).count();
        (queued, pages.active().count())
    }
}

fn summary(
    devices: &[DeviceView],
    nodes: &[NodeView],
    (queued, running): (usize, usize),
    at: Timestamp,
) -> UsagePoint {
    let mut held: BTreeMap<(&NodeName, u32), u32> = BTreeMap::new();
    for NodeView { node, held: of_node, .. } in nodes {
        for share in of_node {
            *held.entry((&node.name, share.index)).or_default() += share.count.milli();
        }
    }
    let mut models: BTreeMap<(DeviceKind, &str), (DeviceUsage, Vec<f64>)> = BTreeMap::new();
    for view in devices {
        let DeviceView { device, .. } = view;
        let (usage, busy) = models.entry((device.kind, &device.model)).or_insert_with(|| {
            let model = device.model.clone();
            (DeviceUsage { kind: device.kind, model, total: 0, usable: 0, held: 0.0, busy: None }, Vec::new())
        });
        usage.total += 1;
        usage.usable += u32::from(device.usable() && view.out_of_service.is_none());
        let own = held.get(&(&view.node, device.index)).map_or(0.0, |milli| f64::from(*milli) / 1000.0);
        usage.held += if view.foreign.is_some() { 1.0 } else { own };
        busy.extend(view.reading.as_ref().and_then(|reading| reading.utilisation_percent).map(f64::from));
    }
    let devices = models.into_values().map(|(usage, busy)| DeviceUsage {
        busy: (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64),
        ..usage
    });
    UsagePoint { at, queued, running, devices: devices.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(minutes: i64) -> UsagePoint {
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
        UsagePoint { at, queued: 0, running: 0, devices: Vec::new() }
    }

    #[test]
    fn a_week_is_kept_over_restarts_and_shown_evenly() {
        let folder = tempfile::tempdir().unwrap();
        let log = UsageLog::open(folder.path(), Timestamp::UNIX_EPOCH);
        let week = 7 * 24 * 60;
        (0..week + 10).for_each(|minute| log.add(point(minute)));
        let at = |log: &UsageLog, limit| -> Vec<i64> {
            log.since(Timestamp::UNIX_EPOCH, limit).iter().map(|point| point.at.as_second() / 60).collect()
        };
        assert_eq!(at(&log, 3), [10 + week / 3 - 1, 10 + 2 * week / 3 - 1, week + 9]);
        let again = UsageLog::open(folder.path(), point(week + 20).at);
        assert_eq!(at(&again, 20_000).first(), Some(&21), "what is older than a week is forgotten");
        assert_eq!(at(&again, 20_000).len(), usize::try_from(week - 11).unwrap());
        std::fs::write(folder.path().join(FILE), "{\n\u{0}").unwrap();
        assert_eq!(at(&UsageLog::open(folder.path(), Timestamp::UNIX_EPOCH), 10), [0; 0]);
    }
}
