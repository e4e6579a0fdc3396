//! Who comes first.

#[test]
fn larger_priority_first_then_earlier_submission() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        job 1 devices ascend:4
        job 2 devices ascend:4
        job 3 devices ascend:4 priority 9
        plan
        "
    );
}

#[test]
fn a_short_job_passes_a_long_one_that_has_not_waited_as_long_as_that_is_longer() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        job 1 devices nvidia:8 max-time 2h
        plan
        job 2 devices nvidia:8 max-time 5h
        job 3 devices nvidia:8 max-time 1h at 1h
        end 1 at 2h
        plan at 2h
        end 3 at 3h
        # Job 2 is due five hours after its submission, job 4 an hour after its own, which is later.
        job 4 devices nvidia:8 max-time 1h at 4h30m
        plan at 4h30m
        "
    );
}

#[test]
fn strict_workspaces_insist_on_the_order_of_submission() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red policy strict
        job 1 workspace red devices nvidia:8 max-time 5h
        job 2 workspace red devices nvidia:8 max-time 1h
        plan
        "
    );
}

#[test]
fn workspaces_take_turns_by_the_share_of_their_guarantee_they_use() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red guaranteed nvidia=6
        workspace tiny guaranteed nvidia=2
        # A device is a sixth of red's guarantee and half of tiny's.
        job 1 workspace red devices nvidia:1
        job 2 workspace red devices nvidia:1
        job 3 workspace red devices nvidia:1
        job 4 workspace red devices nvidia:1
        job 5 workspace red devices nvidia:1
        job 6 workspace tiny devices nvidia:1
        job 7 workspace tiny devices nvidia:1
        plan
        "
    );
}

#[test]
fn borrowers_come_after_those_within_their_guarantee_whatever_their_priority() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        workspace red guaranteed nvidia=2
        workspace guest
        job 1 workspace guest devices nvidia:1 priority 9 preemptible yes
        job 2 workspace guest devices nvidia:1 priority 9 preemptible yes
        job 3 workspace guest devices nvidia:1 priority 9 preemptible yes
        job 4 workspace red devices nvidia:2 priority 1
        plan
        "
    );
}

#[test]
fn cpus_beside_guaranteed_devices_do_not_make_a_borrower() {
    assert_transcript!(
        "
        node a 4 nvidia:A100 cpus 64
        workspace red guaranteed nvidia=2
        workspace guest
        job 1 workspace red devices nvidia:1 cpus 60
        plan
        job 2 workspace guest devices nvidia:3 preemptible yes
        job 3 workspace red devices nvidia:1
        plan
        "
    );
}

#[test]
fn a_preempted_job_keeps_its_place() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        workspace red guaranteed nvidia=4
        workspace guest policy strict
        job 1 workspace guest devices nvidia:4 preemptible yes
        plan
        job 2 workspace guest devices nvidia:4 preemptible yes
        job 3 workspace red devices nvidia:4 at 10m
        plan at 10m
        stopped 1 at 11m
        plan at 11m
        # Job 1 was submitted before job 2, and goes before it again.
        end 3 at 20m
        plan at 20m
        "
    );
}

#[test]
fn a_preempted_job_keeps_its_place_whatever_was_learned_meanwhile() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red guaranteed nvidia=8
        workspace guest
        job 1 workspace guest devices nvidia:4 preemptible yes
        job 2 workspace guest devices nvidia:4 preemptible yes
        plan
        job 3 workspace guest owner bob devices nvidia:8 preemptible yes at 4h
        # Job 2 is of the same owner and name as job 1: such a job would now be put off by five hours.
        end 2 at 5h
        job 4 workspace red devices nvidia:8 at 5h
        plan at 5h
        stopped 1 at 5h
        plan at 5h
        # Job 1 was first seen when nothing was known, and still goes before job 3.
        end 4 at 6h
        plan at 6h
        "
    );
}

#[test]
fn of_two_workspaces_without_guarantee_the_one_that_uses_less_goes_first() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        job 1 workspace red devices nvidia:2
        plan
        job 2 workspace red devices nvidia:2
        job 3 workspace blue devices nvidia:2
        plan
        "
    );
}

/// Stopped and submitted again it would stand behind job 3, which takes what is free.
#[test]
fn what_is_offered_counts_on_the_place_that_the_job_keeps() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        workspace red policy strict
        job 1 workspace red devices nvidia:2
        plan
        job 2 workspace red devices nvidia:4
        job 3 workspace red devices nvidia:2
        plan
        offers 2
        change 2 devices nvidia:2
        plan
        "
    );
}
