//! `measure FOLDER [OUT [MAIN | --reverse | --portable]]`: migrates a project with all reports and says how fast, for `bench/migrate.sh`.

use std::path::PathBuf;
use std::time::Instant;

use danlu_migrate::project::{Destination, REPORTS, migrate, write_reports};
use danlu_migrate::{Distributed, FindingKind, Options, Portable};

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let root = arguments.next().expect("the first argument is the folder of a project");
    let output = arguments.next();
    let destination = output.clone().map_or(Destination::Nowhere, Destination::Folder);
    let main = arguments.next().map(|main| main.to_string_lossy().into_owned());
    let mut options = Options::default();
    match main.as_deref() {
        Some("--reverse") => options.portable = Some(Portable::Inline),
        Some("--portable") => options.portable = Some(Portable::Shim),
        Some(main) => options.distributed = Distributed::new(main, "model"),
        None => {}
    }
    let began = Instant::now();
    let report = migrate(&root, &destination, &options, output.is_some()).expect("the folder can be read");
    if let Some(output) = &output {
        write_reports(&output.join(REPORTS), &report, &options, "measured", Some("2026-01-01 00:00:00"))
            .expect("the output can be written");
    }
    let seconds = began.elapsed().as_secs_f64();
    let python = report
        .files
        .iter()
        .filter(|file| std::path::Path::new(&file.path).extension().is_some_and(|end| end == "py"));
    let lines: usize = python.map(|file| file.lines).sum();
    let counts = [FindingKind::Broken, FindingKind::Unsupported, FindingKind::NeedsPerson]
        .map(|kind| report.count(kind));
    #[expect(clippy::print_stdout, reason = "this is what the program is for")]
    {
        println!(
            "lines={lines} seconds={seconds:.3} lines_per_second={:.0} files={} changed={} changes={} broken={} unsupported={} person={}",
            lines as f64 / seconds,
            report.files.len(),
            report.changed().count(),
            report.changes(),
            counts[0],
            counts[1],
            counts[2]
        );
    }
}
