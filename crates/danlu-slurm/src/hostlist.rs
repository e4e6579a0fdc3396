//! Lists of hosts, as Slurm writes them: `n[1-3,07],login`.

use super::gres::split_outside_brackets;

/// More than the largest cluster has.
const MOST: usize = 65_536;

/// All names of the list; `None` for what is no list, or too long for one.
pub fn expand(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for part in split_outside_brackets(text) {
        names.extend(expand_one(part.trim())?);
        if names.len() > MOST {
            return None;
        }
    }
    Some(names)
}

/// One name, with any number of brackets in it.
fn expand_one(text: &str) -> Option<Vec<String>> {
    let mut names = vec![String::new()];
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let (inner, after) = after.split_once(']')?;
        let numbers = expand_numbers(inner)?;
        if names.len().checked_mul(numbers.len())? > MOST {
            return None;
        }
        names = names
            .iter()
            .flat_map(|name| numbers.iter().map(move |number| format!("{name}{before}{number}")))
            .collect();
        rest = after;
    }
    if rest.contains(']') {
        return None;
    }
    Some(names.into_iter().map(|name| name + rest).collect())
}

/// `1-3,07` with the zeros that the first of a range has.
fn expand_numbers(text: &str) -> Option<Vec<String>> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let width = first.len();
        let (from, to): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if to.checked_sub(from)? >= MOST as u64 {
            return None;
        }
        numbers.extend((from..=to).map(|number| format!("{number:0width$}")));
    }
    (numbers.len() <= MOST).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_spelled_out() {
        let spelled = |text| expand(text).map(|names| names.join(" "));
        for (text, expected) in [
            ("n1", Some("n1")),
            ("n[1-3,7],login", Some("n1 n2 n3 n7 login")),
            ("n[08-11]", Some("n08 n09 n10 n11")),
            ("r[1-2]n[1-2]-ib", Some("r1n1-ib r1n2-ib r2n1-ib r2n2-ib")),
            ("", Some("")),
            ("n[1-", None),
            ("n1]", None),
            ("n[3-1]", None),
            ("n[a-b]", None),
            ("n[0-99999999999]", None),
            ("n[1-60000][1-60000]", None),
        ] {
            assert_eq!(spelled(text).as_deref(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_list_is_too_strange(text in "[a-z0-9\\[\\],\\-]{0,80}|.{0,80}") {
            let _ = expand(&text);
        }
    }
}
