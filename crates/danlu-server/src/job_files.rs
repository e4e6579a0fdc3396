//! Job files, read for callers without a command line.

use danlu_core::authorization::Action;
use danlu_jobfile::parse;
use danlu_types::api::{ParseRequest, ParsedJobFile};
use danlu_types::{FieldError, Problem, ProblemCode};

use crate::accounts::{Caller, require_of_platform};
use crate::app::App;

/// Of honest job files, the longest have a script of some pages.
const LONGEST_TEXT: usize = 64 << 10;
const LONGEST_FILE_NAME: usize = 255;

impl App {
    /// What a job file asks for, or what is wrong with it. One is read at a time, so that strange files take one processor at most.
    pub(crate) async fn parse_job_file(
        &self,
        caller: &Caller,
        request: ParseRequest,
    ) -> Result<ParsedJobFile, Problem> {
        require_of_platform(caller, Action::ParseJobFile)?;
        let name_length = request.file_name.as_deref().map_or(0, str::len);
        for (field, length, longest) in
            [("text", request.text.len(), LONGEST_TEXT), ("file_name", name_length, LONGEST_FILE_NAME)]
        {
            if length > longest {
                let message = format!("has {length} bytes; at most {longest} are read");
                return Err(Problem::invalid_fields(vec![FieldError::new(field, message)])
                    .with_hint("`danlu submit FILE` reads larger files"));
            }
        }
        let turn = self.parsing.clone().lock_owned().await;
        let read = tokio::task::spawn_blocking(move || {
            let parsed = parse(request);
            // Also where the caller has gone meanwhile.
            drop(turn);
            parsed
        });
        read.await.map_err(|error| {
            tracing::error!("reading a job file failed: {error}");
            Problem::new(ProblemCode::Internal, "the job file could not be read; the server's log says more")
        })
    }
}
