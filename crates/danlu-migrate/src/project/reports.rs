//! The reports of a run, as files of one folder.

use std::fs;
use std::path::Path;

use super::{MigrationReport, ProjectError};
use crate::Options;
use crate::report;

/// The folder of the reports inside of a migrated copy, by the vendor's name.
pub const REPORTS: &str = "transplant_result_file";

/// The same inside of a copy that the platform keeps as a snapshot.
pub const PLATFORM_REPORTS: &str = "danlu-migration";

/// Every report that there can be, but for the log.
pub const REPORT_NAMES: &[&str] = &[
    "report.html",
    "report.json",
    "report.sarif",
    "change_list.csv",
    "unsupported_api.csv",
    "unknown_api.csv",
    "cuda_op_list.csv",
    "api_precision_advice.csv",
    "api_performance_advice.csv",
    "affinity_api_call.csv",
    "run_distributed_npu.sh",
];

/// Writes all reports into `folder`, and gives their names. Without `at` there is no log: the rest is the same whenever it is made.
pub fn write_reports(
    folder: &Path,
    report: &MigrationReport,
    options: &Options,
    title: &str,
    at: Option<&str>,
) -> Result<Vec<String>, ProjectError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ProjectError::Write { path, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let json = serde_json::to_string(report).expect("a report has only texts and numbers");
    let mut files = vec![
        ("report.html".to_owned(), report::html(report, title)),
        ("report.json".to_owned(), json),
        ("report.sarif".to_owned(), report::sarif(report).to_string()),
    ];
    let mut tables = report::vendor_files(report, options.distributed.is_some());
    tables.extend(at.into_iter().flat_map(|at| report::log_files(report, at)));
    files.extend(tables.into_iter().map(|file| (file.name, file.text)));
    let mut names = Vec::with_capacity(files.len());
    for (name, text) in files {
        let path = folder.join(&name);
        fs::write(&path, text).map_err(failed(&path))?;
        names.push(name);
    }
    Ok(names)
}
