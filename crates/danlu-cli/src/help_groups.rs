//! The groups of commands in `danlu --help` and in the reference.
//!
//! clap puts flags under headings, but not commands. The program's help is therefore a template, made of this table and of clap's own
//! summaries. Summaries are not wrapped: each fits into 80 columns, beside the longest name.

use std::fmt::Write as _;

use clap::{Command, Subcommand as _};

use crate::arguments;

#[derive(Debug)]
pub(crate) struct CommandGroup {
    pub(crate) title: &'static str,
    pub(crate) commands: &'static [&'static str],
}

pub(crate) const GROUPS: [CommandGroup; 6] = [
    CommandGroup {
        title: "Jobs",
        commands: &[
            "run", "submit", "jobs", "show", "why", "logs", "exec", "files", "metrics", "events", "stop",
            "hold", "release", "approve", "change", "clone", "delete", "adopt",
        ],
    },
    CommandGroup {
        title: "Cluster",
        commands: &[
            "nodes",
            "devices",
            "sweep",
            "quota",
            "workspace",
            "invitations",
            "applicants",
            "secrets",
            "history",
        ],
    },
    CommandGroup {
        title: "Account",
        commands: &[
            "login",
            "logout",
            "whoami",
            "profiles",
            "register",
            "password",
            "authenticator",
            "identities",
            "tokens",
            "keys",
        ],
    },
    CommandGroup { title: "Tools (no server needed)", commands: &["launch", "migrate", "ranktable", "sim"] },
    CommandGroup { title: "Server", commands: &["up", "admin", "doctor"] },
    CommandGroup { title: "Other", commands: &["version", "completions"] },
];

/// The template of the program's help. A command that is in no group is missing in it, which a test checks.
pub(crate) fn template() -> String {
    let program = arguments::Command::augment_subcommands(Command::new("danlu"));
    let header = program.get_styles().get_header();
    let literal = program.get_styles().get_literal();
    let width = GROUPS.iter().flat_map(|group| group.commands).map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    // Writing to a string cannot fail, so results of `write!` are dropped here.
    for CommandGroup { title, commands } in &GROUPS {
        let _ = writeln!(text, "\n{header}{title}:{header:#}");
        for command in commands.iter().filter_map(|name| program.find_subcommand(name)) {
            let name = command.get_name();
            let summary = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {literal}{name:<width$}{literal:#}  {summary}");
        }
    }
    let _ = write!(text, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::Arguments;

    /// The columns of a terminal into which the list of commands fits.
    const COLUMNS: usize = 80;

    fn grouped() -> Vec<&'static str> {
        GROUPS.iter().flat_map(|group| group.commands).copied().collect()
    }

    #[test]
    fn every_visible_command_is_in_exactly_one_group() {
        let program = Arguments::command();
        let mut visible: Vec<&str> = program
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .collect();
        let mut grouped = grouped();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn the_list_of_commands_prints_the_summary_of_each() {
        let program = Arguments::command();
        let help = program.clone().render_help().to_string();
        for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
            let (name, about) = (command.get_name(), command.get_about().unwrap().to_string());
            let lines: Vec<_> =
                help.lines().filter(|line| line.split_whitespace().next() == Some(name)).collect();
            let [line] = lines[..] else { panic!("`{name}` is on the lines {lines:?}") };
            assert!(line.ends_with(&format!("  {about}")), "{line}");
            assert!(line.chars().count() <= COLUMNS, "longer than {COLUMNS} columns: {line}");
        }
    }

    #[test]
    fn colors_of_the_list_are_those_of_other_help() {
        let help = Arguments::command().render_help();
        let headings = help.ansi().to_string();
        let usage = Arguments::command().get_styles().get_usage().render().to_string();
        assert!(headings.contains(&format!("{usage}Usage:")), "{headings:?}");
        assert!(headings.contains(&format!("{usage}Jobs:")), "{headings:?}");
        assert!(!help.to_string().contains('\u{1b}'), "plain text has no colors");
    }
}
