//! The reference of all commands as Markdown, from the same tree that `--help` is made of.

use std::fmt::Write as _;

use clap::{Arg, Command};

use crate::help_groups::{CommandGroup, GROUPS};

/// Writing to a string cannot fail, so results of `writeln!` are dropped here.
pub fn markdown(mut program: Command) -> String {
    program.build();
    let mut text = String::from("# Commands\n\n");
    if let Some(about) = program.get_about() {
        let _ = writeln!(text, "{about}\n");
    }
    let _ = writeln!(text, "Every command takes these:\n");
    options(&mut text, program.get_arguments().filter(|argument| argument.is_global_set()));
    for CommandGroup { title, commands } in &GROUPS {
        let _ = writeln!(text, "\n## {title}");
        for command in commands.iter().filter_map(|name| program.find_subcommand(name)) {
            section(&mut text, command.get_name(), command);
        }
    }
    text.trim_end().to_owned()
}

fn section(text: &mut String, name: &str, command: &Command) {
    let _ = writeln!(text, "\n### danlu {name}\n");
    if let Some(about) = command.get_long_about().or_else(|| command.get_about()) {
        let _ = writeln!(text, "{}\n", sentences(&about.to_string()));
    }
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(text, "```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
    options(text, command.get_arguments().filter(|argument| !argument.is_global_set()));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        section(text, &format!("{name} {}", below.get_name()), below);
    }
}

fn options<'a>(text: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let shown = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help";
    for argument in arguments.filter(shown) {
        let defaults: Vec<String> = argument
            .get_default_values()
            .iter()
            .map(|value| format!("`{}`", value.to_string_lossy()))
            .collect();
        let defaults =
            if defaults.is_empty() || argument.get_num_args().is_some_and(|count| !count.takes_values()) {
                String::new()
            } else {
                format!(" (default {})", defaults.join(", "))
            };
        let short = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = write!(text, "- `{}`: {short}{defaults}", spelled(argument));
        let long = argument.get_long_help().map(ToString::to_string).unwrap_or_default();
        let _ = match long.split_once("\n\n") {
            Some((_, details)) => writeln!(text, ". {}", details.replace("\n\n", " ")),
            None => writeln!(text),
        };
    }
}

/// The summary, which has no full stop, as a sentence before those of the long help.
fn sentences(about: &str) -> String {
    match about.split_once("\n\n") {
        Some((summary, details)) => format!("{summary}.\n\n{details}"),
        None => format!("{about}."),
    }
}

fn spelled(argument: &Arg) -> String {
    let value = match argument.get_num_args() {
        Some(count) if count.takes_values() => {
            let names = argument.get_value_names().unwrap_or_default();
            names.iter().fold(String::new(), |text, name| text + " " + name.as_str())
        }
        _ => String::new(),
    };
    match (argument.get_short(), argument.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}{value}"),
        (None, Some(long)) => format!("--{long}{value}"),
        (Some(short), None) => format!("-{short}{value}"),
        (None, None) => value.trim_start().to_owned(),
    }
}
