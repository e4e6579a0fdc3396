//! The scheduler's rules, one fixture each. The snapshots are meant to be read: they are its documentation.

macro_rules! assert_transcript {
    ($fixture:literal) => {
        let transcript = crate::fixture::transcript($fixture);
        insta::assert_snapshot!(transcript);
    };
}

mod failure;
mod head_of_line;
mod order;
mod placement;
mod preemption;
mod quota;
mod refusal;
