//! The simulated world as the conformance suite sees it.

use std::sync::Arc;

use async_trait::async_trait;
use danlu_types::{JobId, Span, WorkerId};

use super::SimCluster;
use crate::conformance::{Ground, TestFolder, TestProgram};

/// Where nothing is due.
const A_MOMENT: Span = Span { milliseconds: 10 };

#[async_trait]
impl Ground for Arc<SimCluster> {
    fn command(&self, program: &TestProgram) -> String {
        program.text()
    }

    fn session_command(&self, program: &TestProgram) -> Vec<String> {
        vec![program.text()]
    }

    async fn pass(&self) {
        self.advance_to_next(A_MOMENT);
        // Those who speak for sessions are tasks of ours.
        tokio::task::yield_now().await;
    }

    fn is_alive(&self, process: i32) -> bool {
        self.lock().processes.contains_key(&process)
    }

    fn file(&self, job: JobId, place: TestFolder, name: &str) -> Option<String> {
        SimCluster::file(self, job, place, name)
    }

    fn write_file(&self, job: JobId, place: TestFolder, name: &str, text: &str) {
        self.change(|state| text.clone_into(state.file_mut(job, place, name)));
    }

    fn printed(&self, worker: WorkerId, rank: u32) -> Vec<String> {
        let state = self.lock();
        state
            .printed
            .get(&(worker, rank))
            .map(|text| text.lines().map(str::to_owned).collect())
            .unwrap_or_default()
    }

    fn lose_launcher(&self, worker: WorkerId) {
        SimCluster::lose_launcher(self, worker);
    }
}
