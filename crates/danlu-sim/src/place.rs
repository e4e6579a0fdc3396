//! How well jobs are packed when they come one by one and stay: the protocol of Weng et al., "Beware of Fragmentation"
//! (USENIX ATC'23), on which the published figures of FGD and others stand.
//!
//! All nodes are empty. The pods are shuffled, and more are drawn from the same list until they ask for 1.3 times what the
//! nodes have. They are offered one by one: one that does not fit is dropped, one that is placed never leaves. When what
//! was asked for reaches a given part of the devices there are, we read how much of them nobody has. The authors' own
//! shuffles are not reproduced, so means over several seeds compare, single seeds do not.

use std::time::Duration;

use danlu_sched::{Fleet, PlacementConstraints, Shape, ShapeId};
use danlu_types::Node;
use serde::Serialize;

use crate::dice::Dice;

/// Percent of the devices that were asked for when we read how many nobody has.
pub const READ_AT_PERCENT: [u64; 2] = [100, 130];

/// What came of one seed, or the mean of several.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaceReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    pub unallocated_percent: Unallocated,
    pub placed: f64,
    pub dropped: f64,
    pub placements_per_second: f64,
}

/// Devices that nobody has, in percent of all, when so many percent were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Unallocated {
    #[serde(rename = "100")]
    pub at_100: f64,
    #[serde(rename = "130")]
    pub at_130: f64,
}

/// Offers one stream of pods. `clock` tells the time since whenever it likes; it is asked at the beginning and the end.
pub fn place(nodes: &[Node], pods: &[Shape], seed: u64, clock: &mut dyn FnMut() -> Duration) -> PlaceReport {
    let mut fleet = Fleet::new(nodes);
    let shapes: Vec<ShapeId> = pods.iter().map(|pod| fleet.shape(pod)).collect();
    let demand = |pod: usize| u64::from(pods[pod].alternatives.first().map_or(0, |ask| ask.count.milli()));
    let capacity: u64 = fleet.capacity().devices_milli.iter().sum();
    let order = stream(pods.len(), seed, READ_AT_PERCENT[1] * capacity / 100, demand);

    let (mut arrived, mut allocated, mut placed, mut dropped) = (0, 0, 0_u32, 0_u32);
    let mut unallocated = [None; READ_AT_PERCENT.len()];
    let percent = |allocated: u64| 100.0 * (1.0 - allocated as f64 / capacity.max(1) as f64);
    let started = clock();
    for pod in order {
        fleet.learn(shapes[pod]);
        arrived += demand(pod);
        if fleet.place(shapes[pod], &PlacementConstraints::NONE).is_some() {
            allocated += demand(pod);
            placed += 1;
        } else {
            dropped += 1;
        }
        for (at, figure) in READ_AT_PERCENT.iter().zip(&mut unallocated) {
            if figure.is_none() && arrived * 100 >= capacity * at {
                *figure = Some(percent(allocated));
            }
        }
    }
    let seconds = clock().saturating_sub(started).as_secs_f64();
    let [at_100, at_130] = unallocated.map(|figure| figure.unwrap_or_else(|| percent(allocated)));
    PlaceReport {
        seed: Some(seed),
        unallocated_percent: Unallocated { at_100, at_130 },
        placed: f64::from(placed),
        dropped: f64::from(dropped),
        placements_per_second: if seconds > 0.0 { f64::from(placed) / seconds } else { 0.0 },
    }
}

/// The mean of several streams; nothing of none.
pub fn mean(reports: &[PlaceReport]) -> Option<PlaceReport> {
    let mean =
        |figure: fn(&PlaceReport) -> f64| reports.iter().map(figure).sum::<f64>() / reports.len() as f64;
    (!reports.is_empty()).then(|| PlaceReport {
        seed: None,
        unallocated_percent: Unallocated {
            at_100: mean(|report| report.unallocated_percent.at_100),
            at_130: mean(|report| report.unallocated_percent.at_130),
        },
        placed: mean(|report| report.placed),
        dropped: mean(|report| report.dropped),
        placements_per_second: mean(|report| report.placements_per_second),
    })
}

/// Ordinals of pods in the order in which they come, until they ask for `enough`.
fn stream(pods: usize, seed: u64, enough: u64, demand: impl Fn(usize) -> u64) -> Vec<usize> {
    let mut dice = Dice::new(seed, 0);
    let mut order: Vec<usize> = (0..pods).collect();
    dice.shuffle(&mut order);
    let mut asked = 0;
    let shuffled = order.iter().position(|&pod| {
        asked += demand(pod);
        asked >= enough
    });
    if let Some(last) = shuffled {
        order.truncate(last + 1);
    }
    // Without any demand the shuffled list is all there will ever be.
    while asked > 0 && asked < enough {
        let pod = dice.below(pods);
        asked += demand(pod);
        order.push(pod);
    }
    order
}
