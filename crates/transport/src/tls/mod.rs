//! TLS: endpoints' files, and one side of a connection ([`TlsStage`]).

mod exporter;
mod names;
mod revocation;
mod stage;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use rustls::ServerConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, InconsistentKeys, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use self::names::ByName;
pub use self::stage::{Session, TlsStage};

/// A certificate with its key, PEM.
#[derive(Clone, Debug)]
pub struct KeyFiles {
    pub certificate: PathBuf,
    /// Intermediate certificates that are not in the certificate's own file.
    pub chain: Vec<PathBuf>,
    pub key: PathBuf,
}

/// The files of a TLS endpoint, PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub own: KeyFiles,
    /// The first of these that has the name of the host that a client asks for is presented in place of `own`.
    pub named: Vec<KeyFiles>,
    /// If not empty, clients must send a certificate signed by one of these.
    pub client_authorities: Vec<PathBuf>,
    /// If not empty, clients' certificates must be on none of these lists, and every authority of a client must have one.
    pub revocation_lists: Vec<PathBuf>,
    /// Then they may also send none.
    pub is_certificate_optional: bool,
    /// The ALPN protocols (RFC 7301) by preference; if empty, ALPN is not answered.
    pub protocols: &'static [&'static [u8]],
}

/// Reads the files into a server configuration; an error names the file and its fault.
pub fn server_config(files: &TlsFiles) -> io::Result<Arc<ServerConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let own = files.own.read(&provider)?;
    let named = files.named.iter().map(|named| named.read(&provider));
    let resolver = ByName::new(own, named.collect::<io::Result<_>>()?);
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let builder = if files.client_authorities.is_empty() {
        builder.with_no_client_auth()
    } else {
        let roots = roots(&files.client_authorities)?;
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let verifier = revocation::checked(verifier, &files.revocation_lists)?;
        let verifier = match files.is_certificate_optional {
            true => verifier.allow_unauthenticated(),
            false => verifier,
        };
        builder.with_client_cert_verifier(verifier.build().map_err(io::Error::other)?)
    };
    let mut config = builder.with_cert_resolver(Arc::new(resolver));
    config.key_log = Arc::new(exporter::ExporterSecrets);
    config.alpn_protocols = files.protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

/// The files of a client with a certificate of its own, PEM.
#[derive(Clone, Debug)]
pub struct ClientFiles {
    pub own: KeyFiles,
    /// The trusted authorities of servers' certificates.
    pub authorities: Vec<PathBuf>,
}

/// Reads the files into a client configuration; an error names the file and its fault.
pub fn client_config(files: &ClientFiles) -> io::Result<Arc<ClientConfig>> {
    let (chain, key) = files.own.read_parts()?;
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots(&files.authorities)?)
            .with_client_auth_cert(chain, key)
            .map_err(|e| files.own.unfit(&e))?;
    Ok(Arc::new(config))
}

impl KeyFiles {
    fn read(&self, provider: &CryptoProvider) -> io::Result<CertifiedKey> {
        let (chain, key) = self.read_parts()?;
        certified(chain, key, provider).map_err(|e| self.unfit(&e))
    }

    fn read_parts(&self) -> io::Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let mut chain = certificates(&self.certificate)?;
        for path in &self.chain {
            chain.extend(certificates(path)?);
        }
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|e| invalid(&self.key, &format!("expected a private key in PEM: {e}")))?;
        Ok((chain, key))
    }

    fn unfit(&self, why: &rustls::Error) -> io::Error {
        invalid(&self.certificate, &format!("certificate and key: {why}"))
    }
}

/// Checks that a certificate is valid for a server reached at this host, and for a client too: peers that trust only
/// these authorities use it for both.
pub fn check_peer(certificate: &Path, authorities: &Path, host: &str) -> io::Result<()> {
    let chain = certificates(certificate)?;
    let [own, between @ ..] = &chain[..] else {
        return Err(invalid(
            certificate,
            "expected a certificate in PEM, found none",
        ));
    };
    let roots = Arc::new(roots(&[authorities.to_owned()])?);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let said = |e: rustls::Error| invalid(certificate, &e.to_string());
    let name = ServerName::try_from(host).map_err(|e| invalid(certificate, &e.to_string()))?;
    let now = UnixTime::now();
    WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
        .build()
        .map_err(io::Error::other)?
        .verify_server_cert(own, between, &name, &[], now)
        .map_err(said)?;
    WebPkiClientVerifier::builder_with_provider(roots, provider)
        .build()
        .map_err(io::Error::other)?
        .verify_client_cert(own, between, now)
        .map_err(|e| invalid(certificate, &format!("shown by a client: {e}")))?;
    Ok(())
}

fn roots(paths: &[PathBuf]) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for path in paths {
        for certificate in certificates(path)? {
            roots
                .add(certificate)
                .map_err(|e| invalid(path, &e.to_string()))?;
        }
    }
    Ok(roots)
}

/// The certificate with its key, if they match. The library reads no certificates of X.509 version 1, but can send
/// them; for these this function checks that the key's public half is in them.
fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, rustls::Error> {
    let key = provider.key_provider.load_private_key(key)?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
        Err(e) => {
            let public = certified.key.public_key();
            let certificate = certified.end_entity_cert()?;
            let is_its = public.is_some_and(|public| {
                let mut parts = certificate.windows(public.len().max(1));
                parts.any(|part| part == public.as_ref())
            });
            match is_version_1(certificate) && is_its {
                true => Ok(certified),
                false => Err(e),
            }
        }
    }
}

/// A property of a certificate that clients may reject, if any; `None` for malformed files.
pub fn oddity(files: &KeyFiles) -> Option<String> {
    let chain = certificates(&files.certificate).ok()?;
    is_version_1(chain.first()?).then(|| {
        format!(
            "{}: the certificate is of X.509 version 1, which many clients refuse; make one of version 3",
            files.certificate.display()
        )
    })
}

/// Whether a certificate has no version field, which means the first (RFC 5280 section 4.1.2.1).
fn is_version_1(certificate: &[u8]) -> bool {
    const SEQUENCE: u8 = 0x30;
    const INTEGER: u8 = 0x02;
    let inside = |der: &'_ [u8]| -> Option<usize> {
        let (tag, length) = (*der.first()?, *der.get(1)?);
        let more = if length < 0x80 { 0 } else { length & 0x7f };
        (tag == SEQUENCE).then_some(2 + usize::from(more))
    };
    let signed = inside(certificate).and_then(|at| certificate.get(at..));
    let first = signed.and_then(|der| der.get(inside(der)?));
    // Then the serial number comes first, else the version.
    first == Some(&INTEGER)
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| invalid(path, &format!("expected certificates in PEM: {e}")))?;
    if found.is_empty() {
        return Err(invalid(path, "expected a certificate in PEM, found none"));
    }
    Ok(found)
}

fn invalid(path: &Path, why: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{}: {why}", path.display()),
    )
}
