//! The client against a server of a few lines: what it sends, how it reads refusals, how it comes back.

#![expect(clippy::unwrap_used, reason = "a panic is how a test says no, in its helpers too")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use danlu_client::{Client, ClientError, Followed};
use danlu_types::api::{JobOutcome, LogMessage, LogQuery};
use danlu_types::{JobId, JobSpec};

struct FakeServer {
    address: String,
    thread: JoinHandle<Vec<String>>,
}

impl FakeServer {
    /// Answers one connection after another with these bytes, closing each, and remembers what was asked.
    fn answering(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let thread = thread::spawn(move || {
            let answer = |answer: String| {
                let (mut stream, _) = listener.accept().unwrap();
                let request = read_request(&mut stream);
                stream.write_all(answer.as_bytes()).unwrap();
                request
            };
            answers.into_iter().map(answer).collect()
        });
        FakeServer { address, thread }
    }

    fn asked(self) -> Vec<String> {
        self.thread.join().unwrap()
    }
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        request.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    request + &String::from_utf8(body).unwrap()
}

fn json(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A stream that ends when the connection does, as when a server is killed.
fn events(events: &[(&str, String)]) -> String {
    let mut answer =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    for (id, data) in events {
        let event = format!("id: {id}\ndata: {data}\n\n");
        let _ = write!(answer, "{:x}\r\n{event}\r\n", event.len());
    }
    answer
}

fn line(number: u64, text: &str) -> String {
    format!(
        r#"{{"type":"lines","lines":[{{"attempt":1,"worker":0,"rank":0,"number":{number},"at":"2026-01-01T00:00:00Z","stream":"stdout","text":"{text}"}}]}}"#
    )
}

const END: &str =
    r#"{"type":"end","outcome":"succeeded","exit_code":0,"reason":{"code":"succeeded","text":"succeeded"}}"#;

#[tokio::test]
async fn a_follower_comes_back_with_its_cursor() {
    let server = FakeServer::answering(vec![
        events(&[("1", line(0, "a")), ("2", line(1, "b"))]),
        json("503 Service Unavailable", "starting"),
        events(&[("3", line(2, "c"))]),
        events(&[("4", END.to_owned())]),
    ]);
    let query = LogQuery { tail: Some(2), ..LogQuery::default() };
    let mut follow = Client::new(&server.address, "secret").logs_follow(JobId(7), query);
    let mut seen = Vec::new();
    while let Some(followed) = follow.next().await.unwrap() {
        seen.push(match followed {
            Followed::Message(LogMessage::Lines { lines }) => lines[0].text.clone(),
            Followed::Message(LogMessage::End { outcome: JobOutcome::Succeeded, .. }) => "end".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        });
    }
    assert_eq!(seen, ["a", "b", "lost", "back", "c", "lost", "back", "end"]);
    let asked: Vec<String> =
        server.asked().iter().map(|request| request.lines().next().unwrap().to_owned()).collect();
    assert_eq!(
        asked,
        [
            "GET /api/v1/jobs/7/logs/follow?tail=2 HTTP/1.1",
            "GET /api/v1/jobs/7/logs/follow?cursor=2 HTTP/1.1",
            "GET /api/v1/jobs/7/logs/follow?cursor=2 HTTP/1.1",
            "GET /api/v1/jobs/7/logs/follow?cursor=3 HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn a_follower_does_not_wait_for_what_will_never_be() {
    let server = FakeServer::answering(vec![
        events(&[("1", line(0, "a"))]),
        json(
            "404 Not Found",
            r#"{"type":"about:blank","title":"not found","status":404,"code":"not_found","detail":"job 7 was deleted"}"#,
        ),
    ]);
    let mut follow = Client::new(&server.address, "secret").logs_follow(JobId(7), LogQuery::default());
    assert!(matches!(follow.next().await, Ok(Some(Followed::Message(_)))));
    assert_eq!(follow.next().await.unwrap(), Some(Followed::Lost));
    assert_eq!(follow.next().await.unwrap_err().to_string(), "job 7 was deleted");
}

#[tokio::test]
async fn submissions_carry_the_token_and_the_key() {
    let problem = r#"{"type":"about:blank","title":"some fields are not valid","status":422,"code":"invalid_fields","detail":"`workers`: is 0","errors":[{"field":"workers","message":"is 0"}]}"#;
    let server = FakeServer::answering(vec![json("422 Unprocessable Content", problem)]);
    let error = Client::new(&server.address, "secret")
        .job_submit(&JobSpec::of_command("true"), Some("key-1"))
        .await
        .unwrap_err();
    let ClientError::Problem(problem) = error else { panic!("{error:?}") };
    assert_eq!(problem.errors[0].field, "workers");
    let request = server.asked().remove(0).to_ascii_lowercase();
    assert!(request.starts_with("post /api/v1/jobs http/1.1"));
    assert!(request.contains("authorization: bearer secret"));
    assert!(request.contains("idempotency-key: key-1"));
    assert!(request.contains(r#""command":"true""#));
}

#[tokio::test]
async fn uploads_tell_their_progress() {
    let view = r#"{"digest":"sha256:00","size":"5B"}"#;
    let server = FakeServer::answering(vec![json("404 Not Found", ""), json("201 Created", view)]);
    let client = Client::new(&server.address, "secret");
    assert!(!client.code_has("sha256:00").await.unwrap());
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    std::fs::write(&archive, "hello").unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let stored =
        client.code_put("sha256:00", &archive, move |bytes| tell.send(bytes).unwrap()).await.unwrap();
    assert_eq!(stored.digest, "sha256:00");
    assert_eq!(told.iter().last(), Some(5));
    assert!(server.asked()[1].ends_with("hello"));
}

#[tokio::test]
async fn nobody_there_is_said_with_the_address() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Client::new(&format!("http://{free}/"), "secret").job_fetch(JobId(1)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot reach the server at http://{free}"));
    assert_eq!(error.hint().unwrap(), "is the server running? start it with `danlu up`");
    let mut follow = Client::new(&format!("http://{free}"), "").logs_follow(JobId(1), LogQuery::default());
    assert!(follow.next().await.unwrap_err().is_unreachable());
}

#[tokio::test]
async fn an_answer_that_is_not_ours_is_no_panic() {
    for body in ["", "<html>", "{}", "[1,2"] {
        let server =
            FakeServer::answering(vec![json("200 OK", body), json("500 Internal Server Error", body)]);
        let client = Client::new(&server.address, "secret");
        assert!(matches!(client.nodes_list().await, Err(ClientError::Protocol { .. })));
        assert!(matches!(client.nodes_list().await, Err(ClientError::Protocol { .. })));
    }
}

#[test]
fn the_server_is_found_by_its_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let error = Client::discover(Some(folder.path())).unwrap_err();
    assert!(matches!(error, ClientError::NoServer(_)));
    std::fs::write(folder.path().join("server.json"), "{").unwrap();
    assert!(matches!(Client::discover(Some(folder.path())), Err(ClientError::BadServerFile { .. })));
    std::fs::write(folder.path().join("server.json"), r#"{"address":"http://127.0.0.1:1","pid":1}"#).unwrap();
    assert!(matches!(Client::discover(Some(folder.path())), Err(ClientError::Unreadable { .. })));
    std::fs::write(folder.path().join("token"), "secret\n").unwrap();
    assert_eq!(Client::discover(Some(folder.path())).unwrap().address(), "http://127.0.0.1:1");
}
