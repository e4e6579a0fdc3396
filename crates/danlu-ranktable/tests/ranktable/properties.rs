//! What holds for every table and every text.

use std::collections::BTreeMap;

use danlu_ranktable::{
    Extra, LayeredRank, Level, RankAddress, RankTable, RankedDevice, Server, TableContent, Version, convert,
    generate, parse, render, validate,
};
use danlu_types::Family;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::super_pods;

/// Names that no version gives a meaning.
fn extra() -> impl Strategy<Value = Extra> {
    let value = prop_oneof![
        any::<String>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
    ];
    proptest::collection::btree_map("x_[a-z]{1,6}", value, 0..3)
}

fn device(version: Version) -> impl Strategy<Value = RankedDevice> {
    (0..16u32, option::of("[0-9.:*a-z]{0,12}"), option::of(any::<u64>()), any::<u32>(), extra()).prop_map(
        move |(device, address, super_device, rank, extra)| {
            let super_device = super_device.filter(|_| version == Version::SuperPodList);
            RankedDevice { device, address, super_device, rank, extra }
        },
    )
}

/// Servers as the version can say them; ids differ, or `board_id` could not keep them apart.
fn servers(version: Version) -> impl Strategy<Value = Vec<Server>> {
    let server = (
        option::of("[a-z0-9.]{1,8}"),
        "[a-z]{0,4}",
        option::of(0..3u8),
        vec(device(version), usize::from(version == Version::BoardId)..5),
        extra(),
    );
    vec(server, 0..5).prop_map(move |servers| {
        let mut rank = 0;
        let build = |(index, (host, pod, super_pod, mut devices, extra)): (
            usize,
            (_, String, Option<u8>, Vec<RankedDevice>, _),
        )| {
            let lists = matches!(version, Version::ServerList | Version::SuperPodList);
            if version == Version::GroupList {
                for device in &mut devices {
                    device.rank = rank;
                    rank += 1;
                }
            }
            Server {
                id: format!("server-{index}"),
                host: if lists { host } else { None },
                pod: (version == Version::GroupList).then_some(pod),
                super_pod: super_pod.filter(|_| version == Version::SuperPodList).map(|pod| pod.to_string()),
                devices,
                extra: if version == Version::BoardId { BTreeMap::new() } else { extra },
            }
        };
        servers.into_iter().enumerate().map(build).collect()
    })
}

fn layered() -> impl Strategy<Value = Vec<LayeredRank>> {
    let address = (any::<String>(), any::<String>(), vec(any::<String>(), 0..3), extra())
        .prop_map(|(kind, address, ports, extra)| RankAddress { kind, address, ports, extra });
    let level = (any::<u64>(), any::<String>(), any::<String>(), vec(address, 0..3), extra()).prop_map(
        |(layer, instance, kind, addresses, extra)| Level { layer, instance, kind, addresses, extra },
    );
    let rank = (any::<u64>(), any::<u64>(), any::<u64>(), vec(level, 0..3), extra())
        .prop_map(|(rank, local, device, levels, extra)| LayeredRank { rank, local, device, levels, extra });
    vec(rank, 0..4)
}

fn table() -> impl Strategy<Value = RankTable> {
    select(&Version::ALL[..]).prop_flat_map(|version| {
        let content = if version == Version::RankList {
            layered().prop_map(TableContent::Ranks).boxed()
        } else {
            servers(version).prop_map(TableContent::Servers).boxed()
        };
        (content, extra()).prop_map(move |(content, mut extra)| {
            if version == Version::BoardId {
                extra.insert("board_id".to_owned(), "0x0000".into());
            }
            RankTable { version, content, extra }
        })
    })
}

proptest! {
    #[test]
    fn a_table_reads_back_as_it_was(table in table()) {
        prop_assert_eq!(parse(&render(&table)).unwrap().table, table);
    }

    #[test]
    fn every_table_can_be_checked_and_asked_for_in_every_version(
        table in table(),
        family in option::of(select(&Family::ALL[..])),
        to in select(&Version::ALL[..]),
    ) {
        validate(&table, family);
        if let Ok(converted) = convert(table.clone(), to) {
            prop_assert_eq!(converted.version, to);
            prop_assert_eq!(converted.ranks(), table.ranks());
        }
    }

    #[test]
    fn no_text_is_too_strange_to_be_refused(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn a_table_damaged_at_any_place_is_read_or_refused(at in any::<prop::sample::Index>(), with in any::<String>(), cut in 0..40usize) {
        let text = render(&generate(super_pods(1, 2, 2), Version::SuperPodList).unwrap());
        let at = at.index(text.len());
        let damaged = format!("{}{with}{}", &text[..at], text.get(at + cut..).unwrap_or_default());
        if let Ok(reading) = parse(&damaged) {
            validate(&reading.table, Some(Family::A3));
        }
    }
}
