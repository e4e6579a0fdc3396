//! The commands. Their groups and order in the help are in [`crate::help_groups`].

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use danlu_client::ProfileName;

use crate::commands::{
    admin, adopt, authenticator, change, clone, completions, devices, doctor, events, exec, files, history,
    identities, job_actions, jobs, keys, launch, login, logs, metrics, migrate, nodes, profiles, quota,
    ranktable, registration, run, secrets, show, sim, submit, sweep, tokens, version, why, workspace,
};
use crate::help_groups;

/// The heading of the flags that every command takes.
const GLOBAL: &str = "Global options";

/// Run training jobs on shared GPUs and Ascend NPUs
#[derive(Debug, Parser)]
#[command(
    name = "danlu",
    version,
    max_term_width = 100,
    help_template = help_groups::template(),
    after_help = "First steps:\n  danlu up                      Start a server on this machine\n  danlu run -- python train.py  Run a command as a job and stream its logs\n  danlu submit job.yaml         Submit the job that a file describes\n\n`danlu help COMMAND` describes a command.\nExit codes: 0 success, 1 failure, 2 wrong usage, 3 not found, 4 no server.\n`run`, `exec` and `launch` exit with the exit code of the program."
)]
pub(crate) struct Arguments {
    /// Data folder of a local server [default: `$DANLU_DATA`, or `~/.local/share/danlu`]
    #[arg(long, global = true, value_name = "FOLDER", help_heading = GLOBAL)]
    pub(crate) data: Option<PathBuf>,
    /// Saved sign-in profile to use [default: `$DANLU_PROFILE`, or `default`]
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "data", help_heading = GLOBAL)]
    pub(crate) profile: Option<ProfileName>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a Danlu server
    Up,
    /// Submit a job and print its id
    Submit(submit::Arguments),
    /// Submit a job, stream its logs and exit with its exit code
    ///
    /// The first Ctrl-C stops the job with its grace period. The second Ctrl-C kills the job. The third Ctrl-C exits with 130 and leaves
    /// the job to the server.
    Run(run::Arguments),
    /// Launch distributed training on this machine
    ///
    /// Sets the environment variables that ranks expect (`MASTER_ADDR`, `RANK`, the visible devices, …). Binds each rank to the CPUs near
    /// its devices. Prints the output of all ranks, with the rank before each line. Exits with the exit code of the first rank that
    /// fails.
    ///
    /// The first Ctrl-C terminates the ranks. The second Ctrl-C kills them.
    Launch(launch::Arguments),
    /// List jobs, newest first
    Jobs(jobs::Arguments),
    /// Show a job with its attempts, workers and timeline
    Show(show::Arguments),
    /// Print the logs of a job
    Logs(logs::Arguments),
    /// Print the latest metrics of a job, e.g. loss and accuracy
    Metrics(metrics::Arguments),
    /// List, print and download the files of a job
    Files(files::Arguments),
    /// Run a command in a worker of a running job
    Exec(exec::Arguments),
    /// Stop jobs
    Stop(job_actions::StopArguments),
    /// Hold queued jobs so that they do not start
    Hold(job_actions::Arguments),
    /// Release held jobs so that they can start
    Release(job_actions::Arguments),
    /// Approve jobs above their workspace's approval threshold
    Approve(job_actions::ApproveArguments),
    /// Change a queued or held job; it keeps its queue position
    Change(change::Arguments),
    /// Submit a copy of a job
    Clone(clone::Arguments),
    /// Delete ended jobs and their logs
    Delete(job_actions::Arguments),
    /// Explain why a job is waiting and what would start it now
    Why(why::Arguments),
    /// Show quota use by workspace
    Quota(quota::Arguments),
    /// List workspaces; show and change their rules and members
    #[command(alias = "workspaces")]
    Workspace(workspace::Arguments),
    /// List, set and delete the secrets of a workspace
    Secrets(secrets::Arguments),
    /// List nodes and their allocation; cordon or drain a node
    Nodes(nodes::Arguments),
    /// List cluster jobs not managed by Danlu
    ///
    /// Danlu counts the resources of these external jobs as used and never changes the jobs. Only the engine `slurm` has external jobs.
    Adopt(adopt::Arguments),
    /// List accelerators, their health and use; enable a disabled one
    ///
    /// If no server runs, the command lists the devices of this machine.
    Devices(devices::Arguments),
    /// List or kill processes that use devices outside any job
    ///
    /// This command acts on the processes of this machine and needs no server. Without `--end`, it only lists them. With `--end --at 23:00`,
    /// it notifies the owners of the processes, waits until 23:00 and terminates the processes that still run.
    Sweep(sweep::Arguments),
    /// Generate, validate and convert HCCL rank tables
    Ranktable(ranktable::Arguments),
    /// Migrate CUDA training code to Ascend NPUs
    ///
    /// Accepts the flags of the vendor's `pytorch_gpu2npu.sh` (`-i -o -v -s -m`, `distributed -m -t`). The reports beside the copy explain
    /// every change and list the code that cannot be migrated. Exits with 1 if a file could not be migrated.
    Migrate(migrate::Arguments),
    /// List job and node events
    Events(events::Arguments),
    /// Export the history of jobs for `danlu sim replay`
    History(history::Arguments),
    /// Simulate a cluster with other quotas, policies or nodes
    Sim(sim::Arguments),
    /// Register a new account
    Register(registration::RegisterArguments),
    /// List, create and revoke invitations to a workspace
    Invitations(registration::InvitationsArguments),
    /// List, approve or decline requests to join a workspace
    Applicants(registration::ApplicantsArguments),
    /// Sign in to a server
    Login(login::Arguments),
    /// Sign out
    Logout,
    /// List saved sign-in profiles
    Profiles(profiles::Arguments),
    /// Show your account and its workspace roles
    Whoami(login::WhoamiArguments),
    /// Set your password
    Password(login::PasswordArguments),
    /// List, create, rotate and revoke API tokens
    Tokens(tokens::Arguments),
    /// Set up or turn off multi-factor authentication (MFA)
    Authenticator(authenticator::Arguments),
    /// List or unlink identities of the single sign-on provider
    Identities(identities::Arguments),
    /// List, add and remove SSH keys and S3 access keys
    Keys(keys::Arguments),
    /// Manage accounts, workspaces and quotas; show the audit log
    Admin(admin::Arguments),
    /// Check the server and this machine for problems
    ///
    /// Exits with 1 if the server has a problem.
    Doctor(doctor::Arguments),
    /// Print the versions of danlu and of the server
    Version(version::Arguments),
    /// Print a shell completion script
    Completions(completions::Arguments),
    /// Print the command reference as Markdown
    #[command(hide = true)]
    HelpMarkdown,
    /// Print the reference of reasons as Markdown
    #[command(hide = true)]
    ReasonsMarkdown,
    /// Print the migration rules as Markdown
    #[command(hide = true)]
    MigrateRules,
}
