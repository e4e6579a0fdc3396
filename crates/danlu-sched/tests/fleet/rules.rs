//! Each rule of placement by an example.

use danlu_sched::{DeviceAsk, Fleet, KindSet, NodeId, PlacementConstraints, Shape};
use danlu_types::{Bytes, Cpus, DeviceKind, Health};

use crate::fixture::{labelled, node, shape, shown};

fn place(fleet: &mut Fleet, shape: &Shape) -> String {
    let id = fleet.shape(shape);
    let placement = fleet.place(id, &PlacementConstraints::NONE);
    shown(fleet, placement.as_ref())
}

#[test]
fn a_gang_fits_whole_or_takes_nothing() {
    let mut fleet = Fleet::new(&[node("a", "nvidia:8"), node("b", "nvidia:4")]);
    let before = fleet.free_totals();
    assert_eq!(place(&mut fleet, &shape(4, "4")), "no room");
    assert_eq!(fleet.free_totals(), before);
    assert_eq!(place(&mut fleet, &shape(3, "4")), "a[0 1 2 3] a[4 5 6 7] b[0 1 2 3]");
}

#[test]
fn a_gang_runs_on_one_model() {
    let mut fleet = Fleet::new(&[node("a", "nvidia:A100:4"), node("b", "nvidia:H100:4")]);
    assert_eq!(place(&mut fleet, &shape(2, "4")), "no room");
    assert_eq!(place(&mut fleet, &shape(1, "nvidia:H100|L4:4")), "b[0 1 2 3]");
    assert_eq!(place(&mut fleet, &shape(1, "nvidia:H100:1 or nvidia:A100:1")), "a[0]");
}

#[test]
fn alternatives_are_tried_in_order_and_within_the_kinds_allowed() {
    let nodes = [node("a", "nvidia:A100:4"), node("b", "ascend:910B3:8")];
    let mut fleet = Fleet::new(&nodes);
    let either = fleet.shape(&shape(1, "ascend:4 or nvidia:4"));
    let no_ascend = PlacementConstraints { avoid: &[], kinds: KindSet::ALL.without(DeviceKind::Ascend) };
    assert_eq!(fleet.room(either, &no_ascend), 1);
    let placement = fleet.place(either, &no_ascend).unwrap();
    assert_eq!((placement.alternative, placement.kind), (1, Some(DeviceKind::Nvidia)));
    let placement = fleet.place(either, &PlacementConstraints::NONE).unwrap();
    assert_eq!((placement.alternative, placement.kind), (0, Some(DeviceKind::Ascend)));
}

#[test]
fn shares_go_to_one_device_and_whole_devices_must_be_idle() {
    let mut fleet = Fleet::new(&[node("a", "nvidia:2")]);
    assert_eq!(place(&mut fleet, &shape(1, "0.3")), "a[0/300]");
    assert_eq!(place(&mut fleet, &shape(1, "0.7")), "a[0/700]");
    assert_eq!(place(&mut fleet, &shape(1, "0.6")), "a[1/600]");
    assert_eq!(place(&mut fleet, &shape(1, "0.5")), "no room");
    assert_eq!(place(&mut fleet, &shape(1, "1")), "no room");
    assert_eq!(place(&mut fleet, &shape(2, "0.2")), "a[1/200] a[1/200]");
}

#[test]
fn cordoned_nodes_failed_devices_and_avoided_nodes_take_nothing_new() {
    let mut nodes = [node("a", "nvidia:2"), node("b", "nvidia:2"), node("c", "nvidia:2")];
    nodes[0].cordoned = Some("disk".to_owned());
    nodes[1].devices[0].health = Health::Failed;
    let mut fleet = Fleet::new(&nodes);
    let two = fleet.shape(&shape(1, "2"));
    assert_eq!(fleet.room(two, &PlacementConstraints::NONE), 1);
    assert_eq!(fleet.room(two, &PlacementConstraints { avoid: &[NodeId(2)], kinds: KindSet::ALL }), 0);
    let all = fleet.shape(&shape(3, "2"));
    assert!(fleet.could_ever_fit(all) && !fleet.fits(all, &PlacementConstraints::NONE));
    let supply = fleet.supply(&DeviceAsk::of(&"2".parse().unwrap()));
    assert_eq!((supply[0].total, supply[0].usable, supply[0].free, supply[0].most_on_one_node), (6, 3, 3, 2));
}

#[test]
fn nodes_are_chosen_by_architecture_and_labels() {
    let mut nodes =
        [node("a", "nvidia:2"), labelled(node("b", "nvidia:2"), "zone", "east"), node("c", "nvidia:2")];
    nodes[2].architecture = "aarch64".to_owned();
    let mut fleet = Fleet::new(&nodes);
    let east = Shape { labels: [("zone".to_owned(), "east".to_owned())].into(), ..shape(1, "1") };
    assert_eq!(place(&mut fleet, &east), "b[0]");
    let arm = Shape { architecture: Some("aarch64".to_owned()), ..shape(1, "1") };
    assert_eq!(place(&mut fleet, &arm), "c[0]");
}

#[test]
fn a_gang_prefers_one_rack_and_may_insist_on_it() {
    let rack = |name, rack| labelled(node(name, "nvidia:4"), "rack", rack);
    let mut fleet = Fleet::new(&[rack("a", "1"), rack("b", "2"), rack("c", "2"), rack("d", "3")]);
    assert_eq!(place(&mut fleet, &shape(2, "4")), "b[0 1 2 3] c[0 1 2 3]");
    assert_eq!(place(&mut fleet, &Shape { same_rack: true, ..shape(2, "4") }), "no room");
    assert_eq!(place(&mut fleet, &shape(2, "4")), "a[0 1 2 3] d[0 1 2 3]");
}

#[test]
fn memory_and_processors_count() {
    let mut fleet = Fleet::new(&[node("a", "nvidia:8")]);
    let hungry = Shape { cpus: Cpus::whole(40), memory: Bytes(0), ..shape(1, "1") };
    assert_eq!(place(&mut fleet, &hungry), "a[0]");
    assert_eq!(place(&mut fleet, &hungry), "no room");
    let large = Shape { memory: Bytes(513 << 30), ..shape(1, "0") };
    assert_eq!(place(&mut fleet, &large), "no room");
    let id = fleet.shape(&large);
    assert!(!fleet.could_ever_fit(id));
}

#[test]
fn ascend_boards_give_what_their_rules_allow() {
    let mut fleet = Fleet::new(&[node("a", "ascend:910A:8"), node("b", "ascend:910_9391:16")]);
    assert_eq!(place(&mut fleet, &shape(1, "ascend:910A:3")), "no room");
    assert_eq!(place(&mut fleet, &shape(1, "ascend:910A:0.5")), "no room");
    assert_eq!(place(&mut fleet, &shape(1, "ascend:910A:1")), "a[0]");
    assert_eq!(place(&mut fleet, &shape(1, "ascend:910A:2")), "a[4 5]");
    assert_eq!(place(&mut fleet, &shape(1, "ascend:910A:4")), "no room");
    assert_eq!(place(&mut fleet, &shape(2, "ascend:910_*:1")), "no room");
    assert_eq!(place(&mut fleet, &shape(1, "ascend:910_*:1")), "b[0]");
    assert_eq!(place(&mut fleet, &shape(2, "ascend:910_*:4")), "b[2 3 4 5] b[6 7 8 9]");
    let never = fleet.shape(&shape(1, "ascend:910A:3"));
    assert!(!fleet.could_ever_fit(never));
    let boards = fleet.boards(&DeviceAsk::of(&"ascend:3".parse().unwrap()));
    assert_eq!(boards.iter().filter_map(|(board, _)| board.counts()).count(), 2);
}

#[test]
fn what_is_found_to_be_held_is_taken_even_where_there_is_less() {
    let mut fleet = Fleet::new(&[node("a", "nvidia:1")]);
    let one = fleet.shape(&shape(1, "1"));
    let placement = fleet.place(one, &PlacementConstraints::NONE).unwrap();
    assert_eq!(fleet.placement(&fleet.grants(&placement)), placement);
    fleet.allocate(&placement);
    fleet.free(&placement);
    assert_eq!(fleet.room(one, &PlacementConstraints::NONE), 0);
    fleet.free(&placement);
    assert_eq!(fleet.room(one, &PlacementConstraints::NONE), 1);
}
