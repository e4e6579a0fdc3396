//! Sign-in through an OIDC provider: the authorization code flow with PKCE, state and nonce.
//!
//! By hand over the HTTP client and the cryptography that are here anyway (ADR 10).

mod id_token;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use danlu_types::account::AccountName;
use danlu_types::oidc::OidcSettings;
use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use rand::Rng as _;
use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use id_token::{Expected, Keys};

use crate::accounts::network_of;

const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a person may take at the provider.
const LONGEST_SIGN_IN: Duration = Duration::from_mins(10);
/// Beyond it, the oldest are given up.
const MOST_PENDING: usize = 10_000;
/// Of one network: whoever begins again and again gives up their own.
const MOST_PENDING_OF_ONE: usize = 50;

#[derive(Debug)]
pub(crate) struct Oidc {
    pub(crate) settings: OidcSettings,
    secret: Option<String>,
    redirect: String,
    http: reqwest::Client,
    /// By state.
    pending: Mutex<HashMap<String, Pending>>,
}

#[derive(Debug)]
struct Pending {
    nonce: String,
    verifier: String,
    since: Instant,
    network: IpAddr,
    link_to: Option<LinkTo>,
}

/// Whose account an identity is to be linked to, and the session that asked for it, by the hash of its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkTo {
    pub(crate) account: AccountName,
    pub(crate) session: String,
}

/// Where to send a browser, and the state by which it is known when it comes back.
#[derive(Debug)]
pub(crate) struct Departure {
    pub(crate) address: String,
    pub(crate) state: String,
}

/// Whom the provider says it is.
#[derive(Debug, Clone)]
pub(crate) struct ExternalIdentity {
    pub(crate) issuer: String,
    pub(crate) subject: String,
    pub(crate) username: Option<String>,
    pub(crate) display_name: Option<String>,
    pub(crate) email: Option<String>,
    pub(crate) groups: Vec<String>,
}

impl ExternalIdentity {
    /// By which it is known here. An issuer is an address and holds no space.
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.issuer, self.subject)
    }
}

#[derive(Debug, Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

impl Oidc {
    /// `address` is how browsers reach us.
    pub(crate) fn new(
        settings: OidcSettings,
        address: &str,
        tls: rustls::ClientConfig,
    ) -> anyhow::Result<Self> {
        let secret = match &settings.client_secret_file {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                Some(text.with_context(|| format!("could not read `{}`", path.display()))?.trim().to_owned())
            }
            None => None,
        };
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .tls_backend_preconfigured(tls)
            .build()
            .context("could not make an HTTP client")?;
        let redirect = format!("{address}/api/v1/oidc/callback");
        Ok(Oidc { settings, secret, redirect, http, pending: Mutex::default() })
    }

    /// Begins, for somebody from there: a sign-in, or a link to an account.
    pub(crate) async fn depart(&self, from: IpAddr, link_to: Option<LinkTo>) -> anyhow::Result<Departure> {
        let metadata = self.metadata().await?;
        let (state, nonce, verifier) = (random(), random(), random());
        let challenge = BASE64URL_NOPAD.encode(&Sha256::digest(verifier.as_bytes()));
        let mut address = Url::parse(&metadata.authorization_endpoint).context("invalid provider address")?;
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", &self.redirect)
            .append_pair("scope", &self.settings.scopes.join(" "))
            .append_pair("state", &state)
            .append_pair("nonce", &nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        let network = network_of(from);
        let mut pending = self.pending();
        pending.retain(|_, one| one.since.elapsed() < LONGEST_SIGN_IN);
        if pending.values().filter(|one| one.network == network).count() >= MOST_PENDING_OF_ONE {
            give_up_oldest(&mut pending, |one| one.network == network);
        } else if pending.len() >= MOST_PENDING {
            give_up_oldest(&mut pending, |_| true);
        }
        let since = Instant::now();
        pending.insert(state.clone(), Pending { nonce, verifier, since, network, link_to });
        Ok(Departure { address: address.into(), state })
    }

    /// Each state is good for one return: who it is, and what they came for.
    pub(crate) async fn arrive(
        &self,
        state: &str,
        code: &str,
    ) -> anyhow::Result<(ExternalIdentity, Option<LinkTo>)> {
        let pending = self.pending().remove(state);
        let Some(pending) = pending.filter(|one| one.since.elapsed() < LONGEST_SIGN_IN) else {
            bail!("this sign-in was not begun here, or took too long");
        };
        let metadata = self.metadata().await?;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect),
            ("client_id", &self.settings.client_id),
            ("code_verifier", &pending.verifier),
        ];
        form.extend(self.secret.as_deref().map(|secret| ("client_secret", secret)));
        // A query is written as a form is.
        let form = Url::parse_with_params("form:", form).context("a form can be written")?;
        let request = self
            .http
            .post(&metadata.token_endpoint)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form.query().unwrap_or_default().to_owned());
        let tokens: Tokens = answer(request).await.context("the provider did not take the code")?;
        let keys: Keys =
            answer(self.http.get(&metadata.jwks_uri)).await.context("the provider does not show its keys")?;
        let expected = Expected {
            issuer: &self.settings.issuer,
            client_id: &self.settings.client_id,
            nonce: &pending.nonce,
            now_seconds: Timestamp::now().as_second(),
        };
        let claims = id_token::verify(&tokens.id_token, &keys, expected)?;
        let text = |name: &str| claims.text(name).map(str::to_owned);
        let identity = ExternalIdentity {
            username: text("preferred_username").or_else(|| text("email")),
            display_name: text("name"),
            email: text("email"),
            groups: claims.texts(&self.settings.groups_claim),
            issuer: claims.iss.clone(),
            subject: claims.sub.clone(),
        };
        Ok((identity, pending.link_to))
    }

    async fn metadata(&self) -> anyhow::Result<Metadata> {
        let issuer = self.settings.issuer.trim_end_matches('/');
        let address = format!("{issuer}/.well-known/openid-configuration");
        let metadata: Metadata =
            answer(self.http.get(&address)).await.with_context(|| format!("could not read `{address}`"))?;
        ensure!(metadata.issuer == self.settings.issuer, "the provider calls itself `{}`", metadata.issuer);
        Ok(metadata)
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<String, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> anyhow::Result<T> {
    let response = request.send().await?.error_for_status()?;
    Ok(serde_json::from_slice(&response.bytes().await?)?)
}

fn give_up_oldest(pending: &mut HashMap<String, Pending>, which: impl Fn(&Pending) -> bool) {
    let oldest = pending.iter().filter(|(_, one)| which(one)).min_by_key(|(_, one)| one.since);
    let oldest = oldest.map(|(state, _)| state.clone());
    oldest.and_then(|state| pending.remove(&state));
}

fn random() -> String {
    BASE64URL_NOPAD.encode(&rand::rng().random::<[u8; 32]>())
}
