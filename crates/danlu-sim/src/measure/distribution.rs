//! Mean and percentiles of times.

use serde::Serialize;

use super::seconds;

/// In seconds; all zero where there was nothing to measure.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Distribution {
    pub mean: f64,
    pub median: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

/// How many steps [`quantiles`] takes from the shortest to the longest.
const STEPS: usize = 200;

impl Distribution {
    /// Of times in milliseconds, which are left sorted.
    pub(super) fn of(times: &mut [u64]) -> Self {
        times.sort_unstable();
        let Some(last) = times.last() else { return Distribution::default() };
        let sum: u128 = times.iter().map(|time| u128::from(*time)).sum();
        Distribution {
            mean: sum as f64 / times.len() as f64 / 1000.0,
            median: seconds(nearest_rank(times, 50)),
            p90: seconds(nearest_rank(times, 90)),
            p99: seconds(nearest_rank(times, 99)),
            max: seconds(*last),
        }
    }
}

/// The smallest of the sorted times that so many percent of them do not exceed.
fn nearest_rank(times: &[u64], percent: usize) -> u64 {
    let rank = (times.len() * percent).div_ceil(100);
    times[rank.saturating_sub(1)]
}

/// Of sorted times, from the shortest to the longest in equal steps of rank, in seconds.
pub(super) fn quantiles(times: &[u64]) -> Vec<f64> {
    let Some(last) = times.len().checked_sub(1) else { return Vec::new() };
    let steps = STEPS.min(last).max(1);
    (0..=steps).map(|step| seconds(times[last * step / steps])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let mut times: Vec<u64> = (1..=100).rev().map(|second| second * 1000).collect();
        let expected = Distribution { mean: 50.5, median: 50.0, p90: 90.0, p99: 99.0, max: 100.0 };
        assert_eq!(Distribution::of(&mut times), expected);
        assert_eq!(Distribution::of(&mut []), Distribution::default());
        let one = Distribution { mean: 2.0, median: 2.0, p90: 2.0, p99: 2.0, max: 2.0 };
        assert_eq!(Distribution::of(&mut [2000]), one);
    }

    #[test]
    fn quantiles_begin_with_the_shortest_and_end_with_the_longest() {
        assert_eq!(quantiles(&[]), Vec::<f64>::new());
        assert_eq!(quantiles(&[1000]), [1.0, 1.0]);
        assert_eq!(quantiles(&[1000, 2000, 5000]), [1.0, 2.0, 5.0]);
    }
}
