//! What job files mean. How mistakes in them are shown is tested where they are shown.

use super::*;

fn spec(name: &str, source: &str, sets: &[&str]) -> JobSpec {
    let mut draft = JobFile::read(name, PathBuf::from("."), source.into()).unwrap();
    for set in sets {
        draft.set(set);
    }
    draft.finish(|_| true).unwrap().0
}

#[test]
fn alternatives_and_nodes_are_read_as_written() {
    let read = "command: x\nany_of: [{model: 910, count: 8}, {kind: nvidia, count: 0.5}]\nnodes: {labels: {zone: 1.10}}\n";
    let spec = spec("job.yaml", read, &["nodes.same_rack=true"]);
    let requests: Vec<String> = spec.any_of.iter().map(ToString::to_string).collect();
    assert_eq!(requests, ["8 × device 910", "0.5 × NVIDIA"]);
    assert_eq!((spec.nodes.labels["zone"].as_str(), spec.nodes.same_rack), ("1.10", true));
}

#[test]
fn texts_stay_as_they_were_written() {
    let source = "name: 2024\ncommand: x\nenv: {A: 1.10, B: yes, C: 007, D: 0x1F, E: , F: 1e3}\ndevices: {model: 910, count: 1}\n";
    let spec = spec("job.yaml", source, &[]);
    assert_eq!(spec.name, "2024");
    assert_eq!(spec.devices.model.as_deref(), Some("910"));
    let env: Vec<&str> = spec.env.values().map(String::as_str).collect();
    assert_eq!(env, ["1.10", "yes", "007", "0x1F", "", "1e3"]);
}

#[test]
fn overrides_of_a_clone_are_checked_before_they_are_sent() {
    let overrides = |sets: &[&str]| {
        let mut draft = JobFile::empty();
        for set in sets {
            draft.set(set);
        }
        draft.overrides()
    };
    let sent = overrides(&["workers=2", "env.A=1.10", "name=7"]).unwrap();
    assert_eq!(sent, serde_json::json!({ "workers": 2, "env": { "A": "1.10" }, "name": "7" }));
    let refused = overrides(&["wrokers=2"]).unwrap_err();
    assert_eq!(refused[0].label.as_deref(), Some("did you mean `workers`?"), "{refused:?}");
}

#[test]
fn json_is_a_job_file_too() {
    let source = r#"{"command": "python \"a\".py \u00e9 \ud83d\ude00", "workers": 2,
	"devices": {"kind": "ascend", "count": 8}, "cpus": 0.5, "preemptible": true}"#;
    let spec = spec("job.json", source, &[]);
    assert_eq!(spec.command, "python \"a\".py é 😀");
    assert_eq!((spec.workers, spec.cpus.milli, spec.preemptible), (2, 500, true));
}
