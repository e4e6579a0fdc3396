//! What fails, goes away and comes back.

#[test]
fn a_retry_keeps_away_from_the_node_that_failed_it_for_ten_minutes() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 ascend:910B3
        job 1 devices ascend:8 retries 3
        plan
        fail 1 node_lost at 1m
        plan at 1m
        plan at 61s
        fail 1 node_lost at 2m
        # b now, which failed it last.
        plan at 3m
        "
    );
}

#[test]
fn keeping_away_from_a_node_ends() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 ascend:910B3
        job 1 devices ascend:8 retries 3
        job 2 devices ascend:8
        plan
        fail 1 device_error at 1m
        plan at 2m
        plan at 11m
        "
    );
}

#[test]
fn a_node_is_not_avoided_where_no_other_would_do() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 ascend:910B3
        job 1 devices ascend:8 retries 3
        plan
        fail 1 node_lost at 1m
        lose b
        plan at 2m
        "
    );
}

#[test]
fn a_program_that_fails_is_not_its_nodes_fault() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 ascend:910B3
        job 1 devices ascend:8 retries 3
        job 2 devices ascend:4
        plan
        fail 1 exit at 1m
        plan at 2m
        "
    );
}

#[test]
fn nothing_new_starts_on_a_cordoned_node_and_what_runs_there_goes_on() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 ascend:910B3
        job 1 devices ascend:4
        plan
        cordon a
        job 2 devices ascend:4
        job 3 workers 2 devices ascend:4
        plan
        end 2
        plan
        uncordon a
        plan
        "
    );
}

#[test]
fn a_broken_device_is_given_to_nobody_until_it_is_mended() {
    assert_transcript!(
        "
        node a 4 ascend:910B3
        break a:1
        job 1 devices ascend:3
        job 2 devices ascend:1
        plan
        mend a:1
        plan
        "
    );
}

#[test]
fn what_the_cluster_lost_keeps_nobody_waiting() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 nvidia:A100-80G
        workspace default policy strict
        job 1 devices nvidia:4
        plan
        lose b
        break a:7
        job 2 devices ascend:8
        job 3 devices nvidia:4
        job 4 devices ascend:4
        plan
        # b is back, and job 1 still holds its part.
        node b 8 nvidia:A100-80G
        job 5 devices nvidia:8
        plan
        "
    );
}

#[test]
fn a_back_off_keeps_nobody_else_waiting() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        job 1 devices ascend:8 retries 3
        plan
        fail 1 device_error at 1m
        plan at 60500ms
        job 2 devices ascend:8 priority 1
        plan at 60600ms
        end 2 at 60700ms
        plan at 60999ms
        plan at 61s
        "
    );
}

#[test]
fn a_clock_set_back_prolongs_neither_a_back_off_nor_keeping_away() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 ascend:910B3
        job 1 devices ascend:8 retries 3
        job 2 devices ascend:8
        plan at 2h
        fail 1 device_error at 3h
        plan at 1h
        "
    );
}

#[test]
fn a_held_job_waits_for_nothing_and_comes_back_to_its_place() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        job 1 devices ascend:8
        job 2 devices ascend:8
        hold 1
        plan
        release 1
        job 3 devices ascend:8
        end 2
        plan
        "
    );
}
