//! The files of TLS listeners: reads and checks them, and reports oddities for clients.

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use crosstie_auth::{private_key, x509};
use crosstie_config as model;
pub use crosstie_transport::tls::check_peer;
use crosstie_transport::tls::{self, TlsFiles};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// Checks whether a listener could be opened with these files. Returns a property that clients may reject; an error
/// names the faulty file.
pub fn check_tls(files: &model::Tls, directory: &Path) -> io::Result<Option<String>> {
    let files = tls_files(files, directory, &[]);
    let config = tls::server_config(&files).map_err(|e| explained(&files.key, e));
    config.map(|_| oddity(&files))
}

/// The TLS of an endpoint, if it has any; an error names the faulty file.
pub fn tls_of(
    endpoint: &model::Endpoint,
    directory: &Path,
    protocols: &'static [&'static [u8]],
) -> io::Result<Option<Arc<tls::ServerConfig>>> {
    let files = endpoint.tls();
    files
        .map(|files| read(files, directory, protocols))
        .transpose()
}

/// Reads the files of a listener; an error names the faulty one.
pub(crate) fn read(
    files: &model::Tls,
    directory: &Path,
    protocols: &'static [&'static [u8]],
) -> io::Result<Arc<tls::ServerConfig>> {
    let files = tls_files(files, directory, protocols);
    let config = tls::server_config(&files).map_err(|e| explained(&files.key, e))?;
    if let Some(oddity) = oddity(&files) {
        tracing::warn!("{oddity}");
    }
    Ok(config)
}

/// The paths of all files.
pub(crate) fn paths(files: &model::Tls) -> impl Iterator<Item = &String> {
    let own = [&files.certificate, &files.key].into_iter();
    own.chain(&files.chain_certificates)
        .chain(&files.client_authorities)
}

/// When the listener's own certificate expires, in seconds since 1970; `None` if its fields cannot be read here.
pub(crate) fn expires_s(files: &model::Tls, directory: &Path) -> Option<i64> {
    let path = directory.join(&files.certificate);
    let own = CertificateDer::pem_file_iter(path).ok()?.next()?.ok()?;
    x509::read(&own).map(|fields| fields.not_after.unix_s())
}

/// An error with this key among the files, with the reason if the key is faulty.
pub fn explained(key: &Path, failed: io::Error) -> io::Error {
    let why = fs::read(key)
        .ok()
        .and_then(|pem| private_key::why_unusable(&pem));
    match why {
        Some(why) => io::Error::new(failed.kind(), format!("{}: {why}", key.display())),
        None => failed,
    }
}

/// A property of the files that clients may reject, or the reason why clients with certificates would be refused.
fn oddity(files: &TlsFiles) -> Option<String> {
    tls::oddity(files).or_else(|| {
        files.client_authorities.iter().find_map(|path| {
            let found = CertificateDer::pem_file_iter(path).ok()?;
            let curve = found.flatten().find_map(|der| private_key::unusable_curve(&der))?;
            Some(format!(
                "{}: the authority's key is for {curve}, by which no signature can be checked: clients \
                 whose certificates it signed are refused",
                path.display()
            ))
        })
    })
}

fn tls_files(
    files: &model::Tls,
    directory: &Path,
    protocols: &'static [&'static [u8]],
) -> TlsFiles {
    let at = |path: &String| directory.join(path);
    TlsFiles {
        certificate: at(&files.certificate),
        key: at(&files.key),
        chain: files.chain_certificates.iter().map(at).collect(),
        client_authorities: files.client_authorities.iter().map(at).collect(),
        is_certificate_optional: files.is_certificate_optional,
        protocols,
    }
}
