//! Whole projects on disk: what the vendor's tool gets wrong is a test here, by the words of its description.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use danlu_migrate::project::{
    Destination, FileReport, MigrationReport, PLATFORM_REPORTS, ProjectError, REPORT_NAMES, REPORTS,
    SourceChange, SourceFileKind, migrate, migrate_while, write_reports,
};
use danlu_migrate::{FindingKind, Grade, Options, report};

fn write(root: &Path, path: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        Place { folder }
    }

    fn input(&self) -> std::path::PathBuf {
        self.folder.path().join("in")
    }

    fn output(&self) -> std::path::PathBuf {
        self.folder.path().join("out")
    }

    fn migrate(&self) -> MigrationReport {
        migrate(&self.input(), &Destination::Folder(self.output()), &Options::default(), true).unwrap()
    }

    fn result(&self, path: &str) -> String {
        String::from_utf8(fs::read(self.output().join(path)).unwrap()).unwrap()
    }
}

fn named<'r>(report: &'r MigrationReport, path: &str) -> &'r FileReport {
    report.files.iter().find(|file| file.path == path).unwrap()
}

#[test]
fn a_file_that_fails_costs_only_itself() {
    let place = Place::new();
    write(&place.input(), "good.py", "import torch\nx = torch.ones(1).cuda()\n");
    write(&place.input(), "broken.py", "def f(:\n    x.cuda()\n");
    write(&place.input(), "old.py", "print 'cuda'\n");
    write(&place.input(), "binary.py", b"x = '\xff'\n");
    write(&place.input(), "kernel.cu", b"\xff\xfe not UTF-8 + PYBIND11_MODULE m.def(\"f\"");
    write(&place.input(), "a+b.cu", "TORCH_LIBRARY(x, m) { m.def(\"g(Tensor x) -> Tensor\"); }\n");
    let report = place.migrate();
    assert_eq!(report.count(FindingKind::Broken), 3);
    assert_eq!(
        place.result("good.py"),
        "import torch\nimport torch_npu  # noqa: F401\nx = torch.ones(1).npu()\n"
    );
    assert_eq!(fs::read(place.output().join("binary.py")).unwrap(), b"x = '\xff'\n");
    assert_eq!(place.result("broken.py"), "def f(:\n    x.cuda()\n");
    assert_eq!(named(&report, "a+b.cu").operators, ["g"]);
}

#[test]
fn constructs_that_end_the_vendors_run_are_ordinary_code() {
    let place = Place::new();
    let text = "import torch\nm = (a() if c else b)().cuda()\nif hasattr(x.module.module, 'f'):\n    y.to(z for z in q)\n";
    write(&place.input(), "a.py", text);
    let report = place.migrate();
    assert_eq!(report.count(FindingKind::Broken), 0);
    assert_eq!(
        place.result("a.py"),
        text.replace(".cuda()", ".npu()")
            .replace("import torch\n", "import torch\nimport torch_npu  # noqa: F401\n")
    );
}

#[test]
fn encodings_newlines_marks_and_modes_survive() {
    let place = Place::new();
    let latin = b"# -*- coding: latin-1 -*-\nimport torch\nname = 'caf\xe9'\nx = y.cuda()\n";
    write(&place.input(), "latin.py", latin);
    write(&place.input(), "windows.py", "\u{feff}import torch\r\nx = y.cuda()  # \u{e9}\r\n");
    write(&place.input(), "no_newline.py", "import torch\nx = y.cuda()");
    write(&place.input(), "run.py", "#!/usr/bin/env python\nimport torch\nx = y.cuda()\n");
    fs::set_permissions(place.input().join("run.py"), fs::Permissions::from_mode(0o755)).unwrap();
    place.migrate();
    assert_eq!(
        fs::read(place.output().join("latin.py")).unwrap(),
        b"# -*- coding: latin-1 -*-\nimport torch\nimport torch_npu  # noqa: F401\nname = 'caf\xe9'\nx = y.npu()\n"
    );
    assert_eq!(
        place.result("windows.py"),
        "\u{feff}import torch\r\nimport torch_npu  # noqa: F401\r\nx = y.npu()  # \u{e9}\r\n"
    );
    assert_eq!(place.result("no_newline.py"), "import torch\nimport torch_npu  # noqa: F401\nx = y.npu()");
    assert_eq!(fs::metadata(place.output().join("run.py")).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_file_without_an_edit_is_not_written_differently_by_a_byte() {
    let place = Place::new();
    let odd = b"\xef\xbb\xbfimport torch\r\nx = 1 \t\r\n\x0c\ny = \"cuda is a word\"";
    write(&place.input(), "odd.py", odd);
    write(&place.input(), "data.bin", [0u8, 159, 146, 150]);
    let report = place.migrate();
    assert_eq!(report.changes(), 0);
    assert_eq!(fs::read(place.output().join("odd.py")).unwrap(), odd);
    assert_eq!(fs::read(place.output().join("data.bin")).unwrap(), [0u8, 159, 146, 150]);
}

#[test]
fn migrating_a_migrated_project_changes_nothing() {
    let place = Place::new();
    write(&place.input(), "pkg/__init__.py", "from .compat import torch as t\n");
    write(&place.input(), "pkg/compat.py", "import torch\nfrom torch.cuda import amp\n");
    write(
        &place.input(),
        "train.py",
        "from pkg import t\nfrom pkg.compat import amp\nt.cuda.empty_cache()\nx = t.ones(1, device='cuda')\n",
    );
    write(&place.input(), "run.sh", "CUDA_VISIBLE_DEVICES=0 python train.py --device cuda\n");
    write(&place.input(), "conf.yaml", "device: cuda\n");
    write(&place.input(), "requirements.txt", "torch==2.1.0+cu118\n");
    assert!(place.migrate().changes() > 5);
    assert_eq!(place.result("train.py").lines().nth(2), Some("t.npu.empty_cache()"));
    let again = migrate(&place.output(), &Destination::Nowhere, &Options::default(), false).unwrap();
    assert_eq!(again.changes(), 0);
}

#[test]
fn only_files_that_use_the_device_import_torch_npu() {
    let place = Place::new();
    write(&place.input(), "layers.py", "import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n");
    write(
        &place.input(),
        "names.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\nx = y.cuda()\n",
    );
    let report = place.migrate();
    assert!(named(&report, "layers.py").changes.is_empty());
    assert!(!place.result("names.py").contains("torch_npu"));
}

#[test]
fn every_change_is_listed_once_and_only_if_it_was_applied() {
    let place = Place::new();
    write(
        &place.input(),
        "a.py",
        "import torch\nif torch.cuda.is_available():\n    x = torch.ones(1).cuda()\n",
    );
    write(&place.input(), "b.py", "def f(:\n    torch.cuda.is_available()\n");
    let done = place.migrate();
    let files = report::vendor_files(&done, true);
    let changes = files.iter().find(|file| file.name == "change_list.csv").unwrap();
    insta::assert_snapshot!(changes.text, @r"
    File,Start Line,End Line,Operation Type,Message
    a.py,1,1,INSERT,import torch_npu
    a.py,2,2,MODIFY,change module cuda to npu
    a.py,3,3,MODIFY,change function cuda to npu
    ");
    let headers: Vec<_> =
        files.iter().map(|file| format!("{}: {}", file.name, file.text.lines().next().unwrap())).collect();
    insta::assert_snapshot!(headers.join("\n"), @r"
    change_list.csv: File,Start Line,End Line,Operation Type,Message
    unsupported_api.csv: File,Start Line,End Line,OP,Tips
    unknown_api.csv: File,Start Line,End Line,OP,Tips
    cuda_op_list.csv: File,Api
    api_precision_advice.csv: File,Start Line,End Line,OP,Tips
    api_performance_advice.csv: File,Start Line,End Line,OP,Tips
    run_distributed_npu.sh: #!/usr/bin/env bash
    ");
}

#[test]
fn the_log_is_split_at_one_mebibyte_and_the_oldest_parts_go() {
    let change = |line: usize| SourceChange {
        start_line: line,
        end_line: line,
        column: 1,
        operation: "MODIFY",
        rule: "cuda-method",
        grade: Grade::Likely,
        message: "change function cuda to npu".to_owned(),
    };
    let many = FileReport {
        path: "many.py".to_owned(),
        kind: SourceFileKind::Python,
        lines: 160_001,
        changes: (2..=160_001).map(change).collect(),
        findings: Vec::new(),
        diff: String::new(),
        operators: Vec::new(),
    };
    let report = MigrationReport { torch: "2.8.0", files: vec![many] };
    let parts = report::log_files(&report, "2026-01-01 00:00:00");
    assert_eq!(parts.len(), 11);
    assert!(parts.iter().all(|part| part.text.len() <= 1 << 20));
    assert_eq!(parts[0].name, "msFmkTranspltlog.txt");
    assert_eq!(parts[10].name, "msFmkTranspltlog.txt.10");
    assert!(
        parts[0].text.trim_end().ends_with(
            "line: 160001 ~ 160001   Operation Type: MODIFY   Message: change function cuda to npu"
        )
    );
}

#[test]
fn reports_say_the_same_in_every_form() {
    let place = Place::new();
    write(&place.input(), "a.py", "import torch\ntorch.cuda.nvtx.mark('<step>')\nx = y.cuda()\n");
    let done = place.migrate();
    let folder = place.output().join(REPORTS);
    write_reports(&folder, &done, &Options::default(), "in", Some("2026-01-01 00:00:00")).unwrap();
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    insta::assert_snapshot!(names.join(" "), @"api_performance_advice.csv api_precision_advice.csv change_list.csv cuda_op_list.csv msFmkTranspltlog.txt report.html report.json report.sarif unknown_api.csv unsupported_api.csv");
    insta::assert_snapshot!(report::text(&done), @r"
    a.py:1:13: import torch_npu [torch-npu-import, safe]
    a.py:3:7: change function cuda to npu [cuda-method, likely]
    a.py:2:1: unsupported: `torch.cuda.nvtx.mark`: marks for NVIDIA's profiler; `torch_npu.npu.mstx` marks for Ascend's [torch-cuda]
    ");
    insta::assert_snapshot!(report::summary(&done, "changed"), @r"
    1 file and 3 lines read; changed 2 places in 1 file
    left: 1 call unsupported
    ");
    let sarif = report::sarif(&done);
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let levels: Vec<_> = results.iter().map(|result| result["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["note", "note", "error"]);
    let html = report::html(&done, "in");
    assert!(html.contains("<pre>x = y.npu()</pre>") && !html.contains("<step>"));
    insta::assert_snapshot!(report::diffs(&done), @r"
    --- a/a.py
    +++ b/a.py
    @@ -1,3 +1,4 @@
     import torch
    +import torch_npu  # noqa: F401
     torch.cuda.nvtx.mark('<step>')
    -x = y.cuda()
    +x = y.npu()
    ");
}

#[test]
fn links_stay_links_and_an_output_inside_the_input_is_refused() {
    let place = Place::new();
    write(&place.input(), "a.py", "x = 1\n");
    std::os::unix::fs::symlink("a.py", place.input().join("b.py")).unwrap();
    place.migrate();
    assert_eq!(fs::read_link(place.output().join("b.py")).unwrap(), Path::new("a.py"));
    let inside = Destination::Folder(place.input().join("out"));
    let error = migrate(&place.input(), &inside, &Options::default(), false).unwrap_err();
    assert!(error.to_string().ends_with("lies inside of the input"), "{error}");
}

#[test]
fn in_place_changes_the_files_themselves() {
    let place = Place::new();
    write(&place.input(), "a.py", "import torch\nx = y.cuda()\n");
    migrate(&place.input(), &Destination::InPlace, &Options::default(), false).unwrap();
    assert_eq!(
        fs::read_to_string(place.input().join("a.py")).unwrap(),
        "import torch\nimport torch_npu  # noqa: F401\nx = y.npu()\n"
    );
    assert!(!place.output().exists());
}

#[test]
fn without_a_time_the_reports_are_the_same_whenever_they_are_made() {
    let place = Place::new();
    write(&place.input(), "a.py", "import torch\nx = y.cuda()\n");
    let done = place.migrate();
    let folder = place.output().join(PLATFORM_REPORTS);
    let names = write_reports(&folder, &done, &Options::default(), "in", None).unwrap();
    assert!(names.iter().all(|name| REPORT_NAMES.contains(&name.as_str())), "{names:?}");
    let html = fs::read(folder.join("report.html")).unwrap();
    let again = place.migrate();
    write_reports(&folder, &again, &Options::default(), "in", None).unwrap();
    assert_eq!(fs::read(folder.join("report.html")).unwrap(), html);
    // Our own reports are no part of a project that is migrated again.
    let again = migrate(&place.output(), &Destination::Nowhere, &Options::default(), false).unwrap();
    assert_eq!(again.files.len(), 1);
}

#[test]
fn a_migration_that_nobody_waits_for_ends_early() {
    let place = Place::new();
    write(&place.input(), "a.py", "import torch\nx = y.cuda()\n");
    let given_up =
        migrate_while(&place.input(), &Destination::Nowhere, &Options::default(), false, &|| false);
    assert!(matches!(given_up, Err(ProjectError::GivenUp)));
}

/// A stack that overflows ends the process, and the process may be a server.
#[test]
fn code_that_nests_beyond_reason_costs_only_its_file() {
    let place = Place::new();
    let deep = 200_000;
    write(
        &place.input(),
        "lists.py",
        format!("import torch\nx = {}{}\n", "[".repeat(deep), "]".repeat(deep)),
    );
    write(&place.input(), "open.py", format!("import torch\nx = {}\n", "(".repeat(deep)));
    write(&place.input(), "names.py", format!("import torch\nx = torch{}\n", ".cuda".repeat(deep)));
    write(&place.input(), "sums.py", format!("import torch\nx = 1{}\n", " + 1".repeat(deep)));
    write(&place.input(), "signs.py", format!("import torch\nx = {}1\n", "- ".repeat(deep)));
    write(&place.input(), "calls.py", format!("import torch\nx = f{}\n", "()".repeat(deep)));
    write(&place.input(), "texts.py", format!("import torch\nx = {}1\n", "lambda: ".repeat(deep)));
    write(
        &place.input(),
        "table.py",
        format!("import torch\nx = [{}]\ny = x.cuda()\n", "1, (2, 3), ".repeat(deep)),
    );
    write(&place.input(), "good.py", "import torch\nx = y.cuda()\n");
    let report = place.migrate();
    assert_eq!(report.count(FindingKind::Broken), 7);
    let changed: Vec<&str> = report.changed().map(|file| file.path.as_str()).collect();
    assert_eq!(changed, ["good.py", "table.py"]);
}
