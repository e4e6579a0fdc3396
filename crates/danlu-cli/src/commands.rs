//! One file for each command, or for several that are alike; this one says who runs what.

pub(crate) mod admin;
pub(crate) mod adopt;
pub(crate) mod authenticator;
pub(crate) mod change;
pub(crate) mod clone;
pub(crate) mod completions;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod files;
mod follow;
pub(crate) mod history;
pub(crate) mod identities;
pub(crate) mod job_actions;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod launch;
pub(crate) mod login;
pub(crate) mod logs;
pub(crate) mod metrics;
pub(crate) mod migrate;
pub(crate) mod nodes;
pub(crate) mod profiles;
pub(crate) mod quota;
pub(crate) mod ranktable;
pub(crate) mod reference;
pub(crate) mod registration;
pub(crate) mod run;
pub(crate) mod secrets;
pub(crate) mod show;
pub(crate) mod sim;
pub(crate) mod submit;
pub(crate) mod sweep;
pub(crate) mod tokens;
pub(crate) mod version;
pub(crate) mod why;
pub(crate) mod workspace;

use std::process::ExitCode;

use clap::ArgMatches;
use danlu_client::Client;

use crate::arguments::{Arguments, Command};
use crate::commands::job_actions::JobAction;
use crate::failure::CliError;
use crate::runtime::block_on;
use crate::{ServerCommand, output, program};

/// `matches` are those that `arguments` were read from, for the command that is the server's.
pub(crate) fn run(
    arguments: Arguments,
    matches: &ArgMatches,
    server: Option<&ServerCommand>,
) -> Result<ExitCode, CliError> {
    let data = arguments.data.as_deref();
    let profile = arguments.profile;
    let client = || match &profile {
        Some(name) => Client::of_profile(name),
        None => Client::discover(data),
    };
    match arguments.command {
        Command::Up => match (server, matches.subcommand_matches("up")) {
            (Some(server), Some(matches)) => (server.run)(data, matches),
            _ => Err(no_server()),
        },
        Command::Submit(arguments) => block_on(submit::run(client, arguments)),
        Command::Run(arguments) => block_on(run::run(client, arguments)),
        Command::Launch(arguments) => launch::run(arguments),
        Command::Jobs(arguments) => block_on(jobs::run(client()?, arguments)),
        Command::Show(arguments) => block_on(show::run(client()?, arguments)),
        Command::Logs(arguments) => block_on(logs::run(client()?, arguments)),
        Command::Metrics(arguments) => block_on(metrics::run(client()?, arguments)),
        Command::Files(arguments) => block_on(files::run(client()?, arguments)),
        Command::Exec(arguments) => block_on(exec::run(client()?, arguments)),
        Command::Stop(arguments) => block_on(job_actions::stop(client()?, arguments)),
        Command::Hold(arguments) => block_on(job_actions::run(client()?, JobAction::Hold, arguments)),
        Command::Release(arguments) => block_on(job_actions::run(client()?, JobAction::Release, arguments)),
        Command::Approve(arguments) => block_on(job_actions::approve(client()?, arguments)),
        Command::Change(arguments) => block_on(change::run(client()?, arguments)),
        Command::Clone(arguments) => block_on(clone::run(client()?, arguments)),
        Command::Delete(arguments) => block_on(job_actions::run(client()?, JobAction::Delete, arguments)),
        Command::Why(arguments) => block_on(why::run(client()?, arguments)),
        Command::Quota(arguments) => block_on(quota::run(client()?, arguments)),
        Command::Workspace(arguments) => block_on(workspace::run(client()?, arguments)),
        Command::Secrets(arguments) => block_on(secrets::run(client()?, arguments)),
        Command::Register(arguments) => block_on(registration::register(client, arguments)),
        Command::Invitations(arguments) => block_on(registration::invitations(client()?, arguments)),
        Command::Applicants(arguments) => block_on(registration::applicants(client()?, arguments)),
        Command::Authenticator(arguments) => block_on(authenticator::run(client()?, arguments)),
        Command::Identities(arguments) => block_on(identities::run(client()?, arguments)),
        Command::Keys(arguments) => block_on(keys::run(client()?, arguments)),
        Command::Login(arguments) => block_on(login::login(data, client, profile.clone(), arguments)),
        Command::Logout => block_on(login::logout(profile.clone())),
        Command::Profiles(arguments) => profiles::run(&arguments),
        Command::Whoami(arguments) => block_on(login::whoami(client()?, arguments)),
        Command::Password(arguments) => block_on(login::password(client, arguments)),
        Command::Tokens(arguments) => block_on(tokens::run(client()?, arguments)),
        Command::Admin(arguments) => block_on(admin::run(client()?, arguments)),
        Command::Nodes(arguments) => block_on(nodes::run(client()?, arguments)),
        Command::Adopt(arguments) => block_on(adopt::run(client()?, arguments)),
        Command::Devices(arguments) => block_on(devices::run(client(), arguments)),
        Command::Sweep(arguments) => sweep::run(arguments),
        Command::Ranktable(arguments) => ranktable::run(arguments),
        Command::Migrate(arguments) => migrate::run(arguments),
        Command::Events(arguments) => block_on(events::run(client()?, arguments)),
        Command::History(arguments) => block_on(history::run(client()?, arguments)),
        Command::Sim(arguments) => sim::run(arguments),
        Command::Doctor(arguments) => block_on(doctor::run(client(), arguments)),
        Command::Version(arguments) => block_on(version::run(client(), arguments)),
        Command::Completions(arguments) => completions::run(&arguments, program(server)),
        Command::HelpMarkdown => {
            output::line(reference::markdown(program(server))).map(|()| ExitCode::SUCCESS)
        }
        Command::ReasonsMarkdown => {
            output::line(danlu_types::reason::reference_page().trim_end()).map(|()| ExitCode::SUCCESS)
        }
        Command::MigrateRules => {
            output::line(danlu_migrate::report::rules_markdown()).map(|()| ExitCode::SUCCESS)
        }
    }
}

fn no_server() -> CliError {
    CliError::new("this `danlu` was built without the server").hint(
        "start the server with a full build (`cargo build --release -p danlu`); this one signs in to it: `danlu login URL`",
    )
}
