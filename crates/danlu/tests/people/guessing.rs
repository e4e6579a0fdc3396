//! Guesses: few are evaluated, however many come together, and those who do not guess come in meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use danlu_testkit::wire::{Answer, send};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::second_factor::code;
use crate::site::{PASSWORD, Site, value};

/// Guesses that a guesser may make before the first pause.
const FREE: usize = 5;

/// Requests of which all but the last byte have arrived, before the first is let go.
async fn at_once(
    site: &Site,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    bodies: &[Value],
) -> Vec<Answer> {
    let mut held = Vec::new();
    for body in bodies {
        let body = body.to_string();
        let mut head = format!("{method} /api/v1{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        for (name, value) in [&[("content-type", "application/json")], headers].concat() {
            head.extend([name, ": ", value, "\r\n"]);
        }
        let text = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(site.address.trim_start_matches("http://")).await.unwrap();
        stream.write_all(&text.as_bytes()[..text.len() - 1]).await.unwrap();
        held.push((stream, text.as_bytes()[text.len() - 1]));
    }
    let mut answers = Vec::new();
    for (stream, last) in &mut held {
        stream.write_all(&[*last]).await.unwrap();
    }
    for (mut stream, _) in held {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        answers.push(Answer { status, head: head.to_owned(), body: body.to_owned() });
    }
    answers
}

/// How many guesses may have been tried since then: those that are free, and one after each pause of 1 s, 2 s, 4 s and so on.
fn allowed(since: Instant) -> usize {
    FREE + (since.elapsed().as_secs() + 1).ilog2() as usize
}

fn count(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

/// Through a proxy, which says where it is from.
async fn sign_in_from(site: &Site, from: &str, body: &Value, cookies: &str) -> Answer {
    let headers = [("content-type", "application/json"), ("x-forwarded-for", from), ("cookie", cookies)];
    send(&site.address, "POST", "/api/v1/session", &headers, body.to_string().as_bytes()).await
}

fn cookies(answer: &Answer) -> String {
    let cookies = answer.head.lines().filter_map(|line| line.strip_prefix("set-cookie: "));
    let pairs = cookies.filter_map(|cookie| cookie.split(';').next());
    pairs.filter(|pair| !pair.starts_with("danlu_session")).collect::<Vec<_>>().join("; ")
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_that_come_together_are_counted_before_they_are_tried() {
    let site = Site::new(&[]).await;
    let guess = |at: usize| json!({ "name": "ada", "password": format!("a wrong password {at}") });
    let start = Instant::now();
    let answers = at_once(&site, "POST", "/session", &[], &(0..100).map(guess).collect::<Vec<_>>()).await;
    let (tried, refused) = (count(&answers, 401), count(&answers, 429));
    assert!(
        (1..=allowed(start)).contains(&tried) && tried + refused == 100,
        "{tried} were tried, {refused} refused"
    );
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert!(refused.header("retry-after").unwrap().parse::<u32>().unwrap() > 0, "{}", refused.head);

    let change = |at: usize| json!({ "account": "mia", "password": PASSWORD, "current": format!("wrong password {at}") });
    let start = Instant::now();
    let answers = at_once(&site, "POST", "/password", &[], &(0..100).map(change).collect::<Vec<_>>()).await;
    let tried = count(&answers, 401);
    assert!(
        (1..=allowed(start)).contains(&tried) && tried + count(&answers, 429) == 100,
        "{tried} were tried"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_of_authenticators_are_guessed_no_faster() {
    let site = Site::new(&[]).await;
    enrolled(&site, "ada").await;
    let guess = |at: usize| json!({ "name": "ada", "password": PASSWORD, "code": format!("x{at:05}") });
    let start = Instant::now();
    let mut tried = 0;
    for _ in 0..5 {
        let answers = at_once(&site, "POST", "/session", &[], &(0..20).map(guess).collect::<Vec<_>>()).await;
        assert_eq!(count(&answers, 401) + count(&answers, 429), 20);
        tried += count(&answers, 401);
    }
    assert!((1..=allowed(start)).contains(&tried), "{tried} were tried");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_left_open_does_not_guess_the_code_that_guards_the_authenticator() {
    let site = Site::new(&[]).await;
    let recovery = enrolled(&site, "ada").await;
    let bearer = format!("Bearer {}", site.token("ada").unwrap());
    let guess = |at: usize| json!({ "code": format!("x{at:05}") });
    let guesses: Vec<_> = (0..100).map(guess).collect();
    let headers = [("authorization", bearer.as_str())];
    let start = Instant::now();
    let answers = at_once(&site, "DELETE", "/accounts/ada/totp", &headers, &guesses).await;
    let tried = count(&answers, 422);
    assert!((1..=allowed(start)).contains(&tried), "{tried} were tried");
    assert_eq!(tried + count(&answers, 429) + count(&answers, 401), 100);
    assert_eq!(site.ask("ada", "GET", "/whoami", &Value::Null).await.status, 401, "the session is over");
    let audit = value(&site.ask("admin", "GET", "/audit?subject=ada", &Value::Null).await);
    assert!(audit.to_string().contains("session.end"), "{audit}");
    let body = json!({ "name": "ada", "password": PASSWORD, "code": recovery[0] });
    let mine = site.ask("nobody", "POST", "/session", &body).await;
    assert_eq!(mine.status, 200, "whoever signs in does not wait for it: {}", mine.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_one_who_is_attacked_signs_in_meanwhile() {
    let site = Arc::new(Site::new(&["--behind-proxy"]).await);
    let right = json!({ "name": "ada", "password": PASSWORD });
    let earlier = sign_in_from(&site, "198.51.100.1", &right, "").await;
    let known = cookies(&earlier);
    assert!(known.starts_with("danlu_device="), "{}", earlier.head);
    let (stop, tries) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let attackers: Vec<_> = (0..16)
        .map(|one| {
            let (site, stop, tries) = (site.clone(), stop.clone(), tries.clone());
            tokio::spawn(async move {
                let mut at = 0;
                while !stop.load(Ordering::Relaxed) {
                    let guess = json!({ "name": "ada", "password": format!("wrong password {one} {at}") });
                    sign_in_from(&site, "198.51.100.1", &guess, "").await;
                    tries.fetch_add(1, Ordering::Relaxed);
                    at += 1;
                }
            })
        })
        .collect();
    danlu_testkit::eventually("the attack", || async { (tries.load(Ordering::Relaxed) > 50).then_some(()) })
        .await;
    for _ in 0..10 {
        let elsewhere = sign_in_from(&site, "198.51.100.2", &right, "").await;
        assert_eq!(elsewhere.status, 200, "from another address: {}", elsewhere.body);
        let same_place = sign_in_from(&site, "198.51.100.1", &right, &known).await;
        assert_eq!(same_place.status, 200, "in a browser that she used before: {}", same_place.body);
    }
    let stranger = sign_in_from(&site, "198.51.100.1", &right, "").await;
    assert_eq!(stranger.status, 429, "the guesser has to wait");
    for worthless in ["danlu_device=", "danlu_device=ada.v1.AAAA", &known.replace("ada", "mia")] {
        assert_eq!(sign_in_from(&site, "198.51.100.1", &right, worthless).await.status, 429, "{worthless}");
    }
    // The word of a browser is good for its own account, and for a few tries like any other.
    let wrong = json!({ "name": "ada", "password": "not her password" });
    for _ in 0..FREE {
        assert_eq!(sign_in_from(&site, "203.0.113.9", &wrong, &known).await.status, 401);
    }
    // The first pauses are short, and an answer may take longer than one of them while the server is attacked.
    let mut statuses = Vec::new();
    while statuses.len() < 6 && statuses.last() != Some(&429) {
        statuses.push(sign_in_from(&site, "203.0.113.9", &wrong, &known).await.status);
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    stop.store(true, Ordering::Relaxed);
    for attacker in attackers {
        attacker.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_names_from_one_address_are_a_guesser_too() {
    let site = Site::new(&["--behind-proxy"]).await;
    let spray = |at: usize| json!({ "name": format!("somebody-{at}"), "password": "Summer 2026!" });
    let from = [("x-forwarded-for", "198.51.100.7")];
    let mut tried = 0;
    for _ in 0..20 {
        let bodies: Vec<_> = (0..4).map(|at| spray(tried * 100 + at)).collect();
        tried += count(&at_once(&site, "POST", "/session", &from, &bodies).await, 401);
    }
    assert!(tried < 60, "{tried} names were tried");
    let right = json!({ "name": "ada", "password": PASSWORD });
    assert_eq!(sign_in_from(&site, "198.51.100.8", &right, "").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_used_once_by_many_at_once() {
    let site = Site::new(&["--registration", "invitation"]).await;
    let link = value(&site.ask("admin", "POST", "/accounts/ada/password_link", &Value::Null).await);
    let set = |at: usize| json!({ "account": "ada", "password": format!("the password {at}"), "link": link["password_link"] });
    let answers = at_once(&site, "POST", "/password", &[], &(0..8).map(set).collect::<Vec<_>>()).await;
    assert_eq!(
        (count(&answers, 204), count(&answers, 204) + count(&answers, 401) + count(&answers, 429)),
        (1, 8)
    );
    let at = answers.iter().position(|answer| answer.status == 204).unwrap();
    assert_eq!(site.sign_in("ada", &format!("the password {at}")).await.status, 200);

    let link = value(&site.ask("mia", "POST", "/sign_in_link", &Value::Null).await)["secret"].clone();
    let come = vec![json!({ "link": link }); 8];
    assert_eq!(count(&at_once(&site, "POST", "/session", &[], &come).await, 200), 1);

    let invited = site.ask("otto", "POST", "/workspaces/lab/invitations", &json!({ "role": "viewer" })).await;
    let invited = value(&invited)["secret"].clone();
    let register =
        |at: usize| json!({ "name": format!("new{at}"), "password": PASSWORD, "invitation": invited });
    let answers =
        at_once(&site, "POST", "/registration", &[], &(0..8).map(register).collect::<Vec<_>>()).await;
    assert_eq!(count(&answers, 201), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_links_keep_nobody_from_a_right_one() {
    let site = Site::new(&["--registration", "invitation"]).await;
    for at in 0..20 {
        let link = format!("danlu_{at}");
        site.ask("nobody", "POST", "/session", &json!({ "link": link })).await;
        let come = json!({ "name": "nina", "password": PASSWORD, "invitation": link });
        site.ask("nobody", "POST", "/registration", &come).await;
        let set = json!({ "account": "ada", "password": PASSWORD, "link": link });
        site.ask("nobody", "POST", "/password", &set).await;
    }
    let link = value(&site.ask("ada", "POST", "/sign_in_link", &Value::Null).await)["secret"].clone();
    assert_eq!(site.ask("nobody", "POST", "/session", &json!({ "link": link })).await.status, 200);
    let invited = site.ask("otto", "POST", "/workspaces/lab/invitations", &json!({ "role": "viewer" })).await;
    let come = json!({ "name": "nina", "password": PASSWORD, "invitation": value(&invited)["secret"] });
    assert_eq!(site.ask("nobody", "POST", "/registration", &come).await.status, 201);
    let link = value(&site.ask("admin", "POST", "/accounts/ada/password_link", &Value::Null).await);
    let set = json!({ "account": "ada", "password": PASSWORD, "link": link["password_link"] });
    assert_eq!(site.ask("nobody", "POST", "/password", &set).await.status, 204);
}

/// An account with an authenticator: its recovery codes.
async fn enrolled(site: &Site, name: &str) -> Value {
    let path = format!("/accounts/{name}/totp");
    let enrolled = value(&site.ask(name, "POST", &path, &json!({ "password": PASSWORD })).await);
    let confirm = json!({ "code": code(&enrolled["secret"], 0) });
    value(&site.ask(name, "POST", &format!("{path}/confirmation"), &confirm).await)["codes"].clone()
}

/// Whoever has a session makes links with it, and a session of each link: none of them may be a fresh start for guesses.
#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_session_makes_itself_no_new_guesses() {
    let site = Site::new(&[]).await;
    let recovery = enrolled(&site, "ada").await;
    let stolen = site.token("ada").unwrap();
    let (start, mut tried, mut devices) = (Instant::now(), 0, 0);
    let mut last = stolen.to_owned();
    for round in 0..20 {
        // Of the stolen one, and of one that was made of it.
        let maker = if round % 2 == 0 { stolen } else { &last };
        let link = site.ask_with(Some(maker), "POST", "/sign_in_link", &Value::Null).await;
        if link.status == 401 {
            break;
        }
        let link = json!({ "link": value(&link)["secret"] });
        let come = site.ask("nobody", "POST", "/session", &link).await;
        value(&come)["secret"].as_str().unwrap().clone_into(&mut last);
        let (bearer, known) = (format!("Bearer {last}"), cookies(&come));
        devices += usize::from(known.contains("danlu_device"));
        let headers = [("authorization", bearer.as_str()), ("cookie", known.as_str())];
        let guesses: Vec<_> = (0..5).map(|at| json!({ "code": format!("x{at:05}") })).collect();
        tried += count(&at_once(&site, "DELETE", "/accounts/ada/totp", &headers, &guesses).await, 422);
    }
    assert_eq!(devices, 0, "a link makes no browser known");
    assert!((1..=allowed(start)).contains(&tried), "{tried} were tried");
    for one in [stolen, &last] {
        let whoami = site.ask_with(Some(one), "GET", "/whoami", &Value::Null).await;
        assert_eq!(whoami.status, 401, "the session of which the others were made is over, with them");
    }
    // The owner, who knows the password and has the authenticator, is not the one who waits.
    let body = json!({ "name": "ada", "password": PASSWORD, "code": recovery[0] });
    let mine = site.ask("nobody", "POST", "/session", &body).await;
    assert_eq!(mine.status, 200, "{}", mine.body);
    assert!(cookies(&mine).starts_with("danlu_device="), "{}", mine.head);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_session_does_not_guess_the_password_either() {
    let site = Site::new(&[]).await;
    // In a browser that the account knows: counted by itself it would have a few tries of its own for each session.
    let right = json!({ "name": "ada", "password": PASSWORD });
    let browser = site.ask("nobody", "POST", "/session", &right).await;
    let bearer = format!("Bearer {}", value(&browser)["secret"].as_str().unwrap());
    let known = cookies(&browser);
    let headers = [("authorization", bearer.as_str()), ("cookie", known.as_str())];
    let guess = |at: usize| json!({ "password": format!("a wrong password {at}") });
    let start = Instant::now();
    let guesses: Vec<_> = (0..40).map(guess).collect();
    let answers = at_once(&site, "POST", "/accounts/ada/totp", &headers, &guesses).await;
    let tried = count(&answers, 422);
    // None, where those that had to wait had ended the session by the time that the first was hashed.
    assert!(tried <= allowed(start), "{tried} were tried");
    assert_eq!(tried + count(&answers, 429) + count(&answers, 401), 40);
    let whoami = send(&site.address, "GET", "/api/v1/whoami", &headers, b"").await;
    assert_eq!(whoami.status, 401, "the session is over");
    assert_eq!(site.ask("ada", "GET", "/whoami", &Value::Null).await.status, 200, "another one is not");
    let headers = [("content-type", "application/json"), ("cookie", known.as_str())];
    let body = right.to_string();
    let mine = send(&site.address, "POST", "/api/v1/session", &headers, body.as_bytes()).await;
    assert_eq!(mine.status, 200, "nor does its owner wait: {}", mine.body);
}
