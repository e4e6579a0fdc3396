//! What a project is told of itself: flags and numbers of its own, sources in CUDA, tables, and files for NPUs that it has already.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::Path;

use danlu_migrate::project::{Destination, FileReport, MigrationReport, migrate};
use danlu_migrate::{FindingKind, Options, report};

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

fn migrated(text: &str, torch: &str) -> (String, MigrationReport) {
    let place = Place::new();
    write(&place.input(), "a.py", text);
    let options =
        Options { torch: danlu_migrate::TorchVersion::nearest(torch).unwrap().0, ..Options::default() };
    let report = migrate(&place.input(), &Destination::Folder(place.output()), &options, true).unwrap();
    (place.result("a.py"), report)
}

#[test]
fn a_flag_called_is_cuda_of_a_class_of_ones_own_stays() {
    for own in [
        "class Cfg:\n    is_cuda = False\n",
        "class Cfg:\n    is_cuda: bool = False\n",
        "Cfg = Namespace(is_cuda=True)\n",
        "parser.add_argument('--is-cuda')\n",
    ] {
        let (text, report) = migrated(&format!("import torch\n{own}print(Cfg.is_cuda)\n"), "2.8.0");
        assert!(!text.contains("is_npu"), "{text}");
        assert_eq!(report.count(FindingKind::NeedsPerson), 1, "{text}");
    }
}

#[test]
fn a_number_from_the_command_line_is_changed_or_reported() {
    let uses = "x.to(args.gpu)\ntorch.zeros(3, device=args.gpu)\n";
    let always = format!("import torch\nparser.add_argument('--gpu', type=int, default=0)\n{uses}");
    let (text, _) = migrated(&always, "2.1.0");
    assert!(
        text.contains("x.to(f\"npu:{args.gpu}\")") && text.contains("device=f\"npu:{args.gpu}\""),
        "{text}"
    );
    for may_be_none in [
        "parser.add_argument('--gpu', type=int)\n",
        "parser.add_argument('--gpu', type=int, default=0)\nargs.gpu = f()\n",
    ] {
        let text = format!("import torch\n{may_be_none}{uses}");
        let (after, report) = migrated(&text, "2.1.0");
        assert_eq!((after.as_str(), report.count(FindingKind::NeedsPerson)), (text.as_str(), 2));
        // From 2.3 on torch takes it for the accelerator that there is.
        assert_eq!(migrated(&text, "2.8.0").1.count(FindingKind::NeedsPerson), 0);
    }
}

#[test]
fn sources_in_cuda_are_in_every_report() {
    let place = Place::new();
    write(
        &place.input(),
        "ops/scan.cu",
        "__global__ void f() {}\nPYBIND11_MODULE(x, m) { m.def(\"scan\", &scan); }\n",
    );
    write(&place.input(), "ops/bind.cpp", "#include <ATen/cuda/CUDAContext.h>\n");
    write(&place.input(), "ops/host.cpp", "PYBIND11_MODULE(x, m) { m.def(\"sum\", &sum); }\n");
    write(&place.input(), "ops/plain.cpp", "int main() {}\n");
    let report = place.migrate();
    assert_eq!((report.count(FindingKind::NeedsPerson), report.count(FindingKind::Note)), (2, 1));
    assert!(report::summary(&report, "changed").contains("2 places to be looked at by a person"));
    let sarif = report::sarif(&report).to_string();
    for text in
        [report::html(&report, "t"), report::text(&report), sarif, serde_json::to_string(&report).unwrap()]
    {
        assert!(text.contains("scan.cu") && text.contains("bind.cpp"), "{text}");
    }
}

#[test]
fn every_row_of_a_table_has_the_columns_of_its_header() {
    let (_, report) =
        migrated("import torch\ntorch.brand_new(1)\ntorch.cuda.nvtx.mark('a')\nx.cuda()\n", "2.8.0");
    for file in report::vendor_files(&report, false) {
        let widths: Vec<usize> =
            file.text.lines().map(|line| line.replace("\"\"", "").split(',').count()).collect();
        assert!(widths.iter().all(|width| *width >= widths[0]), "{}\n{}", file.name, file.text);
        if file.name == "unknown_api.csv" {
            assert_eq!(widths, [5, 5], "{}", file.text);
        }
    }
    // The first row of a diff spans all columns, so their widths have to be said before.
    assert!(report::html(&report, "t").contains("<table class=\"diff\"><colgroup>"));
}

#[test]
fn a_file_with_one_for_npus_beside_it_is_left() {
    let place = Place::new();
    let text = "import torch\nx = y.cuda()\n";
    for path in
        ["cuda_accelerator.py", "npu_accelerator.py", "ops/cuda/scan.py", "ops/npu/scan.py", "cuda_other.py"]
    {
        write(&place.input(), path, text);
    }
    let report = place.migrate();
    let changed: Vec<&str> = report.changed().map(|file| file.path.as_str()).collect();
    assert_eq!(changed, ["cuda_other.py", "npu_accelerator.py", "ops/npu/scan.py"]);
    assert_eq!(named(&report, "cuda_accelerator.py").findings[0].subject, "npu_accelerator.py");
}

const COMPAT: &str = "import torch\ntry:\n    import triton\nexcept ImportError:\n    import cupy\nelse:\n    import triton.language as tl\n";

#[test]
fn what_another_file_hands_on_is_reported_once() {
    let place = Place::new();
    write(&place.input(), "pkg/__init__.py", "");
    write(&place.input(), "pkg/compat.py", COMPAT);
    write(&place.input(), "pkg/again.py", "from .compat import *\n");
    for (path, text) in [
        ("pkg/star.py", "from .again import *\n@triton.jit\ndef f(x):\n    return tl.load(x)\n"),
        (
            "pkg/attribute.py",
            "import torch\nfrom . import compat\n@compat.tl.jit\ndef f(x):\n    return compat.triton.load(x)\n",
        ),
        ("pkg/handler.py", "import torch\nfrom .compat import cupy\n"),
        ("pkg/bound.py", "import torch\nfrom .compat import *\ndef f(triton):\n    return triton.jit\n"),
    ] {
        write(&place.input(), path, text);
    }
    let report = place.migrate();
    let told = |path: &str| -> Vec<String> {
        let notes = named(&report, path).findings.iter();
        notes.map(|note| format!("{}: {}", note.start_line, note.subject)).collect()
    };
    assert_eq!(told("pkg/star.py"), ["2: triton.jit"]);
    assert_eq!(told("pkg/attribute.py"), ["3: triton.language.jit"]);
    assert_eq!(told("pkg/handler.py"), ["2: cupy"]);
    assert_eq!(told("pkg/bound.py"), Vec::<String>::new());
}

#[test]
fn a_torch_that_a_star_import_brings_is_changed() {
    let place = Place::new();
    write(&place.input(), "pkg/__init__.py", "");
    write(&place.input(), "pkg/compat.py", COMPAT);
    let text = "from .compat import *\nif torch.cuda.is_available():\n    x = x.cuda()\n";
    write(&place.input(), "pkg/own.py", text);
    write(&place.input(), "lesson.py", text.replace(".compat", "fastai.vision.all"));
    let report = place.migrate();
    let migrated = "import torch_npu  # noqa: F401\nif torch.npu.is_available():\n    x = x.npu()\n";
    assert_eq!(place.result("pkg/own.py"), format!("from .compat import *\n{migrated}"));
    assert_eq!(place.result("lesson.py"), format!("from fastai.vision.all import *\n{migrated}"));
    assert_eq!(report.changes(), 6);
}

#[test]
fn results_keep_their_fingerprints_while_lines_move() {
    let fingerprints = |text: &str| -> Vec<String> {
        let (_, report) = migrated(text, "2.8.0");
        let sarif = report::sarif(&report);
        let results = sarif["runs"][0]["results"].as_array().unwrap().iter();
        results
            .map(|result| result["partialFingerprints"]["danluResult/v1"].as_str().unwrap().to_owned())
            .collect()
    };
    let text = "import torch\nx.cuda()\ny.cuda()\ntorch.cuda.nvtx.mark('a')\n";
    let before = fingerprints(text);
    assert_eq!(
        before,
        [
            "a.py:torch-npu-import:import torch_npu:1",
            "a.py:cuda-method:change function cuda to npu:1",
            "a.py:cuda-method:change function cuda to npu:2",
            "a.py:torch-cuda:torch.cuda.nvtx.mark:1"
        ]
    );
    assert_eq!(fingerprints(&text.replace("x.cuda", "print()\n\nx.cuda")), before);
}

#[test]
fn reports_say_what_made_them_and_how_much_there_is() {
    let (_, report) = migrated("import torch\nx.cuda()\ny.cuda()\ntorch.cuda.nvtx.mark('a')\n", "2.8.0");
    let mut json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["version"].take(), env!("CARGO_PKG_VERSION"));
    json["files"].take();
    insta::assert_snapshot!(json, @r#"{"files":null,"tool":"danlu migrate","torch":"2.8.0","totals":{"changed_files":1,"changes":3,"files":1,"findings":{"unsupported":1},"lines":4,"rules":{"cuda-method":{"changes":2,"findings":0},"torch-cuda":{"changes":0,"findings":1},"torch-npu-import":{"changes":1,"findings":0}}},"version":null}"#);
    let html = report::html(&report, "t");
    assert!(html.contains("<tr><td>cuda-method</td><td>2</td><td>0</td></tr>"), "{html}");
    assert!(html.contains("<tr><th>all</th><th>3</th><th>1</th></tr>"), "{html}");
}
