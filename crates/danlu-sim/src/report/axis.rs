//! Axes: how amounts map to places, and which of them are written beside the line.

use super::words::{duration, whole};

/// One direction of a plot.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    pub(super) label: &'static str,
    min: f64,
    max: f64,
    logarithmic: bool,
    /// Amounts with their words.
    pub(super) ticks: Vec<(f64, String)>,
}

/// Steps of a time axis that people count in, in seconds.
const TIME_STEPS: [f64; 24] = [
    0.1,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    1800.0,
    3600.0,
    7200.0,
    14_400.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    432_000.0,
    864_000.0,
    1_728_000.0,
    4_320_000.0,
    8_640_000.0,
];
/// Times that stand on a logarithmic axis, in seconds.
const TIMES: [f64; 13] = [
    0.001,
    0.01,
    0.1,
    1.0,
    10.0,
    60.0,
    600.0,
    3600.0,
    21_600.0,
    86_400.0,
    604_800.0,
    2_592_000.0,
    31_536_000.0,
];
const MOST_TICKS: f64 = 8.0;

impl Axis {
    /// From 0 to at least `max`.
    pub(super) fn linear(label: &'static str, max: f64) -> Self {
        let max = if max > 0.0 { max } else { 1.0 };
        let step = nice_step(max / MOST_TICKS);
        let max = (max / step).ceil() * step;
        let ticks =
            ticks(max, step, |amount| if step < 1.0 { format!("{amount:.1}") } else { whole(amount) });
        Axis { label, min: 0.0, max, logarithmic: false, ticks }
    }

    /// 0 to 100.
    pub(super) fn percent(label: &'static str) -> Self {
        let ticks = ticks(100.0, 20.0, |amount| format!("{amount:.0}"));
        Axis { label, min: 0.0, max: 100.0, logarithmic: false, ticks }
    }

    /// From 0 to `max` seconds.
    pub(super) fn time(label: &'static str, max: f64) -> Self {
        let max = if max > 0.0 { max } else { 1.0 };
        let step = TIME_STEPS.into_iter().find(|step| max / step <= MOST_TICKS);
        let step = step.unwrap_or_else(|| nice_step(max / MOST_TICKS / 86_400.0) * 86_400.0);
        Axis { label, min: 0.0, max, logarithmic: false, ticks: ticks(max, step, duration) }
    }

    /// From `min` to `max` seconds, each factor of ten as wide as the next.
    pub(super) fn logarithmic_time(label: &'static str, min: f64, max: f64) -> Self {
        let min = min.max(TIMES[0]);
        let max = max.max(min * 10.0);
        let ticks = TIMES.into_iter().filter(|time| (min..=max).contains(time));
        Axis { label, min, max, logarithmic: true, ticks: ticks.map(|time| (time, duration(time))).collect() }
    }

    /// Where an amount stands, from 0 to 1.
    pub(super) fn place(&self, amount: f64) -> f64 {
        let amount = amount.clamp(self.min, self.max);
        if self.logarithmic {
            (amount / self.min).ln() / (self.max / self.min).ln()
        } else {
            (amount - self.min) / (self.max - self.min)
        }
    }
}

fn ticks(max: f64, step: f64, word: impl Fn(f64) -> String) -> Vec<(f64, String)> {
    let mut ticks = Vec::new();
    let mut amount = 0.0;
    while amount <= max * 1.0001 {
        ticks.push((amount, word(amount)));
        amount += step;
    }
    ticks
}

/// The next of 1, 2, 5, 10, 20, …
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least)
        .unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, word)| word.as_str()).collect()
    }

    #[test]
    fn axes_are_marked_with_round_amounts() {
        assert_eq!(
            words(&Axis::linear("", 3170.0)),
            ["0", "500", "1,000", "1,500", "2,000", "2,500", "3,000", "3,500"]
        );
        assert_eq!(words(&Axis::linear("", 0.0)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(words(&Axis::time("", 66.0)), ["0 s", "10 s", "20 s", "30 s", "40 s", "50 s", "1m"]);
        assert_eq!(words(&Axis::time("", 5_300_000.0)), ["0 s", "10d", "20d", "30d", "40d", "50d", "60d"]);
        assert_eq!(
            words(&Axis::logarithmic_time("", 5.0, 100_000.0)),
            ["10 s", "1m", "10m", "1h", "6h", "1d"]
        );
    }

    #[test]
    fn amounts_find_their_places() {
        let axis = Axis::logarithmic_time("", 1.0, 100.0);
        assert!((axis.place(10.0) - 0.5).abs() < 1e-9);
        assert!(axis.place(0.0).abs() < 1e-9, "what is below the axis stands at its foot");
        assert!((Axis::percent("").place(25.0) - 0.25).abs() < 1e-9);
    }
}
