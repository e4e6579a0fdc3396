//! One list of behaviours, run on every database for real: SQLite in a temporary file, PostgreSQL from the system's
//! packages in a temporary folder.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on fails; notices of skips"
)]

mod behaviours;
mod claims;
mod crash;
mod database;
mod filters;
mod history;
mod jobs;
mod migrations;
mod people;
mod search;
mod sqlite_disk;

/// A test for each behaviour on each database.
macro_rules! conformance {
    ($($module:ident: $($behaviour:ident),+ $(,)?;)+) => {
        mod sqlite {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    crate::$module::$behaviour(&crate::database::Database::sqlite()).await;
                }
            )+)+
        }
        mod postgresql {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    if let Some(database) = crate::database::Database::postgres() {
                        crate::$module::$behaviour(&database).await;
                    }
                }
            )+)+
        }
    };
}

conformance! {
    behaviours:
        inserted_jobs_are_fetched_equal,
        unknown_and_absurd_ids_are_found_nowhere,
        every_state_of_a_life_round_trips,
        a_changed_job_is_found_by_what_it_asks_for_now,
        live_jobs_are_those_that_have_not_ended,
        stale_updates_are_left_out_and_named,
        a_batch_may_insert_and_update_one_job,
        a_submission_key_is_taken_once_in_a_batch,
        a_submission_key_is_taken_once_across_batches,
        the_last_id_survives_deletes_and_reopening,
        only_ended_jobs_are_deleted,
        old_ends_are_found_oldest_first,
        the_last_ends_are_found_latest_first,
        code_is_named_until_its_last_job_is_deleted,
        notes_of_nodes_are_kept_and_told_in_history,
        large_batches_are_written_whole,
        fifty_committers_at_once_lose_nothing;
    claims:
        a_database_has_one_server_at_a_time,
        a_claim_ends_with_its_process,
        who_has_lost_the_lead_writes_nothing;
    crash:
        an_impossible_row_leaves_nothing_of_its_batch,
        a_refused_key_leaves_nothing_of_its_batch,
        reopening_finds_everything,
        an_abandoned_commit_is_whole_or_nothing,
        a_killed_writer_leaves_whole_batches,
        check_answers;
    filters:
        each_filter_finds_its_jobs,
        counts_are_those_of_the_lists,
        counts_follow_every_change,
        lists_of_people_and_workspaces_have_no_holes,
        filters_combine,
        search_takes_every_character_literally,
        pages_have_no_holes_while_jobs_arrive;
    history:
        events_come_in_order_and_pages,
        events_of_one_job_come_alone,
        events_are_append_only,
        a_reader_that_follows_misses_nothing,
        hostile_texts_are_kept;
    migrations:
        data_of_version_1_is_read_by_the_newest,
        the_code_that_jobs_of_version_1_name_is_found,
        data_of_version_2_is_read_by_the_newest,
        people_of_version_8_are_carried_into_their_tables,
        people_of_version_8_that_cannot_be_read_are_named_and_left_as_they_are,
        opening_twice_changes_nothing,
        two_servers_may_open_an_empty_database_at_once,
        a_newer_database_is_refused;
    people:
        people_are_kept_replaced_and_taken_away,
        an_account_that_was_changed_meanwhile_is_not_written_over,
        what_is_an_accounts_goes_with_it_or_nothing_goes,
        a_row_of_people_that_cannot_be_read_is_an_error_that_names_it,
        the_audit_is_sealed_whoever_writes_at_once,
        what_vouches_for_an_entry_is_written_with_it,
        only_what_is_visible_is_listed;
    search:
        every_part_of_every_name_is_found,
        search_follows_changes_and_deletions,
        names_from_before_there_was_an_index_are_found,
        a_row_that_cannot_be_read_is_one_jobs_trouble;
}
