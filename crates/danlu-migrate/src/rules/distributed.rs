//! From one device to many: one process for each, `DistributedDataParallel`, `DistributedSampler`, `set_epoch`.

mod one_device;

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtAssign, StmtFor};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::Hooks;
use crate::scope::Binding;

pub(super) use self::one_device::report_number;

pub(crate) const RULE: Rule = Rule {
    name: "distributed",
    grade: Grade::Likely,
    what: "With `--distributed MAIN --model NAME`: the entry script sets its device and joins the process group, the model is \
           wrapped into `DistributedDataParallel` where it was last given its value (or in place of `DataParallel`), loaders \
           that shuffle get a `DistributedSampler`, and loops over epochs call its `set_epoch`. In that script the first device \
           (`\"cuda:0\"`, `.cuda(0)`, `torch.device(\"cuda\", 0)`) becomes the process's own; other devices by number, option or \
           constant are reported, and so is what hides devices from the processes. Scripts that do any of this \
           already keep their own. A loader whose dataset is made inside of the call is reported.",
    why: "NPUs are driven by one process each. Without a sampler every process would train on all the data, and without \
          `set_epoch` every epoch would see it in the same order.",
    before: "model = Net().cuda()\nloader = DataLoader(data, batch_size=32, shuffle=True)\nfor epoch in range(10):\n    train(model, loader)\n",
    after: "model = Net().npu()\nmodel = torch.nn.parallel.DistributedDataParallel(model, device_ids=[LOCAL_RANK])\nloader = DataLoader(data, batch_size=32, sampler=torch.utils.data.distributed.DistributedSampler(data))\nfor epoch in range(10):\n    loader.sampler.set_epoch(epoch)\n    train(model, loader)\n",
    references: &["https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html"],
    hooks: Hooks {
        text: Some(one_device::on_text),
        call: Some(one_device::on_call),
        end: Some(on_end),
        ..Hooks::NONE
    },
};

const DDP: &str = "torch.nn.parallel.DistributedDataParallel";

/// The statements that matter, in the order of the file. Names are looked up in the module's scope, where scripts keep them.
#[derive(Default)]
struct Found<'a> {
    assignments: Vec<&'a StmtAssign>,
    loops: Vec<&'a StmtFor>,
    main: Option<&'a [Stmt]>,
    last_import: Option<TextRange>,
    depth: usize,
}

impl<'a> StatementVisitor<'a> for Found<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(assign) => self.assignments.push(assign),
            Stmt::For(loop_) => {
                self.loops.push(loop_);
                walk_stmt(self, statement);
            }
            Stmt::If(conditional) if is_main_guard(&conditional.test) => {
                self.main = Some(&conditional.body);
                walk_stmt(self, statement);
            }
            // What `--modelarts` adds in the same run is no place to begin from: the next run must decide the same.
            Stmt::ImportFrom(import)
                if import
                    .module
                    .as_deref()
                    .is_some_and(|module| module.starts_with("ascend_modelarts_function")) => {}
            Stmt::Import(_) | Stmt::ImportFrom(_) if self.depth == 0 => {
                self.last_import = Some(statement.range());
            }
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) | Stmt::Try(_) => {
                self.depth += 1;
                walk_stmt(self, statement);
                self.depth -= 1;
            }
            _ => walk_stmt(self, statement),
        }
    }
}

pub(super) fn is_main_guard(test: &Expr) -> bool {
    matches!(test, Expr::Compare(comparison) if matches!(&*comparison.left, Expr::Name(name) if name.id.as_str() == "__name__"))
}

/// Whether the project becomes one of many processes in this run, and its scripts do not choose devices themselves.
fn is_asked(checker: &Checker<'_>) -> bool {
    checker.options.distributed.is_some() && !checker.source.contains("init_process_group")
}

/// Whether what stands at `place` of the entry script can read the rank, which is bound after the imports.
pub(super) fn has_rank(checker: &Checker<'_>, place: TextSize) -> bool {
    if !is_asked(checker) || !checker.is_main {
        return false;
    }
    let mut found = Found::default();
    found.visit_body(checker.body);
    found.last_import.is_some_and(|import| import.end() < place)
}

fn on_end(checker: &mut Checker<'_>, rule: &'static Rule) {
    let Some(distributed) = checker.options.distributed.clone() else { return };
    let mut found = Found::default();
    found.visit_body(checker.body);
    let binds_torch = checker.scopes.bindings("torch").is_some_and(|bindings| {
        bindings.iter().any(|binding| matches!(binding, Binding::Path(path) if path == "torch"))
    });
    if checker.is_main {
        // A script that joins a group itself also chooses devices and samplers itself.
        if checker.source.contains("init_process_group") {
            return;
        }
        let is_joined = binds_torch && join_group(checker, rule, &found);
        if !is_joined {
            let message =
                "has no import of torch by its own name to begin from; add `import torch` and run again";
            checker.report(rule, FindingKind::NeedsPerson, TextRange::default(), distributed.main, message);
            return;
        }
        wrap_model(checker, rule, &found, &distributed.model);
    } else if !binds_torch {
        return;
    }
    let loaders = give_samplers(checker, rule, &found);
    for loader in loaders {
        set_epoch(checker, rule, &found, &loader);
    }
}

/// At the beginning of what runs when the script is started; after the imports where there is no such place.
fn join_group(checker: &mut Checker<'_>, rule: &'static Rule, found: &Found<'_>) -> bool {
    let lines = [
        "import os",
        "import torch.distributed",
        "import torch_npu",
        "LOCAL_RANK = int(os.environ.get(\"LOCAL_RANK\", os.environ.get(\"RANK_ID\", \"0\")))",
        "torch_npu.npu.set_device(LOCAL_RANK)",
        "torch.distributed.init_process_group(backend=\"hccl\")",
    ];
    let newline = checker.newline();
    // Functions read the rank, so it has to be a name of the module, wherever the group is joined.
    let Some(import) = found.last_import else { return false };
    let Some(end) = checker.line_end(import) else { return false };
    insert(checker, rule, end, format!("{newline}{}", lines[..4].join(newline)), "import torch_npu");
    checker.has_torch_npu = true;
    let message = "init statement of DistributedDataParallel";
    let guarded = found.main.and_then(<[Stmt]>::first).map(Ranged::range);
    match guarded.and_then(|first| Some((first, checker.indentation(first)?.to_owned()))) {
        Some((first, indentation)) => {
            let between = format!("{newline}{indentation}");
            let text = lines[4..].join(&between) + &between;
            insert(checker, rule, first.start().to_usize(), text, message);
        }
        None => insert(checker, rule, end, format!("{newline}{}", lines[4..].join(newline)), message),
    }
    true
}

fn wrap_model(checker: &mut Checker<'_>, rule: &'static Rule, found: &Found<'_>, model: &str) {
    let of_model =
        |assign: &&&StmtAssign| assign.targets.first().is_some_and(|target| checker.text(target) == model);
    let assignments: Vec<&StmtAssign> = found.assignments.iter().filter(of_model).copied().collect();
    let is_wrapped = |assign: &&StmtAssign| checker.text(&*assign.value).contains("DistributedDataParallel");
    if checker.source.contains("DistributedDataParallel") && assignments.iter().any(is_wrapped) {
        return;
    }
    let data_parallel = assignments.iter().find_map(|assign| match &*assign.value {
        Expr::Call(call) if checker.text(&*call.func).ends_with("DataParallel") => Some(call),
        _ => None,
    });
    if let Some(call) = data_parallel {
        let (callee, arguments) = (call.func.range(), call.arguments.range);
        let Some(first) = call.arguments.args.first() else { return };
        let inner = checker.text(first);
        let new = format!("({inner}, device_ids=[LOCAL_RANK])");
        checker.replace_with_npu(
            rule,
            Grade::Likely,
            callee,
            DDP,
            format!("change function DataParallel to {DDP}"),
        );
        checker.replace_with_npu(
            rule,
            Grade::Likely,
            arguments,
            new,
            "init statement of DistributedDataParallel",
        );
        return;
    }
    let Some(last) = assignments.last() else {
        let message = format!(
            "nothing called `{model}` is given a value here; wrap the model into `{DDP}` yourself, or name it with `--model`"
        );
        checker.report(rule, FindingKind::NeedsPerson, TextRange::default(), model, message);
        return;
    };
    let (Some(end), Some(indentation)) = (checker.line_end(last.range), checker.indentation(last.range))
    else {
        return;
    };
    let is_on_device = [".cuda(", ".to(", ".npu("].iter().any(|word| {
        assignments.iter().any(|assign| checker.text(&*assign.value).contains(word))
            || checker.source.contains(&format!("{model}{word}"))
    });
    let moved = if is_on_device { model.to_owned() } else { format!("{model}.npu()") };
    let line = format!("{}{indentation}{model} = {DDP}({moved}, device_ids=[LOCAL_RANK])", checker.newline());
    insert(checker, rule, end, line, "init statement of DistributedDataParallel");
}

/// Gives every loader that shuffles a sampler, and answers with their names.
fn give_samplers(checker: &mut Checker<'_>, rule: &'static Rule, found: &Found<'_>) -> Vec<String> {
    let mut loaders = Vec::new();
    for assign in &found.assignments {
        let (Some(target), Expr::Call(call)) = (assign.targets.first(), &*assign.value) else { continue };
        let is_loader = checker.text(&*call.func).rsplit('.').next() == Some("DataLoader");
        let has = |name: &str| call.arguments.find_keyword(name).is_some();
        if !is_loader || has("sampler") || has("batch_sampler") {
            continue;
        }
        let Some(shuffle) = call.arguments.find_keyword("shuffle") else { continue };
        if !matches!(&shuffle.value, Expr::BooleanLiteral(literal) if literal.value) {
            continue;
        }
        if let Some(data @ (Expr::Name(_) | Expr::Attribute(_))) = dataset(call) {
            let data = checker.text(data);
            let new = format!("sampler=torch.utils.data.distributed.DistributedSampler({data})");
            checker.replace_with_npu(
                rule,
                Grade::Likely,
                shuffle.range,
                new,
                "change the arg shuffle of function DataLoader to a DistributedSampler",
            );
            loaders.push(checker.text(target).to_owned());
        } else {
            let message = "its dataset is made inside of the call; give it a name, and the loader a `DistributedSampler`";
            checker.report(rule, FindingKind::NeedsPerson, call.func.range(), "DataLoader", message);
        }
    }
    loaders
}

fn dataset(call: &ExprCall) -> Option<&Expr> {
    call.arguments.find_argument_value("dataset", 0)
}

/// In the outermost loop over numbers that uses the loader and does not walk over it.
fn set_epoch(checker: &mut Checker<'_>, rule: &'static Rule, found: &Found<'_>, loader: &str) {
    let uses = |text: &str| {
        text.match_indices(loader).any(|(at, _)| {
            let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.');
            let after = text[at + loader.len()..].chars().next();
            !is_part(text[..at].chars().next_back())
                && !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
        })
    };
    let outer = found.loops.iter().find(|candidate| {
        matches!(&*candidate.target, Expr::Name(_))
            && !uses(checker.text(&*candidate.iter))
            && candidate.body.iter().any(|statement| uses(checker.text(statement)))
    });
    let Some(outer) = outer else { return };
    let Some(first) = outer.body.first() else { return };
    if checker.text(TextRange::new(outer.range.start(), outer.range.end())).contains("set_epoch") {
        return;
    }
    let Some(indentation) = checker.indentation(first.range()) else { return };
    let epoch = checker.text(&*outer.target);
    let line = format!("{loader}.sampler.set_epoch({epoch}){}{indentation}", checker.newline());
    insert(checker, rule, first.range().start().to_usize(), line, "add statement of sampler.set_epoch");
}

fn insert(checker: &mut Checker<'_>, rule: &'static Rule, at: usize, text: String, message: &str) {
    let Ok(at) = TextSize::try_from(at) else { return };
    checker.replace(rule, Grade::Likely, TextRange::empty(at), text, message);
}
