//! Authenticators and recovery codes.

use data_encoding::BASE32_NOPAD;
use ring::hmac;
use serde_json::{Value, json};

use crate::site::{PASSWORD, Site, value};

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
    assert_eq!(totp("admin", "POST", "", Value::Null).await.status, 403, "it is ada's secret");
    let enrolled = value(&totp("ada", "POST", "", Value::Null).await);
    assert!(enrolled["address"].as_str().unwrap().starts_with("otpauth://totp/Danlu:ada?secret="));
    assert_eq!(sign_in(None).await.status, 200, "not asked for before it is confirmed");
    let wrong = totp("ada", "POST", "/confirmation", json!({ "code": "000000x" })).await;
    assert_eq!(wrong.status, 422);
    let confirm = json!({ "code": code(&enrolled["secret"], 0) });
    let recovery = value(&totp("ada", "POST", "/confirmation", confirm).await)["codes"].clone();
    assert_eq!(recovery.as_array().unwrap().len(), 10);

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
    let enrolled = value(&site.ask("ada", "POST", "/accounts/ada/totp", &Value::Null).await);
    let confirm = json!({ "code": code(&enrolled["secret"], 0) });
    site.ask("ada", "POST", "/accounts/ada/totp/confirmation", &confirm).await;
    assert_eq!(value(&site.ask("admin", "GET", "/accounts/ada", &Value::Null).await)["second_factor"], true);
    assert_eq!(site.ask("admin", "DELETE", "/accounts/ada/totp", &Value::Null).await.status, 204);
    assert_eq!(site.sign_in("ada", PASSWORD).await.status, 200);
}
