//! The device by `DEVICE_ID`, as scripts around the vendor's tool set it.

use ruff_python_ast::Stmt;
use ruff_text_size::{Ranged as _, TextRange};

use super::{Grade, Rule, distributed};
use crate::checker::Checker;
use crate::hooks::Hooks;

pub(crate) const RULE: Rule = Rule {
    name: "specify-device",
    grade: Grade::Likely,
    what: "With `--specify-device`: a script that is started (`if __name__ == \"__main__\"`) and uses the device sets it from the \
           environment variable `DEVICE_ID` first.",
    why: "Launch scripts made for the vendor's tool choose the card that way. `ASCEND_RT_VISIBLE_DEVICES` needs no change of code.",
    before: "if __name__ == \"__main__\":\n    model.cuda()\n",
    after: "if __name__ == \"__main__\":\n    torch_npu.npu.set_device(int(os.getenv(\"DEVICE_ID\", \"0\")))\n    model.npu()\n",
    references: &[],
    hooks: Hooks { end: Some(on_end), ..Hooks::NONE },
};

fn on_end(checker: &mut Checker<'_>, rule: &'static Rule) {
    if !checker.options.specify_device || !checker.needs_torch_npu || checker.source.contains("DEVICE_ID") {
        return;
    }
    let body = checker.body;
    for statement in body {
        if let Stmt::If(conditional) = statement
            && distributed::is_main_guard(&conditional.test)
            && let Some(first) = conditional.body.first()
        {
            let mut new = String::new();
            if checker.scopes.bindings("os").is_none() {
                new += &checker.as_statement_before(first.range(), "import os");
            }
            let line = "torch_npu.npu.set_device(int(os.getenv(\"DEVICE_ID\", \"0\")))";
            new += &checker.as_statement_before(first.range(), line);
            let place = TextRange::empty(first.range().start());
            checker.replace(rule, Grade::Likely, place, new, "set the device from DEVICE_ID");
        }
    }
}
