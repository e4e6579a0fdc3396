//! The scheduler's rules, one fixture each. The snapshots are meant to be read: they are its documentation.

use crate::fixture::transcript;

macro_rules! assert_transcript {
    ($fixture:literal) => {
        let transcript = transcript($fixture);
        insta::assert_snapshot!(transcript);
    };
}

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
fn a_gang_starts_whole_or_not_at_all() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 ascend:910B3
        job 1 devices ascend:1
        plan
        # 15 devices are free, but not 8 on each of two nodes.
        job 2 workers 2 devices ascend:8
        plan
        end 1
        plan
        "
    );
}

#[test]
fn workers_of_a_gang_may_share_a_node() {
    assert_transcript!(
        "
        node a 4 nvidia:A100-80G
        node b 4 nvidia:A100-80G
        job 1 workers 3 devices nvidia:2
        plan
        "
    );
}

#[test]
fn a_gang_runs_on_one_model() {
    assert_transcript!(
        "
        node a 8 ascend:910B1
        node b 8 ascend:910B3
        job 1 workers 2 devices ascend:910B*:8
        plan
        job 2 workers 2 devices ascend:910B*:4
        plan
        offer workers 2 devices ascend:910B*:8
        "
    );
}

#[test]
fn the_fullest_node_that_suffices_is_taken() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 ascend:910B3
        job 1 devices ascend:6
        plan
        # Beside job 1, so that b stays whole for job 3.
        job 2 devices ascend:2
        job 3 devices ascend:8
        plan
        "
    );
}

#[test]
fn one_island_before_several_and_whole_islands_stay_free() {
    assert_transcript!(
        "
        node a 8 ascend:910A islands 4
        node b 8 ascend:910A islands 4
        job 1 devices ascend:3
        job 2 devices ascend:3
        plan
        # The two that are left on a are in two islands; b has them in one.
        job 3 devices ascend:2
        plan
        # The broken island first.
        job 4 devices ascend:2
        plan
        # No island has 5: a whole one, and the rest from the smallest that suffices.
        node c 9 ascend:910A islands 4
        job 5 devices ascend:5
        plan
        "
    );
}

#[test]
fn jobs_without_devices_go_where_devices_are_used_up() {
    assert_transcript!(
        "
        node a 8 ascend:910B3 cpus 8
        node b cpus 8
        job 1 cpus 6
        job 2 cpus 6
        plan
        # 2 cores are free on each node.
        job 3 cpus 3
        plan
        "
    );
}

#[test]
fn a_blocked_head_closes_its_pool_only() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 nvidia:A100-80G
        job 1 devices ascend:5
        plan
        job 2 devices ascend:8
        # Would fit, but must not delay job 2.
        job 3 devices ascend:1
        job 4 devices nvidia:1
        job 5 cpus 4
        # Takes any kind, so it takes the one nobody waits for.
        job 6 devices 1
        plan
        "
    );
}

#[test]
fn a_head_that_waits_for_cpus_is_not_overtaken_by_jobs_without_devices() {
    assert_transcript!(
        "
        node a 8 ascend:910B3 cpus 16
        job 1 cpus 10
        plan
        job 2 devices ascend:8 cpus 12
        job 3 cpus 1
        plan
        end 1
        plan
        "
    );
}

#[test]
fn memory_is_set_aside_where_it_was_asked_for() {
    assert_transcript!(
        "
        node a 8 ascend:910B3 memory 64Gi
        job 1 devices ascend:1 memory 48Gi
        # Without `memory` nothing is set aside.
        job 2 devices ascend:1
        job 3 devices ascend:1 memory 32Gi
        plan
        "
    );
}

#[test]
fn a_back_off_keeps_nobody_else_waiting() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        job 1 devices ascend:8 back-off 30s
        job 2 devices ascend:8 priority 1
        plan at 10s
        end 2
        plan at 29s
        plan at 30s
        "
    );
}

#[test]
fn a_clock_set_back_does_not_prolong_a_back_off() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        job 1 devices ascend:8 back-off 30s
        plan at -1h
        "
    );
}

#[test]
fn what_the_cluster_lost_closes_nothing() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 nvidia:A100-80G
        job 1 devices nvidia:4
        plan
        lose b
        fail a:7
        job 2 devices ascend:8
        job 3 devices nvidia:4
        job 4 devices ascend:4
        plan
        explain 2
        # b is back, and job 1 still holds its part.
        node b 8 nvidia:A100-80G
        plan
        explain 1
        "
    );
}

#[test]
fn explanations_name_holders_and_heads() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        node b 8 ascend:910B3
        job 1 devices ascend:5
        job 2 devices ascend:6
        plan
        fail b:7
        job 3 workers 2 devices ascend:910B*:4 cpus 16 memory 64Gi
        job 4 devices ascend:1
        job 5 cpus 100
        job 6 cpus 1
        explain 3
        explain 4
        explain 5
        explain 6
        hold 4
        explain 4
        explain 1
        "
    );
}

#[test]
fn what_can_never_run_is_refused_with_what_would_be_accepted() {
    assert_transcript!(
        "
        offer cpus 1
        node c cpus 96 memory 1Ti
        offer devices 1
        node a 8 ascend:910B3 cpus 64 memory 512Gi
        node b 8 ascend:910B3 cpus 64 memory 512Gi
        node g 4 nvidia:A100-80G cpus 32 memory 256Gi
        offer devices ascend:8 workers 2
        offer devices ascend:16
        offer devices ascend:12
        offer devices ascend:8 workers 3
        offer devices ascend:910A*:8
        offer devices ascend:A100*:1
        offer devices nvidia:4 cpus 33
        offer devices nvidia:4 memory 257Gi
        offer cpus 96
        offer cpus 97
        offer memory 2Ti
        offer cpus 90 workers 4
        # A broken device may be mended: the job has to wait, but is not refused.
        fail a:0
        offer devices ascend:8 workers 2
        "
    );
}

#[test]
fn a_kind_that_is_not_here_is_named() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        offer devices nvidia:1
        offer devices nvidia:A100*:1
        node b cpus 4 memory 1Ti
        offer devices ascend:1 cpus 64 memory 1Ti
        # Cores here, memory there.
        offer cpus 8 memory 1Ti
        "
    );
}
