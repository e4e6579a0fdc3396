//! The life of a cluster under virtual time, with the code that runs the real one.
//!
//! Jobs live by [`danlu_core::apply`] and are placed by the scheduler, exactly as on the server. Only the engine is made
//! up: a [`WorkerScript`] says how much work each part of a job is and how it ends, [`Intervention`]s are what people, nodes
//! and devices do meanwhile, and [`Faults`] break things by chance. Nothing here reads a clock, a file or true
//! randomness: the same input gives the same report.
//!
//! [`trace`] reads what others recorded, [`Run`] holds the figures of a run, [`html`] shows several side by side.

mod bench;
mod dice;
mod faults;
mod measure;
pub mod place;
mod report;
mod simulation;
mod story;
pub mod trace;
pub mod variant;

pub use bench::{BenchReport, BenchSize, bench};
pub use faults::{Faults, ParseFaultsError};
pub use measure::{CLASS_LABEL, Comparison, Distribution, Group, Run, RunCounts, Series};
pub use report::{JobReport, Row, SimulationReport, html};
pub use simulation::Simulation;
pub use simulation::meter::Unit;
pub use story::{Happening, Intervention, Scenario, SimJob, WorkerScript};

/// Runs everything to its end.
pub fn simulate(world: Scenario) -> SimulationReport {
    let mut simulation = Simulation::new(world);
    while simulation.step() {}
    simulation.report()
}
