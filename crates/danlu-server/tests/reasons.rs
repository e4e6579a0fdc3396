//! The reference of reasons names every reason there is, and no other.

use danlu_types::ReasonCode;

const PAGE: &str = include_str!("../../../docs/reference/reasons.md");

#[test]
fn every_reason_has_a_row_in_the_reference() {
    let rows: Vec<&str> = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(code, _)| code)
        .collect();
    let codes: Vec<&str> = ReasonCode::all().map(ReasonCode::as_str).collect();
    assert_eq!(rows, codes);
}
