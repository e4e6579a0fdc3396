//! Conditions within expressions: operands, alternatives and filters.

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor};
use ruff_python_ast::{BoolOp, Comprehension, Expr, ExprBoolOp, ExprIf, Stmt};
use ruff_text_size::Ranged as _;

use super::Guards;
use super::conditions::is_negative;
use super::evidence::is_package_for_cuda;

impl<'a> Guards<'_, 'a> {
    /// `[x.cuda() for x in xs if torch.cuda.is_available()]`
    fn filters(&mut self, elements: &[&'a Expr], generators: &'a [Comprehension]) {
        for test in generators.iter().flat_map(|generator| &generator.ifs).filter(|test| !is_negative(test)) {
            if !self.is_asked(test) {
                continue;
            }
            let in_elements = || elements.iter().find_map(|element| self.in_expression(element));
            let reason = self.words_in(test).or_else(in_elements);
            self.close(test.range(), test.range(), reason.clone());
            for element in elements {
                self.close(test.range(), element.range(), reason.clone());
                self.note_asked(test, element.range(), reason.clone());
            }
        }
    }

    fn alternative(&mut self, conditional: &'a ExprIf) {
        let test = &*conditional.test;
        if !self.is_asked(test) {
            return;
        }
        let guarded = if is_negative(test) { &conditional.orelse } else { &conditional.body };
        // Lightning's word for CUDA, that of `associative_scan` for kernels of Triton, and packages.
        let word = match &**guarded {
            Expr::StringLiteral(text)
                if matches!(text.value.to_str(), "gpu" | "pointwise")
                    || is_package_for_cuda(text.value.to_str()) =>
            {
                Some(text)
            }
            _ => None,
        };
        let word = || word.map(|text| text.value.to_str().to_owned());
        let reason = self.words_in(test).or_else(|| self.in_expression(guarded)).or_else(word);
        self.note_asked(test, guarded.range(), reason.clone());
        if self.has_edit(test.range()) {
            self.close(conditional.range, test.range(), reason.clone());
            self.close(conditional.range, guarded.range(), reason);
        }
    }

    fn operands(&mut self, operation: &'a ExprBoolOp) {
        let words = self.words_in_operands(operation);
        for (index, operand) in operation.values.iter().enumerate() {
            let leads_on = match operation.op {
                BoolOp::And => !is_negative(operand),
                BoolOp::Or => is_negative(operand),
            };
            if !(leads_on || words.is_some()) || !self.is_asked(operand) {
                continue;
            }
            let rest = &operation.values[index + 1..];
            let reason =
                words.clone().or_else(|| rest.iter().find_map(|operand| self.in_expression(operand)));
            // What else the answer is for is told by who asks for the whole.
            if reason.is_some() {
                let guarded = rest.last().map_or(operand.range(), |last| operand.range().cover(last.range()));
                self.note_asked(operand, guarded, reason.clone());
            }
            self.close(operation.range, operand.range(), reason);
        }
    }

    fn words_in_operands(&self, operation: &'a ExprBoolOp) -> Option<String> {
        operation.values.iter().find_map(|operand| self.words_in(operand))
    }
}

impl<'a> SourceOrderVisitor<'a> for Guards<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.block(std::slice::from_ref(statement), false);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::BoolOp(operation) => self.operands(operation),
            Expr::If(conditional) => self.alternative(conditional),
            Expr::ListComp(comprehension) => self.filters(&[&comprehension.elt], &comprehension.generators),
            Expr::SetComp(comprehension) => self.filters(&[&comprehension.elt], &comprehension.generators),
            Expr::Generator(comprehension) => self.filters(&[&comprehension.elt], &comprehension.generators),
            Expr::DictComp(comprehension) => {
                let key = comprehension.key.iter().map(|key| &**key);
                let elements: Vec<&Expr> = key.chain([&*comprehension.value]).collect();
                self.filters(&elements, &comprehension.generators);
            }
            _ => {}
        }
        source_order::walk_expr(self, expression);
    }
}
