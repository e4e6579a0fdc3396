//! What holds for every program: it still parses, a second run changes nothing, and no input of any kind makes it fail.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use danlu_migrate::project::{SourceFileKind, propose};
use danlu_migrate::{
    Distributed, FileMigration, FindingKind, Module, Options, Portable, ProjectFacts, apply, gather_facts,
    migrate_python,
};
use proptest::prelude::*;

/// Lines that say something to the rules, in the forms in which they are met and some in which they are not.
const LINES: &[&str] = &[
    "import torch",
    "import torch as t",
    "import torch.cuda",
    "import torch.cuda.amp as amp",
    "from torch import cuda",
    "from torch import nn, cuda as gpu, Tensor",
    "from torch import cuda, cuda as gpu",
    "from torch.cuda.amp import (autocast,  # why\n    GradScaler)",
    "from torch.profiler import profile, ProfilerActivity, record_function",
    "from torch.distributed import is_nccl_available, Backend",
    "import torch.distributed as dist; import os",
    "x = torch.ones(3).cuda()",
    "x = x.cuda(0, non_blocking=True)  # cuda",
    "y = t.cuda.is_available() and cuda.device_count() > 1",
    "device = 'cuda' if torch.cuda.is_available() else 'cpu'",
    "device = f\"cuda:{0}\"",
    "where = \"cuda:%d\" % 1; x.to(where)",
    "x = x.to(0).to(device=1).to(*args, **kwargs)",
    "x = torch.zeros(1, device=torch.cuda.current_device())",
    "state = torch.load('a', map_location={'cuda:0': 'cuda:1'})",
    "dist.init_process_group('cpu:gloo,cuda:nccl')",
    "if dist.is_nccl_available() or Backend.NCCL == 'nccl': pass",
    "with profile(activities=[ProfilerActivity.CUDA]) as p: p.step()",
    "os.environ['CUDA_VISIBLE_DEVICES'] = '0'",
    "if x.is_cuda:\n    y = x.type('torch.cuda.FloatTensor')",
    "def f(rank, device='cuda'):\n    import torch\n    return torch.device(rank), x.to(rank)",
    "class A(torch.nn.Module):\n    def cuda(self):\n        return super().cuda()",
    "if is_npu_available(): device = 'npu'\nelif torch.cuda.is_available(): device = 'cuda'",
    "model = torch.nn.DataParallel(model)",
    "loader = DataLoader(data, shuffle=True)",
    "for epoch in range(3):\n    for batch in loader: pass",
    "if __name__ == '__main__':\n    model.cuda()",
    "names = ['cpu', 'cuda', \"cuda\\x3a0\", b'cuda', r'cuda']",
    "try:\n    import torch\nexcept ImportError:\n    torch = None",
    "s = '''cuda\n'''",
    "z = (torch\n     . cuda  # kept\n     .synchronize())",
    "lambda torch: torch.cuda",
    "[torch.cuda.device(i) for i in range(2)]",
    "with open('cuda') as f: torch.save(f, 'cuda')",
    "from compat import *",
    "x = torch.cuda.FloatTensor.cuda()\nif torch.cuda.x.is_cuda: pass",
    "use = torch.cuda.is_available()\ndef g(x):\n    if use:\n        torch.cuda._sleep(1)\n    return x.cuda()",
    "class B:\n    use = torch.cuda.is_available()\n    def g(self):\n        if self.use:\n            torch.cuda.nvtx.mark('a')",
    "class C:\n    def g(self):\n        self.use = torch.cuda.is_available()\n        self.x = self.x.cuda() if self.use else None",
];

fn program() -> impl Strategy<Value = String> {
    let newline = prop_oneof![Just("\n"), Just("\r\n")];
    (prop::collection::vec(prop::sample::select(LINES), 0..12), newline, any::<bool>()).prop_map(
        |(lines, newline, with_end)| {
            let mut text = lines.join("\n").replace('\n', newline);
            if with_end {
                text.push_str(newline);
            }
            text
        },
    )
}

fn options() -> impl Strategy<Value = Options> {
    let for_npus =
        (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(distributed, specify_device, modelarts)| {
            let distributed =
                distributed.then(|| Distributed { main: "main.py".to_owned(), model: "model".to_owned() });
            Options { distributed, specify_device, modelarts, ..Options::default() }
        });
    let portable = prop::sample::select(vec![Portable::Inline, Portable::Shim])
        .prop_map(|portable| Options { portable: Some(portable), ..Options::default() });
    prop_oneof![3 => for_npus, 2 => portable]
}

fn run(text: &[u8], options: &Options) -> FileMigration {
    let module = Module { is_main: options.distributed.is_some(), ..Module::default() };
    let facts = gather_facts(text, &module);
    migrate_python(text, &module, &facts, options)
}

fn is_broken(outcome: &FileMigration) -> bool {
    outcome.findings.iter().any(|finding| finding.kind == FindingKind::Broken)
}

/// Found by the fuzzers: the first run made a call of `torch.cuda`, and the second a device of what the call gives.
#[test]
fn a_number_of_what_a_call_gives_is_left_alone() {
    let text =
        b"import torch\n\nx = torch.ones(1)\nx.to(torch.cuda.gs.local_rank)\nx.to(load().local_rank)\n";
    for portable in [None, Some(Portable::Inline), Some(Portable::Shim)] {
        let options = Options { portable, ..Options::default() };
        let once = apply(text, &run(text, &options).edits);
        assert_eq!(run(&once, &options).edits, [], "{}", String::from_utf8_lossy(&once));
        assert!(String::from_utf8_lossy(&once).contains("x.to(load().local_rank)"));
    }
}

/// Found by the fuzzers: the first run imported `os`, which the file used without an import, and the second changed its calls.
#[test]
fn an_os_that_another_rule_imports_is_known_in_the_first_run() {
    let text = b"import torch\n\nos.makedirs(path)\nif __name__ == '__main__':\n    x.cuda()\n";
    let distributed = Distributed::new("main.py", "model");
    for options in [
        Options { modelarts: true, distributed, ..Options::default() },
        Options { modelarts: true, specify_device: true, ..Options::default() },
    ] {
        let once = apply(text, &run(text, &options).edits);
        assert!(String::from_utf8_lossy(&once).contains("import os\n"), "{}", String::from_utf8_lossy(&once));
        assert_eq!(run(&once, &options).edits, [], "{}", String::from_utf8_lossy(&once));
    }
}

proptest! {
    /// The inputs parse, so neither reading nor the check of the result may find fault with them.
    #[test]
    fn what_parses_still_parses_and_binds_its_names(text in program(), options in options()) {
        let outcome = run(text.as_bytes(), &options);
        prop_assert!(!is_broken(&outcome), "{:?}\n{text}", outcome.findings);
    }

    #[test]
    fn a_second_run_changes_nothing(text in program(), options in options()) {
        let once = apply(text.as_bytes(), &run(text.as_bytes(), &options).edits);
        let again = run(&once, &options);
        prop_assert_eq!(&again.edits, &Vec::new(), "{}", String::from_utf8_lossy(&once));
    }

    #[test]
    fn bytes_between_the_changes_stay(text in program()) {
        let outcome = run(text.as_bytes(), &Options::default());
        let output = apply(text.as_bytes(), &outcome.edits);
        let (mut before, mut after) = (0, 0);
        for edit in &outcome.edits {
            let kept = edit.start - before;
            prop_assert_eq!(&text.as_bytes()[before..edit.start], &output[after..after + kept]);
            before = edit.end;
            after += kept + edit.replacement.len();
        }
        prop_assert_eq!(&text.as_bytes()[before..], &output[after..]);
    }

    #[test]
    fn a_program_that_never_names_cuda_is_left_alone(text in program()) {
        let text = text.replace("cuda", "host").replace("CUDA", "HOST").replace("nccl", "gloo").replace("NCCL", "GLOO");
        let text = text.replace(".to(0)", "").replace("device=1", "").replace(".to(rank)", "").replace("device(rank)", "f()");
        let outcome = run(text.as_bytes(), &Options::default());
        prop_assert_eq!(&outcome.edits, &Vec::new(), "{}", text);
    }

    /// The code of a notebook, in cells of one text or of one text for each line.
    #[test]
    fn a_notebook_stays_one_and_is_changed_once(
        text in program(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        is_list in any::<bool>(),
        options in options(),
    ) {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(lines.len() + 1)).collect();
        cuts.extend([0, lines.len()]);
        cuts.sort_unstable();
        let cells: Vec<_> = cuts.windows(2).map(|pair| {
            let lines = &lines[pair[0]..pair[1]];
            // The last line of a cell has no end.
            let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            if let Some(last) = lines.last_mut() {
                last.truncate(last.trim_end().len());
            }
            let source = if is_list { serde_json::json!(lines) } else { serde_json::json!(lines.concat()) };
            serde_json::json!({ "cell_type": "code", "source": source })
        }).collect();
        let notebook = serde_json::to_string_pretty(&serde_json::json!({ "cells": cells })).unwrap();
        let propose = |bytes: &[u8]| {
            propose(SourceFileKind::Notebook, bytes, &Module::default(), &ProjectFacts::default(), &options)
        };
        let outcome = propose(notebook.as_bytes());
        let output = apply(notebook.as_bytes(), &outcome.edits);
        prop_assert!(serde_json::from_slice::<serde_json::Value>(&output).is_ok(), "{}", String::from_utf8_lossy(&output));
        let again = propose(&output);
        prop_assert_eq!(&again.edits, &Vec::new(), "{}", String::from_utf8_lossy(&output));
        prop_assert!(outcome.edits.is_empty() || !is_broken(&again), "{:?}", again.findings);
    }

    /// The fuzz target: any bytes, as any kind of file.
    #[test]
    fn no_input_of_any_kind_makes_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0..6usize) {
        anything(&bytes, kind);
    }

    /// The same with bytes that are nearly programs: pieces of lines, cut anywhere.
    #[test]
    fn no_torn_program_makes_it_fail(text in program(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6), kind in 0..6usize) {
        let mut bytes = text.into_bytes();
        for cut in cuts {
            if !bytes.is_empty() {
                let at = cut.index(bytes.len());
                bytes.remove(at);
            }
        }
        anything(&bytes, kind);
    }
}

/// What is done to a fixture before it is migrated.
#[derive(Debug, Clone)]
enum Mutation {
    Remove { from: prop::sample::Index, length: usize },
    Repeat { from: prop::sample::Index, length: usize, at: prop::sample::Index },
    Insert { what: &'static str, at: prop::sample::Index },
    SwapLines { one: prop::sample::Index, other: prop::sample::Index },
}

/// Pieces that change what the text around them means.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\"\"\"",
    "#",
    "\\",
    "\n",
    "\r\n",
    "\t",
    "f\"",
    ".cuda()",
    ".cuda(0)",
    "cuda",
    "npu",
    "torch.",
    ":",
    ",",
    "=",
    "*",
    "lambda torch: ",
    "async ",
    "if x: ",
    "global torch\n",
    "\u{feff}",
    "\u{e9}",
    "from torch import *\n",
    "import torch as t\n",
    "ACCELERATOR",
    " else ",
    ";",
];

fn mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), 1..30usize).prop_map(|(from, length)| Mutation::Remove { from, length }),
        (index(), 1..60usize, index()).prop_map(|(from, length, at)| Mutation::Repeat { from, length, at }),
        (prop::sample::select(PIECES), index()).prop_map(|(what, at)| Mutation::Insert { what, at }),
        (index(), index()).prop_map(|(one, other)| Mutation::SwapLines { one, other }),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    if bytes.is_empty() {
        return;
    }
    let range = |bytes: &[u8], from: &prop::sample::Index, length: usize| {
        let from = from.index(bytes.len());
        from..(from + length).min(bytes.len())
    };
    match mutation {
        Mutation::Remove { from, length } => {
            let range = range(bytes, from, *length);
            bytes.drain(range);
        }
        Mutation::Repeat { from, length, at } => {
            let piece = bytes[range(bytes, from, *length)].to_vec();
            let at = at.index(bytes.len());
            bytes.splice(at..at, piece);
        }
        Mutation::Insert { what, at } => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, what.bytes());
        }
        Mutation::SwapLines { one, other } => {
            let mut lines: Vec<Vec<u8>> =
                bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let (one, other) = (one.index(lines.len()), other.index(lines.len()));
            lines.swap(one, other);
            *bytes = lines.concat();
        }
    }
}

fn fixtures() -> Vec<Vec<u8>> {
    // From the package's folder, where tests run: this program may be run in another tree than the one it was built in.
    let mut folders: Vec<_> =
        std::fs::read_dir("tests/rules").unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders.into_iter().map(|folder| std::fs::read(folder.join("input.py")).unwrap()).collect()
}

proptest! {
    /// Programs that say much to the rules, damaged: nothing fails, what is changed stays a program, and is changed once.
    #[test]
    fn no_mutated_fixture_makes_it_fail(
        fixture in prop::sample::select(fixtures()),
        mutations in prop::collection::vec(mutation(), 1..6),
        options in options(),
    ) {
        let mut bytes = fixture;
        for mutation in &mutations {
            mutate(&mut bytes, mutation);
        }
        let once = run(&bytes, &options);
        let output = apply(&bytes, &once.edits);
        let again = run(&output, &options);
        prop_assert_eq!(&again.edits, &Vec::new(), "{}", String::from_utf8_lossy(&output));
        prop_assert!(once.edits.is_empty() || !is_broken(&again), "{:?}\n{}", again.findings, String::from_utf8_lossy(&output));
    }
}

fn anything(bytes: &[u8], kind: usize) {
    let kinds = [
        SourceFileKind::Python,
        SourceFileKind::Notebook,
        SourceFileKind::Shell,
        SourceFileKind::Configuration,
        SourceFileKind::Requirements,
        SourceFileKind::Pyproject,
    ];
    let outcome =
        propose(kinds[kind], bytes, &Module::default(), &ProjectFacts::default(), &Options::default());
    let output = apply(bytes, &outcome.edits);
    let again =
        propose(kinds[kind], &output, &Module::default(), &ProjectFacts::default(), &Options::default());
    assert_eq!(again.edits, Vec::new(), "{}", String::from_utf8_lossy(&output));
}
