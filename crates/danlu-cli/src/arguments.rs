//! The commands and their order in the help.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use danlu_client::ProfileName;

use crate::commands::{
    admin, adopt, authenticator, change, clone, completions, devices, doctor, events, exec, files, history,
    identities, job_actions, jobs, keys, launch, login, logs, metrics, migrate, nodes, profiles, quota,
    ranktable, registration, run, secrets, show, sim, submit, sweep, tokens, up, version, why, workspace,
};

/// Trains on shared GPUs and Ascend NPUs: one queue, one command line.
#[derive(Debug, Parser)]
#[command(
    name = "danlu",
    version,
    max_term_width = 100,
    after_help = "First steps:\n  danlu up                      starts a server on this machine\n  danlu run -- python train.py  runs a command as a job and shows its output\n  danlu submit job.yaml         puts a job into the queue\n\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 no server; `run` and `exec` pass on the program's."
)]
pub(crate) struct Arguments {
    /// The server's data folder, by which it is found [default: `$DANLU_DATA`, or `~/.local/share/danlu`]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    /// Where you signed in under this name [default: `$DANLU_PROFILE`, or `default`]
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "data")]
    pub(crate) profile: Option<ProfileName>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Starts a server on this machine
    Up(up::Arguments),
    /// Puts a job into the queue and prints its number
    Submit(submit::Arguments),
    /// Submits a job, follows it to its end and exits with its exit code
    ///
    /// Ctrl-C stops the job and gives it its grace; a second one kills it; a third one leaves it to the server and exits
    /// with 130.
    Run(run::Arguments),
    /// Runs a training on this machine, without a server
    ///
    /// Sets what the ranks look for (`MASTER_ADDR`, `RANK`, the visible devices, …), binds them to the processors near their
    /// devices, prints what they print with the rank before each line, and exits with the code of the first that fails.
    /// Ctrl-C asks them to end; a second one kills them.
    Launch(launch::Arguments),
    /// Lists jobs, newest first
    Jobs(jobs::Arguments),
    /// Shows one job: its attempts, workers and timeline
    Show(show::Arguments),
    /// Prints what a job wrote
    Logs(logs::Arguments),
    /// Prints what a job's program last reported of its training: `loss`, `accuracy`, …
    Metrics(metrics::Arguments),
    /// Lists and prints files that a job wrote
    Files(files::Arguments),
    /// Runs a command inside a worker of a running job
    Exec(exec::Arguments),
    /// Ends jobs
    Stop(job_actions::StopArguments),
    /// Keeps queued jobs from starting
    Hold(job_actions::Arguments),
    /// Lets held jobs start
    Release(job_actions::Arguments),
    /// Lets jobs start that ask for more than their workspace gives without approval
    Approve(job_actions::Arguments),
    /// Change a queued or held job in place; it keeps its queue position
    Change(change::Arguments),
    /// Submits a job like another one
    Clone(clone::Arguments),
    /// Deletes ended jobs with their logs
    Delete(job_actions::Arguments),
    /// Says why a job waits, or what it is doing
    Why(why::Arguments),
    /// Shows where workspaces stand with what they were promised: used, borrowed, lent, free
    Quota(quota::Arguments),
    /// Lists workspaces, with what they may use and what they use, shows their rules and who is in them
    #[command(alias = "workspaces")]
    Workspace(workspace::Arguments),
    /// Lists, sets and deletes the secrets of a workspace
    Secrets(secrets::Arguments),
    /// Lists machines, with what is taken of them, or keeps jobs off one
    Nodes(nodes::Arguments),
    /// Lists the cluster's jobs that are none of Danlu's, with what they hold
    ///
    /// Danlu counts them, so that what it calls free is free; it never touches them. Only clusters have such jobs.
    Adopt(adopt::Arguments),
    /// Lists accelerators, with how they are doing and who uses them, or puts one back into service
    ///
    /// Where no server runs, shows the devices of this machine.
    Devices(devices::Arguments),
    /// Finds programs of this machine that use devices without a job, and ends them if asked to
    ///
    /// Without `--end` it only says what it would do. With `--end --at 23:00` it tells their owners, waits until then, and ends
    /// those that are still there. Needs no server.
    Sweep(sweep::Arguments),
    /// Writes, checks and converts HCCL rank tables; needs no server
    Ranktable(ranktable::Arguments),
    /// Turns CUDA training code into code for Ascend NPUs; needs no server
    ///
    /// Understands the flags of the vendor's `pytorch_gpu2npu.sh` (`-i -o -v -s -m`, `distributed -m -t`). Every change is explained
    /// in the reports beside the copy; what cannot be changed is named there, too. Exits with 1 if a file could not be migrated.
    Migrate(migrate::Arguments),
    /// Lists what happened
    Events(events::Arguments),
    /// Exports what became of jobs, to be replayed
    History(history::Arguments),
    /// Simulates clusters: what other quotas, policies or machines would have done
    Sim(sim::Arguments),
    /// Asks for an account
    Register(registration::RegisterArguments),
    /// Invites people who have no account into a workspace
    Invitations(registration::InvitationsArguments),
    /// Lists who asks to be let into a workspace, and decides
    Applicants(registration::ApplicantsArguments),
    /// Signs in at a server, for all commands that follow
    Login(login::Arguments),
    /// Signs out
    Logout,
    /// Lists where you are signed in
    Profiles(profiles::Arguments),
    /// Prints who you are to the server, and what you are in which workspace
    Whoami(login::WhoamiArguments),
    /// Sets your password
    Password(login::PasswordArguments),
    /// Lists, makes and revokes tokens for your programs
    Tokens(tokens::Arguments),
    /// Adds or removes an authenticator, whose codes are asked for at sign-in
    Authenticator(authenticator::Arguments),
    /// List or unlink the provider's identities by which your account signs in
    Identities(identities::Arguments),
    /// Lists, adds and removes your SSH keys and S3 keys
    Keys(keys::Arguments),
    /// Runs accounts and workspaces, and reads what was done by whom
    Admin(admin::Arguments),
    /// Checks whether the server can do all of its work, and what this machine lacks
    ///
    /// Exits with 1 if the server has a problem.
    Doctor(doctor::Arguments),
    /// Prints the versions of this program and of the server
    Version(version::Arguments),
    /// Prints a completion script for a shell
    Completions(completions::Arguments),
    /// Prints the API's description as JSON
    #[command(hide = true)]
    Openapi,
    /// Prints the reference of all commands as Markdown
    #[command(hide = true)]
    HelpMarkdown,
    /// Prints the reference of the migrator's rules as Markdown
    #[command(hide = true)]
    MigrateRules,
}
