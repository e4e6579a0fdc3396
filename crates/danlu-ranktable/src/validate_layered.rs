//! The rules of version 2.0.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::validate::{TableIssue, Weight};
use super::{LayeredRank, Level, RankAddress};

const MOST_RANKS: usize = 65_536;
const LARGEST_ID: u64 = 64;
const MOST_LEVELS: usize = 8;
const LARGEST_LAYER: u64 = 7;
const MOST_ADDRESSES: usize = 24;
const EID_DIGITS: usize = 32;

pub(super) fn check(ranks: &[LayeredRank], found: &mut Vec<TableIssue>) {
    let mut checks = Checks { found };
    if ranks.is_empty() || ranks.len() > MOST_RANKS {
        checks.wrong(
            "rank_list".to_owned(),
            format!("has {} ranks; 1 to {MOST_RANKS} are possible", ranks.len()),
        );
    }
    let mut seen: BTreeMap<u64, String> = BTreeMap::new();
    let mut addresses: BTreeMap<&str, String> = BTreeMap::new();
    for (index, rank) in ranks.iter().enumerate() {
        let at = format!("rank_list[{index}]");
        if let Some(earlier) = seen.insert(rank.rank, format!("{at}.rank_id")) {
            checks.wrong(format!("{at}.rank_id"), format!("is {}, as is `{earlier}`", rank.rank));
        }
        for (name, id) in [("local_id", rank.local), ("device_id", rank.device)] {
            if id > LARGEST_ID {
                checks.wrong(format!("{at}.{name}"), format!("is {id}; the largest is {LARGEST_ID}"));
            }
        }
        checks.levels(&at, &rank.levels);
        for (level, entry) in rank.levels.iter().enumerate() {
            for (number, address) in entry.addresses.iter().enumerate() {
                let place = format!("{at}.level_list[{level}].rank_addr_list[{number}].addr");
                // An address may serve several layers of its own rank.
                if let Some(earlier) = addresses.get(address.address.as_str())
                    && !earlier.starts_with(&format!("{at}."))
                {
                    checks.wrong(place, format!("is {}, as is `{earlier}`", address.address));
                } else {
                    addresses.insert(&address.address, place);
                }
            }
        }
    }
    if let Some(missing) = (0..ranks.len() as u64).find(|rank| !seen.contains_key(rank)) {
        checks.wrong(
            "rank_list".to_owned(),
            format!("lacks rank {missing}; ranks run from 0 to {}", ranks.len() - 1),
        );
    }
}

struct Checks<'a> {
    found: &'a mut Vec<TableIssue>,
}

impl Checks<'_> {
    fn wrong(&mut self, place: String, problem: String) {
        self.found.push(TableIssue { weight: Weight::Wrong, place, problem });
    }

    fn levels(&mut self, rank: &str, levels: &[Level]) {
        if levels.is_empty() || levels.len() > MOST_LEVELS {
            self.wrong(
                format!("{rank}.level_list"),
                format!("has {} levels; 1 to {MOST_LEVELS} are possible", levels.len()),
            );
        }
        let mut previous = None;
        for (index, level) in levels.iter().enumerate() {
            let at = format!("{rank}.level_list[{index}]");
            if level.layer > LARGEST_LAYER {
                self.wrong(
                    format!("{at}.net_layer"),
                    format!("is {}; the largest is {LARGEST_LAYER}", level.layer),
                );
            }
            if previous.is_some_and(|previous| level.layer <= previous) {
                self.wrong(
                    format!("{at}.net_layer"),
                    format!("is {}, which is not above the one before", level.layer),
                );
            }
            previous = Some(level.layer);
            match (level.kind.as_str(), level.layer) {
                ("TOPO_FILE_DESC", _) | ("CLOS", 1..) => {}
                ("CLOS", 0) => self.wrong(
                    format!("{at}.net_type"),
                    "is `CLOS`; layer 0 is always `TOPO_FILE_DESC`".to_owned(),
                ),
                (other, _) => self.wrong(
                    format!("{at}.net_type"),
                    format!("is `{other}`; write `TOPO_FILE_DESC` or `CLOS`"),
                ),
            }
            if level.addresses.len() > MOST_ADDRESSES {
                let problem =
                    format!("has {} addresses; at most {MOST_ADDRESSES} are possible", level.addresses.len());
                self.wrong(format!("{at}.rank_addr_list"), problem);
            }
            for (number, address) in level.addresses.iter().enumerate() {
                self.address(&format!("{at}.rank_addr_list[{number}]"), address);
            }
        }
    }

    fn address(&mut self, at: &str, address: &RankAddress) {
        let text = address.address.as_str();
        let good = match address.kind.as_str() {
            "EID" => text.len() == EID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "IPV4" => text.parse::<Ipv4Addr>().is_ok(),
            "IPV6" => text.parse::<Ipv6Addr>().is_ok(),
            other => {
                self.wrong(format!("{at}.addr_type"), format!("is `{other}`; write `EID`, `IPV4` or `IPV6`"));
                return;
            }
        };
        if !good {
            self.wrong(format!("{at}.addr"), format!("is `{text}`, which is no {}", address.kind));
        }
    }
}
