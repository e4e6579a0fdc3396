//! How this process reaches the server, and what for.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

use danlu_client::Client;
use danlu_slurm::TOKEN_VARIABLE;

use crate::error::SidecarError;

#[derive(Debug)]
pub(crate) struct SidecarContext {
    pub(crate) client: Client,
    pub(crate) allocation: String,
    /// The folder of this node's own.
    pub(crate) work: PathBuf,
}

impl SidecarContext {
    /// `SERVER FINGERPRINT ALLOCATION WORK`, where the fingerprint may be `-`.
    pub(crate) fn for_worker(
        server: OsString,
        rest: impl Iterator<Item = OsString>,
    ) -> Result<Self, SidecarError> {
        Self::read(server, rest).map(|(way, _)| way)
    }

    /// The same with the number of the cluster's job behind.
    pub(crate) fn for_claim(
        server: OsString,
        rest: impl Iterator<Item = OsString>,
    ) -> Result<(Self, u64), SidecarError> {
        let (way, mut rest) = Self::read(server, rest)?;
        let job = rest.next().and_then(|job| job.to_str()?.parse().ok());
        Ok((way, job.ok_or(SidecarError::Usage("the job's number is missing"))?))
    }

    fn read<I: Iterator<Item = OsString>>(server: OsString, mut rest: I) -> Result<(Self, I), SidecarError> {
        let mut text = |what| {
            let word = rest.next().and_then(|word| word.into_string().ok());
            word.ok_or(SidecarError::Usage(what))
        };
        let server =
            server.into_string().map_err(|_| SidecarError::Usage("the server's address is not UTF-8"))?;
        let fingerprint = match text("the fingerprint is missing")?.as_str() {
            "-" => None,
            digits => Some(digits.parse().map_err(|_| SidecarError::Usage("that is no fingerprint"))?),
        };
        let allocation = text("the allocation is missing")?;
        let work = PathBuf::from(text("the folder is missing")?);
        let token = token()?;
        let client = Client::trusting(&server, &token, fingerprint);
        Ok((SidecarContext { client, allocation, work }, rest))
    }
}

/// Its token is the first line of standard input, and nowhere where other programs of this user look. Scripts of servers from
/// before have it in the environment.
fn token() -> Result<String, SidecarError> {
    match std::env::var(TOKEN_VARIABLE) {
        Ok(token) => Ok(token),
        Err(_) => {
            first_line(std::io::stdin().lock()).ok_or(SidecarError::Usage("its token is not in its input"))
        }
    }
}

/// Not a byte beyond it: what follows is somebody else's.
fn first_line(mut input: impl Read) -> Option<String> {
    const LONGEST: usize = 1000;
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.len() < LONGEST && input.read_exact(&mut byte).is_ok() && byte != *b"\n" {
        line.push(byte[0]);
    }
    String::from_utf8(line).ok().filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_input_has_a_first_line_or_none(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'a')], 0..1200)) {
            let mut input = bytes.as_slice();
            if let Some(line) = first_line(&mut input) {
                prop_assert!(bytes.starts_with(line.as_bytes()) && !line.contains('\n') && line.len() <= 1000);
                let taken = bytes.len() - input.len();
                prop_assert!(taken <= line.len() + 1, "{taken} bytes for {} of a line", line.len());
            }
        }
    }

    #[test]
    fn the_token_is_the_first_line_and_the_rest_stays() {
        let mut input = &b"danlu_sidecar_1.1_ab\nJobId=17\n"[..];
        assert_eq!(first_line(&mut input).as_deref(), Some("danlu_sidecar_1.1_ab"));
        assert_eq!(input, b"JobId=17\n");
        assert_eq!(first_line(&b"without an end"[..]).as_deref(), Some("without an end"));
        assert_eq!(first_line(&b""[..]), None);
        assert_eq!(first_line(&b"\n"[..]), None);
        assert_eq!(first_line(&b"\xff\n"[..]), None);
    }
}
