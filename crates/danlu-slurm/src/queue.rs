//! `squeue`: the jobs of one user, in columns that we name.
//!
//! Columns of our own choice and not `--json`: they are the same from 20.11 to 26.05, cost the controller and us a
//! tenth, and need none of the plugins that sites leave out (ADR 11).

/// For `squeue --format`. The reason comes last, because it alone may hold anything.
pub const QUEUE_FORMAT: &str = "%i|%T|%j|%r";

/// The same without the name, which may hold whole lines: for questions about jobs of other users, who could forge ends of ours.
pub const WATCH_FORMAT: &str = "%i|%T|-|%r";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqueueJob {
    pub id: u64,
    pub state: SlurmJobState,
    pub name: String,
    /// Slurm's word for why it waits, or why it ended.
    pub reason: String,
    /// With which code its script ended, where Slurm was asked.
    pub exit_code: Option<i32>,
}

/// The states of a job, as far as they differ for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlurmJobState {
    Waiting,
    /// It has nodes; also while it is being set up or cleaned up after, and whatever future releases call it.
    Alive,
    Suspended,
    Completed,
    Over(SlurmJobEnd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlurmJobEnd {
    Cancelled,
    Failed,
    TimedOut,
    NodeFailed,
    Preempted,
    OutOfMemory,
}

impl SlurmJobState {
    pub fn parse(word: &str) -> Self {
        match word {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "RESV_DEL_HOLD" | "SPECIAL_EXIT" => {
                SlurmJobState::Waiting
            }
            "SUSPENDED" | "STOPPED" => SlurmJobState::Suspended,
            "COMPLETED" => SlurmJobState::Completed,
            "FAILED" => SlurmJobState::Over(SlurmJobEnd::Failed),
            "TIMEOUT" | "DEADLINE" => SlurmJobState::Over(SlurmJobEnd::TimedOut),
            "NODE_FAIL" | "BOOT_FAIL" => SlurmJobState::Over(SlurmJobEnd::NodeFailed),
            "PREEMPTED" => SlurmJobState::Over(SlurmJobEnd::Preempted),
            "OUT_OF_MEMORY" => SlurmJobState::Over(SlurmJobEnd::OutOfMemory),
            "REVOKED" => SlurmJobState::Over(SlurmJobEnd::Cancelled),
            // `scontrol` adds by whom: `CANCELLED by 1000`.
            word if word.starts_with("CANCELLED") => SlurmJobState::Over(SlurmJobEnd::Cancelled),
            _ => SlurmJobState::Alive,
        }
    }
}

/// The jobs of an answer in [`QUEUE_FORMAT`]; lines that are none are passed over.
pub fn parse_queue(text: &str) -> Vec<SqueueJob> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<SqueueJob> {
    let mut columns = line.splitn(4, '|');
    let id = columns.next()?.trim().parse().ok().filter(|id| *id > 0)?;
    let state = columns.next()?.trim();
    // A state is a word of capitals; anything else is another column, or half a line.
    if state.is_empty() || !state.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_') {
        return None;
    }
    let name = columns.next()?.to_owned();
    let reason = columns.next()?.trim().to_owned();
    Some(SqueueJob { id, state: SlurmJobState::parse(state), name, reason, exit_code: None })
}

/// The job of `scontrol --oneliner show job NUMBER`.
pub fn parse_job(text: &str) -> Option<SqueueJob> {
    let line = text.lines().find(|line| line.starts_with("JobId="))?;
    // The first of a name counts: what users write comes after these.
    let field = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    Some(SqueueJob {
        id: field("JobId")?.parse().ok().filter(|id| *id > 0)?,
        state: SlurmJobState::parse(field("JobState")?),
        name: field("JobName").unwrap_or_default().to_owned(),
        reason: field("Reason").unwrap_or_default().to_owned(),
        // The code, and the signal after a colon.
        exit_code: field("ExitCode").and_then(|code| code.split(':').next()?.parse().ok()),
    })
}

/// Whether the job of the same answer was preempted. One that was given a grace time and ended within it is `COMPLETED` or
/// `FAILED` by its state, before 24.05.
pub fn parse_preempted(text: &str) -> bool {
    let line = text.lines().find(|line| line.starts_with("JobId=")).unwrap_or_default();
    let time = line.split(' ').find_map(|word| word.strip_prefix("PreemptTime="));
    time.is_some_and(|time| !matches!(time, "" | "None" | "N/A" | "Unknown"))
}

/// For `sacct --format`, which answers in the same columns as `squeue` with [`QUEUE_FORMAT`], as far as it knows them.
pub const ACCOUNT_FORMAT: &str = "JobIDRaw,State,JobName,Reason";

/// How a job ended that Slurm's controller has forgotten, from its accounting. One that has not ended there was not
/// written down to its end, which says nothing.
pub fn parse_accounted(text: &str, id: u64) -> Option<SqueueJob> {
    // `CANCELLED by 1000` is one column there.
    let lines = text.lines().map(|line| match line.split_once(" by ") {
        Some((before, after)) => format!("{before}{}", after.trim_start_matches(|it: char| it != '|')),
        None => line.to_owned(),
    });
    let mut jobs = lines.filter_map(|line| parse_line(&line)).filter(|job| job.id == id);
    jobs.find(|job| matches!(job.state, SlurmJobState::Completed | SlurmJobState::Over(_)))
}

/// What `sbatch --parsable` prints: the number, and the cluster's name after a semicolon where there are several. Other
/// lines are what a site's own plugins say.
pub fn parse_submitted(text: &str) -> Option<u64> {
    let number = |line: &str| line.trim().split(';').next()?.parse::<u64>().ok().filter(|id| *id > 0);
    text.lines().rev().find_map(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn jobs_are_read_and_strangers_passed_over() {
        let text = "17|PENDING|danlu-7.1-ab|Resources\n\
                    18|RUNNING|danlu-8.1-cd|None\n\
                    19|PENDING|danlu-9.1-ef|ReqNodeNotAvail, UnavailableNodes:n[1-2]\n\
                    20_3|RUNNING|array|None\n\
                    21|COMPLETING|danlu-10.1-aa|a|b\n\
                    22|CANCELLED|danlu-11.1-aa|None\n\
                    23|NODE_FAIL|x|NodeDown\n\
                    24|SOMETHING_NEW|x|None\n\
                    slurm_load_jobs error: Unable to contact slurm controller\n\
                    JOBID|STATE|NAME|REASON\n\
                    25|RUNN";
        let read: Vec<String> = parse_queue(text)
            .iter()
            .map(|job| format!("{} {:?} {} ({})", job.id, job.state, job.name, job.reason))
            .collect();
        insta::assert_snapshot!(read.join("\n"), @r"
        17 Waiting danlu-7.1-ab (Resources)
        18 Alive danlu-8.1-cd (None)
        19 Waiting danlu-9.1-ef (ReqNodeNotAvail, UnavailableNodes:n[1-2])
        21 Alive danlu-10.1-aa (a|b)
        22 Over(Cancelled) danlu-11.1-aa (None)
        23 Over(NodeFailed) x (NodeDown)
        24 Alive x (None)
        ");
    }

    #[test]
    fn one_job_is_read_by_itself() {
        let text = "JobId=17 JobName=danlu-7.1-ab UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=1 Nice=0 \
                    Account=(null) QOS=(null) JobState=NODE_FAIL Reason=NodeDown Dependency=(null) Requeue=0\n";
        let job = parse_job(text).unwrap();
        assert_eq!(
            (job.id, job.state, job.reason.as_str()),
            (17, SlurmJobState::Over(SlurmJobEnd::NodeFailed), "NodeDown")
        );
        for nothing in ["", "JobId=", "JobId=17", "JobId=x JobState=FAILED", "No jobs in the system"] {
            assert_eq!(parse_job(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn what_accounting_remembers_is_an_end_or_nothing() {
        let state = |text: &str| parse_accounted(text, 17).map(|job| job.state);
        assert_eq!(
            state("17|CANCELLED by 1000|danlu-7.1|None\n"),
            Some(SlurmJobState::Over(SlurmJobEnd::Cancelled))
        );
        assert_eq!(
            state("17|NODE_FAIL|danlu-7.1|NodeDown\n"),
            Some(SlurmJobState::Over(SlurmJobEnd::NodeFailed))
        );
        assert_eq!(state("17|COMPLETED|danlu-7.1|None\n"), Some(SlurmJobState::Completed));
        for nothing in
            ["", "17|RUNNING|danlu-7.1|None", "18|FAILED|x|None", "Slurm accounting storage is disabled"]
        {
            assert_eq!(state(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn the_number_of_a_submission_is_found() {
        assert_eq!(parse_submitted("17\n"), Some(17));
        assert_eq!(parse_submitted("17;cluster\n"), Some(17));
        assert_eq!(parse_submitted("welcome to our site\n17\n"), Some(17));
        for nothing in ["", "0", "Submitted batch job", "-3", "99999999999999999999999"] {
            assert_eq!(parse_submitted(nothing), None, "{nothing}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_is_too_strange(text in "(.|\n){0,300}") {
            let _ = parse_queue(&text);
            let _ = (parse_submitted(&text), parse_job(&text), parse_accounted(&text, 1));
        }

        /// Cut anywhere, an answer loses at most jobs; it never makes one that ends differently. The last line may lose
        /// part of its reason.
        #[test]
        fn a_cut_answer_invents_nothing(at in 0_usize..80) {
            let whole = "17|RUNNING|danlu-7.1-ab|None\n18|COMPLETED|danlu-8.1-cd|None\n19|FAILED|danlu|No\n";
            let all = parse_queue(whole);
            for job in parse_queue(&whole[..at.min(whole.len())]) {
                prop_assert!(all.iter().any(|it| it.id == job.id && it.state == job.state));
            }
        }
    }
}
