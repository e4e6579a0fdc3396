//! Sixty jobs on a Slurm cluster, and forty-five random faults in the middle of them: daemons killed and halted, nodes drained and
//! down, jobs cancelled, held and run again by administrators. Witnesses that are no part of Danlu say afterwards what ran, and
//! what became of each job is held against that.
//!
//! Not run unasked, because it is random and takes minutes: `scripts/test.sh campaign`. `DANLU_CAMPAIGN_SEED` makes one again, as
//! far as timing allows; `DANLU_CAMPAIGN_JOBS` and `DANLU_CAMPAIGN_FAULTS` say how many; what was done and found is left in the
//! folder `DANLU_CAMPAIGN_OUT`, if that is set, with all files of jobs that something is wrong with.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod cluster;
mod course;
mod faults;
mod judgement;
mod witness;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use danlu_testkit::SlurmRig;

use self::course::{Course, Plan};
use self::faults::Dice;

/// A controller that misses a dead node while the campaign still runs.
const MISSED: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "random, and takes minutes: scripts/test.sh campaign"]
async fn jobs_survive_whatever_breaks_on_a_shared_disk() {
    let Some(rig) = SlurmRig::start_that_misses_nodes_after(MISSED) else { return };
    run(&rig, true).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "random, and takes minutes: scripts/test.sh campaign"]
async fn jobs_survive_whatever_breaks_where_nothing_is_shared() {
    let Some(rig) = SlurmRig::apart() else { return };
    run(rig, false).await;
}

async fn run(rig: &SlurmRig, is_shared: bool) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("DANLU_CAMPAIGN_SEED").unwrap_or_else(Dice::any_seed);
    let jobs = usize::try_from(number("DANLU_CAMPAIGN_JOBS").unwrap_or(60)).unwrap();
    let faults = usize::try_from(number("DANLU_CAMPAIGN_FAULTS").unwrap_or(45)).unwrap();
    let plan = Plan { is_shared, seed, jobs, faults };
    let mut course = Course::begin(rig, plan).await;
    course.go().await;
    let found = course.judge().await;
    let text = found.to_string();
    if let Some(out) = std::env::var_os("DANLU_CAMPAIGN_OUT").map(PathBuf::from) {
        course.keep(&out, &text, &found);
    }
    // Also where the harness keeps what passing tests print.
    std::io::stdout().write_all(text.as_bytes()).unwrap();
    assert!(found.is_clean(), "seed {seed}:\n{text}");
}
