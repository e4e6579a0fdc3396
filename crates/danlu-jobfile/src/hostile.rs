//! Job files that nobody wrote to be run: whatever they hold, the answer is a job or a refusal, and comes before memory or the
//! stack is used up.

use std::path::PathBuf;

use proptest::prelude::*;

use super::JobFile;

/// What files look like; each is damaged at every place sooner or later.
const CORPUS: [&str; 8] = [
    "name: digits\ncommand: python train.py --epochs 3\ndevices: {kind: ascend, model: 910B*, count: 8}\nworkers: 2\n",
    "command: |\n  echo one\n  echo two\nenv: {A: \"1\", B: 'two'}\nlabels: {team: vision}\nmax_time: 1d12h\n",
    "command: >-\n  folded\n  text\nany_of:\n- {kind: nvidia, count: 0.5}\n- {count: 2}\nretry: {limit: 3, on: [exit, node_lost]}\n",
    "{\"command\": \"true\", \"memory\": \"64Gi\", \"cpus\": \"0.5\", \"priority\": 3, \"nodes\": {\"labels\": {\"zone\": \"a\"}}}",
    "base: &base {kind: nvidia, count: 1}\ncommand: x\ndevices: *base\n",
    "%YAML 1.2\n---\ncommand: !!str x\nworkers: 0x2\n...\n",
    "command: x\nsecrets:\n- {name: hf, as: file}\ncheckpoint: {every: 10m}\non_hang: stop\nhang_after: 5m\n",
    "#!/bin/bash\n#SBATCH --job-name=a --nodes=2 --ntasks-per-node=8\n#SBATCH --gres=gpu:8 --time=1-00:00:00 --array=1-9%3\nsrun python a.py\n",
];

/// Reads it in every way that a file is read; what came of it does not matter.
fn read(name: &str, source: &[u8]) {
    let Ok(mut draft) = JobFile::read(name, PathBuf::from("."), source.to_vec()) else { return };
    let _ = draft.notes();
    draft.set("workers=2");
    let _ = draft.overrides();
    let _ = draft.finish(|_| true);
}

#[test]
fn depth_and_repetition_end_in_a_refusal() {
    const MANY: usize = 100_000;
    let bomb = (0..60).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
        let more = format!("*a{level}, ").repeat(9);
        format!("{text}a{}: &a{} [{}]\n", level + 1, level + 1, more.trim_end_matches(", "))
    });
    let staircase: String = (0..2000).flat_map(|depth| [" ".repeat(depth), "a:\n".to_owned()]).collect();
    let merges = (0..2000).fold("m0: &m0 {a: 1}\n".to_owned(), |text, level| {
        format!("{text}m{}: &m{} {{<<: *m{level}}}\n", level + 1, level + 1)
    });
    for (what, source) in [
        ("lists in lists", "[".repeat(MANY)),
        ("closed lists", "[".repeat(MANY) + &"]".repeat(MANY)),
        ("maps in maps", "{a: ".repeat(MANY)),
        ("JSON in JSON", "{\"a\":".repeat(MANY)),
        ("items of items", "- ".repeat(MANY)),
        ("questions", "? ".repeat(MANY)),
        ("steps", staircase),
        ("aliases of aliases", bomb),
        ("merges of merges", merges),
        ("many aliases", format!("a: &a x\nb: [{}]\n", "*a, ".repeat(MANY))),
        (
            "many anchors",
            (0..MANY).flat_map(|number| [format!("a{number}: "), format!("&a{number} x\n")]).collect(),
        ),
        ("many tags", "!a ".repeat(MANY)),
        ("many documents", "---\na: 1\n".repeat(MANY)),
        ("one long line", "command: ".to_owned() + &"x".repeat(8 << 20)),
        ("one long key", "k".repeat(8 << 20) + ": x\n"),
        ("quotes without end", "command: \"".to_owned() + &"\\u0041".repeat(MANY)),
        ("options without end", "#!/bin/sh\n".to_owned() + &"#SBATCH --nodes=1\n".repeat(MANY)),
        ("brackets in a script", "#!/bin/sh\n#SBATCH --array=".to_owned() + &"[".repeat(MANY) + "\n"),
        (
            "a script of quotes",
            "#!/bin/sh\n#SBATCH --nodes=2\nsrun ".to_owned() + &"$(\"".repeat(MANY) + "\n",
        ),
    ] {
        // The answer is what is tested: without one, the test does not come to its end.
        eprintln!("{what}");
        read("job.yaml", source.as_bytes());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read("job.yaml", &bytes);
    }

    #[test]
    fn any_arrangement_of_yaml_is_read_or_refused(text in "([ \n\t:,?|>&*!%@`'\"#{}\\[\\]~-]|<<|a|1|command|devices|---|\\.\\.\\.){0,80}") {
        read("job.yaml", text.as_bytes());
    }

    #[test]
    fn known_files_with_any_damage_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..12usize, "[ -~\n\t\u{0}\u{85}é]{0,4}"), 1..5),
    ) {
        let mut text: Vec<char> = which.get(&CORPUS).chars().collect();
        for (at, cut, with) in damage {
            let from = at.index(text.len() + 1);
            let to = (from + cut).min(text.len());
            text.splice(from..to, with.chars());
        }
        let text: String = text.into_iter().collect();
        read("job.yaml", text.as_bytes());
    }
}
