//! Authenticators and recovery codes.

use data_encoding::BASE32_NOPAD;
use ring::hmac;
use serde_json::{Value, json};

use crate::site::{PASSWORD, Site, run_danlu, value};

/// The code of so many steps from now (RFC 6238).
pub(crate) fn code(secret: &Value, ahead: u64) -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let secret = BASE32_NOPAD.decode(secret.as_str().unwrap().as_bytes()).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &secret);
    let tag = hmac::sign(&key, &(seconds / 30 + ahead).to_be_bytes());
    let start = usize::from(tag.as_ref()[19] & 15);
    let word = u32::from_be_bytes(tag.as_ref()[start..start + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", word % 1_000_000)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_asked_for_and_works_once() {
    let site = Site::new(&[]).await;
    let sign_in = async |code: Option<&str>| {
        let body = json!({ "name": "ada", "password": PASSWORD, "code": code });
        site.ask("nobody", "POST", "/session", &body).await
    };
    let totp = async |who: &str, method: &str, more: &str, body: Value| {
        site.ask(who, method, &format!("/accounts/ada/totp{more}"), &body).await
    };
    let password = json!({ "password": PASSWORD });
    assert_eq!(totp("admin", "POST", "", password.clone()).await.status, 403, "it is ada's secret");
    // Whoever finds a session open does not keep its owner out with an authenticator of theirs.
    for wrong in
        [Value::Null, json!({}), json!({ "password": "" }), json!({ "password": "not her password" })]
    {
        let refused = totp("ada", "POST", "", wrong.clone()).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.body);
        assert_eq!(value(&refused)["errors"][0]["field"], "password", "{wrong}: {}", refused.body);
    }
    let enrolled = value(&totp("ada", "POST", "", password.clone()).await);
    assert!(enrolled["address"].as_str().unwrap().starts_with("otpauth://totp/Danlu:ada?secret="));
    assert_eq!(sign_in(None).await.status, 200, "not asked for before it is confirmed");
    let wrong = totp("ada", "POST", "/confirmation", json!({ "code": "000000x" })).await;
    assert_eq!(wrong.status, 422);
    let confirm = json!({ "code": code(&enrolled["secret"], 0) });
    let recovery = value(&totp("ada", "POST", "/confirmation", confirm).await)["codes"].clone();
    assert_eq!(recovery.as_array().unwrap().len(), 10);
    assert_eq!(totp("ada", "POST", "", password).await.status, 409, "there is one already");

    let needed = sign_in(None).await;
    assert_eq!((needed.status, &value(&needed)["code"]), (401, &json!("second_factor_needed")));
    let fresh = code(&enrolled["secret"], 1);
    assert_eq!(sign_in(Some(&fresh)).await.status, 200);
    assert_eq!(sign_in(Some(&fresh)).await.status, 401, "used");
    let spare = recovery[0].as_str().unwrap();
    assert_eq!(sign_in(Some(spare)).await.status, 200);
    assert_eq!(sign_in(Some(spare)).await.status, 401, "used");

    // A wrong password says nothing of the authenticator.
    let guess = json!({ "name": "ada", "password": "not her password" });
    let guess = site.ask("nobody", "POST", "/session", &guess).await;
    assert_eq!(value(&guess)["code"], "unauthenticated");
    // Neither a password nor an authenticator is changed with the password or a session alone.
    let change = json!({ "account": "ada", "password": "another password", "current": PASSWORD });
    assert_eq!(
        value(&site.ask("nobody", "POST", "/password", &change).await)["code"],
        "second_factor_needed"
    );
    assert_eq!(totp("ada", "DELETE", "", Value::Null).await.status, 422);
    assert_eq!(totp("mia", "DELETE", "", Value::Null).await.status, 404);
    let spare = json!({ "code": recovery[1] });
    assert_eq!(totp("ada", "DELETE", "", spare).await.status, 204);
    assert_eq!(sign_in(None).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_takes_a_lost_authenticator_away() {
    let site = Site::new(&[]).await;
    let password = json!({ "password": PASSWORD });
    let enrolled = value(&site.ask("ada", "POST", "/accounts/ada/totp", &password).await);
    let confirm = json!({ "code": code(&enrolled["secret"], 0) });
    site.ask("ada", "POST", "/accounts/ada/totp/confirmation", &confirm).await;
    assert_eq!(value(&site.ask("admin", "GET", "/accounts/ada", &Value::Null).await)["second_factor"], true);
    assert_eq!(site.ask("admin", "DELETE", "/accounts/ada/totp", &Value::Null).await.status, 204);
    assert_eq!(site.sign_in("ada", PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_asks_for_the_password_before_it_shows_a_secret() {
    let site = Site::new(&[]).await;
    let home = tempfile::tempdir().unwrap();
    let run = async |arguments: &[&str], typed: &str| run_danlu(home.path(), arguments, typed).await;
    let (code, _, said) = run(&["login", "ada", "--server", &site.address], &format!("{PASSWORD}\n")).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, printed, said) = run(&["authenticator", "add"], "not her password\n").await;
    assert!(code == Some(1) && printed.is_empty(), "{printed}");
    assert!(said.contains("is not the password of this account"), "{said}");
    // The code is not known before the secret is: this one is wrong.
    let (code, printed, said) = run(&["authenticator", "add"], &format!("{PASSWORD}\nwrong\n")).await;
    assert!(code == Some(1) && printed.contains("otpauth://totp/Danlu:ada"), "{printed}");
    assert!(said.contains("this code is not right"), "{said}");
}
