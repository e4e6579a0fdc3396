//! What a person's tools connect through: for now, sessions inside workers over WebSocket.
//!
//! The gateway carries frames and understands none of them: a WebSocket message is a frame without its length, a frame
//! on the launcher's stream has one. Whoever gives either side up gives up both.

use axum::extract::ws::{Message, WebSocket};
use danlu_engine::Connection;
use danlu_types::session::{Frame, FrameError, FrameKind};
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Why a session's two sides came apart, other than by its end.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("the client sent what is not a frame")]
    Client(#[source] FrameError),
    #[error("the launcher sent what is not a frame")]
    Launcher(#[source] FrameError),
    #[error("the client's connection broke")]
    ClientGone(#[source] axum::Error),
    #[error("the launcher's connection broke")]
    LauncherGone(#[source] std::io::Error),
}

/// Carries frames between a client and a launcher until either side ends.
pub async fn bridge(client: WebSocket, launcher: Box<dyn Connection>) -> Result<(), SessionError> {
    let (mut to_client, mut from_client) = client.split();
    let (mut from_launcher, mut to_launcher) = tokio::io::split(launcher);

    let upstream = async {
        while let Some(message) = from_client.next().await {
            match message.map_err(SessionError::ClientGone)? {
                Message::Binary(bytes) => {
                    let frame = Frame::from_message(&bytes).map_err(SessionError::Client)?;
                    to_launcher.write_all(&frame.encode()).await.map_err(SessionError::LauncherGone)?;
                }
                Message::Close(_) => break,
                Message::Text(_) | Message::Ping(_) | Message::Pong(_) => {}
            }
        }
        Ok(())
    };
    let downstream = async {
        let mut buffer = Vec::new();
        let mut chunk = vec![0; 32 * 1024];
        loop {
            let read = from_launcher.read(&mut chunk).await.map_err(SessionError::LauncherGone)?;
            if read == 0 {
                return Ok(());
            }
            buffer.extend_from_slice(&chunk[..read]);
            while let Some(frame) = Frame::decode(&mut buffer).map_err(SessionError::Launcher)? {
                let last = matches!(frame.kind, FrameKind::Exit | FrameKind::Error);
                let message = Message::Binary(frame.to_message().into());
                to_client.send(message).await.map_err(SessionError::ClientGone)?;
                if last {
                    // The closing handshake tells the client that the exit it got was the last word.
                    return to_client.close().await.map_err(SessionError::ClientGone);
                }
            }
        }
    };
    // The client's half ends first only when it has gone away; dropping the launcher's stream then ends the program.
    tokio::select! {
        result = upstream => result,
        result = downstream => result,
    }
}
