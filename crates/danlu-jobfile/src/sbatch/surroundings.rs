//! How long a job may run, and where and with which variables.

use danlu_types::Span;

use super::amounts;
use super::header::OptionUse;
use super::job::Builder;
use super::options::Field;
use crate::diagnostic::ValueOrigin;
use crate::tree::{SourceTree, SourceValue};

/// Seconds of `--signal` without a time of its own, as Slurm has it.
const USUAL_NOTICE: u64 = 60;

impl Builder<'_> {
    pub(super) fn times(&mut self) {
        let accepted = "minutes, `hours:minutes:seconds` or `days-hours:minutes:seconds`";
        if let Some(Some(limit)) = self.read(Field::Time, amounts::time, accepted) {
            let place = self.place_of(&[Field::Time]);
            self.put("max_time", SourceValue::Text(limit.to_string()), place);
        }
        if let Some((given, value)) = self.value(Field::Signal) {
            let (signal, notice) = value.split_once('@').unwrap_or((value, ""));
            let seconds = notice.parse().unwrap_or(USUAL_NOTICE);
            let notice = Span { milliseconds: u64::from(u16::try_from(seconds).unwrap_or(u16::MAX)) * 1000 };
            let signal = signal.rsplit(':').next().unwrap_or(signal);
            self.note(
                given,
                format!(
                    "SIGTERM is sent instead of `{signal}`, when the time is over, with {notice} to end in"
                ),
            );
            self.put("grace", SourceValue::Text(notice.to_string()), ValueOrigin::File(given.place.clone()));
        }
        if self.fields.contains_key(&Field::Requeue) {
            let place = self.place_of(&[Field::Requeue]);
            self.put_number("retry.limit", 1, place.clone());
            let lost = SourceTree::text("node_lost", place.clone());
            self.put("retry.on", SourceValue::List(vec![lost]), place);
        }
    }

    pub(super) fn surroundings(&mut self) {
        if let Some((given, value)) = self.value(Field::Chdir) {
            let place = ValueOrigin::File(given.place.clone());
            self.put("working_directory", SourceValue::Text(value.to_owned()), place);
        }
        if let Some((given, value)) = self.value(Field::Export) {
            for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
                match part.split_once('=') {
                    Some((name, value)) => {
                        let place = ValueOrigin::File(given.place.clone());
                        self.put(&format!("env.{name}"), SourceValue::Text(value.to_owned()), place);
                    }
                    None if part.eq_ignore_ascii_case("none") || part.eq_ignore_ascii_case("nil") => {}
                    None => {
                        let text = format!(
                            "`{part}` in `--export` is not honoured: variables of your shell are not passed on; `--env NAME=VALUE` sets them"
                        );
                        self.note(given, text);
                    }
                }
            }
        }
        if let Some((given, value)) = self.value(Field::Constraint) {
            self.constraint(given, value);
        }
        let accepted = format!(
            "numbers and ranges, such as `0-9` or `1,3,5-20:5`; at most {} jobs",
            amounts::MOST_OF_AN_ARRAY
        );
        if let Some(array) = self.read(Field::Array, amounts::array, &accepted) {
            if let (Some(most), Some((given, _))) = (array.at_once, self.value(Field::Array)) {
                let text = format!(
                    "`%{most}` is not honoured: as many run at a time as there is room for, within your quota"
                );
                self.note(given, text);
            }
            self.script.array = array.tasks;
        }
    }

    /// Features of nodes are labels here: `ib&rack=r1`.
    fn constraint(&mut self, given: &OptionUse, value: &str) {
        let place = ValueOrigin::File(given.place.clone());
        let features: Vec<&str> = value.split(['&', ',']).map(str::trim).collect();
        let is_plain = |feature: &&str| {
            let plain = |letter: char| letter.is_alphanumeric() || "_-.=:/".contains(letter);
            !feature.is_empty() && feature.chars().all(plain)
        };
        if !features.iter().all(is_plain) {
            let text = format!(
                "`--constraint={value}` is not honoured: labels are joined by `&` only; any node may be taken that has what the job asks for"
            );
            return self.note(given, text);
        }
        let label = |feature: &str| {
            let (name, value) = feature.split_once('=').unwrap_or((feature, "true"));
            (name.to_owned(), place.clone(), SourceTree::text(value, place.clone()))
        };
        let labels = features.into_iter().map(label).collect();
        self.put("nodes.labels", SourceValue::Map(labels), place.clone());
    }
}
