//! Tables as text: a header with the names of the columns, then one line for each row.
//!
//! Columns may stand in any order. Fields may be quoted with `"`, in which `""` is a quotation mark; a field does not
//! reach over the end of a line.

use std::fmt::Display;
use std::io::BufRead;
use std::str::FromStr;

use super::TraceError;

/// Reads a table row by row.
#[derive(Debug)]
pub(super) struct Table<'a, R> {
    file: &'a str,
    input: R,
    columns: Vec<String>,
    line: usize,
}

/// One row, whose fields are asked for by column.
#[derive(Debug)]
pub(super) struct Row<'a> {
    file: &'a str,
    pub(super) line: usize,
    columns: &'a [String],
    fields: Vec<String>,
}

impl<'a, R: BufRead> Table<'a, R> {
    /// Reads the header, which must have the `required` columns and may have the `known` ones.
    pub(super) fn new(
        file: &'a str,
        input: R,
        required: &[&str],
        known: &[&str],
    ) -> Result<Self, TraceError> {
        let mut table = Table { file, input, columns: Vec::new(), line: 0 };
        let header = table.next_line()?.ok_or_else(|| table.wrong("the file is empty".to_owned()))?;
        table.columns =
            split(header.trim_start_matches('\u{feff}')).map_err(|problem| table.wrong(problem))?;
        for column in required {
            if !table.columns.iter().any(|name| name == column) {
                let problem = format!("the header has no column `{column}`; needed are {}", listed(required));
                return Err(table.wrong(problem));
            }
        }
        let odd = table
            .columns
            .iter()
            .find(|name| !known.contains(&name.as_str()) && !required.contains(&name.as_str()));
        if let Some(odd) = odd {
            let all: Vec<&str> = required.iter().chain(known).copied().collect();
            return Err(table.wrong(format!("column `{odd}` is not known; there may be {}", listed(&all))));
        }
        for (position, name) in table.columns.iter().enumerate() {
            if table.columns[..position].contains(name) {
                return Err(table.wrong(format!("column `{name}` is in the header twice")));
            }
        }
        Ok(table)
    }

    pub(super) fn next_row(&mut self) -> Result<Option<Row<'_>>, TraceError> {
        let text = loop {
            match self.next_line()? {
                Some(line) if line.trim().is_empty() => {}
                Some(line) => break line,
                None => return Ok(None),
            }
        };
        let fields = split(&text).map_err(|problem| self.wrong(problem))?;
        if fields.len() != self.columns.len() {
            let problem = format!(
                "has {} fields, but the header names {}; quote fields that hold commas",
                fields.len(),
                self.columns.len()
            );
            return Err(self.wrong(problem));
        }
        Ok(Some(Row { file: self.file, line: self.line, columns: &self.columns, fields }))
    }

    fn next_line(&mut self) -> Result<Option<String>, TraceError> {
        let mut line = String::new();
        let read = self.input.read_line(&mut line).map_err(|source| TraceError::Read {
            file: self.file.to_owned(),
            line: self.line,
            source,
        })?;
        self.line += 1;
        let end = line.trim_end_matches(['\n', '\r']).len();
        line.truncate(end);
        Ok((read > 0).then_some(line))
    }

    fn wrong(&self, problem: String) -> TraceError {
        TraceError::Line { file: self.file.to_owned(), line: self.line, problem }
    }
}

impl Row<'_> {
    /// The field, if there is such a column and it is not empty.
    pub(super) fn text(&self, column: &str) -> Option<&str> {
        let position = self.columns.iter().position(|name| name == column)?;
        Some(self.fields[position].trim()).filter(|field| !field.is_empty())
    }

    pub(super) fn required(&self, column: &str) -> Result<&str, TraceError> {
        self.text(column).ok_or_else(|| self.wrong(column, "is empty, but needed".to_owned()))
    }

    /// The field as a value, whose error says what would be right.
    pub(super) fn value<T>(&self, column: &str) -> Result<Option<T>, TraceError>
    where
        T: FromStr<Err: Display>,
    {
        let read = |text: &str| text.parse().map_err(|error: T::Err| self.wrong(column, error.to_string()));
        self.text(column).map(read).transpose()
    }

    /// The field as a number, with what would have been right.
    pub(super) fn number<T: FromStr>(&self, column: &str, accepted: &str) -> Result<Option<T>, TraceError> {
        let read = |text: &str| {
            text.parse().map_err(|_| {
                self.wrong(column, format!("`{}` is not a number; write {accepted}", shown(text)))
            })
        };
        self.text(column).map(read).transpose()
    }

    pub(super) fn wrong(&self, column: &str, problem: String) -> TraceError {
        TraceError::Cell { file: self.file.to_owned(), line: self.line, column: column.to_owned(), problem }
    }
}

/// Enough of a hostile text to recognise it by.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn split(line: &str) -> Result<Vec<String>, String> {
    if !line.contains('"') {
        return Ok(line.split(',').map(|field| field.trim().to_owned()).collect());
    }
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let (field, tail) = if let Some(quoted) = rest.trim_start().strip_prefix('"') {
            split_quoted(quoted)?
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            (rest[..end].trim().to_owned(), &rest[end..])
        };
        fields.push(field);
        match tail.trim_start().strip_prefix(',') {
            Some(tail) => rest = tail,
            None if tail.trim().is_empty() => return Ok(fields),
            None => return Err(format!("has `{}` after a closing quotation mark", shown(tail.trim()))),
        }
    }
}

fn split_quoted(text: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').ok_or("has a quotation mark that is not closed")?;
        field.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(tail) => {
                field.push('"');
                rest = tail;
            }
            None => return Ok((field, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Vec<Vec<String>>, TraceError> {
        let mut table = Table::new("t.csv", text.as_bytes(), &["a"], &["b"])?;
        let mut rows = Vec::new();
        while let Some(row) = table.next_row()? {
            rows.push(["a", "b"].map(|column| row.text(column).unwrap_or("-").to_owned()).to_vec());
        }
        Ok(rows)
    }

    #[test]
    fn columns_are_found_by_name_and_fields_may_be_quoted() {
        let rows = read("b,a\r\n1,2\n\n \"x, \"\"y\"\"\" ,3\n,4\n").unwrap();
        assert_eq!(rows, [["2", "1"], ["3", "x, \"y\""], ["4", "-"]]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let said = |text: &str| read(text).unwrap_err().to_string();
        insta::assert_snapshot!(said(""), @"`t.csv` line 1: the file is empty");
        insta::assert_snapshot!(said("b\n"), @"`t.csv` line 1: the header has no column `a`; needed are `a`");
        insta::assert_snapshot!(said("a,x\n"), @"`t.csv` line 1: column `x` is not known; there may be `a`, `b`");
        insta::assert_snapshot!(said("a,a\n"), @"`t.csv` line 1: column `a` is in the header twice");
        insta::assert_snapshot!(said("a,b\n1,2\n1,2,3\n"), @"`t.csv` line 3: has 3 fields, but the header names 2; quote fields that hold commas");
        insta::assert_snapshot!(said("a,b\n\"1,2\n"), @"`t.csv` line 2: has a quotation mark that is not closed");
        insta::assert_snapshot!(said("a,b\n\"1\"x,2\n"), @"`t.csv` line 2: has `x,2` after a closing quotation mark");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[ab,\"\n\r é]{0,60}") {
            let _ = read(&text);
            let _ = read(&format!("a,b\n{text}"));
        }
    }
}
