//! What programs print about themselves.

use danlu_core::report::{ProgramReport, ReportLine, progress, read_line};
use danlu_types::{Fraction, Rank};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn told(lines: &[(u32, i64, &str)]) -> ProgramReport {
    let mut report = ProgramReport::default();
    for (rank, seconds, line) in lines {
        report.take(Rank(*rank), &read_line(line.as_bytes()).unwrap(), at(*seconds));
    }
    report
}

#[test]
fn lines_that_are_understood_and_lines_that_are_not() {
    let lines = [
        "::danlu progress 0.42",
        "::danlu progress 42%",
        "::danlu progress 1",
        "::danlu progress 1.5",
        "::danlu progress nan",
        "::danlu progress",
        "::danlu checkpoint step=300",
        "::danlu checkpoint",
        "::danlu checkpoint step=x epoch=2",
        "::danlu metric loss=0.31",
        "::danlu metric loss=0.31 step=12 lr=1e-4 =3 a\u{7f}b=1",
        "::danlu metric loss=nan",
        "::danlu metric loss",
        "::danlu dance",
        "::danlu ",
        " ::danlu progress 0.1",
        "progress 0.1",
    ];
    let shown: Vec<String> =
        lines.iter().map(|line| format!("{line:?}: {:?}", read_line(line.as_bytes()))).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn time_left_goes_by_the_speed_of_this_attempt() {
    let report = told(&[
        (0, 0, "::danlu progress 0.5"),
        (0, 60, "::danlu progress 0.6"),
        (0, 61, "::danlu metric loss=2"),
    ]);
    let view = progress(&[report]);
    assert_eq!(view.done, Fraction::new(0.6));
    assert_eq!(view.left.map(|left| left.to_string()), Some("4m".to_owned()));
    assert_eq!(view.at, Some(at(61)));
    assert_eq!(progress(&[told(&[(0, 0, "::danlu progress 0.5")])]).left, None, "one word has no speed");
}

#[test]
fn a_program_that_begins_again_is_measured_again() {
    let report = told(&[
        (0, 0, "::danlu progress 0.2"),
        (0, 10, "::danlu progress 0.9"),
        (0, 20, "::danlu progress 0"),
        (0, 30, "::danlu progress 0.5"),
    ]);
    assert_eq!(progress(&[report]).left.map(|left| left.to_string()), Some("10s".to_owned()));
}

#[test]
fn the_slowest_rank_is_the_jobs_progress_and_those_far_behind_are_named() {
    let first = told(&[(0, 0, "::danlu progress 0.50"), (1, 0, "::danlu progress 0.51")]);
    let second = told(&[(2, 0, "::danlu progress 0.40"), (3, 0, "::danlu progress 0.49")]);
    let view = progress(&[first.clone(), second]);
    assert_eq!((view.done, view.stragglers), (Fraction::new(0.4), vec![Rank(2)]));
    assert_eq!(progress(&[first]).stragglers, vec![], "of two, nobody is behind the middle");
}

#[test]
fn the_latest_checkpoint_and_the_first_workers_metrics_count() {
    let first = told(&[(0, 0, "::danlu checkpoint step=1"), (0, 0, "::danlu metric loss=0.5")]);
    let second = told(&[(1, 5, "::danlu checkpoint step=2"), (1, 0, "::danlu metric loss=0.7 only=1")]);
    let view = progress(&[first, second]);
    assert_eq!((view.checkpoint_at, view.checkpoint_step), (Some(at(5)), Some(2)));
    assert_eq!(serde_json::to_string(&view.metrics).unwrap(), r#"{"loss":0.5,"only":1.0}"#);
}

#[test]
fn what_is_no_number_is_remembered_with_whose_it_was() {
    let report = told(&[(3, 0, "::danlu metric loss=nan"), (0, 1, "::danlu metric loss=inf")]);
    assert_eq!(report.not_a_number, Some((Rank(3), "loss".to_owned())));
    assert!(report.metrics.is_empty());
}

proptest! {
    #[test]
    fn nothing_that_is_printed_hurts(line in prop::collection::vec(any::<u8>(), 0..80), word in "progress|metric|checkpoint") {
        let mut text = format!("::danlu {word} ").into_bytes();
        text.extend(line);
        if let Some(ReportLine::Progress(done)) = read_line(&text) {
            prop_assert!(done.value() <= 1.0);
        }
    }
}
