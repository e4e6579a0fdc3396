//! What came of simulations, for people: a table of a small one, and a page of plots that compares large ones.

mod html;
mod plot;
mod transcript;
mod words;

pub use html::html;
pub use transcript::{JobReport, Report};
pub use words::{duration, percent, thousands};
