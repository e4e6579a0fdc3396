//! Spinners and bars on stderr. Where stderr is not a terminal nothing is drawn.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const TICK: Duration = Duration::from_millis(120);

pub(crate) fn spinner(message: impl Into<String>) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_style(style("{spinner} {wide_msg}"));
    bar.set_message(message.into());
    bar.enable_steady_tick(TICK);
    bar
}

pub(crate) fn bytes(length: u64, message: impl Into<String>) -> ProgressBar {
    let style = style("{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}");
    ProgressBar::new(length).with_style(style).with_message(message.into())
}

/// In thousandths.
pub(crate) fn fraction(message: impl Into<String>) -> ProgressBar {
    ProgressBar::new(1000)
        .with_style(style("{msg} {wide_bar} {percent}% {elapsed} eta {eta}"))
        .with_message(message.into())
}

/// Jobs of a simulation that have ended.
pub(crate) fn jobs(length: u64, message: impl Into<String>) -> ProgressBar {
    ProgressBar::new(length)
        .with_style(style("{msg} {wide_bar} {human_pos}/{human_len} jobs, {elapsed}, eta {eta}"))
        .with_message(message.into())
}

/// Orders of arrival that were tried.
pub(crate) fn seeds(length: u64, message: impl Into<String>) -> ProgressBar {
    ProgressBar::new(length)
        .with_style(style("{msg} {wide_bar} {human_pos}/{human_len} orders, {elapsed}, eta {eta}"))
        .with_message(message.into())
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates of this file are well-formed")
}

/// The fraction in a line of the form `::danlu progress 0.42`.
pub(crate) fn reported(line: &str) -> Option<f64> {
    let value: f64 = line.trim().strip_prefix("::danlu progress ")?.trim().parse().ok()?;
    (0.0..=1.0).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::reported;

    #[test]
    fn only_fractions_count_as_progress() {
        assert_eq!(reported("::danlu progress 0.42"), Some(0.42));
        for line in ["progress 0.42", "::danlu progress", "::danlu progress 2", "::danlu progress NaN", ""] {
            assert_eq!(reported(line), None, "{line}");
        }
    }
}
