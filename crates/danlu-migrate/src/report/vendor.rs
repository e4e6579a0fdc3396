//! The files that the vendor's tool writes, with its names, headers and order of columns.

use std::fmt::Write as _;

use crate::finding::FindingKind;
use crate::project::{FileReport, MigrationReport, Note};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorFile {
    pub name: String,
    pub text: String,
}

/// All reports of a run. `launcher` adds the script that starts one process for each device.
pub fn vendor_files(report: &MigrationReport, launcher: bool) -> Vec<VendorFile> {
    let of = |kind: FindingKind| {
        let rows = report.files.iter().flat_map(move |file| {
            let notes = file.findings.iter().filter(move |note| note.kind == kind);
            notes.map(move |note| row_of(file, note))
        });
        rows.collect::<Vec<_>>()
    };
    let mut files = vec![
        csv("change_list.csv", "File,Start Line,End Line,Operation Type,Message", changes(report)),
        csv("unsupported_api.csv", "File,Start Line,End Line,OP,Tips", of(FindingKind::Unsupported)),
        csv("unknown_api.csv", "File,Start Line,End Line,OP,Tips", of(FindingKind::Unknown)),
        csv("cuda_op_list.csv", "File,Api", operators(report)),
        csv("api_precision_advice.csv", "File,Start Line,End Line,OP,Tips", of(FindingKind::Precision)),
        csv("api_performance_advice.csv", "File,Start Line,End Line,OP,Tips", of(FindingKind::Performance)),
    ];
    let affine = affine(report);
    if !affine.is_empty() {
        let header = "File,Start Line,End Line,Api Type,Api Call Name,Affinity Api Name";
        files.push(csv("affinity_api_call.csv", header, affine));
    }
    if launcher {
        files.push(VendorFile { name: "run_distributed_npu.sh".to_owned(), text: LAUNCHER.to_owned() });
    }
    files
}

fn changes(report: &MigrationReport) -> Vec<Vec<String>> {
    let rows = report.files.iter().flat_map(|file| {
        file.changes.iter().map(|change| {
            let (start, end) = (change.start_line.to_string(), change.end_line.to_string());
            vec![file.path.clone(), start, end, change.operation.to_owned(), change.message.clone()]
        })
    });
    rows.collect()
}

fn row_of(file: &FileReport, note: &Note) -> Vec<String> {
    let tips = if note.message.is_empty() { "NA".to_owned() } else { note.message.clone() };
    let (start, end) = (note.start_line.to_string(), note.end_line.to_string());
    vec![file.path.clone(), start, end, note.subject.clone(), tips]
}

fn operators(report: &MigrationReport) -> Vec<Vec<String>> {
    let rows = report
        .files
        .iter()
        .flat_map(|file| file.operators.iter().map(|operator| vec![file.path.clone(), operator.clone()]));
    rows.collect()
}

fn affine(report: &MigrationReport) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for file in &report.files {
        for note in &file.findings {
            if let Some(similar) = note.message.strip_suffix("` computes the same faster") {
                rows.push(vec![
                    file.path.clone(),
                    note.start_line.to_string(),
                    note.end_line.to_string(),
                    "torch".to_owned(),
                    note.subject.clone(),
                    similar.trim_start_matches('`').to_owned(),
                ]);
            }
        }
    }
    rows
}

fn csv(name: &str, header: &str, rows: Vec<Vec<String>>) -> VendorFile {
    let mut text = format!("{header}\n");
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| shown(cell)).collect();
        text += &cells.join(",");
        text.push('\n');
    }
    VendorFile { name: name.to_owned(), text }
}

/// Quoted where it has to be; a leading blank keeps spreadsheets from computing what they read.
fn shown(cell: &str) -> String {
    let blank = if cell.starts_with(['=', '+', '-', '%', '@']) { " " } else { "" };
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{blank}{}\"", cell.replace('"', "\"\""))
    } else {
        format!("{blank}{cell}")
    }
}

const LOG_BYTES: usize = 1 << 20;
const LOG_FILES: usize = 11;

/// `msFmkTranspltlog.txt` and its older parts, newest lines last; at most 1 MiB each, and at most ten older ones.
pub fn log_files(report: &MigrationReport, at: &str) -> Vec<VendorFile> {
    let mut parts = vec![String::new()];
    for line in log_lines(report, at) {
        if parts.last().is_some_and(|part| part.len() + line.len() > LOG_BYTES) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            *part += &line;
        }
    }
    let name = |age: usize| match age {
        0 => "msFmkTranspltlog.txt".to_owned(),
        age => format!("msFmkTranspltlog.txt.{age}"),
    };
    let newest_first = parts.into_iter().rev().take(LOG_FILES);
    newest_first.enumerate().map(|(age, text)| VendorFile { name: name(age), text }).collect()
}

fn log_lines(report: &MigrationReport, at: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for file in &report.files {
        if !file.changes.is_empty() {
            lines.push(format!("{at} [INFO] {}\n", file.path));
        }
        for change in &file.changes {
            let mut line = String::new();
            let _ = writeln!(
                line,
                "{at} [INFO] line: {} ~ {}   Operation Type: {}   Message: {}",
                change.start_line, change.end_line, change.operation, change.message
            );
            lines.push(line);
        }
        for note in file
            .findings
            .iter()
            .filter(|note| matches!(note.kind, FindingKind::Broken | FindingKind::Unsupported))
        {
            let (start, end) = (note.start_line, note.end_line);
            let level = if note.kind == FindingKind::Broken { "WARNING" } else { "INFO" };
            lines.push(format!(
                "{at} [{level}] {}: line: {start} ~ {end}   Operation Type: UNSUPPORTED   Message: {}\n",
                file.path, note.message
            ));
        }
    }
    lines
}

/// The names and defaults of the vendor's script. Its last line is to be replaced by whoever uses it.
const LAUNCHER: &str = r#"#!/usr/bin/env bash
# Starts one process for each NPU of this machine. Replace the line in the loop by the command of your training.
# `torchrun --nproc-per-node 8 MAIN` and `danlu launch --ranks 8 -- python MAIN` do the same without this script.
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=29688
export HCCL_WHITELIST_DISABLE=1

NPUS=(0 1 2 3 4 5 6 7)
export RANK_SIZE=${#NPUS[@]}
export WORLD_SIZE=$RANK_SIZE

rank=0
for i in "${NPUS[@]}"; do
    export DEVICE_ID=$i
    export RANK_ID=$rank
    export RANK=$rank
    export LOCAL_RANK=$rank
    echo "run process ${rank}"
    please input your shell script here > "output_npu_${i}.log" 2>&1 &
    rank=$((rank + 1))
done
wait
"#;
