//! Which job is meant: a number, or a name, of which the newest job counts.

use danlu_client::Client;
use danlu_types::JobId;
use danlu_types::api::JobQuery;

use crate::failure::{CliError, NOT_FOUND};

pub(crate) async fn job_id(client: &Client, job: &str) -> Result<JobId, CliError> {
    if let Ok(id) = job.parse() {
        return Ok(id);
    }
    let query = JobQuery { name: Some(job.to_owned()), limit: Some(1), ..JobQuery::default() };
    match client.jobs_list(&query).await?.items.first() {
        Some(found) => Ok(found.id),
        None => Err(CliError::new(format!("job `{job}` not found"))
            .with_code(NOT_FOUND)
            .hint("`danlu jobs` lists them; a job is named by its number or its name")),
    }
}
