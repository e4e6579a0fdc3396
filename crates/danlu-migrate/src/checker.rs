//! What a rule can ask about the file that it is shown, and where it leaves its edits and findings.
//!
//! Rules never walk by themselves ([`walk`](crate::walk) does). They get events (a reference that imports resolve, a method of something unknown, a
//! call, a text, an import, a function) and answer with edits and findings through [`Checker`].

use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::source_order::SourceOrderVisitor as _;
use ruff_python_ast::{AnyNodeRef, ModModule, Stmt, StmtFunctionDef};
use ruff_python_parser::Parsed;
use ruff_text_size::{Ranged, TextLen as _, TextRange, TextSize};

use crate::Options;
use crate::aware::NpuPlaces;
use crate::devices::CudaDeviceUse;
use crate::edit::Edit;
use crate::facts::ProjectFacts;
use crate::finding::{Finding, FindingKind};
use crate::guards;
use crate::portable;
use crate::rules::{Grade, RULES, Rule};
use crate::scope::{ScopeKind, Scopes};

#[derive(Debug)]
pub(crate) struct Checker<'a> {
    pub(crate) source: &'a str,
    pub(crate) options: &'a Options,
    pub(crate) facts: &'a ProjectFacts,
    pub(crate) scopes: Scopes<'a>,
    pub(crate) uses: CudaDeviceUse<'a>,
    pub(crate) ancestors: Vec<AnyNodeRef<'a>>,
    pub(crate) functions: Vec<&'a StmtFunctionDef>,
    pub(crate) body: &'a [Stmt],
    /// The entry script of `--distributed`.
    pub(crate) is_main: bool,
    pub(crate) edits: Vec<Edit>,
    pub(crate) findings: Vec<Finding>,
    /// Libraries for CUDA only that the file uses, and whether they were reported.
    pub(crate) libraries: HashMap<&'static str, bool>,
    /// Names that no scope binds, to compare before and after.
    pub(crate) unbound: HashSet<&'a str>,
    /// Set once an edit means that `torch_npu` has to be loaded.
    pub(crate) needs_torch_npu: bool,
    /// Set once a rule has imported it already.
    pub(crate) has_torch_npu: bool,
    pub(crate) rules: &'static [&'static Rule],
    /// Nothing is shown to rules: only names are looked at.
    pub(crate) is_dry: bool,
    /// Where the code names NPUs.
    pub(crate) npu_places: NpuPlaces,
    /// The statement around that chooses between devices already.
    pub(crate) aware: Option<TextRange>,
    /// Where code that knows NPUs would have been changed.
    pub(crate) held_back: Vec<TextSize>,
    /// What of `torch.cuda` such code has that `torch_npu` lacks, and where. It is not reported there, and still is what a condition elsewhere
    /// may keep the program away from.
    pub(crate) unreported: Vec<(TextSize, String)>,
    pub(crate) is_in_f_string: bool,
    skipped: usize,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(
        source: &'a str,
        skipped: usize,
        parsed: &'a Parsed<ModModule>,
        facts: &'a ProjectFacts,
        options: &'a Options,
        package: &str,
    ) -> Self {
        let module = parsed.syntax();
        Checker {
            source,
            npu_places: NpuPlaces::of(source, parsed.tokens()),
            options,
            facts,
            scopes: Scopes::new(facts, package),
            uses: CudaDeviceUse::of(module),
            ancestors: Vec::new(),
            functions: Vec::new(),
            body: &module.body,
            is_main: false,
            edits: Vec::new(),
            findings: Vec::new(),
            libraries: HashMap::new(),
            unbound: HashSet::new(),
            needs_torch_npu: false,
            has_torch_npu: false,
            rules: if options.portable.is_some() { portable::RULES } else { RULES },
            is_dry: false,
            is_in_f_string: false,
            aware: None,
            held_back: Vec::new(),
            unreported: Vec::new(),
            skipped,
        }
    }

    /// Walks with all rules.
    pub(crate) fn check(&mut self) {
        self.walk();
        guards::close(self);
        for rule in self.rules {
            if let Some(hook) = rule.hooks.end {
                hook(self, rule);
            }
        }
    }

    /// Walks only to find the names that nothing binds.
    pub(crate) fn unbound_names(mut self) -> HashSet<&'a str> {
        self.is_dry = true;
        self.walk();
        self.unbound
    }

    pub(crate) fn has_star_import(&self) -> bool {
        self.scopes.has_star_import
    }

    fn walk(&mut self) {
        let body = self.body;
        self.scopes.enter(ScopeKind::Module, None, body);
        self.visit_body(body);
        // The module's scope stays, for the rules that look once more at the end.
    }

    pub(crate) fn text(&self, ranged: impl Ranged) -> &'a str {
        &self.source[ranged.range()]
    }

    pub(crate) fn replace(
        &mut self,
        rule: &'static Rule,
        grade: Grade,
        range: TextRange,
        new: impl Into<String>,
        message: impl Into<String>,
    ) {
        if self.aware.is_some() {
            self.held_back.push(range.start());
            return;
        }
        self.edits.push(Edit {
            start: range.start().to_usize() + self.skipped,
            end: range.end().to_usize() + self.skipped,
            replacement: new.into(),
            rule: rule.name,
            grade,
            message: message.into(),
        });
    }

    /// A change after which the file uses the device, so that `torch_npu` must have been imported.
    pub(crate) fn replace_with_npu(
        &mut self,
        rule: &'static Rule,
        grade: Grade,
        range: TextRange,
        new: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.needs_torch_npu |= self.aware.is_none();
        self.replace(rule, grade, range, new, message);
    }

    pub(crate) fn report(
        &mut self,
        rule: &'static Rule,
        kind: FindingKind,
        range: TextRange,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.findings.push(Finding {
            rule: rule.name,
            kind,
            start: range.start().to_usize() + self.skipped,
            end: range.end().to_usize() + self.skipped,
            subject: subject.into(),
            message: message.into(),
        });
    }

    /// Reports what `torch_npu` lacks, unless the code around knows NPUs.
    pub(crate) fn report_lacking(
        &mut self,
        rule: &'static Rule,
        range: TextRange,
        path: &str,
        advice: impl Into<String>,
    ) {
        if self.is_aware() {
            self.unreported.push((range.start(), path.to_owned()));
        } else {
            self.report(rule, FindingKind::Unsupported, range, path, advice);
        }
    }

    /// A place of the file as one of the text without its mark.
    pub(crate) fn offset(&self, place: usize) -> usize {
        place - self.skipped
    }

    /// Takes the changes in these ranges back.
    pub(crate) fn withdraw(&mut self, mut ranges: Vec<TextRange>) {
        ranges.sort_by_key(Ranged::start);
        // Of ranges that begin before a place, the one that ends last decides.
        let mut furthest = TextSize::default();
        let ends: Vec<(TextSize, TextSize)> = ranges
            .iter()
            .map(|range| {
                furthest = furthest.max(range.end());
                (range.start(), furthest)
            })
            .collect();
        let skipped = self.skipped;
        self.edits.retain(|edit| {
            let place = edit.start - skipped;
            let before = ends.partition_point(|(start, _)| start.to_usize() <= place);
            before.checked_sub(1).is_none_or(|last| ends[last].1.to_usize() <= place)
        });
    }

    /// Where the first change begins so far, or the end of the file.
    pub(crate) fn first_edit(&self) -> TextSize {
        let start = self.edits.iter().map(|edit| edit.start - self.skipped).min();
        start.and_then(|start| TextSize::try_from(start).ok()).unwrap_or(self.source.text_len())
    }

    pub(crate) fn is_aware(&self) -> bool {
        self.aware.is_some()
    }

    /// Whether the file imports torch at all, anywhere.
    pub(crate) fn imports_torch(&self) -> bool {
        self.source.contains("torch")
    }

    /// Whether the file belongs to a package of this name.
    pub(crate) fn package_is(&self, name: &str) -> bool {
        crate::scope::is_in(self.scopes.package(), name)
    }

    /// Whether the last of the ancestors are the bases of a class.
    pub(crate) fn is_base_class(&self) -> bool {
        matches!(
            self.ancestors.as_slice(),
            [.., AnyNodeRef::StmtClassDef(_), AnyNodeRef::Arguments(_)] | [.., AnyNodeRef::Decorator(_)]
        )
    }
}
