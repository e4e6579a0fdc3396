//! How this process reaches the server, and what for.

use std::ffi::OsString;
use std::path::PathBuf;

use danlu_client::Client;
use danlu_core::slurm::TOKEN_VARIABLE;

use crate::error::CourierError;

#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) client: Client,
    pub(crate) allocation: String,
    /// The folder of this node's own.
    pub(crate) work: PathBuf,
}

impl Way {
    /// `SERVER FINGERPRINT ALLOCATION WORK`, where the fingerprint may be `-`.
    pub(crate) fn for_worker(
        server: OsString,
        rest: impl Iterator<Item = OsString>,
    ) -> Result<Self, CourierError> {
        Self::read(server, rest).map(|(way, _)| way)
    }

    /// The same with the number of the cluster's job behind.
    pub(crate) fn for_claim(
        server: OsString,
        rest: impl Iterator<Item = OsString>,
    ) -> Result<(Self, u64), CourierError> {
        let (way, mut rest) = Self::read(server, rest)?;
        let job = rest.next().and_then(|job| job.to_str()?.parse().ok());
        Ok((way, job.ok_or(CourierError::Usage("the job's number is missing"))?))
    }

    fn read<I: Iterator<Item = OsString>>(server: OsString, mut rest: I) -> Result<(Self, I), CourierError> {
        let mut text = |what| {
            let word = rest.next().and_then(|word| word.into_string().ok());
            word.ok_or(CourierError::Usage(what))
        };
        let server =
            server.into_string().map_err(|_| CourierError::Usage("the server's address is not UTF-8"))?;
        let fingerprint = match text("the fingerprint is missing")?.as_str() {
            "-" => None,
            digits => Some(digits.parse().map_err(|_| CourierError::Usage("that is no fingerprint"))?),
        };
        let allocation = text("the allocation is missing")?;
        let work = PathBuf::from(text("the folder is missing")?);
        let token = std::env::var(TOKEN_VARIABLE)
            .map_err(|_| CourierError::Usage("its token is not in the environment"))?;
        let client = Client::trusting(&server, &token, fingerprint);
        Ok((Way { client, allocation, work }, rest))
    }
}
