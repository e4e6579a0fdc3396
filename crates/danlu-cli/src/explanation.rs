//! Why a job waits, on a terminal: a paragraph, who holds what it needs, and what would start it now.

use danlu_types::api::{Explanation, ForeignHolder, Holder, Offer};
use danlu_types::spec::shell_quote;
use danlu_types::{JobId, NodeName};
use jiff::Timestamp;
use owo_colors::OwoColorize as _;

use crate::{output, table, words};

/// The command line that takes an offer, around its `--set key=value`.
#[derive(Debug, Clone)]
pub(crate) struct Taking {
    before: String,
    after: String,
}

impl Taking {
    /// Changes a job that waits, which keeps its turn, on the server that the words of the question name.
    pub(crate) fn change(job: JobId, words: &[String]) -> Self {
        let mut before = "danlu".to_owned();
        for flag in ["--data", "--profile"] {
            let apart = words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1));
            let joined = || words.iter().find_map(|word| word.strip_prefix(flag)?.strip_prefix('='));
            if let Some(value) = apart.map(String::as_str).or_else(joined) {
                before = format!("{before} {flag} {}", shell_quote(value));
            }
        }
        Taking { before: format!("{before} change {job}"), after: String::new() }
    }

    /// Submits what was asked about: the words of a dry run, without what makes it one. `--set` overrides the other flags,
    /// and has to come before the command.
    pub(crate) fn submission(words: &[String]) -> Self {
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let (flags, command) = words.split_at(end);
        let flags = flags.iter().filter(|word| *word != "--dry-run" && *word != "--json");
        let line = |words: &mut dyn Iterator<Item = &String>| {
            words.fold(String::new(), |line, word| line + " " + &shell_quote(word))
        };
        Taking { before: format!("danlu{}", line(&mut { flags })), after: line(&mut command.iter()) }
    }

    fn line(&self, offer: &Offer) -> String {
        let set = offer.set.iter();
        let set = set.map(|(key, value)| format!(" --set {}", shell_quote(&format!("{key}={value}"))));
        format!("{}{}{}", self.before, set.collect::<String>(), self.after)
    }
}

/// The whole answer, in lines of at most `width` characters where words allow it.
pub(crate) fn page(explanation: &Explanation, taking: &Taking, width: usize, now: Timestamp) -> String {
    let text = match explanation.text.trim() {
        "" => words::state_sentence(explanation.state, &explanation.reason),
        text => text.to_owned(),
    };
    let mut parts = vec![wrapped(&output::printable(&text), width)];
    if !explanation.holders.is_empty() {
        parts.push(table::text(&holders_table(&explanation.holders, now)));
    }
    if !explanation.foreign.is_empty() {
        parts.push(table::text(&foreign_table(&explanation.foreign, now)));
    }
    if !explanation.offers.is_empty() {
        let mut lines = vec!["suggestions that start now:".to_owned()];
        for offer in &explanation.offers {
            let command = taking.line(offer);
            let text = output::printable(&offer.text);
            lines.push(format!("  {}  {}", output::printable(&command).cyan(), format!("# {text}").dimmed()));
        }
        parts.push(lines.join("\n"));
    }
    parts.join("\n\n")
}

fn holders_table(holders: &[Holder], now: Timestamp) -> comfy_table::Table {
    let held = match holders.first() {
        Some(Holder { cpus: Some(_), .. }) => "CPUs",
        Some(Holder { memory: Some(_), .. }) => "memory",
        _ => "devices",
    };
    let mut table = table::new(["held by", "owner", "workspace", held, "on", "ends"]);
    for holder in holders {
        let amount = match (holder.devices, holder.cpus, holder.memory) {
            (_, Some(cpus), _) => cpus.to_string(),
            (_, _, Some(memory)) => memory.to_string(),
            (0, ..) => "–".to_owned(),
            (devices, ..) => devices.to_string(),
        };
        let (nodes, ends) = (named(&holder.nodes), end(holder.expected_end, now));
        table.add_row([
            match holder.job {
                Some(job) => format!("job {job} ({})", output::printable(&holder.name)),
                None => output::printable(&holder.name),
            },
            or_dash(&holder.owner),
            or_dash(&holder.workspace),
            amount,
            nodes,
            ends,
        ]);
    }
    table
}

/// Of a job that one may not see.
fn or_dash(text: &str) -> String {
    if text.is_empty() { "–".to_owned() } else { output::printable(text) }
}

fn foreign_table(holders: &[ForeignHolder], now: Timestamp) -> comfy_table::Table {
    let mut table = table::new(["held outside Danlu by", "user", "devices", "on", "ends"]);
    for holder in holders {
        table.add_row([
            output::printable(&words::foreign_label(holder.kind, &holder.job, &holder.name)),
            output::printable(&holder.user),
            if holder.devices == 0 { "–".to_owned() } else { holder.devices.to_string() },
            named(&holder.nodes),
            end(holder.until, now),
        ]);
    }
    table
}

fn named(nodes: &[NodeName]) -> String {
    let nodes: Vec<&str> = nodes.iter().map(|node| node.0.as_str()).collect();
    match nodes[..] {
        [first, second, _, ..] => format!("{first}, {second} and {} more", nodes.len() - 2),
        _ => nodes.join(", "),
    }
}

fn end(at: Option<Timestamp>, now: Timestamp) -> String {
    match at {
        Some(at) if at > now => format!("in about {}", words::between(now, at)),
        Some(_) => "any moment".to_owned(),
        None => "unknown".to_owned(),
    }
}

/// Breaks between words; a word that is longer than a line stands alone.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    let mut length = 0;
    for word in text.split_whitespace() {
        let letters = word.chars().count();
        match lines.last_mut() {
            Some(line) if length == 0 || length + 1 + letters <= width => {
                if length > 0 {
                    line.push(' ');
                    length += 1;
                }
                line.push_str(word);
                length += letters;
            }
            _ => {
                lines.push(word.to_owned());
                length = letters;
            }
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use danlu_types::Reason;
    use danlu_types::api::{EstimateBasis, EstimateBound, JobState, StartEstimate};

    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + 60 * minute).unwrap()
    }

    fn explanation() -> Explanation {
        let holder = |job: u64, devices, nodes: &[&str], expected_end| Holder {
            job: Some(JobId(job)),
            name: format!("train-{job}"),
            workspace: "vision".to_owned(),
            owner: "ada".to_owned(),
            devices,
            cpus: None,
            memory: None,
            nodes: nodes.iter().map(|node| NodeName((*node).to_owned())).collect(),
            expected_end,
        };
        let offer = |key: &str, value: &str, text: &str| Offer {
            set: [(key.to_owned(), value.to_owned())].into(),
            text: text.to_owned(),
        };
        Explanation {
            job: JobId(12),
            state: JobState::Queued,
            reason: Reason::Reserved { job: JobId(3) },
            further: Vec::new(),
            text: "Waiting for 8 Ascend 910B* (5 free). 5 of 16 Ascend 910B3 are free, at most 3 on one node. Queue \
                   position: 1 in workspace `vision`. Held by job 3 of ada (8), job 5 of ada (3). Expected to start in 12m \
                   to 40m, based on time limits. Suggestions: 4 instead of 8 devices start now."
                .to_owned(),
            position: Some(1),
            supply: Vec::new(),
            quota: None,
            holders: vec![
                holder(3, 8, &["node-0"], Some(at(40))),
                holder(5, 3, &["node-0", "node-1", "node-2", "node-3"], None),
                holder(6, 0, &["node-1"], Some(at(-1))),
            ],
            foreign: vec![ForeignHolder {
                kind: danlu_types::ForeignKind::ClusterJob,
                device_indices: Vec::new(),
                job: "4711".to_owned(),
                name: "night run".to_owned(),
                user: "alice".to_owned(),
                devices: 2,
                nodes: vec![NodeName("node-0".to_owned())],
                until: Some(at(90)),
            }],
            cordoned: Vec::new(),
            estimate: Some(StartEstimate {
                earliest: at(12),
                latest: Some(at(40)),
                bound: EstimateBound::Range,
                basis: EstimateBasis { time_limits: 2, ..EstimateBasis::default() },
                rests_on: "time limits".to_owned(),
            }),
            offers: vec![
                offer("devices.count", "4", "4 instead of 8 devices start now"),
                offer("devices.model", "910 A", "8 of model 910 A start now"),
            ],
        }
    }

    fn shown(explanation: &Explanation) -> String {
        let page = page(explanation, &Taking::change(explanation.job, &[]), 72, at(0));
        anstream::adapter::strip_str(&page).to_string()
    }

    #[test]
    fn a_waiting_job_is_explained_on_one_page() {
        insta::assert_snapshot!(shown(&explanation()));
    }

    #[test]
    fn without_a_paragraph_the_state_speaks_for_itself() {
        let bare = Explanation {
            text: String::new(),
            holders: Vec::new(),
            foreign: Vec::new(),
            offers: Vec::new(),
            ..explanation()
        };
        assert_eq!(
            shown(&bare),
            "queued: free resources are reserved for job 3, which is ahead in the\nqueue"
        );
    }

    #[test]
    fn an_offer_of_a_dry_run_is_the_same_command_with_a_change() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let line = |words: &[String]| Taking::submission(words).line(&explanation().offers[1]);
        let typed = words("--data d submit --dry-run --devices ascend:910B*:8 --json -- sleep --dry-run");
        insta::assert_snapshot!(line(&typed), @"danlu --data d submit --devices 'ascend:910B*:8' --set 'devices.model=910 A' -- sleep --dry-run");
        let change = Taking::change(JobId(3), &words("why 3 --data=/a"));
        insta::assert_snapshot!(change.line(&explanation().offers[0]), @"danlu --data /a change 3 --set devices.count=4");
        insta::assert_snapshot!(line(&words("submit job.yaml --dry-run")), @"danlu submit job.yaml --set 'devices.model=910 A'");
    }
}
