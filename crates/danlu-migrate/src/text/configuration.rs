//! YAML and JSON, by their lines: `key: value` is enough to know what a value is for, and everything else stays.

use crate::devices::names_device;
use crate::edit;
use crate::rules::{configuration, environment};
use crate::text::shell::{change, finding, is_device, is_nccl};
use crate::{FileMigration, FindingKind};

pub(crate) fn migrate(bytes: &[u8]) -> FileMigration {
    let Ok(text) = std::str::from_utf8(bytes) else { return FileMigration::default() };
    let mut outcome = FileMigration::default();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        for pair in pairs(line) {
            on_pair(&pair, start, &mut outcome);
        }
        start += line.len();
    }
    outcome.edits = edit::in_order(bytes, outcome.edits);
    outcome
}

#[derive(Debug, PartialEq, Eq)]
struct Pair<'t> {
    key: &'t str,
    key_at: usize,
    value: &'t str,
    value_at: usize,
}

/// The `key: value` pairs of a line; a line of JSON may have several.
fn pairs(line: &str) -> Vec<Pair<'_>> {
    let mut found = Vec::new();
    for (colon, _) in line.match_indices(':') {
        let before = line[..colon].trim_end();
        let after = &line[colon + 1..];
        // In YAML a colon without a blank behind it is part of a text; JSON has quotes before it.
        if !(after.starts_with([' ', '\t', '\n', '\r']) || before.ends_with(['"', '\''])) {
            continue;
        }
        let key_end = before.trim_end_matches(['"', '\'']).len();
        let is_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let key_at = before[..key_end].rfind(|c| !is_key(c)).map_or(0, |at| at + 1);
        let key = &before[key_at..key_end];
        if key.is_empty() || line[..key_at].contains('#') {
            continue;
        }
        let blanks = after.len() - after.trim_start().len();
        let quote = usize::from(after[blanks..].starts_with(['"', '\'']));
        let value_at = colon + 1 + blanks + quote;
        let value = line[value_at..]
            .split([' ', '\t', '"', '\'', ',', '}', ']', '\n', '\r'])
            .next()
            .unwrap_or_default();
        // A value of several words is prose.
        let rest = line[value_at + value.len()..].trim_start_matches(['"', '\'']).trim();
        if rest.is_empty() || rest.starts_with(['#', ',', '}', ']']) {
            found.push(Pair { key, key_at, value, value_at });
        }
    }
    found
}

fn on_pair(pair: &Pair<'_>, offset: usize, outcome: &mut FileMigration) {
    let place = |at: usize, text: &str| (offset + at, offset + at + text.len());
    let name = pair.key.to_ascii_lowercase().replace('-', "_");
    if names_device(&name) && is_device(pair.value) {
        let new = pair.value.replacen("cuda", "npu", 1);
        outcome.edits.push(change(&configuration::RULE, place(pair.value_at, pair.value), pair.value, &new));
    }
    if name.ends_with("backend") && is_nccl(pair.value) {
        outcome.edits.push(change(
            &configuration::RULE,
            place(pair.value_at, pair.value),
            pair.value,
            "hccl",
        ));
    }
    for (at, word) in [(pair.key_at, pair.key), (pair.value_at, pair.value)] {
        if let Some(new) = environment::counterpart(word) {
            outcome.edits.push(change(&environment::RULE, place(at, word), word, new));
        }
    }
    if environment::is_foreign(pair.key) && environment::counterpart(pair.key).is_none() {
        let place = place(pair.key_at, pair.key);
        outcome.findings.push(finding(
            &environment::RULE,
            FindingKind::NeedsPerson,
            place,
            pair.key,
            environment::FOREIGN,
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::migrate;
    use crate::edit::apply;

    fn migrated(text: &str) -> String {
        String::from_utf8(apply(text.as_bytes(), &migrate(text.as_bytes()).edits)).unwrap()
    }

    #[test]
    fn values_of_devices_and_backends_are_changed_and_nothing_else() {
        let yaml = "device: cuda:0  # cuda\ntrain:\n  - {map_location: 'cuda', name: cuda}\n  backend: nccl\n  note: device: cuda is fast\n# device: cuda\nenv:\n  CUDA_VISIBLE_DEVICES: '0'\npath: /usr/local/cuda\n";
        insta::assert_snapshot!(migrated(yaml), @r"
        device: npu:0  # cuda
        train:
          - {map_location: 'npu', name: cuda}
          backend: hccl
          note: device: cuda is fast
        # device: cuda
        env:
          ASCEND_RT_VISIBLE_DEVICES: '0'
        path: /usr/local/cuda
        ");
        insta::assert_snapshot!(
            migrated(r#"{"device":"cuda", "dist_backend" : "nccl","kind":"cuda"}"#),
            @r#"{"device":"npu", "dist_backend" : "hccl","kind":"cuda"}"#
        );
    }
}
