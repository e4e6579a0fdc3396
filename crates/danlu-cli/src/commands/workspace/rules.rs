//! The rules of a workspace, as flags change them.

use clap::Args;
use danlu_types::spec::OnHang;
use danlu_types::{Amounts, HeadOfLine, IdlePolicy, Span, Workspace};

/// Changes to a workspace's rules; what is not named stays.
#[derive(Debug, Args)]
pub(crate) struct RuleFlags {
    /// Guarantee, e.g. `nvidia=8,cpus=64,memory=1Ti`; `nvidia=none` removes one
    #[arg(long, value_name = "AMOUNTS")]
    guaranteed: Option<AmountChanges>,
    /// Limit of the workspace, e.g. `nvidia=16`
    #[arg(long, value_name = "AMOUNTS")]
    limit: Option<AmountChanges>,
    /// Limit per user, e.g. `nvidia=4`
    #[arg(long, value_name = "AMOUNTS")]
    per_user: Option<AmountChanges>,
    /// Approval threshold, e.g. `nvidia=8`; an owner must approve jobs that request more
    #[arg(long, value_name = "AMOUNTS")]
    approve_above: Option<AmountChanges>,
    /// Priority of jobs that set none
    #[arg(long, value_name = "1-9")]
    default_priority: Option<u8>,
    /// Highest priority that jobs can set
    #[arg(long, value_name = "1-9")]
    highest_priority: Option<u8>,
    /// Images that jobs can use, e.g. `pytorch:*`; repeat for more; replaces the previous patterns
    #[arg(long = "image", value_name = "PATTERN")]
    images: Vec<String>,
    /// Idle time after which jobs that hold devices are reported (`2h`) or restarted (`2h:restart`); `none` turns it off
    #[arg(long, value_name = "DURATION[:ACTION]", value_parser = idle)]
    idle: Option<Idle>,
    /// Shared folder of the workspace, which jobs get as `$DANLU_SHARED_DIR`; `none` removes it
    #[arg(long, value_name = "FOLDER")]
    shared_folder: Option<String>,
    /// Shared object storage of the workspace, e.g. `s3://vision/data`, which jobs get as `$DANLU_SHARED_BUCKET`; `none` removes it
    #[arg(long, value_name = "BUCKET")]
    shared_bucket: Option<String>,
    /// Queue policy while the first job cannot start: `backfill`, `strict`, `skip` or `balance`
    #[arg(long, value_name = "POLICY", value_parser = head_of_line)]
    head_of_line: Option<HeadOfLine>,
}

impl RuleFlags {
    /// The rules with these changes.
    pub(crate) fn change(self, mut rules: Workspace) -> Workspace {
        let amounts = [
            (self.guaranteed, &mut rules.guaranteed),
            (self.limit, &mut rules.limit),
            (self.per_user, &mut rules.per_user),
            (self.approve_above, &mut rules.approve_above),
        ];
        for (changes, amounts) in amounts {
            changes.iter().flat_map(|AmountChanges(changes)| changes).for_each(|change| change.make(amounts));
        }
        rules.default_priority = self.default_priority.or(rules.default_priority);
        rules.highest_priority = self.highest_priority.or(rules.highest_priority);
        if !self.images.is_empty() {
            rules.images = self.images;
        }
        match self.idle {
            Some(Idle::Never) => rules.idle = None,
            Some(Idle::After(policy)) => rules.idle = Some(policy),
            None => {}
        }
        for (said, place) in
            [(self.shared_folder, &mut rules.shared_folder), (self.shared_bucket, &mut rules.shared_bucket)]
        {
            match said {
                Some(said) if said == "none" => *place = None,
                Some(said) => *place = Some(said),
                None => {}
            }
        }
        rules.head_of_line = self.head_of_line.unwrap_or(rules.head_of_line);
        rules
    }
}

#[derive(Debug, Clone)]
struct AmountChanges(Vec<AmountChange>);

/// One resource and its new amount; none to speak of it no more.
#[derive(Debug, Clone)]
enum AmountChange {
    Nvidia(Option<danlu_types::DeviceCount>),
    Ascend(Option<danlu_types::DeviceCount>),
    Cpus(Option<danlu_types::Cpus>),
    Memory(Option<danlu_types::Bytes>),
}

impl AmountChange {
    fn make(&self, amounts: &mut Amounts) {
        match self {
            AmountChange::Nvidia(count) => amounts.nvidia = *count,
            AmountChange::Ascend(count) => amounts.ascend = *count,
            AmountChange::Cpus(cpus) => amounts.cpus = *cpus,
            AmountChange::Memory(memory) => amounts.memory = *memory,
        }
    }
}

impl std::str::FromStr for AmountChanges {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        fn amount<T: std::str::FromStr>(text: &str) -> Result<Option<T>, String>
        where
            T::Err: ToString,
        {
            if text == "none" {
                Ok(None)
            } else {
                text.parse().map(Some).map_err(|error: T::Err| error.to_string())
            }
        }
        let change = |part: &str| {
            let (resource, value) = part
                .split_once('=')
                .ok_or_else(|| format!("invalid amount `{part}`: write it as `nvidia=8`"))?;
            match resource.trim() {
                "nvidia" => amount(value).map(AmountChange::Nvidia),
                "ascend" => amount(value).map(AmountChange::Ascend),
                "cpus" => amount(value).map(AmountChange::Cpus),
                "memory" => amount(value).map(AmountChange::Memory),
                other => Err(format!(
                    "`{other}` is nothing to share; write `nvidia`, `ascend`, `cpus` or `memory`"
                )),
            }
        };
        text.split(',').map(str::trim).map(change).collect::<Result<_, _>>().map(AmountChanges)
    }
}

#[derive(Debug, Clone, Copy)]
enum Idle {
    Never,
    After(IdlePolicy),
}

fn idle(text: &str) -> Result<Idle, String> {
    if text == "none" {
        return Ok(Idle::Never);
    }
    let (after, then) = text.split_once(':').unwrap_or((text, "notify"));
    let after: Span = after.parse().map_err(|error: danlu_types::ParseQuantityError| error.to_string())?;
    let then = match then {
        "notify" => OnHang::Notify,
        "restart" => OnHang::Restart,
        other => {
            return Err(format!("`{other}` is nothing to do about idle jobs; write `notify` or `restart`"));
        }
    };
    Ok(Idle::After(IdlePolicy { after, then }))
}

fn head_of_line(text: &str) -> Result<HeadOfLine, String> {
    match text {
        "backfill" => Ok(HeadOfLine::Backfill),
        "strict" => Ok(HeadOfLine::Strict),
        "skip" => Ok(HeadOfLine::Skip),
        "balance" => Ok(HeadOfLine::Balance),
        other => {
            Err(format!("invalid queue policy `{other}`: write `backfill`, `strict`, `skip` or `balance`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        flags: RuleFlags,
    }

    fn rules(words: &str, before: Workspace) -> Result<Workspace, String> {
        let line = Line::try_parse_from(["danlu"].into_iter().chain(words.split_whitespace()));
        Ok(line.map_err(|error| error.to_string())?.flags.change(before))
    }

    #[test]
    fn what_is_not_named_stays() {
        let made =
            "--guaranteed nvidia=8,memory=1Ti --limit nvidia=16 --idle 2h:restart --image host --image lab/*";
        let made = rules(made, Workspace::default()).unwrap();
        let after = "--guaranteed memory=none,cpus=64 --idle none --highest-priority 7 --head-of-line skip";
        let after = rules(after, made).unwrap();
        insta::assert_json_snapshot!(after, @r#"
        {
          "guaranteed": {
            "nvidia": 8,
            "cpus": "64"
          },
          "limit": {
            "nvidia": 16
          },
          "per_user": {},
          "head_of_line": "skip",
          "highest_priority": 7,
          "images": [
            "host",
            "lab/*"
          ]
        }
        "#);
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        for (wrong, hint) in [
            ("--limit gpu=8", "`nvidia`, `ascend`, `cpus` or `memory`"),
            ("--limit 8", "`nvidia=8`"),
            ("--idle 2h:kill", "`notify` or `restart`"),
            ("--head-of-line fifo", "`balance`"),
        ] {
            let said = rules(wrong, Workspace::default()).unwrap_err();
            assert!(said.contains(hint), "{said}");
        }
    }
}
