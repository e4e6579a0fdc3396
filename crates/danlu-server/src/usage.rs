//! How busy the cluster was in the last hours, from a look at it each minute.
//!
//! Kept in memory: it answers how busy it usually is and no more, so a restart begins anew. Accounting is told from jobs,
//! which are in the store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use danlu_types::api::{DeviceView, JobState, UsageOf, UsagePoint};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::app::App;

const LOOK_EVERY: Duration = Duration::from_mins(1);
/// Twelve hours of them.
const MOST_POINTS: usize = 12 * 60;

#[derive(Debug, Default)]
pub(crate) struct Usage {
    points: Mutex<VecDeque<UsagePoint>>,
}

impl Usage {
    pub(crate) fn points(&self) -> Vec<UsagePoint> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn add(&self, point: UsagePoint) {
        let mut points = self.points.lock().unwrap_or_else(PoisonError::into_inner);
        if points.len() >= MOST_POINTS {
            points.pop_front();
        }
        points.push_back(point);
    }
}

pub(crate) async fn usage_loop(app: Arc<App>, stop: CancellationToken) {
    loop {
        let devices = app.devices_read().await;
        let states: Vec<JobState> = app.book.read().jobs().map(|job| job.state()).collect();
        app.usage.add(point(Timestamp::now(), &devices, &states));
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// What one look sees.
fn point(at: Timestamp, devices: &[DeviceView], states: &[JobState]) -> UsagePoint {
    let count = |wanted: &[JobState]| {
        u32::try_from(states.iter().filter(|state| wanted.contains(state)).count()).unwrap_or(u32::MAX)
    };
    let mut by_model: BTreeMap<_, Vec<&DeviceView>> = BTreeMap::new();
    for view in devices {
        by_model.entry((view.device.kind, view.device.model.clone())).or_default().push(view);
    }
    let devices = by_model.into_iter().map(|((kind, model), views)| {
        let is_usable = |view: &&&DeviceView| view.device.usable() && view.out_of_service.is_none();
        let held = views.iter().filter_map(|view| view.held_by.as_ref()).map(|held| held.count.milli());
        let busy: Vec<u32> =
            views.iter().filter_map(|view| view.reading.as_ref()?.utilisation_percent).collect();
        let mean = busy.iter().sum::<u32>() / u32::try_from(busy.len().max(1)).unwrap_or(u32::MAX);
        UsageOf {
            kind,
            model,
            usable: u32::try_from(views.iter().filter(is_usable).count()).unwrap_or(u32::MAX),
            held: f64::from(held.sum::<u32>()) / 1000.0,
            busy_percent: (!busy.is_empty()).then_some(mean),
        }
    });
    UsagePoint {
        at,
        queued: count(&[JobState::Queued]),
        running: count(&[JobState::Starting, JobState::Running, JobState::Stopping]),
        devices: devices.collect(),
    }
}

#[cfg(test)]
mod tests {
    use danlu_types::api::HeldDevice;
    use danlu_types::{Bytes, Device, DeviceCount, DeviceKind, Health, JobId, NodeName, Reading, Wiring};

    use super::*;

    fn device(index: u32, health: Health, held: Option<&str>, percent: Option<u32>) -> DeviceView {
        let device = Device {
            index,
            kind: DeviceKind::Ascend,
            model: "910B3".to_owned(),
            memory: Bytes(64 << 30),
            island: 0,
            health,
            wiring: Wiring::default(),
        };
        let held_by = held.map(|count| HeldDevice {
            index,
            count: count.parse::<DeviceCount>().unwrap(),
            job: JobId(1),
            job_name: "train".to_owned(),
            owner: "ada".to_owned(),
        });
        let reading =
            percent.map(|percent| Reading { utilisation_percent: Some(percent), ..Reading::default() });
        DeviceView { node: NodeName("n".to_owned()), device, out_of_service: None, held_by, reading }
    }

    #[test]
    fn a_look_counts_what_is_held_and_how_busy_it_is() {
        let devices = [
            device(0, Health::Ok, Some("1"), Some(90)),
            device(1, Health::Ok, Some("0.5"), Some(10)),
            device(2, Health::Ok, None, None),
            device(3, Health::Failed, None, None),
        ];
        let states = [JobState::Queued, JobState::Running, JobState::Stopping, JobState::Held];
        let seen = point(Timestamp::UNIX_EPOCH, &devices, &states);
        insta::assert_json_snapshot!(seen, @r#"
        {
          "at": "1970-01-01T00:00:00Z",
          "queued": 1,
          "running": 2,
          "devices": [
            {
              "kind": "ascend",
              "model": "910B3",
              "usable": 3,
              "held": 1.5,
              "busy_percent": 50
            }
          ]
        }
        "#);
    }

    #[test]
    fn the_oldest_looks_are_forgotten() {
        let usage = Usage::default();
        for second in 0..MOST_POINTS as i64 + 3 {
            usage.add(point(Timestamp::from_second(second).unwrap(), &[], &[]));
        }
        let points = usage.points();
        assert_eq!((points.len(), points[0].at.as_second()), (MOST_POINTS, 3));
    }
}
