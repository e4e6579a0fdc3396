//! Scripts as people write them, and what becomes of each: the job, and everything that is said about it.

use std::fmt::Write as _;

use std::path::PathBuf;

use proptest::prelude::*;

use super::line_of;
use crate::JobFile;

/// A job, with what was said and what is refused.
fn told(name: &str, source: &str, flags: impl FnOnce(&mut JobFile)) -> String {
    let mut draft = JobFile::read(name, PathBuf::from("."), source.as_bytes().to_vec()).unwrap();
    flags(&mut draft);
    let mut text = draft.notes().join("\n");
    match draft.finish(|_| true) {
        Ok((spec, _)) => {
            if let [first, .., last] = draft.array() {
                write!(text, "\n{} jobs, {first} to {last}", draft.array().len()).unwrap();
            }
            let mut spec = serde_json::to_value(spec).unwrap();
            let fields = spec.as_object_mut().unwrap();
            let command = fields.remove("command").unwrap();
            let same = command.as_str() == Some(source);
            writeln!(text, "\n---\n{}", serde_json::to_string_pretty(&spec).unwrap()).unwrap();
            if same {
                text += "runs as it is";
            } else {
                write!(text, "runs\n{}", command.as_str().unwrap()).unwrap();
            }
        }
        Err(refused) => {
            text += "\n---";
            for diagnostic in &refused {
                write!(text, "\nerror: {}", diagnostic.sentence()).unwrap();
                if let Some(range) = diagnostic.place.within(source) {
                    let (line, about) = (line_of(source, range.start), &source[range]);
                    write!(text, "\n --> {name}:{line} {about:?}").unwrap();
                }
                if let Some(label) = &diagnostic.label {
                    write!(text, "\n     {label}").unwrap();
                }
            }
        }
    }
    text
}

macro_rules! script {
    ($name:literal) => {
        (concat!($name, ".sbatch"), include_str!(concat!("scripts/", $name, ".sbatch")))
    };
}

#[test]
fn scripts_become_jobs_and_nothing_is_passed_over() {
    for (name, source) in [
        script!("one_gpu"),
        script!("torchrun_two_nodes"),
        script!("srun_two_by_eight"),
        script!("ascend"),
        script!("nothing_right"),
    ] {
        insta::assert_snapshot!(name, told(name, source, |_| {}));
    }
}

#[test]
fn an_array_is_many_jobs_unless_it_was_said_which() {
    let (name, source) = script!("wrap_and_array");
    let all = told(name, source, |_| {});
    assert!(all.contains("\n4 jobs, 1 to 4\n"), "{all}");
    insta::assert_snapshot!(
        "one_of_an_array_is_a_job",
        told(name, source, |draft| {
            draft.pair_flag("--env", "env", "SLURM_ARRAY_TASK_ID=3");
        })
    );
}

#[test]
fn words_after_a_script_are_its_arguments() {
    let source = "#!/bin/bash\necho \"$1\"\n";
    let words = ["it's".to_owned(), "b".to_owned()];
    let told_of = told("a.sh", source, |draft| draft.script_arguments(&words));
    assert!(told_of.ends_with("runs\n#!/bin/bash\nset -- 'it'\\''s' b\necho \"$1\"\n"), "{told_of}");
    let python = told("a.sh", "#!/usr/bin/env python3\nprint(1)\n", |draft| draft.script_arguments(&words));
    assert!(python.contains("only shells are given words"), "{python}");
}

#[test]
fn a_script_runs_where_one_is() {
    let folder = |source: &str| {
        let mut draft = JobFile::read("a.sh", PathBuf::from("."), source.as_bytes().to_vec()).unwrap();
        draft.settle_script(std::path::Path::new("/home/ada"));
        draft.finish(|_| true).unwrap().0.working_directory.unwrap()
    };
    assert_eq!(folder("#!/bin/sh\ntrue\n"), "/home/ada");
    assert_eq!(folder("#!/bin/sh\n#SBATCH -D project\ntrue\n"), "/home/ada/project");
    assert_eq!(folder("#!/bin/sh\n#SBATCH --chdir=/data\ntrue\n"), "/data");
}

#[test]
fn what_is_no_script_for_slurm_is_none_here() {
    let bare = told("a.sh", "#SBATCH -N 2\ntrue\n", |_| {});
    assert!(bare.contains("begins with the program that runs it"), "{bare}");
    let windows = told("a.sh", "#!/bin/sh\r\ntrue\r\n", |_| {});
    assert!(windows.contains("as on Windows"), "{windows}");
    let empty = told("a.sh", "#!/bin/sh\n#SBATCH -N 2\n", |_| {});
    assert!(empty.contains("the script has no commands"), "{empty}");
}

#[test]
fn what_srun_will_not_do_is_said_at_submission() {
    let told = |header: &str, body: &str| told("a.sh", &format!("#!/bin/bash\n{header}\n{body}\n"), |_| {});
    let ignored =
        told("#SBATCH -n 2", "srun --mpi=pmix --cpu-bind=cores --hint=nomultithread python train.py");
    assert!(ignored.contains("a.sh:3: `--cpu-bind`, `--hint` of `srun` is not honoured"), "{ignored}");
    assert!(ignored.contains("`--mpi` of `srun` is not honoured: no process manager"), "{ignored}");
    assert!(ignored.contains("runs as it is"), "{ignored}");
    let refused = told("#SBATCH -n 2", "srun --container-image=x.sqsh python train.py");
    assert!(refused.contains("error: `srun --container-image` is not possible"), "{refused}");
    let unknown = told("#SBATCH -n 2", "srun --no-such-option python train.py");
    assert!(unknown.contains("error: unknown `srun` option `--no-such-option`"), "{unknown}");
    let may_run = told("#SBATCH -n 2", "if [ -n \"$IMAGE\" ]; then srun --container-image=$IMAGE true; fi");
    assert!(may_run.contains("a.sh:3: if it runs, it fails: `srun --container-image`"), "{may_run}");
    assert!(may_run.contains("runs as it is"), "{may_run}");
    let beside = told("#SBATCH -n 2", "srun -n1 a &\nsrun -n1 --exact b &\nwait");
    assert_eq!(beside.matches("runs beside other steps").count(), 1, "{beside}");
}

#[test]
fn steps_get_what_the_header_leaves_open() {
    let told = |header: &str, body: &str| told("a.sh", &format!("#!/bin/bash\n{header}\n{body}\n"), |_| {});
    let open = told("#SBATCH -N 1", "srun -n 2 -c 8 --cpu-bind=none python train.py");
    assert!(open.contains("2 tasks of `srun` need 16 cores of a node, and the job gets them"), "{open}");
    assert!(open.contains("\"cpus\": \"16\""), "{open}");
    let said = told("#SBATCH -N 1 -n 2", "srun -n 4 python train.py");
    assert!(said.contains("error: 4 tasks of `srun` need 4 cores of a node, and the job has 2"), "{said}");
    let fits = told("#SBATCH -N 1 -n 2 -c 2", "srun -n 4 python train.py");
    assert!(fits.contains("runs as it is"), "{fits}");
    let nodes = told("#SBATCH -N 2", "srun -N 3 hostname");
    assert!(nodes.contains("error: `srun` asks for 3 nodes, and the job has 2"), "{nodes}");
}

proptest! {
    #[test]
    fn no_script_is_too_strange(text in "#!/bin/sh\n(#SBATCH [ -~]{0,60}\n){0,6}(.|\n){0,80}") {
        let _ = told("a.sh", &text, |draft| draft.script_arguments(&["a".to_owned()]));
    }

    #[test]
    fn nor_one_that_looks_right(
        options in proptest::collection::vec(
            "(--(nodes|ntasks|gres|gpus|mem|time|array|export|signal|constraint|job-name|mem-per-cpu)[= ]|-[NntcGJCaDH])[a-z0-9:,=&@*|'\"\\\\%. -]{0,20}",
            0..6,
        ),
    ) {
        let header: Vec<String> = options.iter().map(|option| format!("#SBATCH {option}\n")).collect();
        let header = header.concat();
        let _ = told("a.sh", &format!("#!/bin/sh\n{header}true\n"), |_| {});
    }
}
