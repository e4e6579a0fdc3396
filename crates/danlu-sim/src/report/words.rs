//! Amounts as people read them in tables and on axes.

/// Seconds with about three digits: `250 ms`, `45 s`, `3m 5s`, `2h 10m`, `3d 4h`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and the cast saturates"
)]
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds <= 0.0 => "0 s".to_owned(),
        _ if seconds < 1.0 => format!("{:.0} ms", seconds * 1000.0),
        _ if seconds < 10.0 => format!("{} s", (seconds * 10.0).round() / 10.0),
        0..60 => format!("{whole} s"),
        60..3600 => two(whole / 60, "m", whole % 60, "s"),
        3600..86_400 => two(whole / 3600, "h", whole % 3600 / 60, "m"),
        _ => two(whole / 86_400, "d", whole % 86_400 / 3600, "h"),
    }
}

fn two(large: u64, unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit} {small}{small_unit}") }
}

/// `49.3 %`
pub(super) fn percent(percent: f64) -> String {
    format!("{percent:.1} %")
}

/// `68,503`, to the nearest.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "negative ones become 0")]
pub(super) fn whole(amount: f64) -> String {
    thousands(amount.round() as u64)
}

/// `68,503`
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_well() {
        let told = [0.0, 0.25, 1.26, 45.4, 185.0, 7800.0, 273_600.0].map(duration);
        assert_eq!(told, ["0 s", "250 ms", "1.3 s", "45 s", "3m 5s", "2h 10m", "3d 4h"]);
        assert_eq!(
            [7, 999, 1000, 68_503, 1_234_567].map(thousands),
            ["7", "999", "1,000", "68,503", "1,234,567"]
        );
    }
}
