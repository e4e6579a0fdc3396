//! What every engine must do, as functions to be called from tests: one suite, all engines.
//!
//! Each behaviour takes a [`Site`] of its own, drives a real engine with a real launcher, and panics where the engine
//! breaks the contract. [`crate::conformance_tests`] makes one test of each. Nothing sleeps for a guessed time:
//! [`Site::until`] asks again until the deadline.

mod behaviours;
mod site;

pub use behaviours::*;
pub use site::{Draft, Scheduling, Site};

/// One `#[tokio::test]` for each named behaviour, on the site that `$site` makes.
///
/// ```ignore
/// danlu_engine::conformance_tests!(local_site(); a_worker_runs_and_ends, exit_codes_are_told);
/// ```
#[macro_export]
macro_rules! conformance_tests {
    ($site:expr; $($behaviour:ident),+ $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $behaviour() {
            $crate::conformance::$behaviour(&$site).await;
        }
    )+};
    ($site:expr) => {
        $crate::conformance_tests!($site;
            a_worker_runs_and_ends,
            exit_codes_are_told,
            launching_again_runs_nothing_twice,
            a_gang_starts_together_or_not_at_all,
            the_first_failing_rank_ends_its_worker,
            a_stop_gives_grace,
            a_stop_kills_what_does_not_listen,
            no_process_outlives_its_worker,
            a_stop_before_the_start_starts_nothing,
            a_restarted_server_adopts_what_runs,
            workers_run_on_while_no_server_does,
            no_log_line_is_lost,
            workers_see_their_devices_and_no_others,
            workers_at_the_same_time_share_no_device,
            changes_are_hinted,
            released_workers_are_unknown,
            commands_run_inside_a_worker,
        );
    };
}
