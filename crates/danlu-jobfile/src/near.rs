//! The word that was probably meant.

/// The nearest of `words` to `typed`, if it is near enough to be worth a question.
pub(crate) fn nearest<'a>(typed: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase().replace('-', "_");
    let length = typed.chars().count();
    if length > 40 {
        return None;
    }
    let most = if length <= 3 { 1 } else { (length / 3).clamp(1, 3) };
    words
        .into_iter()
        .map(|word| (distance(&typed, word), word))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut best = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let fields = ["name", "devices", "memory", "shared_memory", "command", "cpus", "env"];
        for (typed, expected) in [
            ("device", Some("devices")),
            ("dveices", Some("devices")),
            ("shared-memory", Some("shared_memory")),
            ("Memory", Some("memory")),
            ("cmd", None),
            ("cpu", Some("cpus")),
            ("enviroment", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, fields), expected, "{typed}");
        }
    }
}
