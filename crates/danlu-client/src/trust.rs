//! Whom a client takes for its server: one with the certificate it was told of, or one that this machine's authorities
//! vouch for.

use std::sync::Arc;

use danlu_types::fingerprint::Fingerprint;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use sha2::{Digest as _, Sha256};

/// The TLS of a client of `address`.
pub(crate) fn tls(address: &str, fingerprint: Option<Fingerprint>) -> ClientConfig {
    let provider = Arc::new(default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring has the protocols of TLS");
    let verifier: Arc<dyn ServerCertVerifier> = match fingerprint {
        Some(expected) => Arc::new(Pinned { expected, provider }),
        // Reading this machine's authorities takes its time, and is for nothing where there is no TLS.
        None if address.starts_with("https://") => match rustls_platform_verifier::Verifier::new(provider) {
            Ok(verifier) => Arc::new(verifier),
            Err(_) => return builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
        },
        None => return builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
    };
    builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
}

/// Trusts one certificate, whoever it says it is for: the one whose fingerprint a person has compared.
#[derive(Debug)]
struct Pinned {
    expected: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = Fingerprint(Sha256::digest(certificate).into());
        if found == self.expected {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    // That the server has the certificate's key is checked as always.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
