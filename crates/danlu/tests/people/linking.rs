//! What makes an identity at a provider somebody's here: their own word, in their own browser, and nothing else.

use danlu_testkit::wire::{Answer, send};
use serde_json::{Value, json};

use crate::providers::{Provider, come_back, cookie, site, whoami};
use crate::site::{PASSWORD, Site, proof, value};

const IDENTITIES: &str = "/accounts/ada/identities";

async fn ada(site: &Site) -> String {
    site.ask("admin", "POST", "/accounts", &json!({ "name": "ada", "password": PASSWORD })).await;
    cookie(&site.sign_in("ada", PASSWORD).await, "danlu_session")
}

async fn start(site: &Site) -> Answer {
    let begin = send(&site.address, "GET", "/api/v1/oidc/start", &[], b"").await;
    assert_eq!(begin.status, 303, "{}", begin.body);
    begin
}

/// As the console asks, unless headers say otherwise.
async fn begin_link(site: &Site, headers: &[(&str, &str)], body: Value) -> Answer {
    let headers = [&[("content-type", "application/json")], headers].concat();
    send(&site.address, "POST", "/api/v1/oidc/link", &headers, body.to_string().as_bytes()).await
}

fn address(begin: &Answer) -> String {
    value(begin)["address"].as_str().unwrap_or_else(|| panic!("{}", begin.body)).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_in_through_a_provider_links_nothing_whoever_asks() {
    let provider = Provider::start();
    let site = site(&provider).await;
    let session = ada(&site).await;
    let signed_in = value(&site.sign_in("ada", PASSWORD).await)["secret"].as_str().unwrap().to_owned();
    let mut tokens = vec![signed_in.clone()];
    for scope in ["read", "jobs", "all"] {
        let new = json!({ "name": scope, "scope": scope, "proof": proof() });
        let made = value(&site.ask_with(Some(&signed_in), "POST", "/tokens", &new).await);
        tokens.push(made["secret"].as_str().unwrap().to_owned());
    }
    for (at, token) in tokens.iter().enumerate() {
        let name = format!("evil{at}");
        provider.person(json!({ "sub": name, "preferred_username": name })).await;
        let begin = start(&site).await;
        let back = come_back(&site, &begin, begin.header("location").unwrap(), &[], Some(token)).await;
        assert_eq!(whoami(&site, &back).await["name"], name.as_str(), "token {at}");
    }
    // Nor does a browser in which somebody is signed in.
    provider.person(json!({ "sub": "9", "preferred_username": "nina" })).await;
    let begin = start(&site).await;
    let back = come_back(&site, &begin, begin.header("location").unwrap(), &[&session], None).await;
    assert_eq!(whoami(&site, &back).await["name"], "nina");
    let listed = value(&site.ask("admin", "GET", IDENTITIES, &Value::Null).await);
    assert_eq!(listed["items"], json!([]), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_begun_by_its_owner_with_their_password_and_taken_back() {
    let provider = Provider::start();
    let site = site(&provider).await;
    let session = ada(&site).await;
    let token = value(&site.sign_in("ada", PASSWORD).await)["secret"].as_str().unwrap().to_owned();
    let (own, console) = (("cookie", session.as_str()), ("x-danlu-console", "1"));
    let password = json!({ "password": PASSWORD });
    assert_eq!(begin_link(&site, &[own], password.clone()).await.status, 403, "from another page");
    let bearer = format!("Bearer {token}");
    let refused = begin_link(&site, &[("authorization", &bearer)], password.clone()).await;
    assert_eq!(refused.status, 403, "a session's secret in a program is no browser: {}", refused.body);
    assert_eq!(begin_link(&site, &[], password.clone()).await.status, 401);
    assert_eq!(begin_link(&site, &[own, console], json!({})).await.status, 422);
    let wrong = begin_link(&site, &[own, console], json!({ "password": "not her password" })).await;
    assert_eq!(wrong.status, 422, "{}", wrong.body);

    provider.person(json!({ "sub": "1", "preferred_username": "ada.l" })).await;
    let begin = begin_link(&site, &[own, console], password.clone()).await;
    assert_eq!(begin.status, 200, "{}", begin.body);
    // Whose it is was said at the beginning: another session of hers does not end it, nor does another person's.
    let other = cookie(&site.sign_in("ada", PASSWORD).await, "danlu_session");
    for cookies in [vec![], vec![other.as_str()]] {
        let begin = begin_link(&site, &[own, console], password.clone()).await;
        let back = come_back(&site, &begin, &address(&begin), &cookies, None).await;
        assert_eq!(back.status, 401, "{}", back.body);
    }
    let back = come_back(&site, &begin, &address(&begin), &[&session], None).await;
    assert_eq!((back.status, back.header("location")), (303, Some("/profile")), "{}", back.body);
    assert!(!back.head.contains("danlu_session="), "no session comes of it: {}", back.head);

    let start = start(&site).await;
    let back = come_back(&site, &start, start.header("location").unwrap(), &[], None).await;
    assert_eq!(whoami(&site, &back).await["name"], "ada");
    let identities = value(&site.ask_with(Some(&token), "GET", IDENTITIES, &Value::Null).await);
    let (issuer, subject) = (&identities["items"][0]["issuer"], &identities["items"][0]["subject"]);
    assert_eq!((issuer.as_str().unwrap().starts_with("http://127."), subject), (true, &json!("1")));

    // It is nobody else's as long as it is hers.
    let nina = json!({ "name": "nina", "password": PASSWORD });
    site.ask("admin", "POST", "/accounts", &nina).await;
    let session = cookie(&site.sign_in("nina", PASSWORD).await, "danlu_session");
    let begin = begin_link(&site, &[("cookie", &session), console], password.clone()).await;
    let back = come_back(&site, &begin, &address(&begin), &[&session], None).await;
    assert_eq!(back.status, 409, "{}", back.body);

    let one = format!("{IDENTITIES}/{}", identities["items"][0]["id"].as_str().unwrap());
    let nina = value(&site.sign_in("nina", PASSWORD).await)["secret"].as_str().unwrap().to_owned();
    assert_eq!(site.ask_with(Some(&nina), "DELETE", &one, &Value::Null).await.status, 404);
    assert_eq!(site.ask_with(Some(&token), "DELETE", &one, &Value::Null).await.status, 204);
    assert_eq!(site.ask_with(Some(&token), "DELETE", &one, &Value::Null).await.status, 404);
    let audit = value(&site.ask("admin", "GET", "/audit?subject=ada", &Value::Null).await);
    let actions = audit["items"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap());
    let links: Vec<_> = actions.filter(|action| action.ends_with("link")).collect();
    assert_eq!(links, ["account.link", "account.unlink"]);
    let start = self::start(&site).await;
    let back = come_back(&site, &start, start.header("location").unwrap(), &[], None).await;
    assert_eq!(whoami(&site, &back).await["name"], "ada-l", "somebody else by now");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_only_way_in_is_not_taken_away() {
    let provider = Provider::start();
    let site = site(&provider).await;
    provider.person(json!({ "sub": "7", "preferred_username": "nina" })).await;
    let begin = start(&site).await;
    let back = come_back(&site, &begin, begin.header("location").unwrap(), &[], None).await;
    assert!(!back.head.contains("danlu_device"), "a provider makes no browser known: {}", back.head);
    let session = cookie(&back, "danlu_session");
    let headers = [("cookie", session.as_str()), ("x-danlu-console", "1")];
    let enrolled = send(&site.address, "POST", "/api/v1/accounts/nina/totp", &headers, b"").await;
    assert_eq!(enrolled.status, 201, "there is no password to ask for: {}", enrolled.body);
    let own = "/api/v1/accounts/nina/identities";
    let listed = value(&send(&site.address, "GET", own, &headers, b"").await);
    let one = format!("{own}/{}", listed["items"][0]["id"].as_str().unwrap());
    let refused = send(&site.address, "DELETE", &one, &headers, b"").await;
    assert!(refused.status == 409 && refused.body.contains("password"), "{}", refused.body);
    // Without a password there is nothing that a session alone does not have, so nothing is linked.
    let refused = begin_link(&site, &headers, json!({ "password": "anything at all" })).await;
    assert!(refused.status == 409 && refused.body.contains("no password"), "{}", refused.body);
}
