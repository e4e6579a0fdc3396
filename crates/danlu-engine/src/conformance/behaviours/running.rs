//! From the launch to the end of what nobody disturbs.

use std::convert::Infallible;
use std::time::Duration;

use danlu_core::job::{FailureCause, ProcessExit, WorkerEnd};
use danlu_types::Node;

use super::{AT_ONCE, assert_gone, launch, stop, until_failed};
use crate::conformance::{ProgramStep, Scheduling, Site, TestProgram, TestWorker};
use crate::{ObservedState, Which};

pub async fn a_worker_runs_and_ends(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&TestProgram::print("hello from $RANK of $WORLD_SIZE"));
    launch(&*engine, &draft).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded);
    assert_eq!(site.printed(draft.worker(0), 0), ["hello from 0 of 1"]);
    let ObservedState::Ended { running_since: Some(since), at, .. } =
        site.seen(&*engine, draft.worker(0)).await
    else {
        panic!("a worker that ran says since when")
    };
    assert!(since <= at);
}

pub async fn exit_codes_are_told(site: &Site) {
    let engine = site.engine();
    for (step, expected) in
        [(ProgramStep::Exit(7), ProcessExit::Code(7)), (ProgramStep::Die, ProcessExit::Signal(9))]
    {
        let draft = site.job(&TestProgram::new([step]));
        launch(&*engine, &draft).await;
        let failure = until_failed(site, &*engine, &draft, 0).await;
        assert_eq!((failure.cause, failure.exit), (FailureCause::Exit, Some(expected)));
    }
}

pub async fn launching_again_runs_nothing_twice(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&TestProgram::new([ProgramStep::append("count", "ran")]));
    let file = draft.launch_file(0);
    let (a, b, c) = tokio::join!(engine.launch(&file), engine.launch(&file), engine.launch(&file));
    for launched in [a, b, c] {
        launched.expect("launching again is no error");
    }
    site.until_ended(&*engine, draft.worker(0)).await;
    engine.launch(&file).await.expect("launching an ended worker is no error");
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded);
    assert_eq!(site.until_written(draft.job, "count").await, "ran");
}

pub async fn a_gang_starts_together_or_not_at_all(site: &Site) {
    let engine = site.engine();
    let draft = TestWorker { workers: 2, ranks: 2, ..site.job(&TestProgram::print("$RANK/$WORLD_SIZE")) };
    engine.launch(&draft.launch_file(0)).await.expect("a worker can be launched");
    if site.scheduling() == Scheduling::Ours {
        let gang = site.layout().gang_folder(draft.job, draft.worker(0).attempt).join("worker-0.json");
        site.until("the first worker is present", async || gang.exists().then_some(())).await;
    }
    assert_eq!(
        site.seen(&*engine, draft.worker(0)).await,
        ObservedState::Preparing,
        "it waits for the second"
    );

    engine.launch(&draft.launch_file(1)).await.expect("a worker can be launched");
    for worker in [0, 1] {
        assert_eq!(site.until_ended(&*engine, draft.worker(worker)).await, WorkerEnd::Succeeded);
        for rank in [2 * worker, 2 * worker + 1] {
            assert_eq!(site.printed(draft.worker(worker), rank), [format!("{rank}/4")]);
        }
    }
}

pub async fn the_first_failing_rank_ends_its_worker(site: &Site) {
    let engine = site.engine();
    let fails = ProgramStep::OnRank(1, vec![ProgramStep::wait_for("pid"), ProgramStep::Exit(3)]);
    let draft = TestWorker {
        ranks: 2,
        ..site.job(&TestProgram::new([fails, ProgramStep::write("pid", "$$"), ProgramStep::Forever]))
    };
    launch(&*engine, &draft).await;
    let failure = until_failed(site, &*engine, &draft, 0).await;
    assert_eq!(failure.rank.map(|rank| rank.0), Some(1), "the culprit is named");
    assert_eq!(failure.exit, Some(ProcessExit::Code(3)));
    assert_gone(site, &site.until_written(draft.job, "pid").await);
}

/// Whoever ends the others, the server or the engine itself, they did not fail.
pub async fn a_failing_worker_is_told_from_those_it_takes_along(site: &Site) {
    let engine = site.engine();
    let fails = ProgramStep::OnRank(1, vec![ProgramStep::wait_for("pid"), ProgramStep::Exit(3)]);
    let program = TestProgram::new([fails, ProgramStep::write("pid", "$$"), ProgramStep::Forever]);
    let draft = TestWorker { workers: 2, ..site.job(&program) };
    launch(&*engine, &draft).await;
    let failure = until_failed(site, &*engine, &draft, 1).await;
    assert_eq!((failure.cause, failure.exit), (FailureCause::Exit, Some(ProcessExit::Code(3))));
    stop(&*engine, &draft, &AT_ONCE).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
    assert_gone(site, &site.until_written(draft.job, "pid").await);
}

pub async fn no_log_line_is_lost(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&TestProgram::new([
        ProgramStep::Count(20_000),
        ProgramStep::PrintOpen("no line feed".to_owned()),
    ]));
    launch(&*engine, &draft).await;
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded);
    let mut expected: Vec<String> = (1..=20_000).map(|number| number.to_string()).collect();
    expected.push("no line feed".to_owned());
    assert!(site.printed(draft.worker(0), 0) == expected, "lines are missing, doubled or out of order");
}

pub async fn what_is_on_offer_can_be_asked_for(site: &Site) {
    let engine = site.engine();
    let nodes = engine.inventory().await.expect("an engine knows its nodes");
    let mut names: Vec<&str> = nodes.iter().map(|node| node.name.0.as_str()).collect();
    assert!(names.is_sorted(), "the same order each time: {names:?}");
    names.dedup();
    assert_eq!(names.len(), nodes.len(), "each node once");
    // Jobs of others come and go meanwhile.
    let lasting = |nodes: Vec<Node>| nodes.into_iter().map(|node| Node { foreign: Vec::new(), ..node });
    let again = engine.inventory().await.expect("it can be asked again");
    assert!(lasting(again.clone()).eq(lasting(nodes.clone())), "{again:?} after {nodes:?}");
}

pub async fn changes_are_hinted(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&TestProgram::default());
    launch(&*engine, &draft).await;
    // Looks only when hinted: without hints this waits for ever.
    let ended = async {
        while !matches!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Ended { .. }) {
            while !engine.changed().await.contains(&draft.worker(0)) {}
        }
    };
    let while_time_passes = async {
        tokio::select! {
            () = ended => {}
            never = time(site) => match never {},
        }
    };
    tokio::time::timeout(Duration::from_secs(30), while_time_passes)
        .await
        .expect("the end of a worker is hinted");
}

async fn time(site: &Site) -> Infallible {
    loop {
        site.ground().pass().await;
    }
}

pub async fn released_workers_are_unknown(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&TestProgram::print("up").then(ProgramStep::Forever));
    launch(&*engine, &draft).await;
    site.until_running(&*engine, draft.worker(0)).await;
    engine.release(draft.worker(0)).await.expect_err("a worker that runs is not released");

    stop(&*engine, &draft, &AT_ONCE).await;
    site.until_ended(&*engine, draft.worker(0)).await;
    let printed = site.printed(draft.worker(0), 0);
    for _ in 0..2 {
        engine.release(draft.worker(0)).await.expect("releasing again is no error");
        assert_eq!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Unknown);
    }
    let all = engine.observe(Which::All).await.expect("workers can be looked at");
    assert!(all.iter().all(|it| it.worker != draft.worker(0)));
    assert_eq!(site.printed(draft.worker(0), 0), printed, "logs stay");
}

/// A restored database asks for it. Engines refuse it for good, or report the end that the worker had; none runs it again.
pub async fn a_released_worker_is_not_launched_again(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&TestProgram::new([ProgramStep::append("count", "ran")]));
    launch(&*engine, &draft).await;
    let end = site.until_ended(&*engine, draft.worker(0)).await;
    engine.release(draft.worker(0)).await.expect("an ended worker can be released");
    match engine.launch(&draft.launch_file(0)).await {
        Ok(()) => {
            assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, end);
            engine.release(draft.worker(0)).await.expect("it can be released again");
        }
        Err(error) => assert!(!error.is_transient(), "{error:?}"),
    }
    assert_eq!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Unknown);
    assert_eq!(site.until_written(draft.job, "count").await, "ran");
}
