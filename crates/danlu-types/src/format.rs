//! Amounts as sentences and tables write them.

use std::fmt;

use crate::{Cpus, DeviceRequest, JobId};

/// "8 Ascend 910B*", "1 device", "0.5 NVIDIA".
pub fn devices(request: &DeviceRequest) -> String {
    let kind = match request.kind {
        Some(kind) => kind.label(),
        None if request.count.devices() == 1 => "device",
        None => "devices",
    };
    let model = request.model.as_deref().map(|model| format!(" {model}")).unwrap_or_default();
    format!("{} {kind}{model}", request.count)
}

/// "96 CPUs", "1 CPU".
pub fn cpus(cpus: Cpus) -> String {
    if cpus == Cpus::whole(1) { "1 CPU".to_owned() } else { format!("{cpus} CPUs") }
}

/// "jobs 3, 5 and 8", "job 3", "jobs 1, 2, 3 and 40 more".
pub fn jobs(jobs: &[JobId]) -> String {
    const NAMED: usize = 3;
    match jobs {
        [one] => format!("job {one}"),
        _ if jobs.len() > NAMED => {
            format!("jobs {} and {} more", comma_separated(&jobs[..NAMED]), jobs.len() - NAMED)
        }
        _ => format!("jobs {}", list(jobs)),
    }
}

/// "a, b and c".
pub fn list<T: fmt::Display>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [one] => one.to_string(),
        [rest @ .., last] => format!("{} and {last}", comma_separated(rest)),
    }
}

pub fn comma_separated<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// With a capital, as the start of a sentence.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
