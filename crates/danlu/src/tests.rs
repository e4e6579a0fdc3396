//! Help and reference of the whole program as people see them.

use std::fmt::Write as _;

use danlu_cli::program;

use crate::up::SERVER;

#[test]
fn the_command_line_is_consistent() {
    program(Some(&SERVER)).debug_assert();
}

#[test]
fn help_of_every_command() {
    let mut program = program(Some(&SERVER)).term_width(100);
    let mut text = program.render_help().to_string();
    program.build();
    write_help(&mut text, "", &mut program);
    insta::assert_snapshot!(text);
}

fn write_help(text: &mut String, above: &str, command: &mut clap::Command) {
    for command in command.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        let name = format!("{above}{}", command.get_name());
        let help = command.clone().term_width(100).render_help();
        let _ = write!(text, "\n=== {name}\n{help}");
        write_help(text, &format!("{name} "), command);
    }
}

#[test]
fn every_command_and_argument_is_described_in_one_line() {
    fn check(command: &clap::Command, problems: &mut Vec<String>) {
        let name = command.get_name();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        if about.is_empty() || about.contains('\n') || about.ends_with('.') || about.chars().count() >= 80 {
            problems
                .push(format!("{name}: {about:?} is not one line under 80 characters without a full stop"));
        }
        let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
        for argument in arguments {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            if help.is_empty() || help.ends_with('.') {
                problems.push(format!(
                    "{name} {}: {help:?} is not a phrase without a full stop",
                    argument.get_id()
                ));
            }
        }
        command.get_subcommands().for_each(|below| check(below, problems));
    }
    let mut problems = Vec::new();
    check(&program(Some(&SERVER)), &mut problems);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn reference_as_markdown() {
    insta::assert_snapshot!(danlu_cli::reference(program(Some(&SERVER))));
}
