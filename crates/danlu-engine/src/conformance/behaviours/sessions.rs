//! The way into a worker.

use danlu_types::WorkerId;
use danlu_types::session::{Frame, FrameKind, OpenSession, SessionExit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{AT_ONCE, launch, stop};
use crate::conformance::{ProgramStep, Site, TestProgram};
use crate::{Engine, EngineError};

pub async fn commands_run_inside_a_worker(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&TestProgram::forever());
    assert_not_reachable(&*engine, draft.worker(0)).await;
    launch(&*engine, &draft).await;
    site.until_running(&*engine, draft.worker(0)).await;

    let mut stream = engine.connect(draft.worker(0)).await.expect("a running worker can be reached");
    let inside = TestProgram::new([
        ProgramStep::Read,
        ProgramStep::Print("$LINE in $DANLU_JOB_ID".to_owned()),
        ProgramStep::Exit(5),
    ]);
    let command = site.ground().session_command(&inside);
    let open = OpenSession { command, terminal: None, env: Vec::new() };
    for frame in [Frame::json(FrameKind::Open, &open), Frame::new(FrameKind::Stdin, "said\n")] {
        stream.write_all(&frame.encode()).await.expect("the launcher reads");
    }
    let (mut buffer, mut printed) = (Vec::new(), Vec::new());
    let exit: SessionExit = loop {
        match Frame::decode(&mut buffer).expect("the launcher writes frames") {
            Some(Frame { kind: FrameKind::Stdout, payload }) => printed.extend(payload),
            Some(Frame { kind: FrameKind::Exit, payload }) => {
                break serde_json::from_slice(&payload).expect("an exit is told as JSON");
            }
            Some(other) => panic!("unexpected frame {other:?}"),
            None => {
                let read = stream.read_buf(&mut buffer).await.expect("the launcher answers");
                assert_ne!(read, 0, "the session was cut before its exit was told");
            }
        }
    };
    assert_eq!(exit, SessionExit::Code(5));
    assert_eq!(String::from_utf8_lossy(&printed), format!("said in {}\n", draft.job));
    stop(&*engine, &draft, &AT_ONCE).await;
    site.until_ended(&*engine, draft.worker(0)).await;
}

pub async fn what_has_ended_cannot_be_reached(site: &Site) {
    let engine = site.engine();
    let draft = site.job(&TestProgram::default());
    launch(&*engine, &draft).await;
    site.until_ended(&*engine, draft.worker(0)).await;
    assert_not_reachable(&*engine, draft.worker(0)).await;
    engine.release(draft.worker(0)).await.expect("an ended worker can be released");
    assert_not_reachable(&*engine, draft.worker(0)).await;
}

async fn assert_not_reachable(engine: &dyn Engine, worker: WorkerId) {
    match engine.connect(worker).await {
        Err(EngineError::NotReachable { .. }) => {}
        Err(other) => panic!("a worker that does not run is not reachable, but: {other:?}"),
        Ok(_) => panic!("a worker that does not run was reached"),
    }
}
