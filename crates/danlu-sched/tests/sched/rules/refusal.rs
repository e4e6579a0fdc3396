//! What can never run is refused at submission, with what would be accepted instead.

#[test]
fn what_can_never_run_is_refused_with_what_would_be_accepted() {
    assert_transcript!(
        "
        check cpus 1
        node c cpus 96 memory 1Ti
        check devices 1
        node a 8 ascend:910B3 cpus 64 memory 512Gi
        node b 8 ascend:910B3 cpus 64 memory 512Gi
        node g 4 nvidia:A100-80G cpus 32 memory 256Gi
        check devices ascend:8 workers 2
        check devices ascend:16
        check devices ascend:12
        check devices ascend:8 workers 3
        check devices ascend:910A*:8
        check devices ascend:A100*:1
        check devices nvidia:4 cpus 33
        check devices nvidia:4 memory 257Gi
        check cpus 96
        check cpus 97
        check memory 2Ti
        check cpus 90 workers 4
        check any-of nvidia:8,ascend:16
        check any-of nvidia:8,ascend:8
        # A broken device may be mended and a cordoned node opened: the job has to wait, but is not refused.
        break a:0
        cordon b
        check devices ascend:8 workers 2
        "
    );
}

#[test]
fn a_kind_that_is_not_here_is_named() {
    assert_transcript!(
        "
        node a 8 ascend:910B3
        check devices nvidia:1
        check devices nvidia:A100*:1
        node b cpus 4 memory 1Ti
        check devices ascend:1 cpus 64 memory 1Ti
        # Cores here, memory there.
        check cpus 8 memory 1Ti
        "
    );
}

#[test]
fn nodes_that_are_not_here_are_named() {
    assert_transcript!(
        "
        node a 8 ascend:910B3 arch aarch64 label zone=east
        node b cpus 64 arch x86_64
        check devices ascend:1 arch x86_64
        check arch riscv64
        check label zone=west
        check devices ascend:1 label zone=east arch aarch64
        check workers 2 devices ascend:8 same-rack yes
        "
    );
}

#[test]
fn what_exceeds_a_limit_by_itself_is_refused() {
    assert_transcript!(
        "
        node a 8 nvidia:A100
        node b 8 nvidia:A100
        node c 8 ascend:910B3
        workspace red limit nvidia=8,memory=64Gi per-user nvidia=4,cpus=16
        workspace blue guaranteed nvidia=4
        check workspace red devices nvidia:4
        check workspace red devices nvidia:5
        check workspace red devices nvidia:8 workers 2
        check workspace red cpus 17
        check workspace red memory 65Gi
        # Another kind is not limited.
        check workspace red any-of nvidia:8,ascend:8
        check workspace red devices 8
        check workspace blue devices nvidia:8 workers 2
        # None at all is not \"at most 0\".
        workspace grey limit nvidia=0
        check workspace grey devices nvidia:1
        # What is guaranteed to others can only be borrowed.
        workspace green guaranteed nvidia=6
        check workspace blue devices nvidia:5 workers 2
        check workspace blue devices nvidia:6 workers 2
        check workspace blue devices nvidia:6 workers 2 preemptible yes
        lending off
        check workspace blue devices nvidia:6 workers 2 preemptible yes
        "
    );
}
