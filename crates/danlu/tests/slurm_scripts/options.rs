//! Every option that the installed Slurm's own `sbatch --help` and `srun --help` list: taken into the job, named, refused, or of
//! no concern. None is unknown, and none that submission lets pass ends a step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use danlu_testkit::{SlurmRig, TestServer};

use super::{danlu, start};

#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    long: String,
    letter: Option<char>,
    takes_value: bool,
    is_optional: bool,
}

/// The options of one of Slurm's programs, as its help has them: `  -n, --ntasks=ntasks  number of tasks`.
fn listed(rig: &SlurmRig, program: &str) -> Vec<Listed> {
    let text = rig.ask(program, &["--help"]);
    let options = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let (letter, rest) = match line.strip_prefix('-').map(|rest| rest.split_at_checked(1)) {
            Some(Some((letter, rest))) if letter != "-" => {
                (letter.chars().next(), rest.trim_start_matches([',', ' ']))
            }
            _ => (None, line),
        };
        let rest = rest.strip_prefix("--")?;
        let end =
            rest.find(|it: char| !it.is_ascii_alphanumeric() && !"-_".contains(it)).unwrap_or(rest.len());
        let (long, after) = rest.split_at(end);
        let takes_value = after.starts_with('=') || after.starts_with("[=");
        let is_optional = after.starts_with("[=");
        (!long.is_empty()).then(|| Listed { long: long.to_owned(), letter, takes_value, is_optional })
    });
    // Some are explained a second time, in short.
    let mut by_name: BTreeMap<String, Listed> = BTreeMap::new();
    for option in options {
        let known = by_name.entry(option.long.clone()).or_insert_with(|| option.clone());
        known.takes_value |= option.takes_value;
        known.letter = known.letter.or(option.letter);
    }
    let options: Vec<Listed> = by_name.into_values().collect();
    assert!(options.len() > 80, "the help of {program} was not understood: {text}");
    options
}

/// A value that means something, where any would not do.
fn value_of(long: &str) -> &'static str {
    match long {
        "nodes" | "mincpus" => "2",
        "array" => "0-1",
        "time" | "time-min" => "5",
        "mem" | "mem-per-cpu" | "mem-per-gpu" | "tmp" => "64M",
        "chdir" => "/tmp",
        "export" => "ALL,ADDED=yes",
        "gres" | "tres-per-task" => "gpu:1",
        "constraint" | "cluster-constraint" | "prefer" => "ib",
        "signal" => "USR1@90",
        "distribution" => "cyclic",
        "job-name" => "renamed",
        "begin" => "now",
        "output" | "error" | "input" => "/dev/null",
        "open-mode" => "append",
        "gpu-bind" => "none",
        "mpi" => "pmix",
        _ => "1",
    }
}

fn written(option: &Listed) -> String {
    if option.takes_value {
        format!("--{}={}", option.long, value_of(&option.long))
    } else {
        format!("--{}", option.long)
    }
}

/// What is said of a script, and whether it would be taken.
fn dry_run(server: &TestServer, text: &str) -> (String, bool) {
    let path = server.folder().join("script.sbatch");
    std::fs::write(&path, text).unwrap();
    let output = danlu(server, server.folder(), &["submit", "--dry-run", path.to_str().unwrap()]);
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.success())
}

/// Taken into the job, which the tests of batch files in `danlu-cli` show.
const TAKEN: &str = "array chdir constraint cpus-per-gpu cpus-per-task export gpus gpus-per-node gpus-per-task gres job-name mem mem-per-cpu \
    mem-per-gpu nodes ntasks ntasks-per-node requeue signal time";
/// Passed over without a word: they say how `sbatch` itself behaves, or nothing that a job could notice.
const OF_NO_CONCERN: &str = "help ignore-pbs no-requeue parsable quiet usage verbose version";

#[tokio::test(flavor = "multi_thread")]
async fn every_option_of_sbatch_is_taken_named_or_refused() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig).await;
    let (mut unknown, mut silent) = (Vec::new(), BTreeSet::new());
    for option in listed(&rig, "sbatch") {
        let mut forms = vec![written(&option)];
        forms.extend(option.letter.map(|letter| {
            let value = if option.takes_value { value_of(&option.long) } else { "" };
            if option.is_optional { format!("-{letter}") } else { format!("-{letter}{value}") }
        }));
        for form in forms {
            let (said, accepted) = dry_run(&server, &format!("#!/bin/bash\n#SBATCH {form}\nsrun true\n"));
            if said.contains("is no option of") || (!accepted && !said.contains("error")) {
                unknown.push(format!("{form}: {said}"));
            } else if !said.contains(&form) && !said.contains(&option.long) {
                silent.insert(option.long.clone());
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<String>>();
    let expected = &words(TAKEN) | &words(OF_NO_CONCERN);
    // Of some that are taken more is said.
    let unnamed: Vec<&String> = silent.difference(&expected).collect();
    assert!(unnamed.is_empty(), "not a word of {unnamed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_option_of_srun_that_submission_lets_pass_ends_a_step() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig).await;
    let (mut unknown, mut refused, mut passed) = (Vec::new(), BTreeMap::new(), Vec::new());
    for option in listed(&rig, "srun") {
        // These say something about `srun` and run nothing.
        if ["help", "usage", "version"].contains(&option.long.as_str()) {
            continue;
        }
        let value = match option.long.as_str() {
            "nodes" => "1",
            "jobid" => "$SLURM_JOB_ID",
            "nodelist" => "$SLURM_JOB_NODELIST",
            "exclude" => "\"\"",
            "relative" | "het-group" | "pack-group" => "0",
            other => value_of(other),
        };
        let form = if option.takes_value {
            format!("--{}={value}", option.long)
        } else {
            format!("--{}", option.long)
        };
        let program = if option.long == "multi-prog" { "\"$TMPDIR/programs\"" } else { "true" };
        let step = format!("srun {form} {program}");
        let text = format!("#!/bin/bash\n#SBATCH --gres=gpu:2\n{step}\n");
        let (said, accepted) = dry_run(&server, &text);
        if said.contains("is no option of") {
            unknown.push(format!("{form}: {said}"));
        } else if !accepted {
            refused.insert(option.long, said);
        } else {
            passed.push(step);
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
    for (option, said) in &refused {
        assert!(said.contains("is not possible"), "`--{option}`: {said}");
    }
    let mut script =
        "#!/bin/bash\n#SBATCH --gres=gpu:2 --ntasks=1\necho '0 true' > \"$TMPDIR/programs\"\n".to_owned();
    for step in &passed {
        let _ = writeln!(script, "{step} || echo 'failed: {step}'");
    }
    script += "echo all were tried\n";
    let path = server.folder().join("all.sbatch");
    std::fs::write(&path, &script).unwrap();
    let ran = danlu(&server, server.folder(), &["run", path.to_str().unwrap()]);
    let (out, said) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && out.contains("all were tried"), "{out}\n{said}");
    assert!(!out.contains("failed: "), "{out}\n{said}");
}
