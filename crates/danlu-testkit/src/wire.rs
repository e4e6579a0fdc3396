//! Plain HTTP, byte by byte: for requests that no well-behaved client would send.

use std::fmt::Write as _;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// Everything before the body.
    pub head: String,
    pub body: String,
}

impl Answer {
    /// The value of a header, if it was sent.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }
}

/// Sends one request to `http://host:port` and reads the answer to its end; of a stream, what came first.
pub async fn send(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let stream = TcpStream::connect(address.trim_start_matches("http://")).await.expect("a server");
    send_through(stream, method, path, headers, body).await
}

/// The same through a connection that is there already.
pub async fn send_through(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let _ = write!(head, "content-length: {}\r\n\r\n", body.len());
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    // The server may answer and hang up before it has read ten megabytes.
    let _ = stream.write_all(&bytes).await;
    let mut answer = Vec::new();
    let mut part = vec![0; 16 << 10];
    loop {
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => break,
            Ok(length) => answer.extend_from_slice(&part[..length]),
        }
        let text = String::from_utf8_lossy(&answer);
        let endless = |head: &str| head.starts_with("HTTP/1.1 101") || head.contains("text/event-stream");
        if text.split_once("\r\n\r\n").is_some_and(|(head, _)| endless(head)) {
            break;
        }
    }
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}
