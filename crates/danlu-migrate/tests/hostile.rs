//! Sources that bind names in circles, nest without end or repeat themselves: the migrator ends, and says what it left.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;

use danlu_migrate::project::{Destination, MigrationReport, migrate};
use danlu_migrate::{FindingKind, Module, Options, Portable, apply, gather_facts, migrate_python};
use proptest::prelude::*;

/// Through the shell, on the stack that its workers have.
fn on_disk(files: &[(&str, String)]) -> MigrationReport {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    migrate(folder.path(), &Destination::Nowhere, &Options::default(), true).unwrap()
}

fn outcome_of(text: &str) -> danlu_migrate::FileMigration {
    let facts = gather_facts(text.as_bytes(), &Module::default());
    migrate_python(text.as_bytes(), &Module::default(), &facts, &Options::default())
}

fn migrated(text: &str) -> String {
    String::from_utf8(apply(text.as_bytes(), &outcome_of(text).edits)).unwrap()
}

#[test]
fn names_bound_in_circles_are_numbers_only_if_one_is_so_by_itself() {
    let npu = |text: &str| migrated(&format!("import torch\n{text}\n")).contains("npu:{");
    assert!(npu("i = 0\ni = i + 1\nx.to(i)"));
    assert!(npu("rank = int(a)\ndev = rank % 8\ndev = dev + 0\nx.to(dev)"));
    assert!(npu("i = 1\ni, j = j, i\nx.to(i)"));
    assert!(!npu("n = m + 1\nm = n + 1\nx.to(n)"));
    assert!(!npu("f = f + w.to(f)"));
    assert!(!npu("f = f * w.to(device=f)"));
    assert!(!npu("while True:\n    rank = rank + 1\n    x.to(rank)"));
    assert!(!npu("f = loss(a)\nf = f * self.class_weight.to(f)"));
}

#[test]
fn only_numbers_of_cuda_and_of_npus_name_an_npu() {
    let npu = |text: &str| migrated(&format!("import torch\n{text}\n")).contains("npu:{d}");
    assert!(npu("d = torch.cuda.current_device()\ny.to(d)"));
    assert!(npu("d = rank % torch.cuda.device_count()\nrank = 0\ny.to(d)"));
    assert!(!npu("d = torch.neuron.current_device()\ny.to(d)"));
    assert!(!npu("d = torch.xpu.current_device()\ny.to(d)"));
    assert!(!npu("d = accelerator.current_device()\ny.to(d)"));
}

#[test]
fn a_lookup_costs_the_same_however_often_names_are_bound() {
    // Each name stands for the next hundreds of times: without a bound this would take 300⁵ steps.
    let mut text = "import torch\na0 = torch\n".to_owned();
    for level in 1..=5 {
        text += &format!("a{level} = a{}\n", level - 1).repeat(300);
    }
    text += &"x = a5.cuda.is_available()\n".repeat(300);
    let report = on_disk(&[("a.py", text)]);
    assert_eq!(report.count(FindingKind::Broken), 0);
}

#[test]
fn long_lists_and_long_lines_take_no_longer_than_their_length() {
    let list = format!("import torch\nx = [{}]\n", "\"cuda\", ".repeat(60_000));
    let keys = format!("import torch\nx = {{{}}}\n", "\"cuda\": 1, ".repeat(60_000));
    let comment = format!("import torch\nif x:\n    y = 1  # {}\n", "npu ".repeat(300_000));
    let guards = format!("import torch\nx = {}1\n", "torch.cuda.is_available() and ".repeat(1_500));
    let refusals =
        "    if not torch.cuda.is_available():\n        return\n    torch.cuda.nvtx.mark()\n".repeat(2_000);
    let refusals = format!("import torch\ndef f():\n{refusals}");
    let report =
        on_disk(&[("a.py", list), ("b.py", keys), ("c.py", comment), ("d.py", guards), ("e.py", refusals)]);
    assert_eq!(report.count(FindingKind::Broken), 0);
}

#[test]
fn nesting_without_end_costs_only_its_file() {
    const DEEP: usize = 100_000;
    let nested_ifs: Vec<String> = (0..1500).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect();
    let nested_ifs = nested_ifs.concat();
    let sources = [
        format!("x = {}1{}\n", "(".repeat(DEEP), ")".repeat(DEEP)),
        format!("x = {}{}\n", "[".repeat(DEEP), "]".repeat(DEEP)),
        format!("x = {}1{}\n", "{1: ".repeat(DEEP), "}".repeat(DEEP)),
        format!("x = {}\n", "(".repeat(DEEP)),
        format!("x = a{}\n", ".b".repeat(DEEP)),
        format!("x = a{}\n", ".cuda()".repeat(DEEP)),
        format!("x = a{}\n", "[0]".repeat(DEEP)),
        format!("x = 1{}\n", " + 1".repeat(DEEP)),
        format!("x = {}1\n", "-".repeat(DEEP)),
        format!("x = {}1\n", "not ".repeat(DEEP)),
        format!("x = {}1\n", "await ".repeat(DEEP)),
        format!("x = {}1\n", "1 if x else ".repeat(DEEP)),
        format!("x = {}1\n", "lambda: ".repeat(DEEP)),
        format!("x = {}1{}\n", "f\"{".repeat(DEEP), "}\"".repeat(DEEP)),
        format!("x = f\"{}1{}\"\n", "{x:".repeat(DEEP), "}".repeat(DEEP)),
        format!("{}1\n", "x = ".repeat(DEEP)),
        format!("{nested_ifs}{}pass\n", " ".repeat(1500)),
        format!("{}def f(): pass\n", "@torch.cuda.f\n".repeat(DEEP)),
        format!("if x: pass\n{}", "elif torch.cuda.is_available(): pass\n".repeat(DEEP / 4)),
        format!("match x:\n    case {}1{}: pass\n", "[".repeat(DEEP), "]".repeat(DEEP)),
        format!("x: {}int{} = 1\n", "list[".repeat(DEEP), "]".repeat(DEEP)),
        format!("{}\n", "x = 1; ".repeat(DEEP)),
        "torch;".repeat(DEEP),
    ];
    let named: Vec<(String, String)> = sources
        .into_iter()
        .enumerate()
        .map(|(index, text)| (format!("f{index:02}.py"), format!("import torch\n{text}")))
        .collect();
    let mut files: Vec<(&str, String)> =
        named.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    files.push(("good.py", "import torch\nx = torch.ones(1).cuda()\n".to_owned()));
    let report = on_disk(&files);
    let good = report.files.iter().find(|file| file.path == "good.py").unwrap();
    assert_eq!(good.changes.len(), 2);
    let refused = |name: &str| {
        let file = report.files.iter().find(|file| file.path == name).unwrap();
        file.findings.iter().any(|note| note.kind == FindingKind::Broken)
    };
    assert!(refused("f00.py") && refused("f04.py") && refused("f07.py") && refused("f13.py"));
    // Many of the same beside each other are no nesting.
    assert!(!refused("f17.py") && !refused("f18.py") && !refused("f21.py"));
}

#[test]
fn names_and_calls_in_circles_through_files_end() {
    const LONG: usize = 3_000;
    // Each file has its names from the next, and the last from the first.
    let ring: Vec<(String, String)> = (0..40)
        .map(|file| {
            let next = (file + 1) % 40;
            let text = format!(
                "import torch\nfrom m{next} import d, kernel\nfrom . import m{next}\nx = torch.ones(1).to(d)\ny = m{next}.m{file}.d.cuda()\n"
            );
            (format!("m{file}.py"), text)
        })
        .collect();
    // A chain of functions, each of which calls the next from behind a condition, and the last the first.
    let calls: Vec<String> = (0..LONG)
        .map(|at| {
            let next = (at + 1) % LONG;
            format!("def f{at}(x):\n    if x.is_cuda:\n        f{next}(x)\n    f{next}(x)\n")
        })
        .collect();
    let chain: Vec<String> = (0..LONG).map(|at| format!("a{} = a{at}\n", at + 1)).collect();
    let versions: Vec<String> =
        (1..1_200).map(|depth| format!("{}if version > {depth}:\n", " ".repeat(depth))).collect();
    let mut files: Vec<(&str, String)> =
        ring.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    files.push(("calls.py", format!("import torch\n{}", calls.concat())));
    files.push((
        "chain.py",
        format!("import torch\na0 = torch\n{}a{LONG}.cuda.synchronize()\n", chain.concat()),
    ));
    files.push((
        "versions.py",
        format!(
            "import torch\nif torch.cuda.is_available():\n{}{}pass\n",
            versions.concat(),
            " ".repeat(1_200)
        ),
    ));
    let report = on_disk(&files);
    assert_eq!((report.files.len(), report.count(FindingKind::Broken)), (43, 0));
}

#[test]
fn a_name_of_a_pair_costs_no_look_at_the_whole_file() {
    let pairs: Vec<String> = (0..20_000)
        .map(|at| format!("def has_cuda_{at}():\n    return torch.cuda.is_available()\n"))
        .collect();
    let report = on_disk(&[("pairs.py", format!("import torch\nnpu = 1\n{}", pairs.concat()))]);
    assert_eq!(report.changes(), 20_001);
}

/// What the right side of a binding is.
#[derive(Debug, Clone)]
enum Value {
    Name(usize),
    Operation(usize, usize),
    Attribute(usize, &'static str),
    Call(usize, &'static str),
    Getattr(usize),
    Moved(usize, usize),
    Literal(&'static str),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Value::Name(name) => format!("n{name}"),
            Value::Operation(left, right) => format!("n{left} % n{right}"),
            Value::Attribute(name, attribute) => format!("n{name}.{attribute}"),
            Value::Call(name, attribute) => format!("n{name}.{attribute}(n{name})"),
            Value::Getattr(name) => format!("getattr(n{name}, 'cuda')"),
            Value::Moved(name, to) => format!("n{name}.to(n{to})"),
            Value::Literal(text) => (*text).to_owned(),
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let name = || 0..6usize;
    let attribute =
        || prop::sample::select(vec!["cuda", "is_cuda", "device", "current_device", "to", "local_rank"]);
    let literal =
        prop::sample::select(vec!["0", "'cuda'", "'cuda:0'", "torch", "torch.cuda", "None", "int(1)", "[]"]);
    prop_oneof![
        name().prop_map(Value::Name),
        (name(), name()).prop_map(|(left, right)| Value::Operation(left, right)),
        (name(), attribute()).prop_map(|(name, attribute)| Value::Attribute(name, attribute)),
        (name(), attribute()).prop_map(|(name, attribute)| Value::Call(name, attribute)),
        name().prop_map(Value::Getattr),
        (name(), name()).prop_map(|(name, to)| Value::Moved(name, to)),
        literal.prop_map(Value::Literal),
    ]
}

fn binding() -> impl Strategy<Value = String> {
    let plain = (0..6usize, value()).prop_map(|(name, value)| format!("n{name} = {}", value.text()));
    let other = (0..10usize, 0..6usize, 0..6usize, value()).prop_map(|(form, one, two, value)| {
        let value = value.text();
        match form {
            0 => format!("n{one} += {value}"),
            1 => format!("for n{one} in {value}:\n    n{two} = n{one}"),
            2 => format!("n{one}, n{two} = n{two}, {value}"),
            3 => format!("n{one}: int = {value}"),
            4 => format!("class n{one}(n{two}):\n    n{one} = n{one}.n{two}\n    is_cuda = {value}"),
            5 => format!(
                "def n{one}(n{two}={value}):\n    n{one} = n{two} + n{one}\n    return n{two}.to(n{one})"
            ),
            6 => format!("from n{one} import n{two}"),
            7 => format!("import n{one} as n{two}"),
            8 => format!("with {value} as n{one}:\n    n{one} = n{one}.cuda(n{two})"),
            _ => format!("if (n{one} := {value}):\n    torch.zeros(1, device=n{two})"),
        }
    });
    prop_oneof![plain, other]
}

proptest! {
    /// Names that stand for each other in any way, circles included, on the stack of a thread of tests.
    #[test]
    fn no_graph_of_bindings_makes_it_fail(lines in prop::collection::vec(binding(), 1..14), portable in any::<bool>()) {
        let uses: Vec<String> = (0..6).map(|name| format!("x.to(n{name}); torch.device(n{name}); n{name}.cuda()\n")).collect();
        let uses = uses.concat();
        let text = format!("import torch\n{}\n{uses}", lines.join("\n"));
        let module = |name: &str| Module { name: name.to_owned(), ..Module::default() };
        let options = Options { portable: portable.then_some(Portable::Inline), ..Options::default() };
        // The file is its own modules as well, so that imports lead in circles, too.
        let mut facts = gather_facts(text.as_bytes(), &module("n0"));
        facts.merge(gather_facts(text.as_bytes(), &module("n1")));
        let once = migrate_python(text.as_bytes(), &module("n0"), &facts, &options);
        let output = apply(text.as_bytes(), &once.edits);
        let again = migrate_python(&output, &module("n0"), &facts, &options);
        // Portable code hides from the next run what a name stands for (`getattr(torch, ACCELERATOR)`), and `torch.cuda.cuda()` is no program.
        prop_assert!(portable || again.edits.is_empty(), "{:?}\n{}", again.edits, String::from_utf8_lossy(&output));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A few tokens, thousands of times.
    #[test]
    fn no_repeated_piece_makes_it_fail(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "(", ")", "[", "]", "{", "}", "f\"{", "}\"", ":", ",", ".", "a", "1", "+", "-", "not ", "lambda ", "lambda: ",
            " if ", " else ", "*", "=", ";", "\n", "await ", "yield ", "'", "\"", "torch.cuda", ":=", "case ", "@", "\\\n",
        ]), 1..5),
    ) {
        let report = on_disk(&[("a.py", format!("import torch\nx = {}\n", pieces.concat().repeat(30_000)))]);
        prop_assert_eq!(report.files.len(), 1);
    }
}
