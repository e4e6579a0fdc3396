//! Paths that ModelArts maps.

use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged as _, TextRange, TextSize};

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::hooks::Hooks;

pub(crate) const RULE: Rule = Rule {
    name: "modelarts",
    grade: Grade::Likely,
    what: "With `--modelarts`: paths given to functions that open, list or save files go through `ModelArtsPathManager().get_path()`, \
           whose table (`ascend_modelarts_function/path_mapping_config.py`) says where they lie on ModelArts. \
           `modelarts_entry.py` is added: it takes `--data_url` and `--train_url`, runs the training and copies its output back.",
    why: "ModelArts copies data from object storage into a folder of its choice and keeps only what is put into another.",
    before: "state = torch.load(\"weights/start.pt\")\n",
    after: "state = torch.load(ModelArtsPathManager().get_path(\"weights/start.pt\"))\n",
    references: &["https://support.huaweicloud.com/modelarts/"],
    hooks: Hooks { call: Some(on_call), end: Some(on_end), ..Hooks::NONE },
};

/// Functions and the position of the path among their arguments.
const OPENERS: &[(&str, usize)] = &[
    ("torch.load", 0),
    ("torch.save", 1),
    ("os.listdir", 0),
    ("os.makedirs", 0),
    ("os.mkdir", 0),
    ("os.walk", 0),
    ("os.path.exists", 0),
    ("os.path.isfile", 0),
    ("os.path.isdir", 0),
    ("glob.glob", 0),
    ("numpy.load", 0),
    ("numpy.save", 0),
    ("pandas.read_csv", 0),
    ("PIL.Image.open", 0),
    ("cv2.imread", 0),
    ("torchvision.datasets.ImageFolder", 0),
    ("torchvision.datasets.CIFAR10", 0),
    ("torchvision.datasets.CIFAR100", 0),
    ("torchvision.datasets.MNIST", 0),
];

const LINE: &str = "from ascend_modelarts_function.modelarts_path_manager import ModelArtsPathManager";
const WRAPPER: &str = "ModelArtsPathManager().get_path";

fn on_call<'a>(checker: &mut Checker<'a>, rule: &'static Rule, call: &'a ExprCall) {
    if !checker.options.modelarts {
        return;
    }
    let position = match &*call.func {
        Expr::Name(name) if name.id.as_str() == "open" && checker.scopes.bindings("open").is_none() => {
            Some(0)
        }
        callee => {
            let path = function_of(checker, callee);
            path.and_then(|path| {
                OPENERS.iter().find(|(name, _)| *name == path).map(|(_, position)| *position)
            })
        }
    };
    let Some(argument) = position.and_then(|position| call.arguments.args.get(position)) else { return };
    // A path that is computed may already be a mapped one; a literal or a name is not.
    let is_plain = matches!(
        argument,
        Expr::StringLiteral(_) | Expr::Name(_) | Expr::Attribute(_) | Expr::FString(_) | Expr::Subscript(_)
    );
    if is_plain {
        let end = argument.range().end();
        let message = "change the path to ModelArtsPathManager().get_path()";
        checker.replace(
            rule,
            Grade::Likely,
            TextRange::empty(argument.range().start()),
            format!("{WRAPPER}("),
            message,
        );
        checker.replace(rule, Grade::Likely, TextRange::empty(end), ")", message);
    }
}

/// The function that a callee names. An `os` that the file does not bind is Python's: a star import brings it, or the import that
/// `distributed` and `specify-device` add, so that the next run decides the same.
fn function_of<'a>(checker: &Checker<'a>, callee: &'a Expr) -> Option<String> {
    let (mut parts, mut root) = (Vec::new(), callee);
    while let Expr::Attribute(attribute) = root {
        parts.push(attribute.attr.as_str());
        root = &attribute.value;
    }
    if matches!(root, Expr::Name(name) if name.id.as_str() == "os") && checker.scopes.bindings("os").is_none()
    {
        parts.push("os");
        parts.reverse();
        return Some(parts.join("."));
    }
    checker.scopes.path(callee).map(|path| path.full)
}

fn on_end(checker: &mut Checker<'_>, rule: &'static Rule) {
    let is_needed = checker.options.modelarts && checker.edits.iter().any(|edit| edit.rule == rule.name);
    if !is_needed || checker.source.contains("import ModelArtsPathManager") {
        return;
    }
    let newline = checker.newline();
    let body = checker.body;
    let is_header = |statement: &&Stmt| match statement {
        Stmt::Expr(expression) => expression.value.is_string_literal_expr(),
        Stmt::ImportFrom(import) => import.module.as_deref() == Some("__future__"),
        _ => false,
    };
    let place = body
        .iter()
        .find(|statement| !is_header(statement))
        .map_or(TextSize::default(), |statement| statement.range().start());
    checker.replace(
        rule,
        Grade::Likely,
        TextRange::empty(place),
        format!("{LINE}{newline}"),
        "import ModelArtsPathManager",
    );
}
