//! A look at the commands of a script for what will not do what it does under Slurm. Only words are looked at: a shell
//! is not to be understood by reading it, and nothing here changes what runs.

use super::Remark;

#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) has_srun: bool,
    pub(super) remarks: Vec<Remark>,
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

pub(super) fn look(body: &str, first_line: usize, nodes: u32) -> Seen {
    let mut seen = Seen::default();
    for (line, text) in (first_line..).zip(body.lines()) {
        if text.trim_start().starts_with('#') {
            continue;
        }
        let mut remark = |text: String| seen.remarks.push(Remark { line, text });
        let is_break = |it: char| it.is_whitespace() || ";|&()`$\"'{}".contains(it);
        for word in text.split(is_break).filter(|word| !word.is_empty()) {
            let program = word.rsplit('/').next().unwrap_or(word);
            if let Some((name, instead)) = OF_SLURM.iter().find(|(name, _)| *name == program) {
                remark(format!("`{name}` does not reach Slurm from a job of Danlu's: {instead}"));
            }
            match program {
                "srun" => seen.has_srun = true,
                "mpirun" | "mpiexec" | "horovodrun" if nodes > 1 => remark(format!(
                    "`{program}` finds the other nodes only where it can log in to them; `srun` reaches them always"
                )),
                _ if word.starts_with("--container-image") => {
                    remark(
                        "`srun --container-image` will fail: jobs run with the node's own programs"
                            .to_owned(),
                    );
                }
                "--multi-prog" | "--het-group" => {
                    remark(format!("`srun {program}` will fail: all tasks of a step are alike"));
                }
                _ => {}
            }
        }
    }
    seen
}
