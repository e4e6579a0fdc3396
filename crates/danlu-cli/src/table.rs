//! Tables: no borders, one header line, as wide as the terminal.

use std::io::IsTerminal as _;

use comfy_table::{Attribute, Cell, ContentArrangement, Table, presets};

use crate::failure::CliError;
use crate::output;

/// Between two columns.
pub(crate) const GAP: usize = 2;
const GAP_CELLS: u16 = 2;

pub(crate) fn new<const N: usize>(header: [&str; N]) -> Table {
    of_columns(&header)
}

/// For tables whose columns are known only when they are printed.
pub(crate) fn of_columns(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let cell = |name: &&str| Cell::new(name.to_uppercase()).add_attribute(Attribute::Bold);
    table.set_header(header.iter().map(cell));
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP_CELLS));
    }
    table
}

pub(crate) fn print(table: &mut Table) -> Result<(), CliError> {
    if std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    output::line(text(table))
}

/// Without the blanks that padding leaves at the ends of lines.
pub(crate) fn text(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// How many columns of a terminal a text takes: characters of East Asia and pictures are two wide.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// By the blocks of Unicode whose characters are wide or full width (UAX 11), not character by character.
pub(crate) fn columns_of(character: char) -> usize {
    match u32::from(character) {
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}
