//! `torch.nn.DataParallel`.

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Reference};
use ruff_text_size::Ranged as _;

pub(crate) const RULE: Rule = Rule {
    name: "data-parallel",
    grade: Grade::NeedsPerson,
    what: "Reports `DataParallel`. With `--distributed MAIN` the entry script becomes a program of one process for each device; \
           see the rule `distributed`.",
    why: "One process that drives several devices is not supported on NPUs; `DistributedDataParallel` is, and is faster.",
    before: "model = torch.nn.DataParallel(model)\n",
    after: "model = torch.nn.DataParallel(model)\n",
    references: &["https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html"],
    hooks: Hooks { reference: Some(on_reference), ..Hooks::NONE },
};

fn on_reference<'a>(checker: &mut Checker<'a>, rule: &'static Rule, reference: &Reference<'a>) {
    let full = reference.path.full.as_str();
    let is_it = matches!(
        full,
        "torch.nn.DataParallel" | "torch.nn.parallel.DataParallel" | "torch.nn.parallel.data_parallel"
    );
    if is_it && reference.call.is_some() && checker.options.distributed.is_none() && !checker.is_aware() {
        let message = "one process cannot drive several NPUs; `--distributed MAIN` makes the entry script use \
                       `DistributedDataParallel`";
        checker.report(rule, FindingKind::NeedsPerson, reference.expression.range(), full, message);
    }
}
