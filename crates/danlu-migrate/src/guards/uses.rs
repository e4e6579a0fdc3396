//! Conditions that ask a name for the answer, and what becomes of the name: its question is taken back if nobody needs it but code for
//! CUDA only; where both do, a person has to tell them apart.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::Expr;
use ruff_text_size::{Ranged as _, TextRange, TextSize};

use super::Guards;
use super::answers::{GuardQuestion, Key};

/// A condition that asks a name for the answer.
#[derive(Debug)]
pub(super) struct Use<'a> {
    asked: GuardQuestion<'a>,
    test: TextRange,
    body: TextRange,
    guarded: Guarded,
}

#[derive(Debug)]
enum Guarded {
    /// Code for CUDA only.
    Cuda(String),
    /// Code that runs on NPUs now.
    Npu,
    Neither,
}

impl<'a> Guards<'_, 'a> {
    /// Whether a condition asks for the device, itself or through a name.
    pub(super) fn is_asked(&self, test: &'a Expr) -> bool {
        self.has_edit(test.range()) || !self.answers.asked_in(test, &self.around).is_empty()
    }

    pub(super) fn note_asked(&mut self, test: &'a Expr, body: TextRange, reason: Option<String>) {
        let guarded = match reason {
            Some(reason) => Guarded::Cuda(reason),
            None if self.has_edit(body) => Guarded::Npu,
            None => Guarded::Neither,
        };
        for asked in self.answers.asked_in(test, &self.around) {
            let guarded = match &guarded {
                Guarded::Cuda(reason) => Guarded::Cuda(reason.clone()),
                Guarded::Npu => Guarded::Npu,
                Guarded::Neither => Guarded::Neither,
            };
            self.asked.push(Use { asked, test: test.range(), body, guarded });
        }
    }

    /// Takes back the answers that nobody needs but code for CUDA only, and tells which conditions lead there although others do.
    pub(super) fn settle(&mut self) -> Vec<(TextRange, String, String)> {
        let asked = std::mem::take(&mut self.asked);
        let mut reached = Vec::new();
        let mut handled: HashSet<TextSize> = HashSet::new();
        let mut needed: HashSet<Key<'a>> = HashSet::new();
        for one in &asked {
            handled.insert(one.asked.place);
            if matches!(one.guarded, Guarded::Npu) {
                needed.insert(one.asked.key);
            }
        }
        for one in asked {
            let Guarded::Cuda(reason) = one.guarded else { continue };
            let GuardQuestion { key, is_attribute, .. } = one.asked;
            let is_needed =
                needed.contains(&key) || !is_attribute && key.0.is_none() && self.is_imported(key.1);
            if let Some(questions) = self.answers.only_for(one.asked, &handled).filter(|_| !is_needed) {
                let closed = questions.iter().map(|question| (*question, *question, reason.clone()));
                self.closed.extend(closed);
                if self.has_edit(one.body) {
                    self.closed.push((one.test, one.body, reason));
                }
            } else {
                let name = if is_attribute { format!("self.{}", key.1) } else { key.1.to_owned() };
                reached.push((one.test, name, reason));
            }
        }
        reached.sort_by_key(|(test, ..): &(TextRange, String, String)| (test.start(), test.end()));
        reached.dedup();
        reached
    }

    /// Whether another file of the project has the name from somewhere.
    fn is_imported(&self, name: &str) -> bool {
        let mut paths = self.checker.facts.exports.values().flat_map(HashMap::values);
        paths.any(|path| path.rsplit('.').next() == Some(name))
    }
}
