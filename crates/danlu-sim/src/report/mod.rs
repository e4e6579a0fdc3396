//! What came of simulations, for people: a table of a small one, and a page of plots that compares large ones.

mod axis;
mod html;
mod plot;
mod rows;
mod transcript;
mod words;

pub use html::html;
pub use rows::Row;
pub use transcript::{JobReport, SimulationReport};

/// Names come from traces: nothing in them may become markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            _ => escaped.push(character),
        }
    }
    escaped
}
