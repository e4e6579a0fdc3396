//! Codes that change with time (RFC 6238): six digits, every 30 seconds, SHA-1, as every authenticator has them.

use jiff::Timestamp;
use ring::hmac;

pub(crate) const SECRET_BYTES: usize = 20;
const STEP_SECONDS: i64 = 30;
/// Clocks of phones are off, and people type slowly.
const STEPS_AROUND: u64 = 1;

pub(crate) fn step_at(now: Timestamp) -> u64 {
    u64::try_from(now.as_second() / STEP_SECONDS).unwrap_or_default()
}

/// The step whose code this is, if it is one of now and none that was used: a code seen over a shoulder is worth nothing.
pub(crate) fn accept(secret: &[u8], code: &str, now: u64, last_used: Option<u64>) -> Option<u64> {
    let steps = now.saturating_sub(STEPS_AROUND)..=now + STEPS_AROUND;
    let unused = steps.filter(|step| last_used.is_none_or(|last| *step > last));
    let code: String = code.chars().filter(|digit| !digit.is_whitespace()).collect();
    unused.into_iter().find(|step| code_at(secret, *step) == code)
}

fn code_at(secret: &[u8], step: u64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let tag = tag.as_ref();
    let offset = usize::from(tag[tag.len() - 1] & 0x0f);
    let word = tag[offset..offset + 4].iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
    format!("{:06}", (word & 0x7fff_ffff) % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6238, appendix B; the last six of its eight digits.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let secret = b"12345678901234567890";
        for (second, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
        ] {
            let step = step_at(Timestamp::from_second(second).expect("a time"));
            assert_eq!(code_at(secret, step), code);
        }
    }

    #[test]
    fn a_code_is_good_once_and_for_a_while() {
        let secret = b"12345678901234567890";
        let code = code_at(secret, 1000);
        assert_eq!(accept(secret, &code, 1000, None), Some(1000));
        assert_eq!(accept(secret, &format!("{} {}", &code[..3], &code[3..]), 1001, None), Some(1000));
        assert_eq!(accept(secret, &code, 999, None), Some(1000));
        assert_eq!(accept(secret, &code, 1002, None), None, "too late");
        assert_eq!(accept(secret, &code, 1000, Some(1000)), None, "used");
        assert_eq!(
            accept(secret, &code_at(secret, 999), 1000, Some(1000)),
            None,
            "older than one that was used"
        );
        assert_eq!(accept(secret, "", 1000, None), None);
    }
}
