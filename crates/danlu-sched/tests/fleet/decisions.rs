//! A morning's arrivals on a small mixed cluster: where each goes, once and for all. A change here is a change of policy.

use std::fmt::Write;

use danlu_sched::{Fleet, PlacementConstraints, Shape};
use danlu_types::{Bytes, Cpus};

use crate::fixture::{node, shape, shown};

fn arrivals() -> Vec<Shape> {
    let kinds = [
        ("nvidia:0.5", 4, 16),
        ("nvidia:1", 8, 32),
        ("nvidia:0.25", 2, 8),
        ("nvidia:A100:1", 8, 32),
        ("0", 16, 32),
        ("nvidia:0.81", 3, 6),
        ("nvidia:2", 16, 64),
        ("ascend:910A:2", 8, 32),
        ("nvidia:1", 4, 16),
        ("nvidia:4", 32, 128),
        ("ascend:1", 4, 16),
    ];
    // 7 and 11 have no common divisor: every kind comes up, in an order that looks like none.
    (0..44)
        .map(|turn| {
            let (devices, cpus, memory) = kinds[turn * 7 % kinds.len()];
            let workers = if turn % 13 == 12 { 2 } else { 1 };
            Shape { cpus: Cpus::whole(cpus), memory: Bytes(memory << 30), ..shape(workers, devices) }
        })
        .collect()
}

#[test]
fn a_morning_on_a_small_cluster() {
    let nodes = [
        node("a100-0", "nvidia:A100:8"),
        node("a100-1", "nvidia:A100:8"),
        node("t4-0", "nvidia:T4:2"),
        node("t4-1", "nvidia:T4:2"),
        node("t4-2", "nvidia:T4:4"),
        node("npu-0", "ascend:910A:8"),
        node("plain", "nvidia:0"),
    ];
    let mut fleet = Fleet::new(&nodes);
    let mut transcript = String::new();
    for arrival in arrivals() {
        let id = fleet.shape(&arrival);
        fleet.learn(id);
        let placement = fleet.place(id, &PlacementConstraints::NONE);
        let ask = &arrival.alternatives[0];
        let models = if ask.models.is_empty() { String::new() } else { format!(" {}", ask.models.join("|")) };
        let kind = ask.kind.map_or("processors", |kind| kind.label());
        let where_to = shown(&fleet, placement.as_ref());
        writeln!(transcript, "{} × {}{models} {kind}: {where_to}", arrival.workers, ask.count).unwrap();
    }
    insta::assert_snapshot!(transcript);
}

#[test]
fn the_order_of_shapes_does_not_matter_until_somebody_is_placed() {
    let nodes = [node("a", "nvidia:8"), node("b", "nvidia:8"), node("c", "nvidia:4")];
    let place = |shapes: &[Shape]| {
        let mut fleet = Fleet::new(&nodes);
        for shape in shapes {
            let id = fleet.shape(shape);
            fleet.learn(id);
        }
        let id = fleet.shape(&shape(1, "nvidia:0.5"));
        (0..20)
            .map(|_| shown(&fleet, fleet.clone().place(id, &PlacementConstraints::NONE).as_ref()))
            .collect::<Vec<_>>()
    };
    let forwards: Vec<Shape> =
        arrivals().into_iter().filter(|shape| shape.alternatives[0].kind.is_some()).collect();
    let backwards: Vec<Shape> = forwards.iter().rev().cloned().collect();
    assert_eq!(place(&forwards), place(&backwards));
}
