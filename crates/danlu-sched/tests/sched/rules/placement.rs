//! Where a gang goes.

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
        check workers 2 devices ascend:910B*:8
        "
    );
}

#[test]
fn models_are_chosen_by_glob() {
    assert_transcript!(
        "
        node a 4 nvidia:A100-40G
        node b 4 nvidia:A100-80G
        node c 4 nvidia:H100
        job 1 devices nvidia:A100-80*:4
        job 2 devices nvidia:?100:4
        job 3 devices nvidia:V100|A100-40G:4
        job 4 devices nvidia:a100*:1
        plan
        "
    );
}

#[test]
fn alternatives_are_tried_in_order() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        node b 8 ascend:910B3
        job 1 any-of nvidia:A100*:8,ascend:8
        job 2 any-of nvidia:A100*:8,ascend:8
        job 3 any-of nvidia:A100*:8,ascend:8
        plan
        # What fits is taken: nobody waits for a better alternative.
        end 2
        plan
        "
    );
}

#[test]
fn architecture_and_labels_must_match() {
    assert_transcript!(
        "
        node a 8 nvidia:A100 arch x86_64 label zone=east
        node b 8 nvidia:A100 arch aarch64 label zone=west
        job 1 devices nvidia:1 arch aarch64
        job 2 devices nvidia:1 arch x86_64
        job 3 devices nvidia:1 label zone=west
        job 4 devices nvidia:1 label zone=north
        plan
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
fn devices_of_one_nvlink_island_are_preferred() {
    assert_transcript!(
        "
        node a 8 nvidia:A100 islands 4
        job 1 devices nvidia:3
        job 2 devices nvidia:2
        plan
        # Two are left in the second island and one in the first.
        job 3 devices nvidia:2
        job 4 devices nvidia:1
        plan
        end 1
        end 4
        job 5 devices nvidia:4
        plan
        "
    );
}

#[test]
fn the_first_ascend_910_gives_1_2_4_of_one_ring_or_all_8() {
    assert_transcript!(
        "
        node a 8 ascend:910A islands 4
        job 1 devices ascend:2
        plan
        # Two of the broken ring, and four need a whole one.
        job 2 devices ascend:4
        job 3 devices ascend:1
        plan
        # One is left in the first ring: two of one ring are not to be had.
        job 4 devices ascend:2
        job 5 devices ascend:1
        plan
        check devices ascend:3
        check devices ascend:8
        check devices ascend:0.5
        check workers 2 devices ascend:6
        "
    );
}

#[test]
fn ascend_910b_with_eight_devices_gives_any_number() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        job 1 devices ascend:3
        job 2 devices ascend:5
        plan
        check devices ascend:7
        check devices ascend:0.5
        "
    );
}

#[test]
fn ascend_910b_with_sixteen_devices_has_two_rings_of_eight() {
    assert_transcript!(
        "
        node a 16 ascend:910B2C islands 8
        job 1 devices ascend:5
        plan
        # Six do not fit beside job 1 in its ring.
        job 2 devices ascend:6
        plan
        # Five are left, but no ring has more than three.
        job 3 devices ascend:4
        job 4 devices ascend:3
        plan
        end 1
        end 2
        end 4
        # Ten are five of each ring, in the same positions.
        job 5 devices ascend:10
        plan
        check devices ascend:9
        check devices ascend:14
        "
    );
}

#[test]
fn ascend_a3_gives_whole_modules_of_two() {
    assert_transcript!(
        "
        node a 16 ascend:Ascend910 islands 2
        job 1 devices ascend:1
        job 2 devices ascend:4
        # The other die of job 1's module.
        job 3 devices ascend:1
        job 4 workers 2 devices ascend:4
        job 5 devices ascend:2
        plan
        check devices ascend:3
        check workers 2 devices ascend:1
        check workers 2 devices ascend:2
        "
    );
}

#[test]
fn a_gang_prefers_one_rack_and_takes_the_tightest() {
    assert_transcript!(
        "
        node a 8 nvidia:A100 rack r1
        node b 8 nvidia:A100 rack r2
        node c 8 nvidia:A100 rack r2
        node d 8 nvidia:A100 rack r1
        node e 8 nvidia:A100 rack r1
        job 1 workers 2 devices nvidia:8
        plan
        # r1 is the only rack left with two nodes, and then none is.
        job 2 workers 2 devices nvidia:8
        plan
        end 1
        job 3 devices nvidia:8
        plan
        job 4 workers 2 devices nvidia:8
        plan
        "
    );
}

#[test]
fn a_gang_that_must_be_in_one_rack_waits_for_it() {
    assert_transcript!(
        "
        node a 8 nvidia:A100 rack r1
        node b 8 nvidia:A100 rack r2
        node c 8 nvidia:A100 rack r2
        job 1 devices nvidia:8 label rack=r2
        plan
        job 2 workers 2 devices nvidia:8 same-rack yes
        plan
        end 1
        plan
        check workers 3 devices nvidia:8 same-rack yes
        "
    );
}

#[test]
fn shares_are_packed_onto_few_devices() {
    assert_transcript!(
        "
        node a 2 nvidia:A100
        job 1 devices nvidia:0.5
        job 2 devices nvidia:0.3
        # Fits beside job 1 and job 2 exactly.
        job 3 devices nvidia:0.2
        job 4 devices nvidia:1
        job 5 devices nvidia:0.1
        plan
        end 1
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
fn memory_is_set_aside_where_it_was_asked_for() {
    assert_transcript!(
        "
        node a 8 ascend:910B3 memory 64Gi
        job 1 devices ascend:1 memory 48Gi
        # Without `memory` nothing is set aside.
        job 2 devices ascend:1
        job 3 devices ascend:1 memory 32Gi
        job 4 devices ascend:1 cpus 63
        plan
        "
    );
}
