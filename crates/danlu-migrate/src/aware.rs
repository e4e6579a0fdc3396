//! Where code names NPUs: its names, and texts that can be a device, a module or an option. Comments, help texts and messages do not
//! count: they say what a program tells about NPUs, and not what it does with them.

use std::collections::HashSet;

use ruff_python_ast::token::{TokenKind, Tokens};
use ruff_text_size::{Ranged as _, TextRange, TextSize};

#[derive(Debug, Default)]
pub(crate) struct NpuPlaces {
    /// In order.
    places: Vec<TextSize>,
    /// Functions of a file that names NPUs, by their names.
    functions: HashSet<String>,
}

impl NpuPlaces {
    pub(crate) fn of(source: &str, tokens: &Tokens) -> Self {
        // Most files never name them.
        if !has_word(source) {
            return NpuPlaces::default();
        }
        let names = |kind: TokenKind, text: &str| match kind {
            TokenKind::Name => has_word(text),
            TokenKind::String | TokenKind::FStringMiddle | TokenKind::TStringMiddle => {
                has_word(text) && !text.contains(char::is_whitespace)
            }
            _ => false,
        };
        let pairs = tokens.iter().zip(tokens.iter().skip(1));
        let functions = pairs
            .filter(|(keyword, name)| keyword.kind() == TokenKind::Def && name.kind() == TokenKind::Name)
            .map(|(_, name)| source[name.range()].to_owned())
            .collect();
        let places = tokens.iter().filter(|token| names(token.kind(), &source[token.range()]));
        NpuPlaces { places: places.map(ruff_text_size::Ranged::start).collect(), functions }
    }

    /// Whether a function is one of a pair, of which each answers for its own kind of device: `is_torch_cuda_available` and
    /// `is_torch_npu_available`.
    pub(crate) fn is_one_of_two(&self, function: &str) -> bool {
        [("cuda", "npu"), ("npu", "cuda")].iter().any(|(own, other)| {
            function.contains(own) && self.functions.contains(&function.replace(own, other))
        })
    }

    pub(crate) fn any_in(&self, range: TextRange) -> bool {
        let first = self.places.partition_point(|place| *place < range.start());
        self.places.get(first).is_some_and(|place| *place < range.end())
    }
}

/// `torch_npu`, `is_npu_available`, `"npu"`, but not `input`.
fn has_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_letter = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphabetic);
    let is_word = |at: usize| !is_letter(at.checked_sub(1)) && !is_letter(Some(at + 3));
    [b"npu".as_slice(), b"NPU"].iter().any(|word| memchr::memmem::find_iter(bytes, word).any(is_word))
}

#[cfg(test)]
mod tests {
    use ruff_text_size::TextRange;

    use super::NpuPlaces;

    #[test]
    fn help_texts_and_comments_name_no_npu() {
        let aware = |text: &str| {
            let parsed = ruff_python_parser::parse_module(text).unwrap();
            NpuPlaces::of(text, parsed.tokens()).any_in(TextRange::up_to(ruff_text_size::TextSize::of(text)))
        };
        assert!(aware("device = \"npu\"\n") && aware("import torch_npu\n") && aware("is_npu_available()\n"));
        assert!(aware("device = f\"npu:{rank}\"\n"));
        assert!(!aware("f(help=\"'hccl' for Ascend NPU\")\n"));
        assert!(!aware("x = 1  # npu\n") && !aware("input = 1\n"));
    }
}
