//! What is said of a script's steps when it becomes a job: nothing that could be known is left to the run.

use std::ops::Range;

use super::job::Builder;
use super::options::Field;
use super::size::Size;
use super::steps::Step;
use super::{ImportNote, line_of};

impl Builder<'_> {
    pub(super) fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            for (place, message) in &step.refused {
                self.refuse(
                    step,
                    place,
                    message.clone(),
                    "take it out, or put it under an `if` that fails here",
                );
            }
            let mut told: Vec<&str> = Vec::new();
            for (_, instead) in &step.ignored {
                if told.contains(instead) {
                    continue;
                }
                told.push(instead);
                let same = step.ignored.iter().filter(|(_, other)| other == instead);
                let options: Vec<String> = same.map(|(option, _)| format!("`{option}`")).collect();
                let text = format!("{} of `srun` is not honoured: {instead}", options.join(", "));
                self.remark_at(&step.place, text);
            }
        }
        if let Some(step) = steps.iter().find(|step| step.shares) {
            let text = "`srun … &` without `--exclusive`, `--exact` or `--overlap` runs beside other steps and shares the job's cores and devices with them; Slurm since 21.08 has such steps wait for each other";
            self.remark_at(&step.place, text.to_owned());
        }
    }

    /// Gives the job what its steps ask for where the header says nothing of it, and refuses what it contradicts.
    pub(super) fn fit_steps(&mut self, steps: &[Step], size: &mut Size) {
        let is_said = [Field::Ntasks, Field::NtasksPerNode, Field::NtasksPerGpu, Field::CpusPerTask]
            .iter()
            .any(|field| self.fields.contains_key(field));
        let counts_tasks =
            [Field::Ntasks, Field::NtasksPerNode].iter().any(|field| self.fields.contains_key(field));
        for step in steps {
            let asks = step.asks;
            if let Some(nodes) = asks.nodes.filter(|nodes| *nodes > size.nodes) {
                let message = format!("`srun` asks for {nodes} nodes, and the job has {}", size.nodes);
                self.refuse(step, &step.place, message, &format!("`#SBATCH --nodes={nodes}` asks for them"));
                continue;
            }
            if let Some(devices) = asks.devices_per_node.filter(|devices| *devices > size.devices) {
                let message = format!(
                    "`srun` asks for {devices} devices of each node, and the job has {}",
                    size.devices
                );
                self.refuse(step, &step.place, message, "ask for them in the header, too");
            }
            if let (None, Some(each)) = (asks.tasks, asks.tasks_per_node)
                && counts_tasks
                && each != size.tasks_per_node
            {
                let text = format!(
                    "`--ntasks-per-node={each}` of `srun` is honoured; Slurm ignores it, as the header says how many tasks there are"
                );
                self.remark_at(&step.place, text);
            }
            let nodes = asks.nodes.unwrap_or(size.nodes);
            let by_total = asks.tasks.map(|tasks| tasks.div_ceil(nodes.min(tasks).max(1)));
            let Some(tasks) = asks.tasks_per_node.or(by_total) else { continue };
            let cpus = tasks.saturating_mul(asks.cpus_per_task.unwrap_or(1));
            if asks.overcommits || tasks <= size.tasks_per_node || cpus <= size.cpus {
                continue;
            }
            if is_said {
                let message = format!(
                    "{tasks} tasks of `srun` need {cpus} cores of a node, and the job has {}",
                    size.cpus
                );
                let label = format!(
                    "`#SBATCH --ntasks-per-node={tasks}` asks for more; `srun --overcommit` does without"
                );
                self.refuse(step, &step.place, message, &label);
            } else {
                let text = format!(
                    "{tasks} tasks of `srun` need {cpus} cores of a node, and the job gets them: the header says nothing of tasks"
                );
                self.remark_at(&step.place, text);
                size.cpus = cpus;
            }
        }
    }

    /// A step that may never run is no reason to refuse the job.
    fn refuse(&mut self, step: &Step, place: &Range<usize>, message: String, label: &str) {
        if step.is_conditional {
            self.remark_at(place, format!("if it runs, it fails: {message}"));
        } else {
            self.complain(place, "", message, Some(label.to_owned()));
        }
    }

    fn remark_at(&mut self, place: &Range<usize>, text: String) {
        let line = line_of(self.source, place.start);
        self.script.notes.push(ImportNote { line, text });
    }
}
