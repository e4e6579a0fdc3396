//! The passes over an engine that puts workers where it likes.

use danlu_types::api::JobState;
use danlu_types::{JobId, WorkerId};

use super::faults::{FaultStep, FaultWorld, TestSubmission};
use super::observe;

/// Where the live state has a job's only worker.
fn node_of(world: &FaultWorld, job: u64) -> String {
    let job = world.app.live_state.job(JobId(job)).unwrap();
    job.active().unwrap().workers[0].grant.node.0.clone()
}

#[tokio::test]
async fn a_worker_that_was_put_elsewhere_leaves_no_room_that_is_not_there() {
    let mut world = FaultWorld::new(true).await;
    let all_of_a_node = TestSubmission { workers: 1, devices: 4, seconds: 30, retries: 0, code: 0 };
    for _ in 0..3 {
        world.act(FaultStep::Submit(all_of_a_node.clone())).await;
    }
    world.act(FaultStep::Schedule).await;
    assert_eq!([1, 2, 3].map(|job| node_of(&world, job)), ["n0", "n1", "n2"], "as planned");
    world.act(FaultStep::Launch).await;
    // The last node came first, and so far only the first job is known to run.
    let first: WorkerId = "1.1.0".parse().unwrap();
    observe::reconcile_some(&world.app, &[first]).await;
    assert_eq!([1, 2, 3].map(|job| node_of(&world, job)), ["n2", "n1", "n2"], "two for one node");
    world.act(FaultStep::Submit(TestSubmission { devices: 1, ..all_of_a_node })).await;
    world.act(FaultStep::Schedule).await;
    assert_eq!([1, 2, 3].map(|job| node_of(&world, job)), ["n2", "n1", "n0"], "which made way");
    assert_eq!(world.app.live_state.job(JobId(4)).unwrap().state(), JobState::Queued, "nothing is free");
    world.act(FaultStep::Observe).await;
    assert_eq!(world.compare_places(), Ok(()));
}
