//! Shell scripts, Makefiles and Dockerfiles, line by line.

use crate::FileMigration;
use crate::edit::{self, Edit};
use crate::finding::{Finding, FindingKind};
use crate::rules::{Grade, environment, launch_script};
use crate::text::words;

pub(crate) fn migrate(bytes: &[u8]) -> FileMigration {
    let Ok(text) = std::str::from_utf8(bytes) else { return FileMigration::default() };
    let mut outcome = FileMigration::default();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let code = &line[..comment(line)];
        on_line(code, start, &mut outcome);
        start += line.len();
    }
    outcome.edits = edit::in_order(bytes, outcome.edits);
    outcome
}

/// Where the comment of a line begins: a `#` at its beginning or after a blank.
fn comment(line: &str) -> usize {
    let found = line.match_indices('#').find(|(at, _)| *at == 0 || line[..*at].ends_with([' ', '\t']));
    found.map_or(line.len(), |(at, _)| at)
}

/// Options whose value is a device or a backend, with `=` or a blank between.
const DEVICE_OPTIONS: &[&str] =
    &["--device", "--gpu-device", "--map-location", "--map_location", "--device-type", "--device_type"];
const BACKEND_OPTIONS: &[&str] = &[
    "--backend",
    "--dist-backend",
    "--dist_backend",
    "--ddp-backend",
    "--ddp_backend",
    "--distributed-backend",
];

fn on_line(line: &str, offset: usize, outcome: &mut FileMigration) {
    for (at, word) in words(line) {
        let place = (offset + at, offset + at + word.len());
        if let Some(new) = environment::counterpart(word) {
            outcome.edits.push(change(&environment::RULE, place, word, new));
        } else if environment::is_foreign(word) {
            outcome.findings.push(finding(
                &environment::RULE,
                FindingKind::NeedsPerson,
                place,
                word,
                environment::FOREIGN,
            ));
        } else if word == "smi" && line[..at].ends_with("nvidia-") {
            let place = (place.0 - "nvidia-".len(), place.1);
            let message = "there is no NVIDIA driver; `npu-smi info` shows NPUs";
            outcome.findings.push(finding(
                &launch_script::RULE,
                FindingKind::NeedsPerson,
                place,
                "nvidia-smi",
                message,
            ));
        }
    }
    for (options, is_good, from, to) in [
        (DEVICE_OPTIONS, is_device as fn(&str) -> bool, "cuda", "npu"),
        (BACKEND_OPTIONS, is_nccl as fn(&str) -> bool, "nccl", "hccl"),
    ] {
        for (at, value) in values(line, options) {
            if is_good(value) {
                let new = value.replacen(from, to, 1);
                let place = (offset + at, offset + at + value.len());
                outcome.edits.push(change(&launch_script::RULE, place, value, &new));
            }
        }
    }
    if let Some(at) = line.find("torch.distributed.launch") {
        let place = (offset + at, offset + at + "torch.distributed.launch".len());
        let message =
            "works on NPUs; `torchrun` takes its place, and hands ranks over by environment variables only";
        outcome.findings.push(finding(
            &launch_script::RULE,
            FindingKind::Note,
            place,
            "torch.distributed.launch",
            message,
        ));
    }
}

/// The values that options of a line are given, with their places.
fn values<'t>(line: &'t str, options: &'t [&str]) -> impl Iterator<Item = (usize, &'t str)> {
    options.iter().flat_map(move |option| {
        line.match_indices(option).filter_map(move |(at, _)| {
            let after = at + option.len();
            let rest = &line[after..];
            let blanks = match rest.as_bytes().first()? {
                b'=' => 1,
                b' ' | b'\t' => rest.len() - rest.trim_start().len(),
                _ => return None,
            };
            let quote = usize::from(rest[blanks..].starts_with(['"', '\'']));
            let begin = after + blanks + quote;
            let value = line[begin..].split([' ', '\t', '"', '\'', '\\', ';', '\n', '\r']).next()?;
            Some((begin, value))
        })
    })
}

pub(crate) fn is_device(value: &str) -> bool {
    value == "cuda"
        || value.strip_prefix("cuda:").is_some_and(|number| {
            !number.is_empty()
                && (number.bytes().all(|byte| byte.is_ascii_digit()) || number.starts_with('$'))
        })
}

pub(crate) fn is_nccl(value: &str) -> bool {
    value == "nccl"
}

pub(crate) fn change(rule: &'static crate::Rule, place: (usize, usize), old: &str, new: &str) -> Edit {
    Edit {
        start: place.0,
        end: place.1,
        replacement: new.to_owned(),
        rule: rule.name,
        grade: Grade::Safe,
        message: format!("replace string \"{old}\" with \"{new}\""),
    }
}

pub(crate) fn finding(
    rule: &'static crate::Rule,
    kind: FindingKind,
    place: (usize, usize),
    subject: &str,
    message: &str,
) -> Finding {
    Finding {
        rule: rule.name,
        kind,
        start: place.0,
        end: place.1,
        subject: subject.to_owned(),
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::migrate;
    use crate::edit::apply;

    fn migrated(text: &str) -> String {
        let outcome = migrate(text.as_bytes());
        let mut shown = String::from_utf8(apply(text.as_bytes(), &outcome.edits)).unwrap();
        for finding in &outcome.findings {
            let _ = writeln!(shown, "! {}: {}", finding.subject, finding.message);
        }
        shown
    }

    #[test]
    fn scripts_see_ascend_devices_and_speak_hccl() {
        let script = "#!/bin/bash\n# CUDA_VISIBLE_DEVICES is prose\nexport CUDA_VISIBLE_DEVICES=0,1\nNCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=eth0 \\\n  python -m torch.distributed.launch train.py --device cuda:0 --dist-backend=nccl --name cuda\necho $CUDA_VISIBLE_DEVICES_OLD\nnvidia-smi\n";
        insta::assert_snapshot!(migrated(script), @r#"
        #!/bin/bash
        # CUDA_VISIBLE_DEVICES is prose
        export ASCEND_RT_VISIBLE_DEVICES=0,1
        NCCL_DEBUG=INFO HCCL_SOCKET_IFNAME=eth0 \
          python -m torch.distributed.launch train.py --device npu:0 --dist-backend=hccl --name cuda
        echo $CUDA_VISIBLE_DEVICES_OLD
        nvidia-smi
        ! NCCL_DEBUG: a variable of CUDA's libraries; nothing on an NPU reads it
        ! torch.distributed.launch: works on NPUs; `torchrun` takes its place, and hands ranks over by environment variables only
        ! CUDA_VISIBLE_DEVICES_OLD: a variable of CUDA's libraries; nothing on an NPU reads it
        ! nvidia-smi: there is no NVIDIA driver; `npu-smi info` shows NPUs
        "#);
    }
}
