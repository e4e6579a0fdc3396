//! Takes connections in, through TLS where there is one, and lets go of those who do not get to the point.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, Request};
use axum::http::{Extensions, StatusCode};
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service as _;

use super::peer::{FromJob, Peer, may_be_a_jobs};
use super::places::{ConnectionLimits, ConnectionPermit, Full};

/// How long a body that is read whole may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestTimeouts(pub(crate) Duration);

/// After an error that is not one connection's, such as too many open files.
const REST: Duration = Duration::from_secs(1);

/// So many that find no place are told so at once; the others find the connection closed.
const MOST_REFUSALS: usize = 16;
/// How long whoever is refused may take to hear it.
const LONGEST_REFUSAL: Duration = Duration::from_secs(5);

/// What every connection gets.
#[derive(Clone)]
pub(crate) struct Listener {
    pub(crate) router: Router,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) patience: Duration,
    pub(crate) places: Arc<ConnectionLimits>,
    /// Proxies, each of which stands for many.
    pub(crate) proxies: Vec<IpAddr>,
    /// How to answer those for whom there is no place.
    pub(crate) refuse: fn(Full) -> Response,
    /// Whether programs of this machine that may be jobs' are told from proxies.
    pub(crate) knows_jobs: bool,
}

impl Listener {
    /// Serves until `shutdown`, then lets requests come to their end.
    pub(crate) async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let (closing, connections) = (CancellationToken::new(), TaskTracker::new());
        let refusals = Arc::new(Semaphore::new(MOST_REFUSALS));
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut shutdown => break,
            };
            match accepted {
                Ok((stream, peer)) => match self.places.enter(peer.ip(), self.proxies.contains(&peer.ip())) {
                    Ok(place) => {
                        connections.spawn(self.clone().admit(stream, peer, place, closing.clone()));
                    }
                    Err(full) => {
                        tracing::debug!("no place for a connection from {peer}: {full:?}");
                        if let Ok(turn) = Arc::clone(&refusals).try_acquire_owned() {
                            let door = self.clone();
                            connections.spawn(async move {
                                let refused = door.turn_away(stream, full);
                                let _ = tokio::time::timeout(LONGEST_REFUSAL, refused).await;
                                drop(turn);
                            });
                        }
                    }
                },
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

    async fn admit(
        self,
        stream: TcpStream,
        peer: SocketAddr,
        place: ConnectionPermit,
        closing: CancellationToken,
    ) {
        // Log lines and hints are small and should not wait for each other.
        let _ = stream.set_nodelay(true);
        let lost = place.lost();
        let conversation = async {
            let known = self.look_at(&stream, peer).await;
            match self.tls.clone() {
                None => self.converse(stream, known, place, closing).await,
                Some(tls) => match tokio::time::timeout(self.patience, tls.accept(stream)).await {
                    Ok(Ok(stream)) => self.converse(stream, known, place, closing).await,
                    Ok(Err(error)) => tracing::debug!("{peer} did not agree on TLS: {error}"),
                    Err(_) => tracing::debug!("{peer} took too long over TLS"),
                },
            }
        };
        tokio::select! {
            () = conversation => {}
            // It was idle, and somebody else needs the place.
            () = lost => tracing::debug!("the idle connection from {peer} made room"),
        }
    }

    /// Answers one request with why there is no place.
    async fn turn_away(self, stream: TcpStream, full: Full) {
        match self.tls.clone() {
            None => refuse(stream, self.refuse, full).await,
            Some(tls) => {
                if let Ok(stream) = tls.accept(stream).await {
                    refuse(stream, self.refuse, full).await;
                }
            }
        }
    }

    /// What each request of a connection is told of where it comes from.
    async fn look_at(&self, stream: &TcpStream, remote: SocketAddr) -> Extensions {
        let mut known = Extensions::new();
        known.insert(ConnectInfo(remote));
        known.insert(RequestTimeouts(self.patience));
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
        place: ConnectionPermit,
        closing: CancellationToken,
    ) {
        let patience = self.patience;
        let router = self.router;
        let place = Arc::new(place);
        let service = service_fn(move |request: Request<Incoming>| {
            // One that has lost its place meanwhile is about to be closed; what is answered then is lost with it.
            place.wake();
            let mut request = request.map(Body::new);
            request.extensions_mut().extend(known.clone());
            request.extensions_mut().insert(Arc::clone(&place));
            let (answer, place) = (router.clone().call(request), Arc::clone(&place));
            async move {
                let response = answer.await?;
                // What has become something else than HTTP rests no more.
                let upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
                Ok::<_, std::convert::Infallible>(
                    response.map(|body| Answering { body, place: (!upgraded).then_some(place) }),
                )
            }
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

async fn refuse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    answer: fn(Full) -> Response,
    full: Full,
) {
    let service =
        service_fn(
            move |_: Request<Incoming>| async move { Ok::<_, std::convert::Infallible>(answer(full)) },
        );
    let connection = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service);
    let _ = connection.await;
}

/// A body during which its connection does not rest.
struct Answering {
    body: Body,
    place: Option<Arc<ConnectionPermit>>,
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            place.rest();
        }
    }
}

fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
