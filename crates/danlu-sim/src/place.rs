//! How well jobs are packed when they come one by one and stay: the protocol of Weng et al., "Beware of Fragmentation"
//! (USENIX ATC'23), on which the published figures of FGD and others stand.
//!
//! All nodes are empty. The pods are shuffled, and more are drawn from the same list until they ask for 1.3 times what the
//! nodes have. They are offered one by one: one that does not fit is dropped, one that is placed never leaves. When what
//! was asked for reaches a given part of the devices there are, we read how much of them nobody has. The authors' own
//! shuffles are not reproduced, so means over several seeds compare, single seeds do not.

use std::time::Duration;

use danlu_sched::{Fleet, Shape, ShapeId, Wish};
use danlu_types::Node;
use serde::Serialize;

use crate::random::SplitMix64;

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
    let mut drops = std::collections::BTreeMap::new();
    let mut track = std::collections::BTreeMap::new();
    let oracle = std::env::var_os("ORACLE").is_some();
    if oracle { for shape in &shapes { fleet.learn(*shape); } }
    let oracle = if let Ok(x) = std::env::var("ORACLE") { if x != "1" { fleet.forget(x.contains('p'), x.contains('v')); } x == "1" } else { false };
    let started = clock();
    for pod in order {
        if !oracle { fleet.learn(shapes[pod]); }
        arrived += demand(pod);
        let pl = fleet.place(shapes[pod], &Wish::NONE);
        if std::env::var_os("TRACK").is_some() {
            let n = placed + dropped;
            if pl.is_none() { let a = &pods[pod].alternatives[0]; let e = drops.entry((a.count.milli() / 1000 * 1000, a.models.join("|"))).or_insert((0u64, 0u32, 0u32)); e.0 += demand(pod); e.1 += 1; if e.2 == 0 { e.2 = n; } }
            if let Some(p) = &pl && demand(pod) > 0 && pods[pod].alternatives[0].models.is_empty() {
                let m = nodes[p.parts[0].node.ordinal()].devices[0].model.clone();
                *track.entry(m).or_insert(0u64) += demand(pod);
            }
            if n.is_power_of_two() { eprintln!("{n} {:?}", track.iter().map(|(k, v)| format!("{k}:{}", v / 1000)).collect::<Vec<_>>().join(" ")); }
        }
        if pl.is_some() {
            allocated += demand(pod);
            placed += 1;
        } else {
            dropped += 1;
        }
        for (at, figure) in READ_AT_PERCENT.iter().zip(&mut unallocated) {
            if figure.is_none() && arrived * 100 >= capacity * at {
                *figure = Some(percent(allocated));
                if std::env::var_os("TRACK").is_some() { eprintln!("{drops:?}"); }
                if std::env::var_os("STATS").is_some() { eprintln!("{seed} at {at} {:.2} {}", percent(allocated), fleet.supply(&danlu_sched::DeviceAsk { kind: None, models: vec![], count: danlu_types::DeviceCount::whole(1) }).iter().map(|s| format!("{}:{}/{}", s.model.clone().unwrap(), s.free, s.total)).collect::<Vec<_>>().join(" ")); }
            }
        }
    }
    if std::env::var_os("STATS").is_some() { eprintln!("{:?}", fleet.stats()); }
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
    let mut random = SplitMix64::new(seed);
    let mut order: Vec<usize> = (0..pods).collect();
    random.shuffle(&mut order);
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
        let pod = random.below(pods);
        asked += demand(pod);
        order.push(pod);
    }
    order
}
