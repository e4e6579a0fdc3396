//! What must hold whatever is asked, given back and undone.

use danlu_sched::{Fleet, Placement, PlacementConstraints, Shape};
use danlu_types::{Cpus, Health, Node};
use proptest::prelude::*;

use crate::fixture::{Recount, labelled, node, shape};

#[derive(Debug, Clone)]
enum Move {
    Place(usize),
    GiveBack(usize),
    /// Places these and undoes it.
    Try(Vec<usize>),
}

const DEVICES: [&str; 6] = [
    "nvidia:A100:8",
    "nvidia:A100:2",
    "nvidia:T4:4",
    "ascend:910A:8",
    "ascend:910B2C:16",
    "ascend:910_9391:16",
];

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let one = (0..DEVICES.len(), 0..3_u32, any::<u8>(), any::<bool>()).prop_map(
        |(devices, rack, failed, cordoned)| {
            let mut node = node("n", DEVICES[devices]);
            node.cordoned = (cordoned && failed > 200).then(|| "work".to_owned());
            if let Some(device) = node.devices.get_mut(usize::from(failed)) {
                device.health = Health::Failed;
            }
            if rack > 0 { labelled(node, "rack", &rack.to_string()) } else { node }
        },
    );
    prop::collection::vec(one, 1..7).prop_map(|mut nodes| {
        for (at, node) in nodes.iter_mut().enumerate() {
            node.name.0 = format!("n{at}");
        }
        nodes
    })
}

fn shapes() -> Vec<Shape> {
    let texts = [
        "1",
        "0.5",
        "0.3",
        "nvidia:0.81",
        "2",
        "4",
        "8",
        "10",
        "0",
        "nvidia:3",
        "nvidia:T4|A100:1",
        "ascend:910A:2 or nvidia:1",
    ];
    let mut shapes: Vec<Shape> = texts.iter().map(|text| shape(1, text)).collect();
    shapes.extend(texts.iter().map(|text| Shape { cpus: Cpus::whole(5), ..shape(3, text) }));
    shapes.push(Shape { same_rack: true, ..shape(5, "2") });
    shapes
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let shape = 0..shapes().len();
    let one = prop_oneof![
        4 => shape.clone().prop_map(Move::Place),
        1 => (0..20_usize).prop_map(Move::GiveBack),
        1 => prop::collection::vec(shape, 1..4).prop_map(Move::Try),
    ];
    prop::collection::vec(one, 1..60)
}

/// Follows the moves, calling `check` after each of them.
fn follow(
    nodes: &[Node],
    moves: &[Move],
    mut check: impl FnMut(&mut Fleet, &[Placement]) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let mut fleet = Fleet::new(nodes);
    let ids: Vec<_> = shapes().iter().map(|shape| fleet.shape(shape)).collect();
    let mut held: Vec<Placement> = Vec::new();
    for step in moves {
        match step {
            Move::Place(shape) => {
                fleet.learn(ids[*shape]);
                let fits = fleet.fits(ids[*shape], &PlacementConstraints::NONE);
                let placement = fleet.place(ids[*shape], &PlacementConstraints::NONE);
                prop_assert_eq!(fits, placement.is_some(), "fits and place disagree");
                held.extend(placement);
            }
            Move::GiveBack(at) if *at < held.len() => fleet.free(&held.swap_remove(*at)),
            Move::GiveBack(_) => {}
            Move::Try(shapes) => {
                let before = (fleet.free_totals(), rooms(&mut fleet));
                let mark = fleet.mark();
                if let Some(first) = held.first() {
                    fleet.free(first);
                }
                for shape in shapes {
                    fleet.place(ids[*shape], &PlacementConstraints::NONE);
                }
                fleet.undo(mark);
                prop_assert_eq!(
                    before,
                    (fleet.free_totals(), rooms(&mut fleet)),
                    "undone, but not as before"
                );
            }
        }
        check(&mut fleet, &held)?;
    }
    Ok(())
}

fn rooms(fleet: &mut Fleet) -> Vec<u32> {
    let ids: Vec<_> = shapes().iter().map(|shape| fleet.shape(shape)).collect();
    ids.into_iter().map(|id| fleet.room(id, &PlacementConstraints::NONE)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nothing_is_given_out_twice_and_gangs_are_whole(nodes in nodes(), moves in moves()) {
        follow(&nodes, &moves, |_, held| {
            prop_assert!(Recount::new(&nodes, held).is_within_capacity());
            for placement in held {
                prop_assert!(placement.parts.len() == 1 || placement.parts.len() == 3 || placement.parts.len() == 5);
                let model = |part: &danlu_sched::WorkerPlacement| {
                    let node = &nodes[part.node.ordinal()];
                    part.devices.first().map(|device| node.devices[usize::from(*device)].model.clone())
                };
                prop_assert!(placement.parts.iter().all(|part| model(part) == model(&placement.parts[0])));
            }
            Ok(())
        })?;
    }

    #[test]
    fn rooms_are_those_of_a_recount(nodes in nodes(), moves in moves()) {
        let nodes: Vec<Node> = nodes.into_iter().filter(|node| node.devices[0].kind == danlu_types::DeviceKind::Nvidia).collect();
        follow(&nodes, &moves, |fleet, held| {
            let recount = Recount::new(&nodes, held);
            for shape in shapes() {
                let id = fleet.shape(&shape);
                prop_assert_eq!(fleet.room(id, &PlacementConstraints::NONE), recount.room(&shape), "{:?}", shape);
            }
            Ok(())
        })?;
    }

    #[test]
    fn board_rules_hold(nodes in nodes(), moves in moves()) {
        follow(&nodes, &moves, |_, held| {
            for placement in held {
                for part in &placement.parts {
                    let node = &nodes[part.node.ordinal()];
                    let devices: Vec<u32> = part.devices.iter().map(|d| u32::from(*d)).collect();
                    let Some(model) = devices.first().map(|first| node.devices[*first as usize].model.as_str()) else { continue };
                    let same = |size: u32| devices.iter().all(|device| device / size == devices[0] / size);
                    match model {
                        "910A" => prop_assert!(part.share == 1000 && (devices.len() == 8 || (devices.len() <= 4 && devices.len() != 3 && same(4)))),
                        "910B2C" => prop_assert!(same(8) || devices.iter().filter(|device| **device < 8).count() * 2 == devices.len()),
                        "910_9391" if devices.len() > 1 || placement.parts.len() > 1 => prop_assert!(
                            part.share < 1000 || devices.iter().all(|device| devices.contains(&(device ^ 1)))
                        ),
                        _ => {}
                    }
                }
            }
            Ok(())
        })?;
    }
}
