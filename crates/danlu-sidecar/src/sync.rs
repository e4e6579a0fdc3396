//! Outputs and checkpoints: folders that are carried to the server when they change, and checkpoints that come back for the
//! next attempt.
//!
//! What the server has of a folder is remembered as entries; [`plan`] says what has changed. Only what this sidecar sent or
//! fetched itself is ever removed on the server: other workers of the job write into the same folders there.

mod fetch;
mod scan;
mod send;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use danlu_client::Client;
use danlu_core::launch::LaunchFile;
use danlu_core::report::{Checkpoint, ProgramReport, REPORT_FILE};
use danlu_types::WorkerIndex;
use danlu_types::api::{TreeArea, TreeEntry};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::log::Notes;
use crate::retry::RetryError;

/// How often it is looked for what changed. A node that is lost takes what was written since along.
const CARRY_EVERY: Duration = Duration::from_secs(15);
/// How often it is looked whether the program says that it saved.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// What was written less long ago may be half of something.
const SETTLED: Duration = Duration::from_secs(2);

type Entries = BTreeMap<String, TreeEntry>;

#[derive(Debug)]
pub(crate) struct Trees {
    client: Client,
    worker: WorkerIndex,
    notes: Notes,
    report: PathBuf,
    areas: Vec<Tree>,
    /// The last checkpoint that the program spoke of and that has arrived.
    arrived: watch::Sender<Option<Checkpoint>>,
    /// Something could not be delivered, and stays on the node.
    pub(crate) is_incomplete: bool,
}

#[derive(Debug)]
struct Tree {
    area: TreeArea,
    root: PathBuf,
    /// What the server has of it, as far as this worker had to do with it.
    known: Entries,
    /// What the server will not have; said once.
    refused: Entries,
}

/// What has to happen for the server to have what the node has.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Remove(String),
    Send(TreeEntry),
}

impl Trees {
    pub(crate) fn new(client: Client, launch: &LaunchFile, notes: Notes) -> Self {
        let tree = |area, root: &PathBuf| Tree {
            area,
            root: root.clone(),
            known: Entries::new(),
            refused: Entries::new(),
        };
        let mut trees = vec![tree(TreeArea::Output, &launch.folders.output)];
        if launch.checkpoint.is_some() {
            trees.push(tree(TreeArea::Checkpoint, &launch.folders.checkpoint));
        }
        let report = launch.folders.run.join(REPORT_FILE);
        let arrived = watch::Sender::new(None);
        Trees {
            client,
            worker: launch.worker.worker,
            notes,
            report,
            areas: trees,
            arrived,
            is_incomplete: false,
        }
    }

    /// Which checkpoint has arrived, where that is for us to say.
    pub(crate) fn arrived(&self) -> Option<watch::Receiver<Option<Checkpoint>>> {
        let is_ours = self.areas.iter().any(|tree| tree.area == TreeArea::Checkpoint);
        is_ours.then(|| self.arrived.subscribe())
    }

    /// Carries until the launcher has ended and the server has what it left.
    pub(crate) async fn run(&mut self, mut ended: watch::Receiver<bool>) -> Result<(), RetryError> {
        let (mut due, mut saved) = (Instant::now() + CARRY_EVERY, None);
        loop {
            let is_last = *ended.borrow_and_update();
            let now_saved = self.saved();
            let has_saved = now_saved != saved;
            if is_last || has_saved || Instant::now() >= due {
                saved = now_saved;
                for index in 0..self.areas.len() {
                    // A program that says that it saved has finished writing its checkpoint.
                    let is_whole = is_last || (has_saved && self.areas[index].area == TreeArea::Checkpoint);
                    self.carry(index, is_whole, is_last).await?;
                }
                if self.arrived.borrow().is_none_or(|before| Some(before) != saved) {
                    self.arrived.send_replace(saved);
                }
                due = Instant::now() + CARRY_EVERY;
            }
            if is_last {
                return Ok(());
            }
            tokio::select! {
                _ = ended.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    fn saved(&self) -> Option<Checkpoint> {
        let report: ProgramReport = serde_json::from_slice(&std::fs::read(&self.report).ok()?).ok()?;
        report.checkpoint
    }

    async fn carry(&mut self, index: usize, is_whole: bool, is_last: bool) -> Result<(), RetryError> {
        let tree = &self.areas[index];
        let mut found = match scan::scan(&tree.root) {
            Ok(found) => found,
            Err(error) => {
                self.is_incomplete |= is_last;
                self.notes.add(format_args!("the {} cannot be looked at: {error}", tree.area.as_str()));
                return Ok(());
            }
        };
        if !is_whole {
            leave_out_unsettled(&mut found, &tree.known, SystemTime::now());
        }
        for step in plan(&tree.known, &found) {
            if let Step::Send(entry) = &step
                && self.areas[index].refused.get(&entry.path) == Some(entry)
            {
                continue;
            }
            self.take_step(index, step, is_last).await?;
        }
        Ok(())
    }
}

/// Files that may still be written are taken for what the server knows of them.
fn leave_out_unsettled(found: &mut Entries, known: &Entries, now: SystemTime) {
    let is_settled = |entry: &TreeEntry| {
        let modified: SystemTime = entry.modified_at.into();
        now.duration_since(modified).is_ok_and(|age| age >= SETTLED)
    };
    let unsettled: Vec<String> = found
        .values()
        .filter(|entry| scan::has_time(entry) && !is_settled(entry))
        .map(|entry| entry.path.clone())
        .collect();
    for path in unsettled {
        match known.get(&path) {
            Some(before) => drop(found.insert(path, before.clone())),
            None => drop(found.remove(&path)),
        }
    }
}

/// What is gone goes first, and what is in a folder before the folder; then come folders before what is in them.
fn plan(known: &Entries, found: &Entries) -> Vec<Step> {
    let is_other = |entry: &&TreeEntry| found.get(&entry.path).is_none_or(|now| now.kind != entry.kind);
    let removed = known.values().rev().filter(is_other).map(|entry| Step::Remove(entry.path.clone()));
    let changed = found.values().filter(|entry| known.get(&entry.path) != Some(entry));
    removed.chain(changed.cloned().map(Step::Send)).collect()
}

#[cfg(test)]
mod tests {
    use danlu_types::api::TreeKind;
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    /// Names in folders, as somebody's program may have made them; what is in a file is left out.
    fn trees() -> impl Strategy<Value = Entries> {
        let entry = (0..3i64, 0..3u8);
        prop::collection::btree_map("[ab]?[ab/é .-]{1,6}", entry, 0..12).prop_map(|entries| {
            let entry = |(path, (time, kind)): (String, (i64, u8))| {
                let kind = [TreeKind::File, TreeKind::Folder, TreeKind::Link][usize::from(kind)];
                let modified_at = Timestamp::from_second(time).unwrap();
                (
                    path.clone(),
                    TreeEntry { path, kind, size: 1, modified_at, executable: false, target: None },
                )
            };
            entries.into_iter().map(entry).collect()
        })
    }

    proptest! {
        #[test]
        fn a_plan_leads_from_any_tree_to_any_other(known in trees(), found in trees()) {
            let mut there = known.clone();
            for step in plan(&known, &found) {
                match step {
                    Step::Remove(path) => prop_assert!(there.remove(&path).is_some(), "{path} is not there"),
                    Step::Send(entry) => {
                        let before = there.insert(entry.path.clone(), entry.clone());
                        prop_assert!(before.is_none_or(|before| before.kind == entry.kind), "{} is of another kind", entry.path);
                    }
                }
            }
            prop_assert_eq!(there, found);
        }
    }

    fn entries(text: &str) -> Entries {
        let entry = |word: &str| {
            let (path, time) = word.split_once('@').unwrap_or((word, "0"));
            let (path, kind) = match path.strip_suffix('/') {
                Some(path) => (path, TreeKind::Folder),
                None => (path, TreeKind::File),
            };
            let modified_at = Timestamp::from_second(time.parse().unwrap()).unwrap();
            let entry = TreeEntry {
                path: path.to_owned(),
                kind,
                size: 1,
                modified_at,
                executable: false,
                target: None,
            };
            (path.to_owned(), entry)
        };
        text.split_whitespace().map(entry).collect()
    }

    fn planned(known: &str, found: &str) -> String {
        let show = |step: Step| match step {
            Step::Remove(path) => format!("-{path}"),
            Step::Send(entry) => format!("+{}", entry.path),
        };
        plan(&entries(known), &entries(found)).into_iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_changed_is_sent_and_what_is_gone_is_removed() {
        insta::assert_snapshot!(planned("", "a/ a/b c"), @"+a +a/b +c");
        insta::assert_snapshot!(planned("a/ a/b c", "a/ a/b c"), @"");
        insta::assert_snapshot!(planned("a/ a/b@1 c", "a/ a/b@2"), @"-c +a/b");
        insta::assert_snapshot!(planned("a/ a/b a/d/ a/d/e", "a"), @"-a/d/e -a/d -a/b -a +a");
    }

    #[test]
    fn what_may_be_half_written_waits() {
        let now: SystemTime = Timestamp::from_second(100).unwrap().into();
        let known = entries("old@50 changed@50");
        let mut found = entries("old@50 changed@99 new@99 done@97 folder/@99 ahead@101");
        leave_out_unsettled(&mut found, &known, now);
        let steps: Vec<Step> = plan(&known, &found);
        let sent: Vec<&str> = steps
            .iter()
            .map(|step| match step {
                Step::Send(entry) => entry.path.as_str(),
                Step::Remove(_) => "removed",
            })
            .collect();
        assert_eq!(sent, ["done", "folder"]);
    }
}
