//! What a person's tools connect through: for now, sessions inside workers over WebSocket.
//!
//! The gateway carries frames and understands none of them: a WebSocket message is a frame without its length, a frame
//! on the launcher's stream has one. Whoever gives either side up gives up both.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use danlu_engine::WorkerStream;
use danlu_types::session::{Frame, FrameError, FrameKind};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

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

/// How long a client that was told the end may go on talking.
const PARTING: Duration = Duration::from_secs(5);

/// Carries frames between a client and a launcher until either side ends.
pub async fn bridge(client: WebSocket, launcher: Box<dyn WorkerStream>) -> Result<(), SessionError> {
    let (mut to_client, mut from_client) = client.split();
    let (from_launcher, to_launcher) = tokio::io::split(launcher);
    tokio::select! {
        // The client has gone away: dropping the launcher's stream ends the program.
        result = carry_input(&mut from_client, to_launcher) => return result,
        result = carry_output(from_launcher, &mut to_client) => result?,
    }
    // A connection that is closed with unread input is reset, and a reset overtakes what was sent before it: the client would
    // lose the exit. So it is heard out until it closes, too.
    let heard_out = async { while let Some(Ok(_)) = from_client.next().await {} };
    // Whoever talks on has had its answer.
    let _ = tokio::time::timeout(PARTING, heard_out).await;
    Ok(())
}

/// Returns when the client is gone.
async fn carry_input(
    client: &mut SplitStream<WebSocket>,
    mut launcher: WriteHalf<Box<dyn WorkerStream>>,
) -> Result<(), SessionError> {
    while let Some(message) = client.next().await {
        match message.map_err(SessionError::ClientGone)? {
            Message::Binary(bytes) => {
                let frame = Frame::from_message(&bytes).map_err(SessionError::Client)?;
                if launcher.write_all(&frame.encode()).await.is_err() {
                    // The program has ended before its input did. What the launcher said last is still to be carried, and
                    // the other half sees its end.
                    return std::future::pending().await;
                }
            }
            Message::Close(_) => break,
            Message::Text(_) | Message::Ping(_) | Message::Pong(_) => {}
        }
    }
    Ok(())
}

/// Returns when the launcher has said its last word, and the client was told that it was.
async fn carry_output(
    mut launcher: ReadHalf<Box<dyn WorkerStream>>,
    client: &mut SplitSink<WebSocket, Message>,
) -> Result<(), SessionError> {
    let mut buffer = Vec::new();
    let mut chunk = vec![0; 32 * 1024];
    loop {
        let read = launcher.read(&mut chunk).await.map_err(SessionError::LauncherGone)?;
        if read == 0 {
            return client.close().await.map_err(SessionError::ClientGone);
        }
        buffer.extend_from_slice(&chunk[..read]);
        while let Some(frame) = Frame::decode(&mut buffer).map_err(SessionError::Launcher)? {
            let last = matches!(frame.kind, FrameKind::Exit | FrameKind::Error);
            client
                .send(Message::Binary(frame.to_message().into()))
                .await
                .map_err(SessionError::ClientGone)?;
            if last {
                // The closing handshake tells the client that the exit it got was the last word.
                return client.close().await.map_err(SessionError::ClientGone);
            }
        }
    }
}
