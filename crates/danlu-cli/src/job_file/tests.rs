//! What people get to read when a job file is wrong. Whatever the file holds, the answer names the line and never is a
//! panic.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::*;

/// The answer as it looks without colours.
fn answer(source: &[u8], sets: &[&str]) -> String {
    let result = read("job.yaml", PathBuf::from("."), source.to_vec()).and_then(|mut draft| {
        for set in sets {
            draft.set(set);
        }
        finish(&mut draft)
    });
    match result {
        Ok((spec, code)) => format!("accepted: {} {code:?}", serde_json::to_string(&spec).unwrap()),
        Err(failure) => {
            let mut text = anstream::StripStream::new(Vec::new());
            failure.write_to(&mut text).unwrap();
            String::from_utf8(text.into_inner()).unwrap()
        }
    }
}

fn corpus(cases: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, source) in cases {
        let _ = writeln!(text, "=== {name}\n{}", answer(source.as_bytes(), &[]).trim_end());
    }
    text
}

#[test]
fn slips_are_shown_at_their_lines() {
    insta::assert_snapshot!(corpus(&[
        ("unknown field, near miss", "name: a\ndvices: {kind: ascend, count: 8}\ncommand: x\n"),
        ("unknown field, nothing near", "command: x\nzzz: 1\n"),
        ("unknown field without a value", "command: x\nmemroy:\n"),
        ("unknown field inside a map", "command: x\ndevices:\n  kind: ascend\n  cout: 8\n"),
        ("field of a later version", "command: x\ninputs: {data: s3://a/b}\n"),
        ("bad unit", "command: x\nmemory: 256Gx\n"),
        ("bad time", "command: x\nmax_time: 24hours\n"),
        ("bad number", "command: x\nworkers: two\n"),
        ("negative number", "command: x\nworkers: -1\n"),
        ("huge number", "command: x\nworkers: 99999999999999999999999\n"),
        ("octal lookalike", "command: x\npriority: 007\n"),
        ("wrong type", "command: [python, train.py]\n"),
        ("wrong type of a map", "command: x\ndevices: 8\n"),
        (
            "devices and alternatives",
            "command: x\ndevices: {count: 1}\nany_of:\n- {kind: nvidia, count: 1}\n"
        ),
        (
            "an alternative without devices",
            "command: x\nany_of:\n- {kind: nvidia, count: 8}\n- {kind: ascend, count: 0}\n"
        ),
        (
            "a slip in an alternative",
            "command: x\nany_of:\n- {kind: nvidia, count: 8}\n- {kind: acsend, count: 8}\n"
        ),
        ("alternatives that are no list", "command: x\nany_of: {kind: nvidia, count: 8}\n"),
        ("one and a half devices", "command: x\ndevices: {count: 1.5}\n"),
        ("a slip in the choice of nodes", "command: x\nnodes: {lables: {zone: a}}\n"),
        ("wrong word", "command: x\nframework: pytroch\n"),
        ("wrong word in a list", "command: x\nretry: {limit: 1, on: [exit, oom]}\n"),
        ("missing field of a map", "command: x\ndevices: {kind: ascend}\n"),
        ("missing command", "name: a\n"),
        ("impossible values", "command: x\nworkers: 0\npriority: 12\nenv: {DANLU_RANK: 1}\n"),
        ("several at once", "nmae: a\ncommand: x\nmemory: 1Q\nworkers: x\n"),
        ("not a map", "- a\n- b\n"),
        ("a bare word", "hello\n"),
        ("empty", ""),
    ]));
}

#[test]
fn hostile_files_are_refused_with_a_line() {
    let deep = format!("command: x\nenv: {}1{}", "[".repeat(5000), "]".repeat(5000));
    let deep_block: String =
        (0..200).fold(String::new(), |text, depth| format!("{text}{}a:\n", " ".repeat(depth)));
    let laughs = (1..12).fold("a0: &a0 [lol, lol]\n".to_owned(), |text, i| {
        let before = format!("*a{}", i - 1);
        format!("{text}a{i}: &a{i} [{}]\n", [before.as_str(); 10].join(", "))
    });
    insta::assert_snapshot!(corpus(&[
        ("tab indentation", "command: x\nenv:\n\tA: 1\n"),
        ("duplicate keys", "command: x\nname: a\nname: b\n"),
        ("deep flow", &deep),
        ("deep block", &deep_block),
        ("billion laughs", &laughs),
        ("NUL in the file", "command: x\nname: a\0b\n"),
        ("NUL by escape", "command: \"a\\0b\"\n"),
        ("unclosed quote", "command: \"x\nname: a\n"),
        ("unclosed flow", "{\"command\": \"x\",\n"),
        ("two documents", "command: x\n---\ncommand: y\n"),
        ("unknown alias", "command: *nowhere\n"),
        ("bidi and zero width", "command: x\n\u{202e}name\u{200b}: a\n"),
        ("lookalike letter", "command: x\nnаme: a\n"),
        ("terminal codes", "command: x\nname: \"\u{1b}[31mred\"\n"),
        ("terminal codes by escape", "command: x\n\"na\\e[31mme\": a\n"),
        ("path escape", "command: x\ncheckpoint: ../../root\nsetup: /etc/passwd\n"),
        ("tagged", "command: !!python/object:os.system x\nworkers: !!int x\n"),
        ("merge key", "base: &b {name: a}\n<<: *b\ncommand: x\n"),
        ("map as a key", "{a: 1}: 2\ncommand: x\n"),
        ("infinite", "command: x\ncpus: .inf\n"),
        ("code out of nowhere", "command: x\ncode: ./no/such/folder\n"),
        ("code from afar", "command: x\ncode: git+https://example.org/x@main\n"),
        ("code and folder", "command: x\ncode: .\nworking_directory: /\n"),
    ]));
}

#[test]
fn a_name_of_ten_megabytes_is_answered_in_a_few_lines() {
    let source = format!("command: x\nname: {}\n", "n".repeat(10 << 20));
    let answer = answer(source.as_bytes(), &[]);
    assert!(answer.len() < 2000, "{} bytes", answer.len());
    assert!(answer.contains("job.yaml:2:7"), "{answer}");
    assert!(answer.contains("at most 63 are taken"), "{answer}");
}

#[test]
fn bytes_that_are_no_text_are_refused_with_a_line() {
    insta::assert_snapshot!(answer(b"command: x\nname: \xff\xfe\n", &[]), @"error: the job file `job.yaml` is not UTF-8 text, at line 2");
}

#[test]
fn arguments_are_named_where_a_line_cannot_be() {
    insta::assert_snapshot!(answer(b"command: x\nworkers: 1\n", &["workers=zero", "nmae=a", "priority=99"]));
    insta::assert_snapshot!(answer(b"command: x\n", &["priority=99", "memory"]));
}

#[test]
fn what_the_server_refuses_of_a_flag_names_the_flag() {
    let mut draft = JobFile::empty();
    draft.flag_for("--devices", "ascend:9", "devices", r#"{"kind":"ascend","count":9}"#);
    let mut text = anstream::StripStream::new(Vec::new());
    let errors = vec![FieldError::new("devices.count", "is 9; the largest node has 8")];
    refuse_by_server(&draft, errors).write_to(&mut text).unwrap();
    let text = String::from_utf8(text.into_inner()).unwrap();
    assert!(text.contains("given by `--devices ascend:9`"), "{text}");
}

#[test]
fn what_the_server_refuses_is_shown_at_its_line() {
    let mut draft =
        read("job.yaml", PathBuf::from("."), b"command: x\ndevices:\n  count: 64\n".to_vec()).unwrap();
    finish(&mut draft).unwrap();
    let errors = vec![FieldError::new("devices.count", "is 64; the largest node has 8")];
    let mut text = anstream::StripStream::new(Vec::new());
    refuse_by_server(&draft, errors).write_to(&mut text).unwrap();
    insta::assert_snapshot!(String::from_utf8(text.into_inner()).unwrap());
}

#[test]
fn every_cut_of_a_file_is_answered() {
    let source = "name: \"a\\u00e9\"\nworkers: 2\ndevices: { kind: ascend, model: '910B*', count: 8 }\nenv: &e\n  A: |\n    text\nlabels: *e\ncommand: >-\n  python\n  é.py\n";
    for end in 0..=source.len() {
        let _ = answer(&source.as_bytes()[..end], &[]);
    }
    for at in 0..source.len() {
        for byte in [0u8, b'\t', b'{', b'"', 0xff, b'*', b'\r'] {
            let mut changed = source.as_bytes().to_vec();
            changed[at] = byte;
            let _ = answer(&changed, &[]);
        }
    }
}
