//! Links that sign somebody in, once.

use danlu_testkit::{TestServer, eventually};
use danlu_types::link::Link;
use serde_json::{Value, json};

use crate::site::{DANLU, PASSWORD, Site, proof, run_danlu, value};

async fn first_page(server: &TestServer) -> String {
    eventually("the first link", || async { server.output().lines().next().map(str::to_owned) }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_server_prints_a_way_in_until_an_administrator_has_used_it() {
    let mut server = TestServer::start(DANLU, &[]).await;
    let unused = Link::read(&first_page(&server).await);
    server.terminate();
    server.restart().await;
    let page = first_page(&server).await;
    assert!(page.starts_with(&format!("{}/sign-in#link=danlu_", server.client().address())), "{page}");
    let link = Link::read(&page);
    assert!(!server.log().contains(&link.secret), "the secret is not in the log");

    let mut site = Site::of(server);
    let come = async |site: &Site, secret: &str| {
        site.ask("nobody", "POST", "/session", &json!({ "link": secret })).await
    };
    assert_eq!(come(&site, &unused.secret).await.status, 401, "a restart ends the link before");
    let signed_in = come(&site, &link.secret).await;
    assert_eq!(signed_in.status, 200, "{}", signed_in.body);
    assert_eq!(value(&signed_in)["account"]["name"], "admin");
    assert!(signed_in.header("set-cookie").unwrap().contains("HttpOnly; SameSite=Lax"));
    assert_eq!(come(&site, &link.secret).await.status, 401, "it works once");

    site.server.terminate();
    site.server.restart().await;
    assert_eq!(site.server.output(), "");
    let audit = value(&site.again().ask("admin", "GET", "/audit", &Value::Null).await);
    let last = audit["items"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["action"], &last["after"]), (&json!("session.begin"), &json!({ "with": "link" })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_in_its_maker_and_nobody_else() {
    let site = Site::new(&[]).await;
    let come =
        async |secret: &Value| site.ask("nobody", "POST", "/session", &json!({ "link": secret })).await;
    let make =
        async || value(&site.ask("ada", "POST", "/sign_in_link", &Value::Null).await)["secret"].clone();
    let (earlier, link) = (make().await, make().await);
    assert_eq!(site.ask_with(link.as_str(), "GET", "/whoami", &Value::Null).await.status, 401, "no token");
    let password = json!({ "account": "ada", "password": PASSWORD, "link": link });
    assert_eq!(site.ask("nobody", "POST", "/password", &password).await.status, 401, "for signing in only");
    let both = json!({ "name": "ada", "password": PASSWORD, "link": link });
    assert_eq!(site.ask("nobody", "POST", "/session", &both).await.status, 422);

    // Of many who come with it at once, one gets in.
    let (one, two, three) = tokio::join!(come(&link), come(&link), come(&link));
    let mut statuses = [one.status, two.status, three.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401, 401]);
    let (used, ended, made_up) = (come(&link).await, come(&earlier).await, come(&json!("danlu_0")).await);
    assert_eq!((used.status, &used.body), (401, &ended.body));
    assert_eq!(used.body, made_up.body);
    // Whoever goes on has to wait, ever longer.
    let wait = eventually("a pause", || async {
        let guess = come(&json!("danlu_0")).await;
        (guess.status != 401).then_some(guess)
    });
    assert_eq!(wait.await.status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_less_does_not_become_a_session() {
    let site = Site::new(&[]).await;
    let made = value(
        &site.ask("ada", "POST", "/tokens", &json!({ "name": "x", "scope": "jobs", "proof": proof() })).await,
    );
    let asked = site.ask_with(made["secret"].as_str(), "POST", "/sign_in_link", &Value::Null).await;
    assert_eq!(asked.status, 403, "{}", asked.body);
    let link = value(&site.ask("ada", "POST", "/sign_in_link", &Value::Null).await)["secret"].clone();
    site.ask("admin", "PATCH", "/accounts/ada", &json!({ "standing": "disabled" })).await;
    site.ask("admin", "PATCH", "/accounts/ada", &json!({ "standing": "active" })).await;
    let come = site.ask("nobody", "POST", "/session", &json!({ "link": link })).await;
    assert_eq!(come.status, 401, "links end with the sessions");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_makes_a_link_for_the_browser() {
    let site = Site::new(&[]).await;
    let home = tempfile::tempdir().unwrap();
    let data = site.server.data().display().to_string();
    let (code, page, said) = run_danlu(home.path(), &["--data", &data, "login", "--link"], "").await;
    assert_eq!(code, Some(0), "{said}");
    let link = Link::read(&page);
    assert_eq!(link.server.as_deref(), Some(site.address.as_str()));
    let come = site.ask("nobody", "POST", "/session", &json!({ "link": link.secret })).await;
    assert_eq!(value(&come)["account"]["name"], "admin");
}
