//! Any text at all, and known texts with pieces missing, repeated or replaced: nothing panics, nothing is invented.

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
    let _ = (mapping(text), matrix(text).islands(), fields(text));
    let _ = (configured_addresses(text), tool_address(text), super_pod_place(text));
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

proptest! {
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
        let mut all = texts(&fixture_folder(), "");
        all.extend(sample_folder().into_iter().flat_map(|folder| texts(&folder, "")));
        let text: Vec<char> = which.get(&all.into_values().collect::<Vec<_>>()).chars().collect();
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
