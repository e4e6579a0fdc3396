//! Streams that outlive a connection.
//!
//! Every event of the log stream carries a cursor. When the connection drops before the end was said, the next one
//! asks for what comes after the last cursor, so a restart of the server neither loses nor repeats a line.

use std::collections::VecDeque;
use std::time::Duration;

use danlu_types::JobId;
use danlu_types::api::{Hint, LogMessage, LogQuery};
use reqwest::{Method, Response};
use tokio::time::{Instant, sleep};

use crate::sse::{SseEvent, SseParser};
use crate::{Client, ClientError};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long a server may be away before following it is given up: an upgrade takes seconds, a reboot minutes.
const PATIENCE: Duration = Duration::from_mins(15);

/// What following a log gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    Message(LogMessage),
    /// The server went away; it is being waited for.
    Lost,
    /// It is back, and the log goes on where it stopped.
    Back,
}

/// A job's log as it grows. Dropping a pending [`LogFollow::next`] loses nothing.
#[derive(Debug)]
pub struct LogFollow {
    source: Source,
    job: JobId,
    query: LogQuery,
    ready: VecDeque<Followed>,
    ended: bool,
}

impl LogFollow {
    pub(crate) fn new(client: Client, job: JobId, query: LogQuery) -> Self {
        LogFollow { source: Source::new(client), job, query, ready: VecDeque::new(), ended: false }
    }

    /// The next thing; `None` after the message that said the end.
    pub async fn next(&mut self) -> Result<Option<Followed>, ClientError> {
        loop {
            if let Some(followed) = self.ready.pop_front() {
                return Ok(Some(followed));
            }
            if self.ended {
                return Ok(None);
            }
            let path = format!("/jobs/{}/logs/follow", self.job);
            let query = &self.query;
            match self.source.next(&path, query).await? {
                Arrival::Events(events) => self.take(events)?,
                Arrival::Lost => self.ready.push_back(Followed::Lost),
                Arrival::Back => self.ready.push_back(Followed::Back),
            }
        }
    }

    fn take(&mut self, events: Vec<SseEvent>) -> Result<(), ClientError> {
        for event in events {
            let message: LogMessage = serde_json::from_str(&event.data)
                .map_err(|source| ClientError::protocol("the log's stream", source))?;
            if let Some(id) = event.id {
                self.query.cursor = Some(id);
                // The cursor says where to go on; `tail` would skip what came while we were away.
                self.query.tail = None;
            }
            self.ended |= matches!(message, LogMessage::End { .. });
            self.ready.push_back(Followed::Message(message));
        }
        Ok(())
    }
}

/// What changes at the server. Hints may be lost: whoever cares looks again after [`HintStream::next`] gave `None`.
#[derive(Debug)]
pub struct HintStream {
    source: Source,
    ready: VecDeque<Option<Hint>>,
}

impl HintStream {
    pub(crate) fn new(client: Client) -> Self {
        HintStream { source: Source::new(client), ready: VecDeque::new() }
    }

    /// The next hint; `None` when some may have been missed.
    pub async fn next(&mut self) -> Result<Option<Hint>, ClientError> {
        loop {
            if let Some(hint) = self.ready.pop_front() {
                return Ok(hint);
            }
            match self.source.next("/hints", &()).await? {
                Arrival::Events(events) => {
                    for event in events {
                        let hint = serde_json::from_str(&event.data)
                            .map_err(|source| ClientError::protocol("the stream of hints", source))?;
                        self.ready.push_back(Some(hint));
                    }
                }
                Arrival::Lost => {}
                Arrival::Back => self.ready.push_back(None),
            }
        }
    }
}

enum Arrival {
    Events(Vec<SseEvent>),
    Lost,
    Back,
}

/// An event stream that is opened again whenever it drops.
#[derive(Debug)]
struct Source {
    client: Client,
    connection: Option<(Response, SseParser)>,
    /// Since when the server has been away; `None` before the first connection and while there is one.
    lost: Option<Instant>,
    was_connected: bool,
    pause: Duration,
}

impl Source {
    fn new(client: Client) -> Self {
        Source { client, connection: None, lost: None, was_connected: false, pause: FIRST_PAUSE }
    }

    async fn next(&mut self, path: &str, query: &impl serde::Serialize) -> Result<Arrival, ClientError> {
        loop {
            let Some((response, parser)) = &mut self.connection else {
                if let Some(arrival) = self.connect(path, query).await? {
                    return Ok(arrival);
                }
                continue;
            };
            let Ok(Some(piece)) = response.chunk().await else {
                self.connection = None;
                self.lost = Some(Instant::now());
                return Ok(Arrival::Lost);
            };
            // A connection that carries something is a good one: the next loss starts with a short pause.
            self.pause = FIRST_PAUSE;
            let events = parser.push(&piece).map_err(|source| ClientError::protocol(path, source))?;
            if !events.is_empty() {
                return Ok(Arrival::Events(events));
            }
        }
    }

    /// One try. A server that was never there is an error at once; one that went away is waited for.
    async fn connect(
        &mut self,
        path: &str,
        query: &impl serde::Serialize,
    ) -> Result<Option<Arrival>, ClientError> {
        if self.was_connected {
            sleep(self.pause).await;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            self.client.look_again();
        }
        let request = self.client.request(Method::GET, path).query(query);
        match self.client.send(request.header("Accept", "text/event-stream")).await {
            Ok(response) => {
                self.connection = Some((response, SseParser::default()));
                self.was_connected = true;
                Ok(self.lost.take().map(|_| Arrival::Back))
            }
            Err(error) => match self.lost {
                Some(since) if error.is_passing() && since.elapsed() < PATIENCE => Ok(None),
                _ => Err(error),
            },
        }
    }
}
