//! TLS 1.3 with P-256 for drivers: the client's side, and a certificate for the brokers that the bench starts.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

use super::url::Broker;
use crate::load::Stream;
use crate::process::WorkerError;

/// The files of a certificate and its key, both on P-256.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certificate {
    pub(super) fn make(directory: &Path) -> io::Result<Self> {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
        let files = Self {
            certificate: directory.join("mqtt.crt"),
            key: directory.join("mqtt.key"),
        };
        fs::write(&files.certificate, made.cert.pem())?;
        fs::write(&files.key, made.signing_key.serialize_pem())?;
        Ok(files)
    }
}

/// A client's side without resumption: each handshake is a whole one.
pub(super) fn client() -> Result<Arc<ClientConfig>, WorkerError> {
    let provider = Arc::new(CryptoProvider {
        kx_groups: vec![ring::kx_group::SECP256R1],
        ..ring::default_provider()
    });
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(WorkerError::handshake)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Shakes hands on a stream that waits.
pub(super) fn shake_hands(
    config: &Arc<ClientConfig>,
    broker: &Broker,
    stream: &Stream,
) -> Result<ClientConnection, WorkerError> {
    let name = ServerName::try_from(broker.host.clone()).map_err(WorkerError::handshake)?;
    let mut tls =
        ClientConnection::new(Arc::clone(config), name).map_err(WorkerError::handshake)?;
    tls.set_buffer_limit(None);
    while tls.is_handshaking() {
        tls.complete_io(&mut Waiting(stream))
            .map_err(WorkerError::handshake)?;
    }
    Ok(tls)
}

struct Waiting<'a>(&'a Stream);

impl Read for Waiting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Waiting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes any certificate, of which a bench has no use, and verifies the handshake's signature, which is a client's cost.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
