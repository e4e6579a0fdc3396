//! The steps of a script: what each `srun` in it asks for, and what of that the `srun` of a running job will not do.

use std::ops::Range;

use danlu_core::srun::{OptionArgument, OptionEffect, SrunOption, effect, option_by_letter, option_by_name};

use super::amounts;
use super::shell::{ShellCommand, ShellWord, is_variable};

/// What can be known of a step before it runs.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) place: Range<usize>,
    pub(super) is_conditional: bool,
    /// It runs beside others, and nothing says which cores and devices are its own.
    pub(super) shares: bool,
    pub(super) asks: Asks,
    /// Options that are not honoured, and what happens instead.
    pub(super) ignored: Vec<(String, &'static str)>,
    /// What the step would fail for, and where that is written.
    pub(super) refused: Vec<(Range<usize>, String)>,
}

/// Numbers that are written out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Asks {
    pub(super) nodes: Option<u32>,
    pub(super) tasks: Option<u32>,
    pub(super) tasks_per_node: Option<u32>,
    pub(super) cpus_per_task: Option<u32>,
    pub(super) devices_per_node: Option<u32>,
    pub(super) overcommits: bool,
}

pub(super) fn steps(commands: &[ShellCommand]) -> Vec<Step> {
    commands.iter().filter_map(step).collect()
}

/// Words after which the program comes: keywords, and programs that start others.
const BEFORE_A_PROGRAM: [&str; 21] = [
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec", "nohup", "env", "eval",
    "command", "timeout", "nice", "stdbuf", "strace", "numactl", "setsid",
];

fn step(command: &ShellCommand) -> Option<Step> {
    let is_srun = |word: &ShellWord| word.text == "srun" || word.text.ends_with("/srun");
    let at = command.words.iter().position(is_srun)?;
    let leads = |word: &ShellWord| {
        let text = word.text.as_str();
        let sets = text.split_once('=').is_some_and(|(name, _)| is_variable(name));
        let of_a_starter = text.starts_with('-') || text.starts_with(|it: char| it.is_ascii_digit());
        sets || of_a_starter || word.is_unknown || BEFORE_A_PROGRAM.contains(&text)
    };
    if !command.words[..at].iter().all(leads) {
        return None;
    }
    let place = command.words[at].place.clone();
    let mut step = Step { place, is_conditional: command.is_conditional, ..Step::default() };
    let mut keeps_apart = false;
    let mut words = command.words[at + 1..].iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "--" => break,
            text if text.starts_with("--") => {
                keeps_apart |= read_long(&mut step, text, word, &mut words);
            }
            text if text.starts_with('-') && text.len() > 1 => {
                keeps_apart |= read_short(&mut step, text, word, &mut words);
            }
            // It may hold options, by what it is called; or it is the program.
            text if word.is_unknown && may_hold_options(text) => {}
            _ => break,
        }
    }
    if let Some(colon) = words.find(|word| word.text == ":") {
        let text = "steps of unequal parts (`:`) are not possible: start each with an `srun` of its own";
        step.refused.push((colon.place.clone(), text.to_owned()));
    }
    step.shares = command.is_background && !keeps_apart;
    Some(step)
}

fn may_hold_options(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["arg", "opt", "flag", "srun"].iter().any(|part| name.contains(part))
}

fn read_long<'a>(
    step: &mut Step,
    text: &str,
    word: &ShellWord,
    words: &mut impl Iterator<Item = &'a ShellWord>,
) -> bool {
    let (name, value) = match text[2..].split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (&text[2..], None),
    };
    let Some(option) = option_by_name(name) else {
        if !word.is_unknown || value.is_some() {
            step.refused.push((word.place.clone(), format!("unknown `srun` option `--{name}`")));
        }
        return false;
    };
    let (value, is_unknown) = match (option.argument, value) {
        (OptionArgument::Needed, None) => {
            let Some(next) = words.next() else {
                step.refused.push((word.place.clone(), format!("`--{name}` of `srun` lacks its value")));
                return false;
            };
            (Some(next.text.as_str()), next.is_unknown)
        }
        (_, value) => (value, word.is_unknown),
    };
    on_option(step, option, &format!("--{name}"), value.filter(|_| !is_unknown), &word.place)
}

/// `-n2`, `-n 2`, `-lu`.
fn read_short<'a>(
    step: &mut Step,
    text: &str,
    word: &ShellWord,
    words: &mut impl Iterator<Item = &'a ShellWord>,
) -> bool {
    let mut keeps_apart = false;
    let letters = &text[1..];
    for (at, letter) in letters.char_indices() {
        let Some(option) = option_by_letter(letter) else {
            if !word.is_unknown {
                step.refused.push((word.place.clone(), format!("unknown `srun` option `-{letter}`")));
            }
            return keeps_apart;
        };
        let tail = &letters[at + letter.len_utf8()..];
        let written = format!("-{letter}");
        if option.argument == OptionArgument::None {
            keeps_apart |= on_option(step, option, &written, None, &word.place);
            continue;
        }
        let joined = Some(tail.strip_prefix('=').unwrap_or(tail)).filter(|tail| !tail.is_empty());
        let (value, is_unknown) = match (option.argument, joined) {
            (OptionArgument::Needed, None) => {
                let Some(next) = words.next() else {
                    step.refused.push((word.place.clone(), format!("`-{letter}` of `srun` lacks its value")));
                    return keeps_apart;
                };
                (Some(next.text.as_str()), next.is_unknown)
            }
            (_, joined) => (joined, word.is_unknown),
        };
        return keeps_apart | on_option(step, option, &written, value.filter(|_| !is_unknown), &word.place);
    }
    keeps_apart
}

/// Whether the option says what of the job is the step's own.
fn on_option(
    step: &mut Step,
    option: &'static SrunOption,
    written: &str,
    value: Option<&str>,
    place: &Range<usize>,
) -> bool {
    match effect(option, value) {
        OptionEffect::Honoured | OptionEffect::Irrelevant => {}
        OptionEffect::Ignored(instead) => step.ignored.push((written.to_owned(), instead)),
        OptionEffect::Refused(reason) => {
            step.refused.push((place.clone(), format!("`srun {written}` is not possible: {reason}")));
        }
    }
    let count = value.and_then(amounts::count);
    let devices = || value.and_then(amounts::typed_count).map(|(_, count)| count);
    match option.long {
        "nodes" => {
            step.asks.nodes =
                value.and_then(|text| amounts::count(text.split('-').next().unwrap_or_default()));
        }
        "ntasks" => step.asks.tasks = count,
        "ntasks-per-node" | "tasks-per-node" => step.asks.tasks_per_node = count,
        "cpus-per-task" => step.asks.cpus_per_task = count,
        "gpus-per-node" => step.asks.devices_per_node = devices(),
        "overcommit" => step.asks.overcommits = true,
        "jobid" if count.is_some() => {
            let text = "a step of another job cannot be started from this one".to_owned();
            step.refused.push((place.clone(), text));
        }
        _ => {}
    }
    let own =
        ["exclusive", "exact", "overlap", "gres", "gpus", "gpus-per-node", "gpus-per-task", "tres-per-task"];
    own.contains(&option.long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sbatch::shell::commands;

    fn told(text: &str) -> String {
        let shown = steps(&commands(text, 0)).into_iter().map(|step| {
            let refused: Vec<&str> = step.refused.iter().map(|(_, text)| text.as_str()).collect();
            let ignored: Vec<&str> = step.ignored.iter().map(|(option, _)| option.as_str()).collect();
            let Asks { nodes, tasks, cpus_per_task, .. } = step.asks;
            format!(
                "{nodes:?} {tasks:?} {cpus_per_task:?} ignores {ignored:?} refuses {refused:?} shares {}",
                step.shares
            )
        });
        shown.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn options_are_read_as_srun_reads_them() {
        let text = r#"
            srun -n2 -N 1 --cpus-per-task=4 --cpu-bind=none --mpi pmix ./a.out -n 9
            srun -lun4 --mem-bind=local "$PROGRAM" --container-image=x
            srun "${SRUN_ARGS[@]}" --container-image x --ntasks $COUNT true &
            srun --exclusive -n1 true &
            timeout -k 5 1h srun --accel-bin=gn --no-such-thing -Y true
            echo srun --multi; /usr/bin/srun -n1 a : -n2 b
            srun -n"#;
        insta::assert_snapshot!(told(text), @r#"
        Some(1) Some(2) Some(4) ignores ["--mpi"] refuses [] shares false
        None Some(4) None ignores ["--mem-bind"] refuses [] shares false
        None None None ignores [] refuses ["`srun --container-image` is not possible: jobs run with the programs of their node"] shares true
        None Some(1) None ignores [] refuses [] shares false
        None None None ignores ["--accel-bin"] refuses ["unknown `srun` option `--no-such-thing`", "unknown `srun` option `-Y`"] shares false
        None Some(1) None ignores [] refuses ["steps of unequal parts (`:`) are not possible: start each with an `srun` of its own"] shares false
        None None None ignores [] refuses ["`-n` of `srun` lacks its value"] shares false
        "#);
    }
}
