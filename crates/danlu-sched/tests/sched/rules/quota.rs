//! What workspaces and people may use.

#[test]
fn a_workspace_never_exceeds_its_limit() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red limit nvidia=4
        job 1 workspace red devices nvidia:3
        job 2 workspace red devices nvidia:2
        job 3 workspace red devices nvidia:1 max-time 1h
        plan
        end 1
        plan
        "
    );
}

#[test]
fn a_limit_leaves_room_for_the_head() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red limit nvidia=4
        job 1 workspace red devices nvidia:2 max-time 2h
        plan
        job 2 workspace red devices nvidia:4
        # Devices are free, but at 2h the limit would leave job 2 too little.
        job 3 workspace red devices nvidia:1 max-time 8h
        job 4 workspace red devices nvidia:1 max-time 1h
        plan
        "
    );
}

#[test]
fn limits_of_cpus_and_memory() {
    assert_transcript!(
        "
        node a cpus 64 memory 512Gi
        workspace red limit cpus=8
        workspace blue limit memory=64Gi
        job 1 workspace red cpus 6
        job 2 workspace red cpus 4
        job 3 workspace blue memory 48Gi
        job 4 workspace blue memory 32Gi
        # Nothing is set aside, so the limit does not see it.
        job 5 workspace blue
        plan
        "
    );
}

#[test]
fn a_person_never_exceeds_their_limit_and_keeps_nobody_waiting() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red per-user nvidia=2 policy strict
        job 1 workspace red owner ada devices nvidia:2
        job 2 workspace red owner ada devices nvidia:1
        job 3 workspace red owner bob devices nvidia:1
        plan
        "
    );
}

#[test]
fn a_guarantee_that_lies_idle_is_lent_to_preemptible_jobs_and_taken_back() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red guaranteed nvidia=8
        workspace guest
        job 1 workspace guest devices nvidia:4 preemptible yes
        job 2 workspace guest devices nvidia:4 preemptible yes
        plan
        job 3 workspace red devices nvidia:4 at 10m
        plan at 10m
        plan at 10m
        stopped 1 at 11m
        plan at 11m
        "
    );
}

#[test]
fn a_job_that_is_not_preemptible_borrows_no_guarantee() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red guaranteed nvidia=6
        workspace guest
        # Two devices are guaranteed to nobody.
        job 1 workspace guest devices nvidia:2
        job 2 workspace guest devices nvidia:1
        plan
        # Red itself may use all of its guarantee, and no more.
        job 3 workspace red devices nvidia:6
        job 4 workspace red devices nvidia:1
        plan
        "
    );
}

#[test]
fn without_lending_a_guarantee_is_its_owners_alone() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        lending off
        workspace red guaranteed nvidia=6
        workspace guest
        job 1 workspace guest devices nvidia:1 preemptible yes
        job 2 workspace guest devices nvidia:2 preemptible yes
        plan
        job 3 workspace red devices nvidia:6
        plan
        "
    );
}

#[test]
fn a_guarantee_counts_for_its_kind_of_device_only() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        node b 4 ascend:910B3
        workspace red guaranteed nvidia=4
        workspace guest
        job 1 workspace guest devices nvidia:1
        job 2 workspace guest devices ascend:4
        job 3 workspace red devices ascend:1
        plan
        "
    );
}

#[test]
fn the_first_alternative_that_quotas_allow_is_taken() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        node b 8 ascend:910B3
        workspace red limit nvidia=4
        # Eight NVIDIA devices are free and more than red may use; then eight Ascend; then four NVIDIA.
        job 1 workspace red any-of nvidia:8,ascend:8,nvidia:4
        job 2 workspace red any-of nvidia:8,ascend:8,nvidia:4
        job 3 workspace red devices 1
        plan
        "
    );
}

#[test]
fn what_is_stopping_still_counts_against_the_limit() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        node b 4 nvidia:T4
        workspace red guaranteed nvidia=8
        workspace guest limit nvidia=8
        job 1 workspace guest devices nvidia:A100:8 preemptible yes
        plan
        job 2 workspace red devices nvidia:A100:8
        job 3 workspace guest devices nvidia:T4:1 preemptible yes
        plan at 10m
        stopped 1 at 11m
        plan at 11m
        "
    );
}

#[test]
fn when_the_rules_change_everybody_is_counted_anew() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        workspace red
        job 1 workspace red devices nvidia:4
        job 2 workspace red devices nvidia:4
        plan
        job 3 workspace red devices nvidia:1
        workspace red limit nvidia=5
        workspace alpha
        end 1
        plan
        workspace red limit nvidia=4
        job 4 workspace red devices nvidia:1
        plan
        "
    );
}

#[test]
fn an_alternative_that_will_never_do_is_no_reason_to_wait() {
    assert_transcript!(
        "
        node a 4 nvidia:A100 cpus 6
        node b 4 ascend:910B3 cpus 2
        workspace blue limit nvidia=2,cpus=1
        job 1 workspace blue devices ascend:1
        plan
        # Four NVIDIA devices are more than blue may ever use; for one it lacks a CPU.
        job 2 workspace blue any-of nvidia:4,nvidia:1
        plan
        "
    );
}

#[test]
fn what_is_broken_or_cordoned_makes_good_no_guarantee() {
    assert_transcript!(
        "
        node a 4 nvidia:A100
        node b 4 nvidia:A100
        workspace red guaranteed nvidia=4
        # Four are guaranteed to nobody, as long as all eight work.
        break a:0
        job 1 workspace blue devices nvidia:4
        job 2 workspace blue devices nvidia:3
        plan
        mend a:0
        plan
        end 2
        cordon b
        job 3 workspace blue devices nvidia:1
        plan
        uncordon b
        plan
        "
    );
}
