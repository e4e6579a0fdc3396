//! What the ranks say of themselves, written where others find it.
//!
//! Looking costs eight bytes' comparison for each line. Files come to be with the first word, so a worker that says nothing
//! has none.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use danlu_core::report::{METRICS_FILE, PREFIX, ProgramReport, REPORT_FILE, ReportLine, read_line};
use danlu_types::Rank;
use jiff::Timestamp;
use serde_json::{Map, Number, Value};
use tokio::sync::Notify;

use crate::launcher_log::LauncherLog;
use crate::worker::write_whole;

/// How often the report is written at most.
pub(crate) const WRITE_EVERY: Duration = Duration::from_millis(500);
/// Charts need no more, and a program must not fill the disk by them.
const MOST_METRICS_BYTES: u64 = 64 << 20;

/// Shared by the captures of a worker's ranks and its supervisor.
#[derive(Debug, Clone)]
pub(crate) struct ReportWriter {
    inner: Arc<Mutex<Inner>>,
    /// Wakes the supervisor, who else would learn of a new [`ReportWriter::due`] only when something else happens.
    became_due: Arc<Notify>,
}

#[derive(Debug)]
struct Inner {
    run: PathBuf,
    launcher_log: LauncherLog,
    report: ProgramReport,
    metrics: Option<File>,
    metrics_bytes: u64,
    /// When to write what has changed.
    due: Option<Instant>,
    last_output: Instant,
}

impl ReportWriter {
    pub(crate) fn new(run: PathBuf, launcher_log: LauncherLog) -> Self {
        let inner = Inner {
            run,
            launcher_log,
            report: ProgramReport::default(),
            metrics: None,
            metrics_bytes: 0,
            due: None,
            last_output: Instant::now(),
        };
        ReportWriter { inner: Arc::new(Mutex::new(inner)), became_due: Arc::default() }
    }

    /// A rank printed something.
    pub(crate) fn on_output(&self) {
        self.lock().last_output = Instant::now();
    }

    /// A line of a rank's standard output.
    pub(crate) fn on_line(&self, rank: Rank, line: &[u8], at: Timestamp) {
        if !line.starts_with(PREFIX) {
            return;
        }
        let Some(line) = read_line(line) else { return };
        let mut inner = self.lock();
        inner.report.take(rank, &line, at);
        if let ReportLine::Metric { step, values } = &line {
            inner.write_metric(rank, *step, values, at);
        }
        if inner.due.is_none() {
            inner.due = Some(Instant::now() + WRITE_EVERY);
            self.became_due.notify_one();
        }
    }

    /// The worker seems to hang, or does no longer.
    pub(crate) fn set_hang(&self, hang: Option<String>) {
        let mut inner = self.lock();
        inner.report.hang = hang;
        inner.due = Some(Instant::now());
    }

    /// When [`Self::write`] has something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.lock().due
    }

    /// Returns when [`Self::due`] has been set.
    pub(crate) async fn became_due(&self) {
        self.became_due.notified().await;
    }

    /// Writes the report; true if there was something new in it.
    pub(crate) fn write(&self) -> bool {
        let mut inner = self.lock();
        if inner.due.take().is_none() {
            return false;
        }
        let text = serde_json::to_string(&inner.report).unwrap_or_default();
        if let Err(error) = write_whole(&inner.run.join(REPORT_FILE), &text) {
            inner.launcher_log.note(format_args!("cannot write what the program reports: {error}"));
        }
        true
    }

    pub(crate) fn last_output(&self) -> Instant {
        self.lock().last_output
    }

    pub(crate) fn report(&self) -> ProgramReport {
        self.lock().report.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn write_metric(&mut self, rank: Rank, step: Option<u64>, values: &[(String, f64)], at: Timestamp) {
        if self.metrics_bytes >= MOST_METRICS_BYTES {
            return;
        }
        let mut object = Map::new();
        object.insert("at".to_owned(), Value::from(at.to_string()));
        object.insert("rank".to_owned(), Value::from(rank.0));
        object.extend(step.map(|step| ("step".to_owned(), Value::from(step))));
        let mut numbers = Map::new();
        for (name, value) in values {
            // JSON has no word for what is not a number; charts show a gap.
            numbers.insert(name.clone(), Number::from_f64(*value).map_or(Value::Null, Value::Number));
        }
        object.insert("values".to_owned(), Value::Object(numbers));
        let line = format!("{}\n", Value::Object(object));
        self.metrics_bytes += line.len() as u64;
        if self.metrics_bytes >= MOST_METRICS_BYTES {
            self.launcher_log.note("the program reports so many metrics that further ones are not kept");
        }
        if self.metrics.is_none() {
            self.metrics =
                OpenOptions::new().create(true).append(true).open(self.run.join(METRICS_FILE)).ok();
        }
        if let Some(Err(error)) = self.metrics.as_mut().map(|file| file.write_all(line.as_bytes())) {
            self.launcher_log.note(format_args!("cannot write a metric: {error}"));
            self.metrics_bytes = MOST_METRICS_BYTES;
        }
    }
}
