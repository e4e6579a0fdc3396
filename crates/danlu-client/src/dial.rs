//! A connection to the server, for what is more than a request and its answer.

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use crate::{Client, ClientError};

/// Bytes to the server and back, through TLS where its address says so.
pub type ServerStream = Either<TcpStream, TlsStream<TcpStream>>;

impl Client {
    pub async fn dial(&self) -> Result<ServerStream, ClientError> {
        let address = self.address();
        let url = reqwest::Url::parse(&address).map_err(|source| self.unreachable(source))?;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        let stream =
            TcpStream::connect((host.as_str(), port)).await.map_err(|source| self.unreachable(source))?;
        if url.scheme() != "https" {
            return Ok(Either::Left(stream));
        }
        let name = ServerName::try_from(host).map_err(|source| self.unreachable(source))?;
        let connected = TlsConnector::from(self.tls.clone()).connect(name, stream).await;
        connected.map(Either::Right).map_err(|source| self.unreachable(source))
    }
}
