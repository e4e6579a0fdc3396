//! What would have been: the simulator inside the server, for who has no copy of the trace at hand.
//!
//! One at a time and for a minute at most: it is the same machine that runs the cluster.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use danlu_core::view::job_view;
use danlu_sim::trace::{Assumptions, Trace, TraceError, history, simple};
use danlu_sim::variant::{with_nodes, with_policy};
use danlu_sim::{Comparison, Run, Scenario, Simulation};
use danlu_store::JobFilter;
use danlu_types::api::{JobState, SimulationRequest, SimulationRun};
use danlu_types::history::{Header, JobRecord};
use danlu_types::{FieldError, Node, Problem, ProblemCode, Sharing};
use jiff::Timestamp;

use crate::accounts::Caller;
use crate::app::{App, store_problem};

const MOST_RUNS: usize = 6;
/// Of the history; the latest.
const MOST_JOBS: u32 = 20_000;
const LONGEST: Duration = Duration::from_mins(1);
const STEPS_BETWEEN_LOOKS: u32 = 200;

/// Set when nobody waits for the answer any more.
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl App {
    pub(crate) async fn simulate(
        &self,
        caller: &Caller,
        request: SimulationRequest,
    ) -> Result<Comparison, Problem> {
        if request.runs.is_empty() || request.runs.len() > MOST_RUNS {
            let message = format!("names {} runs; name one to {MOST_RUNS}", request.runs.len());
            return Err(Problem::invalid_fields(vec![FieldError::new("runs", message)]));
        }
        let Ok(_only_one) = self.simulating.try_lock() else {
            let detail = "another simulation is running; one runs at a time";
            return Err(Problem::new(ProblemCode::TooManyRequests, detail)
                .with_hint("try again in a minute, or use `danlu history export` and `danlu sim replay` on another machine"));
        };
        let (trace, is_ours) = match request.trace {
            Some(text) => (read(text)?, false),
            None => (self.own_history(caller).await?, true),
        };
        let usual =
            if trace.nodes.is_empty() { self.live_state.nodes().to_vec() } else { trace.nodes.clone() };
        let sharing = if is_ours { self.directory.sharing() } else { trace.sharing.clone() };
        let mut variants = Vec::new();
        for (run, at) in request.runs.into_iter().zip(0..) {
            let field = |name: &str| format!("runs.{at}.{name}");
            variants.push(
                variant(run, &trace, &usual, &sharing, field)
                    .map_err(|error| Problem::invalid_fields(vec![error]))?,
            );
        }
        let given_up = Arc::new(AtomicBool::new(false));
        let _when_dropped = GivenUp(given_up.clone());
        let began = Instant::now();
        let runs = tokio::task::spawn_blocking(move || {
            let goes_on = || !given_up.load(Ordering::Relaxed) && began.elapsed() < LONGEST;
            let runs: Option<Vec<Run>> =
                variants.into_iter().map(|variant| replay(&trace, variant, &goes_on)).collect();
            runs.map(|runs| Comparison::new(&trace.name, trace.notes.clone(), runs))
        })
        .await
        .map_err(|error| {
            tracing::error!("simulating failed: {error}");
            Problem::new(ProblemCode::Internal, "the simulation failed; the server's log says more")
        })?;
        runs.ok_or_else(|| {
            let detail = format!("this takes longer than {} seconds", LONGEST.as_secs());
            Problem::new(ProblemCode::InvalidFields, detail)
                .with_hint("compare fewer runs, or use `danlu sim replay`, which takes as long as it needs")
        })
    }

    /// What has ended of what the caller may see.
    async fn own_history(&self, caller: &Caller) -> Result<Trace, Problem> {
        let filter = JobFilter {
            states: vec![JobState::Ended],
            visible: self.directory.visible_to(&caller.person),
            limit: MOST_JOBS,
            ..JobFilter::default()
        };
        let jobs = self.store.jobs_list(&filter).await.map_err(store_problem)?;
        if jobs.is_empty() {
            let detail = "none of your jobs has ended yet, so there is no history to replay";
            return Err(Problem::new(ProblemCode::InvalidFields, detail).with_hint("give a `trace`"));
        }
        let header = Header::new(Timestamp::now(), self.live_state.nodes().to_vec());
        let mut lines = serde_json::to_string(&header).unwrap_or_default();
        for job in &jobs {
            lines.push('\n');
            lines.push_str(&serde_json::to_string(&JobRecord::from(job_view(job, None))).unwrap_or_default());
        }
        history::read("the history of this server", Cursor::new(lines), &Assumptions::default())
            .map_err(|error| wrong_trace(&error))
    }
}

fn read(text: String) -> Result<Trace, Problem> {
    const NAME: &str = "the trace";
    let is_history = text.trim_start().starts_with('{');
    let (input, assumptions) = (Cursor::new(text), Assumptions::default());
    let read = if is_history {
        history::read(NAME, input, &assumptions)
    } else {
        simple::read(NAME, input, &assumptions)
    };
    read.map_err(|error| wrong_trace(&error))
}

fn wrong_trace(error: &TraceError) -> Problem {
    Problem::invalid_fields(vec![FieldError::new("trace", crate::error_chain(error))])
}

struct Variant {
    name: String,
    nodes: Vec<Node>,
    sharing: Sharing,
}

fn variant(
    run: SimulationRun,
    trace: &Trace,
    usual: &[Node],
    sharing: &Sharing,
    field: impl Fn(&str) -> String,
) -> Result<Variant, FieldError> {
    let parsed = |text: &str| {
        danlu_engine::local::offered_nodes(Some(text))
            .map(|offered| offered.nodes)
            .map_err(|error| FieldError::new(field("nodes"), error.to_string()))
    };
    let nodes = match run.nodes.as_deref().map(|text| (text.strip_prefix('+'), text)) {
        None => usual.to_vec(),
        Some((None, text)) => parsed(text)?,
        Some((Some(added), _)) => with_nodes(usual.to_vec(), parsed(added)?),
    };
    if nodes.is_empty() {
        return Err(FieldError::new(
            field("nodes"),
            "is missing: the trace does not say which machines there are",
        ));
    }
    let mut sharing = run.sharing.unwrap_or_else(|| sharing.clone());
    if let Some(wrong) = sharing.check().into_iter().next() {
        return Err(FieldError::new(field(&format!("sharing.{}", wrong.field)), wrong.message));
    }
    sharing.lending = run.lending.unwrap_or(sharing.lending);
    if let Some(policy) = run.policy {
        sharing = with_policy(sharing, policy, trace);
    }
    Ok(Variant { name: run.name, nodes, sharing })
}

/// `None` when it had to be given up.
fn replay(trace: &Trace, variant: Variant, goes_on: &impl Fn() -> bool) -> Option<Run> {
    let mut simulation = Simulation::new(Scenario {
        nodes: variant.nodes,
        sharing: variant.sharing,
        jobs: trace.jobs.clone(),
        interventions: trace.interventions.clone(),
        faults: None,
    });
    let mut steps = 0u32;
    while simulation.step() {
        steps += 1;
        if steps.is_multiple_of(STEPS_BETWEEN_LOOKS) && !goes_on() {
            return None;
        }
    }
    Some(Run::of(&simulation, variant.name))
}
