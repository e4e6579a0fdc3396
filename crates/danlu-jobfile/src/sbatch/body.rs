//! A look at the commands of a script for what will not do what it does under Slurm. A shell cannot be understood by
//! reading it: what is not seen here is told when it runs, and nothing here changes what runs.

use super::shell::{ShellCommand, commands};
use super::steps::{Step, steps};
use super::{ImportNote, line_of};

#[derive(Debug, Default)]
pub(super) struct ScriptScan {
    pub(super) has_srun: bool,
    pub(super) steps: Vec<Step>,
    pub(super) notes: Vec<ImportNote>,
    /// Those that hold for several nodes only.
    pub(super) of_several_nodes: Vec<ImportNote>,
}

/// Programs that talk to Slurm, and what to do instead.
const OF_SLURM: [(&str, &str); 7] = [
    (
        "sbatch",
        "no job can submit another; `preemptible`, `retry` and `checkpoint` have one go on where it stopped",
    ),
    ("salloc", "the job has all it will get; `srun` runs in it"),
    ("scancel", "`danlu stop` ends jobs, from outside"),
    ("squeue", "`danlu jobs` lists jobs, from outside"),
    ("sacct", "`danlu show` tells what became of jobs, from outside"),
    ("sbcast", "copy the file where all nodes see it"),
    ("sattach", "`danlu exec` enters running jobs"),
];

/// Looks at the commands of `source`, which begin at `begin`.
pub(super) fn look(source: &str, begin: usize) -> ScriptScan {
    let commands = commands(&source[begin..], begin);
    // Also where it stands in a text that another shell reads.
    let has_srun =
        source[begin..].lines().any(|line| !line.trim_start().starts_with('#') && line.contains("srun"));
    let mut seen = ScriptScan { has_srun, steps: steps(&commands), ..ScriptScan::default() };
    for command in &commands {
        look_at(command, source, &mut seen);
    }
    seen
}

fn look_at(command: &ShellCommand, source: &str, seen: &mut ScriptScan) {
    for (at, word) in command.words.iter().enumerate() {
        // Counted only where something is said: most words are passed over.
        let line = || line_of(source, word.place.start);
        let mut note = |text: String| seen.notes.push(ImportNote { line: line(), text });
        let program = word.text.rsplit('/').next().unwrap_or(&word.text);
        if let Some((name, instead)) = OF_SLURM.iter().find(|(name, _)| *name == program) {
            note(format!("`{name}` does not reach Slurm from a job of Danlu's: {instead}"));
        }
        match program {
            "mpirun" | "mpiexec" | "horovodrun" => {
                let text = format!(
                    "`{program}` finds the other nodes only where it can log in to them; `srun` reaches them always"
                );
                seen.of_several_nodes.push(ImportNote { line: line(), text });
            }
            "scontrol" => {
                let next = |by: usize| command.words.get(at + by).map_or("", |word| word.text.as_str());
                if !(next(1) == "show" && (next(2).starts_with("host") || next(2).starts_with("job"))) {
                    note(format!(
                        "`scontrol {}` will fail: in a job it can `show hostnames` and `show job`, and nothing else",
                        next(1)
                    ));
                }
            }
            _ => {}
        }
    }
}
