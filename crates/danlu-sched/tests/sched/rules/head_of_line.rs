//! What the first job that cannot start means for those behind it.

#[test]
fn backfill_keeps_a_start_time_and_lets_those_pass_who_do_not_delay_it() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        job 1 devices nvidia:6 max-time 2h
        plan
        job 2 devices nvidia:8 max-time 1h
        # Ends before job 1 does.
        job 3 devices nvidia:1 max-time 1h
        # Would still run then.
        job 4 devices nvidia:1 max-time 4h
        plan
        end 1 at 1h
        end 3 at 1h
        plan at 1h
        "
    );
}

#[test]
fn backfill_counts_on_the_ends_of_jobs_that_are_none_of_ours() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        foreign a 6 until 2h
        job 1 devices nvidia:8 max-time 1h
        # Ends before theirs does.
        job 2 devices nvidia:1 max-time 1h
        # Would still run then.
        job 3 devices nvidia:1 max-time 4h
        plan
        when 1
        end 2 at 1h
        # One that outlives its time is given as long again.
        plan at 2h30m
        gone a
        plan at 2h30m
        "
    );
}

#[test]
fn nobody_waits_for_jobs_of_others_that_have_no_limit() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        foreign a 6
        job 1 devices nvidia:8 max-time 1h
        job 2 devices nvidia:1 max-time 4h
        plan
        when 1
        "
    );
}

#[test]
fn backfill_lets_long_jobs_use_what_the_head_does_not_need() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        node b 4 nvidia:T4
        job 1 devices nvidia:A100:6 max-time 2h
        plan
        job 2 devices nvidia:A100:8 max-time 1h
        job 3 devices nvidia:1 max-time 24h
        plan
        "
    );
}

#[test]
fn what_starts_in_the_same_pass_is_seen_by_reservations() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        job 1 devices nvidia:6 max-time 2h
        job 2 devices nvidia:8 max-time 3h
        job 3 devices nvidia:1 max-time 24h
        plan
        "
    );
}

#[test]
fn two_heads_do_not_count_on_the_same_devices() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        job 1 workspace red devices nvidia:8 max-time 2h
        plan
        job 2 workspace blue devices nvidia:8 max-time 1h
        job 3 workspace green devices nvidia:8 max-time 1h
        plan
        "
    );
}

#[test]
fn a_reservation_keeps_processors_beside_devices_that_are_busy() {
    assert_transcript!(
        "
        node a 8 nvidia:A100 cpus 64
        job 1 devices nvidia:8 cpus 8 max-time 2h
        plan
        job 2 devices nvidia:8 cpus 56 max-time 1h
        job 3 cpus 48 max-time 24h
        job 4 cpus 48 max-time 1h
        plan
        "
    );
}

#[test]
fn strict_lets_nobody_pass_the_head() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 nvidia:A100
        workspace red policy strict
        job 1 workspace red devices ascend:5
        plan
        job 2 workspace red devices ascend:8
        # Would fit, but must not pass job 2.
        job 3 workspace red devices ascend:1 max-time 1m
        # Other devices, and none: nobody of theirs waits.
        job 4 workspace red devices nvidia:1
        job 5 workspace red cpus 4
        # Takes any kind, so it takes the one nobody waits for.
        job 6 workspace red devices 1
        job 7 workspace blue devices ascend:1
        plan
        "
    );
}

#[test]
fn strict_holds_too_where_others_fill_a_reservation() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red policy strict
        job 1 workspace blue devices nvidia:4 max-time 2h
        plan
        job 2 workspace blue devices nvidia:8 max-time 1h
        job 3 workspace red devices nvidia:8 max-time 1h
        job 4 workspace red devices nvidia:1 max-time 1h
        job 5 workspace blue devices nvidia:1 max-time 1h
        plan
        "
    );
}

#[test]
fn a_strict_head_that_waits_for_cpus_is_not_passed_by_jobs_without_devices() {
    assert_transcript!(
        "
        node a 8 ascend:910B3 cpus 16
        workspace red policy strict
        job 1 workspace red cpus 10
        plan
        job 2 workspace red devices ascend:8 cpus 12
        job 3 workspace red cpus 1
        plan
        end 1
        plan
        "
    );
}

#[test]
fn skip_lets_everybody_pass_who_fits() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red policy skip
        job 1 workspace red devices nvidia:6
        plan
        job 2 workspace red devices nvidia:8
        job 3 workspace red devices nvidia:1
        job 4 workspace red devices nvidia:1
        plan
        "
    );
}

#[test]
fn balance_lets_one_more_pass_for_every_five_minutes_the_head_has_waited() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red policy balance
        job 1 workspace red devices nvidia:6
        plan
        job 2 workspace red devices nvidia:8
        job 3 workspace red devices nvidia:1
        job 4 workspace red devices nvidia:1
        plan
        plan at 4m
        plan at 5m
        plan at 10m
        "
    );
}

#[test]
fn a_head_that_has_its_own_kind_of_device_closes_no_other() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        node b 4 ascend:910B3
        job 1 devices nvidia:3 max-time 2h
        job 2 devices ascend:3 max-time 1h
        plan
        job 3 devices nvidia:4 max-time 1h
        job 4 devices ascend:4 max-time 1h
        job 5 devices 1 max-time 24h
        plan
        "
    );
}

#[test]
fn a_head_beyond_its_guarantee_keeps_what_is_guaranteed_to_nobody() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red guaranteed nvidia=4
        job 1 workspace green devices nvidia:1 max-time 1h
        job 2 workspace green devices nvidia:1 max-time 2h
        job 3 workspace green devices nvidia:1 max-time 2h
        job 4 workspace green devices nvidia:1 max-time 2h
        plan
        job 5 workspace blue devices nvidia:4 max-time 1h
        plan at 10m
        # There are devices for it beside those of job 5, but it would use up the quota that job 5 waits for.
        job 6 workspace green devices nvidia:1 max-time 24h
        plan at 11m
        end 1 at 1h
        plan at 1h
        # Ends in time.
        job 7 workspace green devices nvidia:1 max-time 30m
        plan at 61m
        end 7 at 90m
        end 2 at 2h
        end 3 at 2h
        end 4 at 2h
        plan at 2h
        "
    );
}
