//! The certificate: given in files, or made once and kept in the data folder.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use danlu_types::fingerprint::Fingerprint;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ServerConfig};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

use super::{ListenConfig, Tls};

const CERTIFICATE_FILE: &str = "tls.crt";
const KEY_FILE: &str = "tls.key";

/// What the server shows, and how clients know it.
pub(crate) struct ServerCertificate {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) fingerprint: Fingerprint,
}

/// Nothing where TLS is off.
pub(crate) fn open(folder: &Path, listen_config: &ListenConfig) -> anyhow::Result<Option<ServerCertificate>> {
    let (certificate, key) = match &listen_config.tls {
        Tls::Off => return Ok(None),
        Tls::Files { certificate, key } => (certificate.clone(), key.clone()),
        Tls::SelfSigned => {
            let (certificate, key) = (folder.join(CERTIFICATE_FILE), folder.join(KEY_FILE));
            if !certificate.exists() || !key.exists() {
                make(&certificate, &key, listen_config)?;
            }
            (certificate, key)
        }
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&certificate)
        .and_then(Iterator::collect)
        .with_context(|| format!("could not read the certificate `{}`", certificate.display()))?;
    let first = chain.first().with_context(|| format!("`{}` holds no certificate", certificate.display()))?;
    let fingerprint = Fingerprint(Sha256::digest(first).into());
    let private = PrivateKeyDer::from_pem_file(&key)
        .with_context(|| format!("could not read the key `{}`", key.display()))?;
    // The provider is named, so that another crate's choice of one cannot surprise us.
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .context("the protocols of TLS are not available")?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .with_context(|| {
            format!("the key `{}` is not the one of `{}`", key.display(), certificate.display())
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(ServerCertificate { acceptor: TlsAcceptor::from(Arc::new(config)), fingerprint }))
}

/// For requests of ours to others, whom this machine's authorities vouch for.
pub(crate) fn client_tls() -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(default_provider());
    let verifier = rustls_platform_verifier::Verifier::new(provider.clone())
        .context("could not read this machine's certificate authorities")?;
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("the protocols of TLS are not available")?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

/// A certificate that nobody vouches for: people compare its fingerprint instead.
fn make(certificate: &Path, key: &Path, listen_config: &ListenConfig) -> anyhow::Result<()> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let listen = listen_config.listen.ip();
    if !listen.is_unspecified() && !listen.is_loopback() {
        names.push(listen.to_string());
    }
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    names.extend(host.filter(|name| name != "localhost"));
    let made = rcgen::generate_simple_self_signed(names).context("could not make a certificate")?;
    write(key, &made.signing_key.serialize_pem(), 0o600)?;
    write(certificate, &made.cert.pem(), 0o644)
}

fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let write = || {
        // Removed first: the mode counts for new files only.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().create_new(true).write(true).mode(mode).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().with_context(|| format!("could not write `{}`", path.display()))
}
