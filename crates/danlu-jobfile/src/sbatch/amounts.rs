//! Values of options in Slurm's own notations: times, sizes, counts and devices. `None` is what is none.

use std::collections::BTreeSet;

use danlu_types::{Bytes, DeviceKind, Span};

/// A time limit. The outer `None` is no time; the inner is no limit.
#[expect(clippy::option_option, reason = "unreadable and unlimited are two answers")]
pub(super) fn time(text: &str) -> Option<Option<Span>> {
    let text = text.trim();
    if ["unlimited", "infinite", "-1", "0"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Some(None);
    }
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(number(days)?), rest),
        None => (None, text),
    };
    let parts: Option<Vec<u64>> = rest.split(':').map(number).collect();
    let (hours, minutes, seconds) = match (days, &parts?[..]) {
        (None, [minutes]) => (0, *minutes, 0),
        (None, [minutes, seconds]) => (0, *minutes, *seconds),
        (_, [hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        (Some(_), [hours]) => (*hours, 0, 0),
        (Some(_), [hours, minutes]) => (*hours, *minutes, 0),
        _ => return None,
    };
    let in_hours = days.unwrap_or(0).checked_mul(24)?.checked_add(hours)?;
    let seconds = in_hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)?.checked_add(seconds)?;
    let span = Span { milliseconds: seconds.checked_mul(1000)? };
    Some((span.milliseconds > 0).then_some(span))
}

/// `64G`, `500`: megabytes where nothing else is said. Nothing of it (`0`) means all that the node has.
pub(super) fn size(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let text =
        text.strip_suffix(['b', 'B']).filter(|rest| rest.ends_with(char::is_alphabetic)).unwrap_or(text);
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "k" => 10,
        "" | "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    number(digits)?.checked_mul(1 << shift).map(Bytes)
}

/// `4`, `2K`.
pub(super) fn count(text: &str) -> Option<u32> {
    u32::try_from(number(text.trim())?).ok()
}

/// More than Slurm itself takes where nobody has changed that.
pub(super) const MOST_OF_AN_ARRAY: usize = 10_000;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Array {
    /// Ascending, each once.
    pub(super) tasks: Vec<u32>,
    pub(super) at_once: Option<u32>,
}

/// `0-9%2`, `1,3,5-20:5`.
pub(super) fn array(text: &str) -> Option<Array> {
    let (ranges, at_once) = match text.trim().split_once('%') {
        Some((ranges, most)) => (ranges, Some(count(most)?)),
        None => (text.trim(), None),
    };
    let mut tasks = BTreeSet::new();
    for range in ranges.split(',') {
        let (range, step) = match range.split_once(':') {
            Some((range, step)) => (range, count(step).filter(|step| *step > 0)?),
            None => (range, 1),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (count(first)?, count(last)?);
        if first > last {
            return None;
        }
        for task in (first..=last).step_by(usize::try_from(step).ok()?) {
            tasks.insert(task);
            if tasks.len() > MOST_OF_AN_ARRAY {
                return None;
            }
        }
    }
    Some(Array { tasks: tasks.into_iter().collect(), at_once })
}

fn number(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// `2`, `a100:2`, `a100`: how many of what type.
pub(super) fn typed_count(text: &str) -> Option<(Option<&str>, u32)> {
    let text = text.trim();
    match text.rsplit_once(':') {
        Some((model, number)) => Some((Some(model).filter(|model| is_word(model)), count(number)?)),
        None => match count(text) {
            Some(count) => Some((None, count)),
            None => is_word(text).then_some((Some(text), 1)),
        },
    }
    .filter(|(model, _)| model.is_some() || !text.contains(':'))
}

fn is_word(text: &str) -> bool {
    let plain = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    text.starts_with(char::is_alphanumeric) && text.chars().all(plain)
}

/// What a resource of Slurm's is in Danlu's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GresResource {
    Device {
        kind: DeviceKind,
        /// A pattern over the names of models.
        model: Option<String>,
    },
    /// A device that Danlu has no engine for.
    Unknown(&'static str),
    /// Counted by Slurm, not by Danlu.
    Other,
}

pub(super) fn resource(name: &str, model: Option<&str>) -> GresResource {
    let name = name.to_ascii_lowercase();
    let model = model.map(str::to_ascii_lowercase);
    let of_amd = |model: &str| {
        model.starts_with("gfx")
            || model.strip_prefix("mi").is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()))
    };
    let of_huawei = |model: &str| ["ascend", "910", "310"].iter().any(|word| model.contains(word));
    match (name.as_str(), model.as_deref()) {
        ("gpu" | "dcu", Some(model)) if of_amd(model) => GresResource::Unknown("AMD's"),
        ("dcu", _) => GresResource::Unknown("Hygon's"),
        ("mlu", _) => GresResource::Unknown("Cambricon's"),
        ("tpu", _) => GresResource::Unknown("Google's"),
        ("gpu", Some(model)) if of_huawei(model) => ascend(Some(model)),
        ("gpu", model) => GresResource::Device { kind: DeviceKind::Nvidia, model: model.map(nvidia_pattern) },
        ("npu", model) => ascend(model),
        (name, model) if name.starts_with("ascend") || name.starts_with("npu") => {
            ascend(model.or(Some(name)))
        }
        _ => GresResource::Other,
    }
}

fn ascend(model: Option<&str>) -> GresResource {
    let name = model.map(words_of).filter(|words| !words.is_empty());
    GresResource::Device {
        kind: DeviceKind::Ascend,
        model: name.map(|words| format!("*{}*", words.join("*"))),
    }
}

/// Drivers put more words around a model than sites do: `a10` is `NVIDIA A10-24Q` there, and not `NVIDIA A100`.
fn nvidia_pattern(model: &str) -> String {
    const LONGEST: usize = 63;
    let name = words_of(model).join("*");
    let exact = format!("*{name}|*{name}-*|*{name} *|*{name}_*");
    if name.ends_with(|it: char| it.is_ascii_digit()) && exact.len() <= LONGEST {
        exact
    } else {
        format!("*{name}*")
    }
}

/// The words that tell models apart.
fn words_of(model: &str) -> Vec<String> {
    const SAID_OF_MANY: [&str; 7] = ["nvidia", "geforce", "tesla", "quadro", "ascend", "gpu", "npu"];
    let model = model.to_ascii_lowercase();
    let words = model.split(['_', '-']).map(|word| {
        let known = SAID_OF_MANY.iter().find_map(|known| word.strip_prefix(known));
        known.unwrap_or(word)
    });
    words.filter(|word| !word.is_empty()).map(str::to_ascii_uppercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_all_of_slurms_forms() {
        for (text, expected) in [
            ("30", "30m"),
            ("30:15", "30m15s"),
            ("4:30:00", "4h30m"),
            ("1-12", "1d12h"),
            ("1-12:30", "1d12h30m"),
            ("2-00:00:00", "2d"),
            ("48:00:00", "2d"),
            ("0", "no limit"),
            ("UNLIMITED", "no limit"),
            ("00:00:00", "no limit"),
            ("1:2:3:4", "no time"),
            ("-5", "no time"),
            ("1-", "no time"),
            ("24h", "no time"),
            ("", "no time"),
            ("99999999999999999999", "no time"),
            ("999999999999999999-0", "no time"),
        ] {
            let read = match time(text) {
                None => "no time".to_owned(),
                Some(None) => "no limit".to_owned(),
                Some(Some(span)) => span.to_string(),
            };
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn arrays_are_read_in_all_of_slurms_forms() {
        let tasks = |text| array(text).map(|array| (array.tasks, array.at_once));
        assert_eq!(tasks("3"), Some((vec![3], None)));
        assert_eq!(tasks("0-3%2"), Some((vec![0, 1, 2, 3], Some(2))));
        assert_eq!(tasks("7,1-9:4,5"), Some((vec![1, 5, 7, 9], None)));
        for wrong in ["", "-1", "3-1", "1-9:0", "1,,2", "a", "0-3%", "1-4294967295", "0-10000"] {
            assert_eq!(tasks(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_are_megabytes_unless_they_say_otherwise() {
        for (text, expected) in [
            ("500", Some("500Mi")),
            ("64G", Some("64Gi")),
            ("64GB", Some("64Gi")),
            ("512m", Some("512Mi")),
            ("1T", Some("1Ti")),
            ("2048K", Some("2Mi")),
            ("0", Some("0")),
            ("lots", None),
            ("1.5G", None),
            ("-1", None),
            ("99999999999T", None),
        ] {
            assert_eq!(size(text).map(|size| size.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn devices_are_recognised_by_what_sites_call_them() {
        let read = |text: &str| {
            let (name, rest) = text.split_once(':').unwrap_or((text, "1"));
            let (model, count) = typed_count(rest).unwrap();
            match resource(name, model) {
                GresResource::Device { kind, model } => {
                    format!("{kind:?} {} x{count}", model.as_deref().unwrap_or("any"))
                }
                other => format!("{other:?} x{count}"),
            }
        };
        let cases = [
            "gpu",
            "gpu:4",
            "gpu:a100:8",
            "gpu:a10:1",
            "gpu:nvidia_h100_80gb:2",
            "gpu:rtx_4090",
            "gpu:v100s:2",
            "gpu:910b:8",
            "npu:8",
            "npu:910b:16",
            "npu:ascend910b3:1",
            "ascend910:4",
            "gpu:mi250x:4",
            "dcu:4",
            "mlu:2",
            "shard:2",
            "nvme:1",
        ];
        let text: Vec<String> = cases.iter().map(|case| format!("{case} => {}", read(case))).collect();
        insta::assert_snapshot!(text.join("\n"), @r#"
        gpu => Nvidia any x1
        gpu:4 => Nvidia any x4
        gpu:a100:8 => Nvidia *A100|*A100-*|*A100 *|*A100_* x8
        gpu:a10:1 => Nvidia *A10|*A10-*|*A10 *|*A10_* x1
        gpu:nvidia_h100_80gb:2 => Nvidia *H100*80GB* x2
        gpu:rtx_4090 => Nvidia *RTX*4090|*RTX*4090-*|*RTX*4090 *|*RTX*4090_* x1
        gpu:v100s:2 => Nvidia *V100S* x2
        gpu:910b:8 => Ascend *910B* x8
        npu:8 => Ascend any x8
        npu:910b:16 => Ascend *910B* x16
        npu:ascend910b3:1 => Ascend *910B3* x1
        ascend910:4 => Ascend *910* x4
        gpu:mi250x:4 => Unknown("AMD's") x4
        dcu:4 => Unknown("Hygon's") x4
        mlu:2 => Unknown("Cambricon's") x2
        shard:2 => Other x2
        nvme:1 => Other x1
        "#);
    }

    #[test]
    fn counts_may_carry_a_type() {
        for (text, expected) in [
            ("2", Some((None, 2))),
            ("a100:2", Some((Some("a100"), 2))),
            ("a100", Some((Some("a100"), 1))),
            (":2", None),
            ("a100:", None),
            ("a b:2", None),
            ("", None),
        ] {
            assert_eq!(typed_count(text), expected, "{text}");
        }
    }
}
