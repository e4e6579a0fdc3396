//! Files that are not Python: scripts, configuration, requirements, notebooks, CUDA sources.

pub(crate) mod configuration;
pub(crate) mod notebook;
pub(crate) mod pyproject;
pub(crate) mod requirements;
pub(crate) mod shell;

use memchr::memmem;

/// Whether a Python file can concern anybody here. What has none of these words is only checked to parse.
pub(crate) fn is_about_torch(bytes: &[u8]) -> bool {
    const WORDS: &[&[u8]] = &[
        b"torch",
        b"cuda",
        b"CUDA",
        b"nccl",
        b"NCCL",
        b"flash_attn",
        b"xformers",
        b"bitsandbytes",
        b"triton",
        b"cupy",
        b"nvml",
        b"tensorrt",
        b"deepspeed",
        b"megatron",
        b"lightning",
        b"GPUtil",
        b"apex",
        b"device",
        b"nvidia",
        b"spconv",
        b"MinkowskiEngine",
        b"mamba_ssm",
        b"causal_conv1d",
        b"transformer_engine",
    ];
    WORDS.iter().any(|word| memmem::find(bytes, word).is_some())
}

/// Whether a Python file hands on what it imports by a star: of those libraries, and without a word of them.
pub(crate) fn hands_on(bytes: &[u8]) -> bool {
    memmem::find(bytes, b"import *").is_some()
}

/// Names under which C++ and CUDA sources offer operators to Python: `m.def("name"`, `py::class_<X>(m, "name"`.
pub(crate) fn operators(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let is_module = ["PYBIND11_MODULE", "TORCH_LIBRARY"].iter().any(|word| text.contains(word));
    if !is_module {
        return Vec::new();
    }
    let mut names = Vec::new();
    for opener in [".def(", ".impl(", "py::class_<"] {
        for (at, _) in text.match_indices(opener) {
            let after = &text[at + opener.len()..];
            let Some(begin) = after.find('"').filter(|begin| *begin < 120) else { continue };
            let quoted = &after[begin + 1..];
            let name = quoted.split(['"', '(', ':']).next().unwrap_or_default().trim();
            if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                names.push(name.to_owned());
            }
        }
    }
    names.sort();
    names.dedup();
    names
}

/// Words of a line with their places: letters, digits and underscores.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let start = rest + text[rest..].find(is_word)?;
        let length = text[start..].find(|c| !is_word(c)).unwrap_or(text.len() - start);
        rest = start + length;
        Some((start, &text[start..rest]))
    })
}

#[cfg(test)]
mod tests {
    use super::operators;

    #[test]
    fn operators_are_those_that_a_source_offers_to_python() {
        let source = br#"
            PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
              m.def("nms", &nms, "suppresses (CUDA)");
              py::class_<Pool>(m, "Pool").def("run", &Pool::run);
            }
            TORCH_LIBRARY(ops, m) { m.def("scan(Tensor x) -> Tensor"); m.impl("ops::other", f); }
        "#;
        insta::assert_debug_snapshot!(operators(source), @r#"
        [
            "Pool",
            "nms",
            "ops",
            "run",
            "scan",
        ]
        "#);
        assert!(operators(b"int main() { x.def(\"a\"); }").is_empty());
    }
}
