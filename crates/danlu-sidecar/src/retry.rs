//! Asking until there is an answer: a server that is away comes back.

use std::time::{Duration, Instant};

use danlu_client::ClientError;
use danlu_types::ProblemCode;
use rand::Rng as _;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// A server that was started with other settings by mistake knows none of its sidecars. It is given time to be set right.
const LONGEST_DENIAL: Duration = Duration::from_mins(10);

/// An answer that asking again would not change.
#[derive(Debug)]
pub(crate) enum RetryError {
    /// Nobody waits for this worker any more.
    Over,
    Refused(ClientError),
}

#[derive(Debug, PartialEq, Eq)]
enum Reaction {
    Again,
    Over,
    Refused,
}

pub(crate) async fn retry_until_answered<T, A>(ask: impl Fn() -> A) -> Result<T, RetryError>
where
    A: Future<Output = Result<T, ClientError>>,
{
    let (begun, mut turn) = (Instant::now(), 0);
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match reaction(&error, begun.elapsed()) {
            Reaction::Again => {}
            Reaction::Over => return Err(RetryError::Over),
            Reaction::Refused => return Err(RetryError::Refused(error)),
        }
        tokio::time::sleep(pause(turn, rand::rng().random())).await;
        turn += 1;
    }
}

/// The same for what need not be there.
pub(crate) async fn insist_if_there<T, A>(ask: impl Fn() -> A) -> Result<Option<T>, RetryError>
where
    A: Future<Output = Result<T, ClientError>>,
{
    match retry_until_answered(ask).await {
        Ok(answer) => Ok(Some(answer)),
        Err(RetryError::Refused(error)) if error.is_not_found() => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

fn reaction(error: &ClientError, asked_for: Duration) -> Reaction {
    match error {
        // Whatever answered without a reason was not the server: a proxy whose server is away.
        ClientError::Unreachable { .. } | ClientError::Protocol { .. } => Reaction::Again,
        ClientError::Problem(problem) => match problem.code {
            ProblemCode::Unauthenticated if asked_for < LONGEST_DENIAL => Reaction::Again,
            ProblemCode::WrongState | ProblemCode::Unauthenticated => Reaction::Over,
            ProblemCode::Unavailable
            | ProblemCode::Internal
            | ProblemCode::TooSlow
            | ProblemCode::TooManyRequests => Reaction::Again,
            _ => Reaction::Refused,
        },
        _ => Reaction::Refused,
    }
}

/// Twice as long each time, and a little different for everybody: a thousand sidecars whose server comes back do not all
/// ask at once. `dice` is between 0 and 1.
fn pause(turn: u32, dice: f64) -> Duration {
    let longest = FIRST_PAUSE.saturating_mul(1 << turn.min(10)).min(LONGEST_PAUSE);
    longest.mul_f64(0.5 + dice / 2.0)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use danlu_types::Problem;

    use super::*;

    fn problem(code: ProblemCode) -> ClientError {
        ClientError::Problem(Box::new(Problem::new(code, "no")))
    }

    #[test]
    fn only_what_may_pass_is_asked_again() {
        let at_once = |code| reaction(&problem(code), Duration::ZERO);
        for again in [ProblemCode::Unavailable, ProblemCode::Internal, ProblemCode::Unauthenticated] {
            assert_eq!(at_once(again), Reaction::Again);
        }
        assert_eq!(at_once(ProblemCode::WrongState), Reaction::Over);
        assert_eq!(reaction(&problem(ProblemCode::Unauthenticated), LONGEST_DENIAL), Reaction::Over);
        for refused in
            [ProblemCode::BadRequest, ProblemCode::NotFound, ProblemCode::Forbidden, ProblemCode::TooLarge]
        {
            assert_eq!(at_once(refused), Reaction::Refused);
        }
    }

    #[test]
    fn pauses_grow_and_differ() {
        let shown: Vec<String> =
            (0..9).map(|turn| format!("{:?}..{:?}", pause(turn, 0.0), pause(turn, 1.0))).collect();
        insta::assert_snapshot!(shown.join(" "), @"100ms..200ms 200ms..400ms 400ms..800ms 800ms..1.6s 1.6s..3.2s 3.2s..6.4s 6.4s..12.8s 7.5s..15s 7.5s..15s");
        assert_eq!(pause(u32::MAX, 1.0), LONGEST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_comes_back_is_asked_until_it_answers() {
        let turns = Cell::new(0);
        let answer = retry_until_answered(|| async {
            turns.set(turns.get() + 1);
            if turns.get() < 100 { Err(problem(ProblemCode::Unavailable)) } else { Ok(turns.get()) }
        });
        assert_eq!(answer.await.ok(), Some(100));
    }
}
