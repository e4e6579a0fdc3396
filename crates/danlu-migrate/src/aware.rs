//! Where code names NPUs: its names, and texts that can be a device, a module or an option. Comments, help texts and messages do not
//! count: they say what a program tells about NPUs, and not what it does with them.

use ruff_python_ast::token::{TokenKind, Tokens};
use ruff_text_size::{Ranged as _, TextRange, TextSize};

/// In order.
#[derive(Debug, Default)]
pub(crate) struct NpuPlaces(Vec<TextSize>);

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
        let tokens = tokens.iter().filter(|token| names(token.kind(), &source[token.range()]));
        NpuPlaces(tokens.map(ruff_text_size::Ranged::start).collect())
    }

    pub(crate) fn any_in(&self, range: TextRange) -> bool {
        let first = self.0.partition_point(|place| *place < range.start());
        self.0.get(first).is_some_and(|place| *place < range.end())
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
