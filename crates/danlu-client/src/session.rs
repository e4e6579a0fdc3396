//! Sessions inside a worker, over a WebSocket.

use danlu_types::session::{Frame, FrameKind, OpenSession};
use danlu_types::{JobId, WorkerIndex};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::client::read_problem;
use crate::{Client, ClientError, ServerStream};

type Socket = WebSocketStream<ServerStream>;

/// The half that sends input, sizes and signals.
#[derive(Debug)]
pub struct SessionSender {
    socket: SplitSink<Socket, Message>,
    client: Client,
}

/// The half that gives output and the end.
#[derive(Debug)]
pub struct SessionReceiver {
    socket: SplitStream<Socket>,
    client: Client,
}

impl Client {
    /// Opens a session in a worker of the job's running attempt.
    pub async fn session_open(
        &self,
        job: JobId,
        worker: WorkerIndex,
        open: &OpenSession,
    ) -> Result<(SessionSender, SessionReceiver), ClientError> {
        let address = self.address();
        let host = address.split_once("://").map_or(address.as_str(), |(_, host)| host);
        let path = format!("/api/v1/jobs/{job}/workers/{worker}/session");
        let mut request = format!("ws://{host}{path}")
            .into_client_request()
            .map_err(|source| ClientError::protocol(&path, source))?;
        let bearer = HeaderValue::from_str(&format!("Bearer {}", self.token()))
            .map_err(|source| ClientError::protocol(&path, source))?;
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
        let connection = self.dial().await?;
        let (socket, _) =
            client_async(request, connection).await.map_err(|error| self.open_error(&path, error))?;
        let (sink, stream) = socket.split();
        let mut sender = SessionSender { socket: sink, client: self.clone() };
        sender.send(Frame::json(FrameKind::Open, open)).await?;
        Ok((sender, SessionReceiver { socket: stream, client: self.clone() }))
    }

    fn open_error(&self, path: &str, error: SocketError) -> ClientError {
        match error {
            SocketError::Http(response) => {
                let status = response.status();
                let body = response.into_body().unwrap_or_default();
                let status = StatusCode::from_u16(status.as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
                read_problem(path, status, &body)
            }
            SocketError::Io(source) => self.unreachable(source),
            other => ClientError::protocol(path, other),
        }
    }
}

impl SessionSender {
    pub async fn send(&mut self, frame: Frame) -> Result<(), ClientError> {
        let message = Message::Binary(frame.to_message().into());
        self.socket.send(message).await.map_err(|source| self.client.unreachable(source))
    }
}

impl SessionReceiver {
    /// The next frame; `None` when the other side closed without an [`FrameKind::Exit`].
    pub async fn next(&mut self) -> Result<Option<Frame>, ClientError> {
        while let Some(message) = self.socket.next().await {
            match message {
                Ok(Message::Binary(bytes)) => {
                    let frame = Frame::from_message(&bytes)
                        .map_err(|source| ClientError::protocol("the session", source))?;
                    return Ok(Some(frame));
                }
                Ok(Message::Close(_)) | Err(SocketError::ConnectionClosed | SocketError::AlreadyClosed) => {
                    return Ok(None);
                }
                Ok(_) => {}
                Err(source) => return Err(self.client.unreachable(source)),
            }
        }
        Ok(None)
    }
}
