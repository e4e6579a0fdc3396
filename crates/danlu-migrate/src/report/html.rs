//! One page without scripts or anything from elsewhere: what is left to do, then each file with its changes side by side.

use std::fmt::Write as _;

use crate::finding::FindingKind;
use crate::project::{FileReport, MigrationReport};
use crate::report::terminal::summary;

pub fn html(report: &MigrationReport, title: &str) -> String {
    let mut page = String::from(HEAD);
    let _ = write!(page, "<title>{0}</title></head><body><h1>{0}</h1>", escaped(title));
    let _ = write!(page, "<p>{}</p>", escaped(&summary(report, "changed")).replace('\n', "<br>"));
    totals(&mut page, report);
    let worth = |file: &&FileReport| {
        !file.changes.is_empty() || file.findings.iter().any(|note| note.kind <= FindingKind::NeedsPerson)
    };
    page += "<table><tr><th>file</th><th>changes</th><th>to look at</th></tr>";
    for file in report.files.iter().filter(worth) {
        let open = file.findings.iter().filter(|note| note.kind <= FindingKind::NeedsPerson).count();
        let path = escaped(&file.path);
        let _ = write!(
            page,
            "<tr><td><a href=\"#{path}\">{path}</a></td><td>{}</td><td>{open}</td></tr>",
            file.changes.len()
        );
    }
    page += "</table>";
    for file in report.files.iter().filter(worth) {
        section(&mut page, file);
    }
    page + "</body></html>\n"
}

/// Changes and findings of each rule, the most first.
fn totals(page: &mut String, report: &MigrationReport) {
    let totals = report.totals();
    let mut rules: Vec<_> = totals.rules.into_iter().collect();
    rules.sort_by_key(|(rule, count)| (std::cmp::Reverse(count.changes + count.findings), *rule));
    *page += "<table class=\"totals\"><tr><th>rule</th><th>changes</th><th>findings</th></tr>";
    for (rule, count) in rules {
        let _ = write!(page, "<tr><td>{rule}</td><td>{}</td><td>{}</td></tr>", count.changes, count.findings);
    }
    let findings: usize = totals.findings.values().sum();
    let _ = write!(page, "<tr><th>all</th><th>{}</th><th>{findings}</th></tr></table>", totals.changes);
}

fn section(page: &mut String, file: &FileReport) {
    let path = escaped(&file.path);
    let _ = write!(page, "<h2 id=\"{path}\">{path}</h2>");
    if !file.findings.is_empty() {
        *page += "<ul>";
        for note in &file.findings {
            let kind = note.kind.name();
            let _ = write!(
                page,
                "<li class=\"{}\"><b>{kind}</b> line {}: <code>{}</code> {} <i>{}</i></li>",
                kind.replace(' ', "-"),
                note.start_line,
                escaped(&note.subject),
                escaped(&note.message),
                note.rule
            );
        }
        *page += "</ul>";
    }
    if !file.diff.is_empty() {
        // Widths of a fixed layout are those of the columns: the first row may span all of them.
        *page += "<table class=\"diff\"><colgroup><col class=\"number\"><col><col class=\"number\"><col></colgroup>";
        side_by_side(page, &file.diff);
        *page += "</table>";
    }
}

/// Rows of a unified diff as two columns: removed lines stand beside those that were added for them.
fn side_by_side(page: &mut String, diff: &str) {
    let (mut removed, mut added): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let (mut left, mut right) = (0, 0);
    let flush = |page: &mut String,
                 removed: &mut Vec<&str>,
                 added: &mut Vec<&str>,
                 left: &mut usize,
                 right: &mut usize| {
        for index in 0..removed.len().max(added.len()) {
            let cell = |page: &mut String, text: Option<&&str>, number: &mut usize, class: &str| match text {
                Some(text) => {
                    let _ = write!(
                        page,
                        "<td>{number}</td><td class=\"{class}\"><pre>{}</pre></td>",
                        escaped(text)
                    );
                    *number += 1;
                }
                None => *page += "<td></td><td></td>",
            };
            *page += "<tr>";
            cell(page, removed.get(index), left, "removed");
            cell(page, added.get(index), right, "added");
            *page += "</tr>";
        }
        removed.clear();
        added.clear();
    };
    for line in diff.lines().skip(2) {
        let mut characters = line.chars();
        match characters.next() {
            Some('-') => removed.push(characters.as_str()),
            Some('+') => added.push(characters.as_str()),
            Some('@') => {
                flush(page, &mut removed, &mut added, &mut left, &mut right);
                (left, right) = starts(line);
                *page += "<tr><td colspan=\"4\" class=\"gap\">…</td></tr>";
            }
            Some(' ') => {
                flush(page, &mut removed, &mut added, &mut left, &mut right);
                let text = escaped(characters.as_str());
                let _ = write!(
                    page,
                    "<tr><td>{left}</td><td><pre>{text}</pre></td><td>{right}</td><td><pre>{text}</pre></td></tr>"
                );
                left += 1;
                right += 1;
            }
            _ => {}
        }
    }
    flush(page, &mut removed, &mut added, &mut left, &mut right);
}

/// `@@ -12,7 +12,8 @@`
fn starts(line: &str) -> (usize, usize) {
    let number = |sign: char| {
        let after = line.split(sign).nth(1)?;
        after.split([',', ' ']).next()?.parse().ok()
    };
    (number('-').unwrap_or(1), number('+').unwrap_or(1))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const HEAD: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><style>\
body{font:14px/1.5 system-ui,sans-serif;margin:2em;max-width:110em}table{border-collapse:collapse;margin-bottom:1em}\
td,th{padding:.1em .8em;text-align:left;vertical-align:top}.diff{width:100%;table-layout:fixed}\
.diff .number{width:4em}.diff td{overflow-wrap:anywhere}.diff td:nth-child(odd){color:#888;text-align:right}.diff pre{margin:0;white-space:pre-wrap;font-size:12px}\
.removed{background:#fdd}.added{background:#dfd}.gap{color:#888;text-align:center!important}\
li.broken,li.unsupported{color:#a00}li.needs-a-person{color:#850}\
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}.removed{background:#522}.added{background:#252}\
li.broken,li.unsupported{color:#f88}li.needs-a-person{color:#fc6}}</style>";
