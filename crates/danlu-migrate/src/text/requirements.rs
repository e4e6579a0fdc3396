//! requirements.txt and conda environments, line by line, each change with its reason.

use crate::edit::{self, Edit};
use crate::finding::FindingKind;
use crate::rules::{Grade, cuda_only, requirements};
use crate::text::shell::finding;
use crate::versions::{nearest_release, release_for};
use crate::{FileMigration, Options};

pub(crate) fn migrate(bytes: &[u8], _options: &Options) -> FileMigration {
    let Ok(text) = std::str::from_utf8(bytes) else { return FileMigration::default() };
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    // Torch may be named as `torch` in several sections; the line that follows it is added once.
    let has_torch_npu = text.contains("torch_npu") || text.contains("torch-npu");
    let mut outcome = FileMigration::default();
    let mut start = 0;
    let mut is_added = has_torch_npu;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\r', '\n']);
        on_line(body, start, newline, &mut is_added, &mut outcome);
        start += line.len();
    }
    outcome.edits = edit::in_order(bytes, outcome.edits);
    outcome
}

fn on_line(line: &str, offset: usize, newline: &str, is_added: &mut bool, outcome: &mut FileMigration) {
    let code = line.split('#').next().unwrap_or_default();
    let indentation = code.len() - code.trim_start().len();
    let dash = if code[indentation..].starts_with("- ") { 2 } else { 0 };
    let begin = indentation + dash;
    let item = code[begin..].trim();
    if item.is_empty() {
        return;
    }
    let place = (offset + begin, offset + begin + item.len());
    let name_length =
        item.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(item.len());
    let name = item[..name_length].to_ascii_lowercase().replace('-', "_");
    if is_cuda_index(item) {
        return comment_out(line, offset + indentation, "an index of CUDA builds", outcome);
    }
    if let Some(reason) = cuda_only_package(&name) {
        return comment_out(line, offset + indentation, &format!("CUDA only: {reason}"), outcome);
    }
    if name != "torch" && name != "pytorch" {
        return;
    }
    let Some(version) = pinned(&item[name_length..]) else {
        if !*is_added {
            let message = "torch is not pinned; torch_npu works with exactly one version of it, so pin both";
            outcome.findings.push(finding(
                &requirements::RULE,
                FindingKind::NeedsPerson,
                place,
                item,
                message,
            ));
        }
        return;
    };
    let plain = version.split('+').next().unwrap_or(version);
    if plain != version
        && let Some(at) = item.find(version)
    {
        let start = place.0 + at;
        let message = format!("replace string \"{version}\" with \"{plain}\"");
        outcome.edits.push(edited((start, start + version.len()), plain.to_owned(), message));
    }
    match release_for(plain) {
        Some(release) if !*is_added => {
            let prefix = &line[..begin];
            let (cann, pythons) = (release.cann, release.pythons_shown());
            let added = format!(
                "{newline}{prefix}torch_npu=={}  # for torch {plain}; needs CANN {cann} and {pythons}",
                release.torch_npu
            );
            let end = offset + line.len();
            outcome.edits.push(edited((end, end), added, format!("add torch_npu=={}", release.torch_npu)));
            *is_added = true;
        }
        Some(_) => {}
        None => {
            let nearest = nearest_release(plain).map(|release| release.torch).unwrap_or_default();
            let message =
                format!("no torch_npu was released for torch {plain}; the nearest is for {nearest}");
            outcome.findings.push(finding(
                &requirements::RULE,
                FindingKind::NeedsPerson,
                place,
                item,
                &message,
            ));
        }
    }
}

pub(crate) fn pinned(rest: &str) -> Option<&str> {
    let rest = rest.trim_start();
    let version = rest.strip_prefix("===").or(rest.strip_prefix("==")).or(rest.strip_prefix('='))?;
    // conda: `pytorch=2.1.0=py3.10_cuda11.8_cudnn8`
    let version = version.trim_start().split(['=', ';', ' ', ',']).next()?;
    (!version.is_empty() && !version.contains('*')).then_some(version)
}

fn is_cuda_index(item: &str) -> bool {
    item.starts_with("--") && item.contains("download.pytorch.org/whl/cu")
}

pub(crate) fn cuda_only_package(name: &str) -> Option<&'static str> {
    let is_runtime = name.starts_with("nvidia_") && !name.contains("sphinx")
        || matches!(name, "cudatoolkit" | "pytorch_cuda" | "cudnn" | "nccl");
    if is_runtime {
        return Some("CANN takes its place");
    }
    let is_cupy = name.starts_with("cupy_cuda");
    let module = match name {
        "flash_attn" | "xformers" | "bitsandbytes" | "triton" | "pycuda" | "tensorrt" | "pynvml"
        | "mamba_ssm" | "causal_conv1d" | "transformer_engine" => name,
        "nvidia_ml_py" => "pynvml",
        _ if is_cupy => "cupy",
        _ => return None,
    };
    cuda_only::advice(module)
}

fn comment_out(line: &str, start: usize, reason: &str, outcome: &mut FileMigration) {
    let item = line.trim();
    let end = start + line.trim_start().len();
    let replacement = format!("# {item}  # {reason}");
    outcome.edits.push(edited((start, end), replacement, format!("comment out {item}")));
}

pub(crate) fn edited(place: (usize, usize), replacement: String, message: String) -> Edit {
    let rule = requirements::RULE.name;
    Edit { start: place.0, end: place.1, replacement, rule, grade: Grade::Likely, message }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::migrate;
    use crate::Options;
    use crate::edit::apply;

    fn migrated(text: &str) -> String {
        let outcome = migrate(text.as_bytes(), &Options::default());
        let mut shown = String::from_utf8(apply(text.as_bytes(), &outcome.edits)).unwrap();
        assert!(migrate(shown.as_bytes(), &Options::default()).edits.is_empty(), "not stable: {shown}");
        for finding in &outcome.findings {
            let _ = writeln!(shown, "! {}: {}", finding.subject, finding.message);
        }
        shown
    }

    #[test]
    fn requirements_name_the_torch_npu_that_belongs_to_torch() {
        let text = "--extra-index-url https://download.pytorch.org/whl/cu118\ntorch==2.1.0+cu118  # pinned\ntorchvision\nnvidia-cudnn-cu12==8.9\nflash-attn\nnumpy\nnvidia-sphinx-theme\n";
        insta::assert_snapshot!(migrated(text), @r"
        # --extra-index-url https://download.pytorch.org/whl/cu118  # an index of CUDA builds
        torch==2.1.0  # pinned
        torch_npu==2.1.0.post17  # for torch 2.1.0; needs CANN 8.3.RC1 and Python 3.8 to 3.11
        torchvision
        # nvidia-cudnn-cu12==8.9  # CUDA only: CANN takes its place
        # flash-attn  # CUDA only: use `torch_npu.npu_fusion_attention`, or `torch.nn.functional.scaled_dot_product_attention`
        numpy
        nvidia-sphinx-theme
        ");
        insta::assert_snapshot!(migrated("torch==2.1.2\n"), @r"
        torch==2.1.2
        ! torch==2.1.2: no torch_npu was released for torch 2.1.2; the nearest is for 2.1.0
        ");
    }

    #[test]
    fn conda_environments_are_read_as_well() {
        let text = "dependencies:\n  - pytorch=2.6.0=py3.10_cuda11.8\n  - pytorch-cuda=11.8\n  - pip:\n    - torch>=2\n";
        insta::assert_snapshot!(migrated(text), @r"
        dependencies:
          - pytorch=2.6.0=py3.10_cuda11.8
          - torch_npu==2.6.0.post5  # for torch 2.6.0; needs CANN 8.5.0 and Python 3.9 to 3.11
          # - pytorch-cuda=11.8  # CUDA only: CANN takes its place
          - pip:
            - torch>=2
        ");
    }
}
