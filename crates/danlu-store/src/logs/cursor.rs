//! Where a reader is in each source, as a word that a client can carry.
//!
//! `1~<attempt>.<rank>.<offset>.<number>~…` with numbers to the base 36; sources at their beginning are left out. A client
//! may send what it likes: an offset is taken only where a line begins. The line's number is believed, since counting
//! would cost a read of everything before; a client that changes it sees other numbers, and nothing else.

use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{LogError, LogSource, file};

const VERSION: &str = "1";
const BASE: u32 = 36;

/// Where a line begins in a file, and how many lines are before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Position {
    pub(super) offset: u64,
    pub(super) number: u64,
}

/// The positions of the sources; entries for others are skipped, sources without one begin at 0.
pub(super) fn read(sources: &[LogSource], cursor: Option<&str>) -> Result<Vec<Position>, LogError> {
    let mut positions = vec![Position::default(); sources.len()];
    let Some(cursor) = cursor else { return Ok(positions) };
    let mut entries = cursor.split('~');
    if entries.next() != Some(VERSION) {
        return Err(LogError::BadCursor);
    }
    for entry in entries {
        let mut numbers = entry.split('.').map(|digits| u64::from_str_radix(digits, BASE).ok());
        let mut next = || numbers.next().flatten().ok_or(LogError::BadCursor);
        let (attempt, rank, offset, number) = (next()?, next()?, next()?, next()?);
        if numbers.next().is_some() {
            return Err(LogError::BadCursor);
        }
        let of_entry =
            |source: &LogSource| u64::from(source.attempt.0) == attempt && u64::from(source.rank.0) == rank;
        if let Some(index) = sources.iter().position(of_entry) {
            check_line_start(&sources[index].path, offset)?;
            // More lines than bytes there are not; and sums stay far from overflowing.
            if number > offset {
                return Err(LogError::BadCursor);
            }
            positions[index] = Position { offset, number };
        }
    }
    Ok(positions)
}

pub(super) fn write(sources: &[LogSource], positions: &[Position]) -> String {
    let mut cursor = VERSION.to_owned();
    for (source, position) in sources.iter().zip(positions).filter(|(_, position)| position.offset > 0) {
        let numbers =
            [u64::from(source.attempt.0), u64::from(source.rank.0), position.offset, position.number];
        for (separator, number) in ['~', '.', '.', '.'].into_iter().zip(numbers) {
            cursor.push(separator);
            push_number(&mut cursor, number);
        }
    }
    cursor
}

fn check_line_start(path: &Path, offset: u64) -> Result<(), LogError> {
    let Some(before) = offset.checked_sub(1) else { return Ok(()) };
    // Where the file is gone, so is the sense of the cursor.
    let (file, _) = file::open(path)?.ok_or(LogError::BadCursor)?;
    let mut byte = [0];
    let count = file.read_at(&mut byte, before).map_err(|_| LogError::BadCursor)?;
    if count == 1 && byte == *b"\n" { Ok(()) } else { Err(LogError::BadCursor) }
}

fn push_number(text: &mut String, number: u64) {
    let base = u64::from(BASE);
    if number >= base {
        push_number(text, number / base);
    }
    let digit = u32::try_from(number % base).expect("a digit is less than the base");
    text.push(char::from_digit(digit, BASE).expect("a digit is less than the base"));
}
