//! Jobs, amounts and times in words.

use danlu_types::api::{JobOutcome, JobState, JobView};
use danlu_types::{DeviceKind, ForeignKind, JobSpec, ProgressView, Reason, Span, format};
use jiff::{SignedDuration, Timestamp};

/// `queued: waiting for 8 Ascend 910B, 5 free`
pub(crate) fn state_sentence(state: JobState, reason: &Reason) -> String {
    match reason {
        // These say the state themselves.
        Reason::Held { .. } | Reason::Running { .. } | Reason::StopRequested { .. } => reason.to_string(),
        _ if state == JobState::Ended => reason.to_string(),
        _ => format!("{}: {reason}", state.as_str()),
    }
}

/// `2 × 8 Ascend 910B*`; with alternatives, `2 × (8 NVIDIA or 8 Ascend)`; without devices, `4 × 2 CPUs`.
pub(crate) fn resources(spec: &JobSpec) -> String {
    let alternatives: Vec<String> = spec.alternatives().iter().map(format::devices).collect();
    let each = match &alternatives[..] {
        _ if spec.is_cpu_only() => format::cpus(spec.cpus),
        [_, _, ..] if spec.workers > 1 => format!("({})", alternatives.join(" or ")),
        _ => alternatives.join(" or "),
    };
    if spec.workers == 1 { each } else { format!("{} × {each}", spec.workers) }
}

/// Of the last attempt's workers; before there is one, of those with the most devices.
pub(crate) fn ranks_per_worker(job: &JobView) -> u32 {
    let worker = job.attempts.last().and_then(|attempt| attempt.workers.first());
    let held = worker.and_then(|worker| u32::try_from(worker.devices.len()).ok());
    job.spec.ranks_per_worker(held.unwrap_or_else(|| job.spec.most_devices()))
}

pub(crate) fn device_label(kind: DeviceKind, model: &str) -> String {
    kind.labelled(model)
}

/// What holds devices and is none of Danlu's.
pub(crate) fn foreign_label(kind: ForeignKind, job: &str, name: &str) -> String {
    match kind {
        ForeignKind::ClusterJob => format!("{job} ({name})"),
        ForeignKind::Process => format!("process {job} ({name})"),
        ForeignKind::UnknownProcess => "an unknown process".to_owned(),
    }
}

/// All of its waits, the present one until now.
pub(crate) fn waited(job: &JobView, now: Timestamp) -> String {
    in_all(job.waited, job.queued_since, now)
}

/// All of its runs, the present one until now.
pub(crate) fn ran(job: &JobView, now: Timestamp) -> String {
    match job.started_at {
        Some(_) => in_all(job.ran, job.running_since, now),
        None => "–".to_owned(),
    }
}

fn in_all(before: Span, since: Option<Timestamp>, now: Timestamp) -> String {
    let since = since.unwrap_or(now);
    let before = SignedDuration::from_millis(i64::try_from(before.milliseconds).unwrap_or(i64::MAX));
    between(since.saturating_sub(before).unwrap_or(Timestamp::MIN), now.max(since))
}

/// `45s`, `3m 5s`, `2h 10m`, `3d 4h`: the two largest units.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> String {
    let milliseconds = to.as_millisecond().saturating_sub(from.as_millisecond()).max(0);
    let seconds = milliseconds / 1000;
    match seconds {
        0..10 if milliseconds % 1000 >= 100 => format!("{seconds}.{}s", milliseconds % 1000 / 100),
        0..60 => format!("{seconds}s"),
        60..3600 => two(seconds / 60, "m", seconds % 60, "s"),
        3600..86400 => two(seconds / 3600, "h", seconds % 3600 / 60, "m"),
        _ => two(seconds / 86400, "d", seconds % 86400 / 3600, "h"),
    }
}

fn two(large: i64, unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit} {small}{small_unit}") }
}

/// `3m 5s ago`
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    match now.as_second() - then.as_second() {
        ..2 => "just now".to_owned(),
        2..60 => format!("{} ago", between(then, now)),
        _ => format!("{} ago", between(then, now).split(' ').next().unwrap_or_default()),
    }
}

/// "42 %, 4m left; checkpoint of step 300, 2m ago; loss 0.31".
pub(crate) fn progress(progress: &ProgressView, now: Timestamp) -> String {
    let mut parts = Vec::new();
    if let Some(done) = progress.done {
        let left = progress.left.map(|left| {
            let end = Timestamp::UNIX_EPOCH
                + SignedDuration::from_millis(i64::try_from(left.milliseconds).unwrap_or(0));
            format!(", {} left", between(Timestamp::UNIX_EPOCH, end))
        });
        parts.push(format!("{done}{}", left.unwrap_or_default()));
    }
    if let Some(at) = progress.checkpoint_at {
        let of = progress.checkpoint_step.map(|step| format!(" of step {step}")).unwrap_or_default();
        parts.push(format!("checkpoint{of}, {}", ago(at, now)));
    }
    let metrics: Vec<String> =
        progress.metrics.iter().take(6).map(|(name, value)| format!("{name} {value}")).collect();
    if !metrics.is_empty() {
        parts.push(metrics.join(", "));
    }
    if !progress.stragglers.is_empty() {
        let ranks: Vec<String> = progress.stragglers.iter().map(ToString::to_string).collect();
        parts.push(format!("behind the others: rank {}", ranks.join(", ")));
    }
    parts.join("; ")
}

/// In the machine's own time zone.
pub(crate) fn clock(at: Timestamp) -> String {
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// `0-3,6` for a list of indices.
pub(crate) fn index_ranges(indices: &[u32]) -> String {
    let mut sorted = indices.to_vec();
    sorted.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for index in sorted {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == index => *end = index,
            _ => ranges.push((index, index)),
        }
    }
    let shown = |(start, end): &(u32, u32)| {
        if start == end { start.to_string() } else { format!("{start}-{end}") }
    };
    ranges.iter().map(shown).collect::<Vec<_>>().join(",")
}

/// The colour of a state; the words alone say the same.
pub(crate) fn state_color(state: JobState, outcome: Option<JobOutcome>) -> comfy_table::Color {
    use comfy_table::Color;
    match (state, outcome) {
        (_, Some(JobOutcome::Succeeded)) => Color::Green,
        (_, Some(JobOutcome::Failed)) => Color::Red,
        (_, Some(JobOutcome::Stopped)) | (JobState::Ended, None) => Color::DarkGrey,
        (JobState::Running, None) => Color::Cyan,
        (JobState::Starting, None) => Color::Blue,
        (JobState::Queued | JobState::Held | JobState::Stopping, None) => Color::Yellow,
    }
}

/// Bytes for people: `1.5 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => {
            let text = format!("{:.1}", bytes as f64 / *size as f64);
            format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
        }
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_read_as_sentences() {
        let job = danlu_types::JobId(7);
        let held = Reason::Held { by: "ann".to_owned(), job };
        for (state, reason, expected) in [
            (
                JobState::Queued,
                Reason::Reserved { job },
                "queued: free resources are reserved for job 7, which is ahead in the queue",
            ),
            (JobState::Running, Reason::Running { workers: 1 }, "running"),
            (JobState::Held, held, "held by ann (start it with `danlu release 7`)"),
            (JobState::Ended, Reason::Preempted { job }, "preempted by job 7"),
        ] {
            assert_eq!(state_sentence(state, &reason), expected);
        }
    }

    #[test]
    fn times_show_their_two_largest_units() {
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        for (seconds, expected) in
            [(0, "0s"), (45, "45s"), (60, "1m"), (185, "3m 5s"), (7_800, "2h 10m"), (273_600, "3d 4h")]
        {
            assert_eq!(between(at(0), at(seconds)), expected);
        }
        assert_eq!(between(at(9), at(3)), "0s");
        assert_eq!(ago(at(0), at(185)), "3m ago");
    }

    #[test]
    fn resources_say_what_each_worker_gets() {
        let mut spec = JobSpec::of_command("x");
        assert_eq!(resources(&spec), "1 CPU");
        spec.workers = 2;
        spec.devices = "ascend:910B*:8".parse().unwrap();
        assert_eq!(resources(&spec), "2 × 8 Ascend 910B*");
        spec.devices = danlu_types::DeviceRequest::default();
        spec.any_of = vec!["nvidia:8".parse().unwrap(), "ascend:0.5".parse().unwrap()];
        assert_eq!(resources(&spec), "2 × (8 NVIDIA or 0.5 Ascend)");
    }

    #[test]
    fn indices_join_into_ranges() {
        assert_eq!(index_ranges(&[3, 0, 1, 2, 6]), "0-3,6");
        assert_eq!(index_ranges(&[]), "");
    }
}
