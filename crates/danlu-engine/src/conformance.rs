//! What every engine must do, as functions to be called from tests: one suite, all engines.
//!
//! Each behaviour takes a [`Site`] of its own, drives an engine there, and panics where the engine breaks the contract.
//! What its workers run is a [`TestProgram`], so that an engine without processes can be held to the same. Nothing sleeps
//! for a guessed time: [`Site::until`] asks again until the deadline.
//!
//! An engine's tests call [`crate::conformance_tests`], which makes one test of each behaviour that [`promised`] names for
//! it and one that none is left out.

mod behaviours;
mod ground;
mod program;
mod site;

pub use behaviours::*;
pub use ground::{Ground, LocalGround};
pub use program::{ProgramStep, TestFolder, TestProgram};
pub use site::{Scheduling, Site, TestWorker};

/// The suite, in the order in which one gets to know an engine.
pub const BEHAVIOURS: [&str; 28] = [
    "a_worker_runs_and_ends",
    "exit_codes_are_told",
    "launching_again_runs_nothing_twice",
    "a_gang_starts_together_or_not_at_all",
    "the_first_failing_rank_ends_its_worker",
    "a_failing_worker_is_told_from_those_it_takes_along",
    "a_stop_gives_grace",
    "a_stop_kills_what_does_not_listen",
    "no_process_outlives_its_worker",
    "a_stop_before_the_start_starts_nothing",
    "a_restarted_server_adopts_what_runs",
    "workers_run_on_while_no_server_does",
    "a_lost_launcher_is_told_and_takes_its_ranks_along",
    "a_lost_launcher_leaves_no_daemon",
    "a_lost_node_is_told_from_a_program_that_fails",
    "the_next_attempt_finds_what_the_one_before_has_saved",
    "no_log_line_is_lost",
    "workers_see_their_devices_and_no_others",
    "workers_at_the_same_time_share_no_device",
    "programs_know_their_share_of_processors",
    "a_worker_that_runs_too_long_is_ended",
    "a_worker_that_takes_too_much_memory_is_ended",
    "what_is_on_offer_can_be_asked_for",
    "changes_are_hinted",
    "released_workers_are_unknown",
    "a_released_worker_is_not_launched_again",
    "commands_run_inside_a_worker",
    "what_has_ended_cannot_be_reached",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    Local,
    Slurm,
    Sim,
}

impl EngineKind {
    pub const ALL: [EngineKind; 3] = [EngineKind::Local, EngineKind::Slurm, EngineKind::Sim];

    pub fn as_str(self) -> &'static str {
        match self {
            EngineKind::Local => "local",
            EngineKind::Slurm => "slurm",
            EngineKind::Sim => "sim",
        }
    }
}

/// Which engine is not held to which behaviour, and why.
pub const EXEMPTIONS: [(&str, EngineKind, &str); 3] = [
    (
        "a_lost_node_is_told_from_a_program_that_fails",
        EngineKind::Local,
        "its one node is lost together with the server",
    ),
    (
        "a_lost_launcher_leaves_no_daemon",
        EngineKind::Slurm,
        "Slurm finds what has left its parents where it counts by cgroup (`proctrack/cgroup`); the tests' cluster does not",
    ),
    (
        "a_worker_that_takes_too_much_memory_is_ended",
        EngineKind::Slurm,
        "Slurm limits memory where its administrators have it do so (`task/cgroup`); the tests' cluster does not",
    ),
];

/// The behaviours that an engine is held to.
pub fn promised(engine: EngineKind) -> Vec<&'static str> {
    let is_exempt =
        |behaviour: &str| EXEMPTIONS.iter().any(|(name, kind, _)| *name == behaviour && *kind == engine);
    BEHAVIOURS.into_iter().filter(|behaviour| !is_exempt(behaviour)).collect()
}

/// One `#[tokio::test]` for each behaviour, on the site that `$site` makes: of those that are named; or, where an engine
/// is named, of all that no engine is exempt from, and of what else it promises, on a site for that.
///
/// ```ignore
/// danlu_engine::conformance_tests!(Sim, sim_site(); sim_site() => a_lost_node_is_told_from_a_program_that_fails);
/// ```
#[macro_export]
macro_rules! conformance_tests {
    ($site:expr; $($behaviour:ident),+ $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $behaviour() {
            $crate::conformance::$behaviour(&$site).await;
        }
    )+};
    ($engine:ident, $site:expr $(; $other:expr => $($further:ident),+)* $(,)?) => {
        $($crate::conformance_tests!($other; $($further),+);)*
        $crate::conformance_tests!(@ $engine, $site; [$($($further),+),*]
            a_worker_runs_and_ends,
            exit_codes_are_told,
            launching_again_runs_nothing_twice,
            a_gang_starts_together_or_not_at_all,
            the_first_failing_rank_ends_its_worker,
            a_failing_worker_is_told_from_those_it_takes_along,
            a_stop_gives_grace,
            a_stop_kills_what_does_not_listen,
            no_process_outlives_its_worker,
            a_stop_before_the_start_starts_nothing,
            a_restarted_server_adopts_what_runs,
            workers_run_on_while_no_server_does,
            a_lost_launcher_is_told_and_takes_its_ranks_along,
            the_next_attempt_finds_what_the_one_before_has_saved,
            no_log_line_is_lost,
            workers_see_their_devices_and_no_others,
            workers_at_the_same_time_share_no_device,
            programs_know_their_share_of_processors,
            a_worker_that_runs_too_long_is_ended,
            what_is_on_offer_can_be_asked_for,
            changes_are_hinted,
            released_workers_are_unknown,
            a_released_worker_is_not_launched_again,
            commands_run_inside_a_worker,
            what_has_ended_cannot_be_reached,
        );
    };
    (@ $engine:ident, $site:expr; [$($further:ident),*] $($behaviour:ident),+ $(,)?) => {
        $crate::conformance_tests!($site; $($behaviour),+);

        #[test]
        fn the_engine_is_held_to_all_that_it_promises() {
            let mut held = vec![$(stringify!($behaviour)),+ $(, stringify!($further))*];
            let mut promised =
                $crate::conformance::promised($crate::conformance::EngineKind::$engine);
            held.sort_unstable();
            promised.sort_unstable();
            assert_eq!(held, promised);
        }
    };
}
