//! Any text at all, and known texts with pieces missing, repeated or replaced: nothing panics, nothing is invented.

use std::sync::LazyLock;

use danlu_device::npu_smi::{
    configured_addresses, fields, mapping, matrix, report, super_pod_place, tool_address,
};
use proptest::prelude::*;
use proptest::sample::Index;

use super::{fixture_folder, sample_folder, texts};

fn read_all(text: &str) {
    if let Ok(report) = report(text) {
        assert!(report.chips.len() <= text.lines().count());
    }
    let lines = text.lines().count();
    let chips = mapping(text);
    assert!(chips.len() <= lines && chips.iter().all(|chip| text.contains(&chip.name)), "{chips:?}");
    let matrix = matrix(text);
    let islands = matrix.islands();
    // A device whose own row is lost is still in the rows of others.
    let is_shown =
        |device| matrix.links.iter().any(|(row, links)| row == device || links.contains_key(device));
    assert!(matrix.links.len() <= lines && islands.keys().all(is_shown), "{islands:?}");
    let addresses = configured_addresses(text);
    assert!(addresses.len() <= lines);
    assert!(tool_address(text).is_none() || text.contains("ipaddr:"));
    let _ = (fields(text), super_pod_place(text));
}

/// Texts made of what such tables are made of.
fn tabular() -> impl Strategy<Value = String> {
    let words = vec![
        "|",
        "+",
        "=",
        "\n",
        "\t",
        " ",
        "  ",
        "/",
        ":",
        "-",
        "0",
        "1",
        "65536",
        "99999999999999999999",
        "NA",
        "OK",
        "Alarm",
        "910B3",
        "Ascend910",
        "NPU",
        "NPU0",
        "NPU ID",
        "Name",
        "Health",
        "Chip",
        "Chip ID",
        "Chip Logic ID",
        "Chip Name",
        "Phy-ID",
        "Bus-Id",
        "HBM-Usage(MB)",
        "Process id",
        "Process memory(MB)",
        "CPU Affinity",
        "HCCS",
        "X",
        "0000:C1:00.0",
        "address_0=1.2.3.4",
        "ipaddr:",
        "SDID",
        "é",
        "\u{0}",
    ];
    proptest::collection::vec(proptest::sample::select(words), 0..120).prop_map(|words| words.concat())
}

static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut all = texts(&fixture_folder(), "");
    all.extend(sample_folder().into_iter().flat_map(|folder| texts(&folder, "")));
    all.into_values().collect()
});

/// What the smaller tools print, which no file of the fixtures is about.
const SMALL: [&str; 4] = [
    "NPU ID\t\tChip ID\tChip Logic ID\tChip Phy-ID\tChip Name\n0\t0\t0\t8\tAscend 910B3\n0\t1\t-\t-\tMcu\n1\t0\t1\t9\tAscend 910B3\n",
    "\tNPU0\tNPU1\tNPU2\tCPU Affinity\nNPU0\tX\tHCCS\tSYS\t0-23\nNPU1\tHCCS\tX\tSIO\t0-23\nNPU2\tSYS\tSIO\tX\t24-47\n\nLegend:\n  X = Self\n",
    "address_0=29.1.2.3\nnetmask_0=255.255.0.0\naddress_1 = 29.1.2.4\naddress_2=fe80::1\narp_0=-i eth0 29.1.2.5\n",
    "ipaddr:29.1.2.3\nnetmask:255.255.0.0\n",
];

proptest! {
    #[test]
    fn small_answers_with_any_damage_are_read(
        which in 0..SMALL.len(),
        damage in proptest::collection::vec((any::<Index>(), 0..12usize, "([\t =:._0-9a-zA-Z-]|NPU|4294967296|\n){0,4}"), 1..5),
    ) {
        let mut text: Vec<char> = SMALL[which].chars().collect();
        for (at, cut, with) in damage {
            let from = at.index(text.len() + 1);
            let to = (from + cut).min(text.len());
            text.splice(from..to, with.chars());
        }
        read_all(&text.into_iter().collect::<String>());
    }

    #[test]
    fn any_text_is_read(text in any::<String>()) {
        read_all(&text);
    }

    #[test]
    fn any_arrangement_of_the_words_is_read(text in tabular()) {
        read_all(&text);
    }

    #[test]
    fn known_texts_with_any_damage_are_read(which in any::<Index>(), from in any::<Index>(), to in any::<Index>(), with in "[ |/0-9A-Za-z:\n-]{0,6}") {
        let text: Vec<char> = which.get(&TEXTS).chars().collect();
        let (from, to) = (from.index(text.len() + 1), to.index(text.len() + 1));
        // With `from` after `to`, a piece is repeated rather than lost.
        let damaged: String = text[..from].iter().chain(with.chars().collect::<Vec<_>>().iter()).chain(&text[to..]).collect();
        read_all(&damaged);
    }
}

#[test]
fn a_table_cut_off_anywhere_shows_the_chips_before_the_cut() {
    let text = texts(&fixture_folder(), "info-910B3").into_values().next().unwrap();
    let whole = report(&text).unwrap();
    for (end, _) in text.char_indices() {
        if let Ok(part) = report(&text[..end]) {
            let complete = part.chips.len().saturating_sub(1);
            assert_eq!(part.chips[..complete], whole.chips[..complete], "cut at {end}");
        }
    }
}
