//! Who has to give way, to whom, and how.

#[test]
fn the_fewest_are_stopped_and_of_those_who_lose_least() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red guaranteed nvidia=8
        workspace guest
        job 1 workspace guest devices nvidia:4 preemptible yes
        plan
        job 2 workspace guest devices nvidia:1 preemptible yes
        job 3 workspace guest devices nvidia:1 preemptible yes
        plan at 10m
        job 4 workspace guest devices nvidia:2 preemptible yes
        plan at 20m
        # One is enough: job 1 would lose 30 minutes of four devices, job 4 ten minutes of two.
        job 5 workspace red devices nvidia:2
        plan at 30m
        stopped 4 at 31m
        plan at 31m
        # Job 1 alone, rather than both others.
        job 6 workspace red devices nvidia:2
        plan at 40m
        "
    );
}

#[test]
fn nobody_is_stopped_before_the_minimum_run_time() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        minimum-run 15m
        workspace red guaranteed nvidia=4
        workspace guest
        job 1 workspace guest devices nvidia:4 preemptible yes
        plan
        job 2 workspace red devices nvidia:4
        plan at 1m
        plan at 15m
        "
    );
}

#[test]
fn nobody_is_stopped_who_should_end_within_the_grace_time() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        workspace red guaranteed nvidia=4
        workspace guest
        job 1 workspace guest devices nvidia:4 preemptible yes max-time 10m
        plan
        job 2 workspace red devices nvidia:4
        plan at 595s
        # It has not ended when it should have.
        plan at 11m
        "
    );
}

#[test]
fn what_victims_leave_is_kept_for_whom_they_were_stopped() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        workspace red guaranteed nvidia=4
        workspace guest
        job 1 workspace guest devices nvidia:2 preemptible yes
        job 2 workspace guest devices nvidia:2 preemptible yes
        plan
        job 3 workspace red devices nvidia:4
        plan at 10m
        # Half of it is free, and nobody may take that.
        stopped 1 at 11m
        job 4 workspace guest devices nvidia:1 priority 9 preemptible yes
        job 5 workspace red devices nvidia:1 priority 9
        plan at 11m
        stopped 2 at 12m
        plan at 12m
        "
    );
}

#[test]
fn a_victim_that_ends_by_itself_makes_room_too() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        workspace red guaranteed nvidia=4
        workspace guest
        job 1 workspace guest devices nvidia:4 preemptible yes
        plan
        job 2 workspace red devices nvidia:4
        plan at 10m
        end 1 at 11m
        plan at 11m
        "
    );
}

#[test]
fn a_workspace_is_not_pushed_below_its_own_guarantee() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red guaranteed nvidia=4
        workspace blue guaranteed nvidia=4
        # Blue borrows one.
        job 1 workspace blue devices nvidia:1 preemptible yes
        job 2 workspace blue devices nvidia:1 preemptible yes
        job 3 workspace blue devices nvidia:1 preemptible yes
        job 4 workspace blue devices nvidia:1 preemptible yes
        job 5 workspace blue devices nvidia:1 preemptible yes
        job 6 workspace red devices nvidia:3
        plan
        job 7 workspace red devices nvidia:1
        plan at 10m
        plan at 11m
        stopped 1 at 12m
        plan at 12m
        "
    );
}

#[test]
fn a_larger_priority_takes_from_a_smaller_one_of_its_workspace() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        job 1 devices nvidia:4 priority 3 preemptible yes
        plan
        job 2 devices nvidia:4 priority 3
        # Another workspace has no claim on it.
        job 3 workspace other devices nvidia:4 priority 9
        plan at 10m
        job 4 devices nvidia:2 priority 5
        plan at 10m
        "
    );
}

#[test]
fn who_has_just_saved_its_work_is_taken_before_who_would_lose_more() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        job 1 devices nvidia:2 priority 3 preemptible yes
        plan
        job 2 devices nvidia:2 priority 3 preemptible yes
        plan at 5m
        # Job 2 ran for less, but job 1 has saved what it did.
        saved 1 at 9m
        job 3 devices nvidia:2 priority 5
        plan at 10m
        "
    );
}

#[test]
fn a_larger_priority_also_takes_when_the_limit_is_what_it_lacks() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red limit nvidia=4
        job 1 workspace red devices nvidia:2 priority 3 preemptible yes
        job 2 workspace red devices nvidia:2 priority 3 preemptible yes
        plan
        job 3 workspace red devices nvidia:2 priority 9
        plan at 10m
        plan at 11m
        stopped 1 at 12m
        plan at 12m
        "
    );
}

#[test]
fn who_waits_for_its_quota_only_keeps_its_devices_meanwhile() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        node b 4 nvidia:A100
        workspace red per-user nvidia=4
        job 1 workspace red owner bob devices nvidia:1 priority 3 preemptible yes
        job 2 workspace red owner ada devices nvidia:3 priority 3
        plan
        job 3 workspace red owner bob devices nvidia:4 priority 9
        job 4 workspace red owner ada devices nvidia:1 priority 3
        plan at 10m
        "
    );
}

#[test]
fn a_job_that_is_not_preemptible_is_never_stopped() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        workspace red guaranteed nvidia=2
        workspace guest
        job 1 workspace guest devices nvidia:2
        job 2 workspace guest devices nvidia:2 preemptible yes
        plan
        job 3 workspace red devices nvidia:1
        job 4 workspace red devices nvidia:1
        plan at 10m
        job 5 workspace guest devices nvidia:1 priority 9
        plan at 10m
        "
    );
}

#[test]
fn a_job_that_cannot_borrow_pushes_out_its_own_workspaces_borrowing() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red guaranteed nvidia=4
        workspace guest
        job 1 workspace red devices nvidia:4 preemptible yes
        job 2 workspace red devices nvidia:2 preemptible yes
        job 3 workspace guest devices nvidia:2 preemptible yes
        plan
        # Red has its guarantee, in jobs that may borrow: they give way, not the guest.
        job 4 workspace red devices nvidia:2
        plan at 10m
        "
    );
}

#[test]
fn a_gang_takes_the_cheapest_nodes_together() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        node b 4 nvidia:A100
        node c 4 nvidia:A100
        workspace red guaranteed nvidia=12
        workspace guest
        job 1 workspace guest devices nvidia:4 preemptible yes
        plan
        job 2 workspace guest devices nvidia:4 preemptible yes
        plan at 10m
        job 3 workspace guest devices nvidia:3 preemptible yes
        plan at 20m
        job 4 workspace red workers 2 devices nvidia:4
        plan at 30m
        "
    );
}

#[test]
fn a_gang_may_need_room_for_several_workers_on_one_node() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        workspace red guaranteed nvidia=4
        workspace guest
        job 1 workspace guest devices nvidia:1 preemptible yes
        job 2 workspace guest devices nvidia:1 preemptible yes
        job 3 workspace guest devices nvidia:1 preemptible yes
        job 4 workspace guest devices nvidia:1 preemptible yes
        plan
        job 5 workspace red workers 2 devices nvidia:2
        plan at 10m
        "
    );
}

#[test]
fn behind_a_head_that_wants_more_a_guarantee_is_still_good() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red guaranteed nvidia=4
        workspace guest
        job 1 workspace guest devices nvidia:4 preemptible yes
        job 2 workspace guest devices nvidia:4 preemptible yes
        plan
        # More than red's guarantee: it has to wait for its turn.
        job 3 workspace red devices nvidia:8
        job 4 workspace red devices nvidia:4
        plan at 10m
        stopped 1 at 11m
        plan at 11m
        "
    );
}

#[test]
fn an_alternative_that_is_guaranteed_is_taken_back_though_it_is_not_the_first() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        node b 4 ascend:910B3
        workspace red guaranteed ascend=4
        workspace guest
        job 1 workspace guest devices nvidia:4 preemptible yes
        job 2 workspace guest devices ascend:4 preemptible yes
        plan
        job 3 workspace red any-of nvidia:4,ascend:4
        plan at 10m
        stopped 2 at 11m
        plan at 11m
        "
    );
}

#[test]
fn rings_are_respected_when_victims_are_chosen() {
    assert_transcript!(
        "
        node a 8 ascend:910A islands 4
        workspace red guaranteed ascend=8
        workspace guest
        job 1 workspace guest devices ascend:2 preemptible yes
        job 2 workspace guest devices ascend:2 preemptible yes
        job 3 workspace guest devices ascend:4 preemptible yes
        plan
        # Jobs 1 and 2 share a ring; job 3 alone is fewer.
        job 4 workspace red devices ascend:4
        plan at 10m
        "
    );
}

/// Issue 3: taken for one device, the eight would come back for their guarantee at once.
#[test]
fn a_large_job_that_has_just_begun_is_not_taken_for_a_small_one() {
    assert_transcript!(
        "
        node a 9 nvidia:A100
        workspace red guaranteed nvidia=8
        workspace blue guaranteed nvidia=1
        minimum-run 0s
        job 1 workspace red devices nvidia:1 preemptible yes
        plan
        job 2 workspace red devices nvidia:8 preemptible yes
        plan at 30s
        job 3 workspace blue devices nvidia:1
        plan at 32s
        "
    );
}
