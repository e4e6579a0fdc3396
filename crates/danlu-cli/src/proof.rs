//! Asks for what is shown beside a session before it makes what does not end with it.

use danlu_client::ClientError;
use danlu_types::Problem;
use danlu_types::api::Proof;

use crate::failure::CliError;
use crate::terminal::ask_secret;

/// Sends a request, and again with what the server asks for. First with nothing: tokens for programs show nothing, and programs
/// cannot be asked.
pub(crate) async fn proven<T>(
    send: impl AsyncFn(Option<Proof>) -> Result<T, ClientError>,
) -> Result<T, CliError> {
    let mut proof = Proof::default();
    loop {
        let shown = (proof != Proof::default()).then(|| proof.clone());
        match send(shown).await {
            Err(ClientError::Problem(problem))
                if proof.password.is_none() && is_about(&problem, "proof.password") =>
            {
                proof.password = Some(ask_secret("Password of your account: ")?);
            }
            Err(ClientError::Problem(problem))
                if proof.code.is_none() && is_about(&problem, "proof.code") =>
            {
                proof.code = Some(ask_secret("Code of your authenticator: ")?);
            }
            answer => return Ok(answer?),
        }
    }
}

fn is_about(problem: &Problem, field: &str) -> bool {
    problem.errors.iter().any(|error| error.field == field)
}
