//! What a Slurm job is called: for us, who find it again by its name, and for people, who read its comment.

use danlu_types::{AttemptNumber, JobId};

/// The name of an order. Nothing that was ever submitted anywhere has this `unique`.
pub fn order_name(job: JobId, attempt: AttemptNumber, part: usize, unique: u64) -> String {
    format!("danlu-{job}.{attempt}-{part}-{unique:016x}")
}

/// Which order a name may be that of: its job, attempt and part.
pub fn order_of_name(name: &str) -> Option<(u64, AttemptNumber, usize)> {
    let (job, rest) = name.strip_prefix("danlu-")?.split_once('.')?;
    let (attempt, rest) = rest.split_once('-')?;
    let (part, _) = rest.split_once('-')?;
    Some((job.parse().ok()?, AttemptNumber(attempt.parse().ok()?), part.parse().ok()?))
}

/// Whose job it is and what it is called, for those who look at Slurm's lists: all jobs may be of one user there.
pub fn order_comment(job: JobId, name: &str, owner: &str, workspace: &str) -> String {
    const LONGEST: usize = 200;
    let text = format!("danlu job {job} `{name}` of {owner} in {workspace}");
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_orders_are_recognised() {
        let name = order_name(JobId(7), AttemptNumber(2), 1, 0xab);
        assert_eq!(name, "danlu-7.2-1-00000000000000ab");
        assert_eq!(order_of_name(&name), Some((7, AttemptNumber(2), 1)));
        for stranger in ["danlu", "danlu-7", "danlu-x.1-0-ab", "danlu-7.1-../-ab", "train"] {
            assert_eq!(order_of_name(stranger), None, "{stranger}");
        }
    }
}
