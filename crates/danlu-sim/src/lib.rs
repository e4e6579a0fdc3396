//! The life of a cluster under virtual time, with the code that runs the real one.
//!
//! Jobs live by [`danlu_core::apply`] and are placed by [`danlu_sched::plan`], exactly as on the server. Only the engine is
//! made up: a [`Script`] says how long each attempt runs and how it ends, and [`Intervention`]s are what people, nodes and
//! devices do meanwhile. Nothing here reads a clock or draws a random number: the same input gives the same report.

pub mod place;
mod random;
mod report;
mod simulation;
mod story;
pub mod trace;

pub use report::{JobReport, Report};
pub use simulation::Simulation;
pub use story::{Happening, Intervention, Script, SimJob};

/// Runs everything to its end.
pub fn simulate(
    nodes: Vec<danlu_types::Node>,
    jobs: Vec<SimJob>,
    interventions: Vec<Intervention>,
) -> Report {
    let mut simulation = Simulation::new(nodes, jobs, interventions);
    while simulation.step() {}
    simulation.report()
}
