//! Takes connections in, through TLS where there is one, and lets go of those who do not get to the point.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::Extensions;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service as _;

use super::peer::{FromJob, Peer, may_be_a_jobs};

/// How long a body that is read whole may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience(pub(crate) Duration);

/// After an error that is not one connection's, such as too many open files.
const REST: Duration = Duration::from_secs(1);

/// What every connection gets.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) router: Router,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) patience: Duration,
    /// Whether programs of this machine that may be jobs' are told from proxies.
    pub(crate) knows_jobs: bool,
}

impl Door {
    /// Serves until `shutdown`, then lets requests come to their end.
    pub(crate) async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let (closing, connections) = (CancellationToken::new(), TaskTracker::new());
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut shutdown => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(self.clone().admit(stream, peer, closing.clone()));
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::error!("could not take a connection: {error}");
                    tokio::time::sleep(REST).await;
                }
            }
        }
        drop(listener);
        closing.cancel();
        connections.close();
        connections.wait().await;
    }

    async fn admit(self, stream: TcpStream, peer: SocketAddr, closing: CancellationToken) {
        // Log lines and hints are small and should not wait for each other.
        let _ = stream.set_nodelay(true);
        let known = self.look_at(&stream, peer).await;
        match self.tls.clone() {
            None => self.converse(stream, known, closing).await,
            Some(tls) => match tokio::time::timeout(self.patience, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.converse(stream, known, closing).await,
                Ok(Err(error)) => tracing::debug!("{peer} did not agree on TLS: {error}"),
                Err(_) => tracing::debug!("{peer} took too long over TLS"),
            },
        }
    }

    /// What each request of a connection is told of where it comes from.
    async fn look_at(&self, stream: &TcpStream, remote: SocketAddr) -> Extensions {
        let mut known = Extensions::new();
        known.insert(ConnectInfo(remote));
        known.insert(Patience(self.patience));
        let Ok(local) = stream.local_addr() else { return known };
        let peer = Peer { remote, local };
        known.insert(peer);
        if self.knows_jobs && remote.ip().to_canonical().is_loopback() {
            let user = tokio::task::spawn_blocking(move || peer.user()).await.ok().flatten();
            if may_be_a_jobs(user) {
                known.insert(FromJob);
            }
        }
        known
    }

    async fn converse(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        known: Extensions,
        closing: CancellationToken,
    ) {
        let patience = self.patience;
        let router = self.router;
        let service = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().extend(known.clone());
            router.clone().call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(patience)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = &mut connection => ended,
            () = closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        // People close their laptops.
        if let Err(error) = ended {
            tracing::debug!("a connection ended: {error}");
        }
    }
}

fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
