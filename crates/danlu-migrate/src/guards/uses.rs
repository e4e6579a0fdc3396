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
        let mut reached: Vec<(GuardQuestion<'a>, TextRange, String)> = Vec::new();
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
                for question in questions {
                    if self.has_edit(*question) {
                        self.closed.push((*question, *question, reason.clone()));
                    }
                }
                if self.has_edit(one.body) {
                    self.closed.push((one.test, one.body, reason));
                }
            } else {
                reached.push((one.asked, one.test, reason));
            }
        }
        let asks_for_npus = |question: &TextRange| {
            let is_in = |(_, closed, _): &(_, TextRange, _)| closed.contains_range(*question);
            self.has_edit(*question) && !self.closed.iter().any(is_in)
        };
        reached.retain(|(asked, ..)| self.answers.questions(*asked).iter().any(asks_for_npus));
        let mut reached: Vec<(TextRange, String, String)> = reached
            .into_iter()
            .map(|(asked, test, reason)| {
                let (own, name) = (if asked.is_attribute { "self." } else { "" }, asked.key.1);
                (test, format!("{own}{name}"), reason)
            })
            .collect();
        reached.sort_by_key(|(test, ..)| (test.start(), test.end()));
        reached.dedup();
        reached
    }

    /// Whether another file of the project has the name from somewhere.
    fn is_imported(&self, name: &str) -> bool {
        let mut paths = self.checker.facts.exports.values().flat_map(HashMap::values);
        paths.any(|path| path.rsplit('.').next() == Some(name))
    }
}
