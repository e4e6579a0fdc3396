//! How deep a text may nest before it is parsed: everything after the parser follows the nesting with its own stack.
//!
//! The bound is counted in tokens and never below the real depth: what one token belongs to can only be nested in the tokens
//! before it, back to the comma or the statement that ended what came earlier, and in the brackets that are still open.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};

/// Ten times what Python itself compiles, and within the stack that each worker has.
const DEEPEST: usize = 20_000;

/// Whether a text is one that nobody wrote by hand and Python itself would not compile.
pub(crate) fn is_beyond_reason(text: &str, mode: Mode) -> bool {
    text.len() > DEEPEST && nests_deeper(text, mode, DEEPEST)
}

fn nests_deeper(text: &str, mode: Mode, limit: usize) -> bool {
    let mut lexer = lexer::lex(text, mode);
    // Tokens since the last comma, for each bracket that is open and for the one that is not there; `depth` is their sum.
    let (mut outer, mut run, mut depth) = (Vec::new(), 0, 0);
    let (mut blocks, mut lambdas) = (0usize, 0);
    loop {
        match lexer.next_token() {
            TokenKind::EndOfFile => return false,
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => outer.push(std::mem::take(&mut run)),
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => {
                depth -= run;
                run = outer.pop().unwrap_or_default();
            }
            TokenKind::Comma => depth -= std::mem::take(&mut run),
            TokenKind::Semi if outer.is_empty() => (run, depth, lambdas) = (0, 0, 0),
            TokenKind::Newline => {
                outer.clear();
                (run, depth, lambdas) = (0, 0, 0);
            }
            TokenKind::Indent => blocks += 1,
            TokenKind::Dedent => blocks = blocks.saturating_sub(1),
            // The commas between its parameters end nothing.
            TokenKind::Lambda => lambdas += 1,
            _ => {}
        }
        run += 1;
        depth += 1;
        if depth + blocks + lambdas > limit {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use ruff_python_parser::Mode;

    use super::nests_deeper;

    #[test]
    fn siblings_do_not_count_and_chains_do() {
        let deeper = |text: &str| nests_deeper(text, Mode::Module, 30);
        assert!(!deeper(&"x = f(1, [2, 3], {4: 5})\n".repeat(100)));
        assert!(!deeper(&format!("x = [{}]\n", "(1, 2), ".repeat(100))));
        assert!(!deeper(&"x = 1; ".repeat(100)));
        assert!(deeper(&format!("x = {}\n", "[".repeat(40))));
        assert!(deeper(&format!("x = a{}\n", ".b".repeat(40))));
        assert!(deeper(&format!("x = a{}\n", "()".repeat(40))));
        assert!(deeper(&format!("x = {}1\n", "not ".repeat(40))));
        assert!(deeper(&format!("x = {}1\n", "lambda a, b: ".repeat(40))));
    }
}
