//! ID tokens (OIDC Core, 3.1.3.7): signed by the provider's key, meant for us, for this sign-in, and still good.
//!
//! A pure function of the token, the provider's keys and what is expected. Only signatures with a public key are taken: a
//! token that says `none`, or that our own client secret could have signed, proves nothing.

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

/// Clocks of two machines differ.
const LEEWAY_SECONDS: i64 = 60;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) nonce: &'a str,
    pub(crate) now_seconds: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum IdTokenError {
    #[error("the ID token cannot be read")]
    Form,
    #[error("the provider signs with `{0}`, which is not taken here: RS256 and ES256 are")]
    Algorithm(String),
    #[error("the provider's token is signed by a key that the provider does not show")]
    Signature,
    #[error("the provider's token is for another {0}")]
    NotOurs(&'static str),
    #[error("the provider's token is over")]
    Over,
}

#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Keys {
    keys: Vec<Key>,
}

#[derive(Debug, Deserialize)]
struct Key {
    kty: String,
    kid: Option<String>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Claims {
    pub(crate) iss: String,
    pub(crate) sub: String,
    aud: Value,
    azp: Option<String>,
    exp: i64,
    nonce: Option<String>,
    #[serde(flatten)]
    pub(crate) others: Map<String, Value>,
}

impl Claims {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.others.get(name).and_then(Value::as_str)
    }

    /// The texts of a claim that is a list, or one text.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        match self.others.get(name) {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(Value::String(one)) => vec![one.clone()],
            _ => Vec::new(),
        }
    }
}

pub(crate) fn verify(token: &str, keys: &Keys, expected: Expected<'_>) -> Result<Claims, IdTokenError> {
    let (signed, signature) = token.rsplit_once('.').ok_or(IdTokenError::Form)?;
    let (header, payload) = signed.split_once('.').ok_or(IdTokenError::Form)?;
    let header: Header = read(header)?;
    let signature = decode(signature)?;
    let named = |key: &&Key| header.kid.is_none() || key.kid == header.kid;
    let mut candidates = keys.keys.iter().filter(named);
    let is_signed = match header.alg.as_str() {
        "RS256" => candidates.any(|key| rsa(key, signed.as_bytes(), &signature).is_some()),
        "ES256" => candidates.any(|key| ecdsa(key, signed.as_bytes(), &signature).is_some()),
        other => return Err(IdTokenError::Algorithm(other.chars().take(20).collect())),
    };
    if !is_signed {
        return Err(IdTokenError::Signature);
    }
    let claims: Claims = read(payload)?;
    let audience: Vec<&str> = match &claims.aud {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let party = claims.azp.as_deref();
    let for_us = audience.contains(&expected.client_id)
        && party.is_none_or(|party| party == expected.client_id)
        && (audience.len() == 1 || party.is_some());
    match () {
        () if claims.iss != expected.issuer => Err(IdTokenError::NotOurs("issuer")),
        () if !for_us => Err(IdTokenError::NotOurs("client")),
        () if claims.nonce.as_deref() != Some(expected.nonce) => Err(IdTokenError::NotOurs("sign-in")),
        () if claims.exp.saturating_add(LEEWAY_SECONDS) <= expected.now_seconds => Err(IdTokenError::Over),
        () => Ok(claims),
    }
}

fn rsa(key: &Key, message: &[u8], signature: &[u8]) -> Option<()> {
    let number = |text: &Option<String>| {
        let bytes = decode(text.as_deref()?).ok()?;
        let start = bytes.iter().position(|byte| *byte != 0)?;
        Some(bytes[start..].to_vec())
    };
    let public = RsaPublicKeyComponents { n: number(&key.n)?, e: number(&key.e)? };
    (key.kty == "RSA").then_some(())?;
    public.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).ok()
}

fn ecdsa(key: &Key, message: &[u8], signature: &[u8]) -> Option<()> {
    (key.kty == "EC" && key.crv.as_deref() == Some("P-256")).then_some(())?;
    let (x, y) = (decode(key.x.as_deref()?).ok()?, decode(key.y.as_deref()?).ok()?);
    let point = [&[4][..], &x, &y].concat();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).ok()
}

fn decode(text: &str) -> Result<Vec<u8>, IdTokenError> {
    BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| IdTokenError::Form)
}

fn read<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, IdTokenError> {
    serde_json::from_slice(&decode(part)?).map_err(|_| IdTokenError::Form)
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::json;

    use super::*;

    struct Signer {
        pair: EcdsaKeyPair,
        random: SystemRandom,
    }

    impl Signer {
        fn new() -> Self {
            let random = SystemRandom::new();
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
            Signer { pair, random }
        }

        fn keys(&self) -> Keys {
            let point = self.pair.public_key().as_ref();
            let text = |bytes| BASE64URL_NOPAD.encode(bytes);
            let key = json!({ "kty": "EC", "crv": "P-256", "kid": "k", "x": text(&point[1..33]), "y": text(&point[33..]) });
            serde_json::from_value(json!({ "keys": [key] })).unwrap()
        }

        fn token(&self, header: &Value, claims: &Value) -> String {
            let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
            let signed = format!("{}.{}", part(header), part(claims));
            let signature = self.pair.sign(&self.random, signed.as_bytes()).unwrap();
            format!("{signed}.{}", BASE64URL_NOPAD.encode(signature.as_ref()))
        }
    }

    const EXPECTED: Expected<'_> =
        Expected { issuer: "https://sso.example", client_id: "danlu", nonce: "n", now_seconds: 1000 };

    fn claims() -> Value {
        json!({ "iss": "https://sso.example", "sub": "7", "aud": "danlu", "exp": 1300, "nonce": "n", "groups": ["a", "b"] })
    }

    #[test]
    fn a_good_token_says_who_it_is() {
        let signer = Signer::new();
        let header = json!({ "alg": "ES256", "kid": "k" });
        let found = verify(&signer.token(&header, &claims()), &signer.keys(), EXPECTED).unwrap();
        assert_eq!((found.sub.as_str(), found.texts("groups")), ("7", vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn a_token_that_lasts_for_ever_is_good_and_one_that_never_began_is_not() {
        let signer = Signer::new();
        let verified = |exp: i64| {
            let mut claims = claims();
            claims["exp"] = json!(exp);
            verify(&signer.token(&json!({ "alg": "ES256", "kid": "k" }), &claims), &signer.keys(), EXPECTED)
        };
        assert!(verified(i64::MAX).is_ok());
        assert_eq!(verified(i64::MIN).unwrap_err(), IdTokenError::Over);
    }

    proptest::proptest! {
        /// A provider's own mistakes, and what others send in its name.
        #[test]
        fn hostile_tokens_are_refused_or_read(
            text in "[A-Za-z0-9_.=-]{0,120}|(e30|eyJhbGciOiJFUzI1NiJ9|eyJhbGciOiJSUzI1NiJ9)\\.(e30|[A-Za-z0-9_-]{0,40})\\.[A-Za-z0-9_-]{0,90}",
            claims in proptest::collection::btree_map("iss|sub|aud|azp|exp|nonce|x", "[0-9]{1,19}|-1|null|\"danlu\"|\\[\\]|\\{\\}|\\[\"danlu\",1\\]|1e400", 0..7),
        ) {
            let signer = Signer::new();
            let _ = verify(&text, &signer.keys(), EXPECTED);
            let claims: Vec<String> = claims.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            let part = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
            let signed = format!("{}.{}", part(r#"{"alg":"ES256"}"#), part(&format!("{{{}}}", claims.join(","))));
            let signature = signer.pair.sign(&signer.random, signed.as_bytes()).unwrap();
            let token = format!("{signed}.{}", BASE64URL_NOPAD.encode(signature.as_ref()));
            proptest::prop_assert!(verify(&token, &signer.keys(), EXPECTED).is_err(), "nothing of this is for us: {}", token);
        }
    }

    #[test]
    fn all_others_are_refused_with_a_reason() {
        let signer = Signer::new();
        let header = json!({ "alg": "ES256", "kid": "k" });
        let with = |name: &str, value: Value| {
            let mut claims = claims();
            claims[name] = value;
            signer.token(&header, &claims)
        };
        let good = signer.token(&header, &claims());
        let (signed, signature) = good.rsplit_once('.').unwrap();
        let (head, _) = signed.split_once('.').unwrap();
        let forged = BASE64URL_NOPAD.encode(claims().to_string().replace('7', "8").as_bytes());
        let cases = [
            ("another's key", Signer::new().token(&header, &claims())),
            ("changed", format!("{head}.{forged}.{signature}")),
            ("unsigned", signer.token(&json!({ "alg": "none" }), &claims())),
            ("signed with a shared secret", signer.token(&json!({ "alg": "HS256", "kid": "k" }), &claims())),
            ("of an unknown key", signer.token(&json!({ "alg": "ES256", "kid": "other" }), &claims())),
            ("of another provider", with("iss", json!("https://evil.example"))),
            ("for another client", with("aud", json!("other"))),
            ("for two clients, nobody in particular", with("aud", json!(["danlu", "other"]))),
            ("replayed", with("nonce", json!("m"))),
            ("old", with("exp", json!(900))),
            ("nonsense", "a.b".to_owned()),
        ];
        let answer = |(what, token): &(&str, String)| {
            format!("{what}: {}", verify(token, &signer.keys(), EXPECTED).unwrap_err())
        };
        insta::assert_snapshot!(cases.iter().map(answer).collect::<Vec<_>>().join("\n"), @r"
        another's key: the provider's token is signed by a key that the provider does not show
        changed: the provider's token is signed by a key that the provider does not show
        unsigned: the provider signs with `none`, which is not taken here: RS256 and ES256 are
        signed with a shared secret: the provider signs with `HS256`, which is not taken here: RS256 and ES256 are
        of an unknown key: the provider's token is signed by a key that the provider does not show
        of another provider: the provider's token is for another issuer
        for another client: the provider's token is for another client
        for two clients, nobody in particular: the provider's token is for another client
        replayed: the provider's token is for another sign-in
        old: the provider's token is over
        nonsense: the ID token cannot be read
        ");
    }
}
