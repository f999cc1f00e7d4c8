//! The files of TLS listeners: read, judged, and what clients may find odd about them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crosstie_config as model;
pub use crosstie_transport::tls::check_peer;
use crosstie_transport::tls::{self, TlsFiles};

pub(crate) fn tls_of(
    endpoint: &model::Endpoint,
    directory: &Path,
    protocols: &'static [&'static [u8]],
) -> io::Result<Option<Arc<tls::ServerConfig>>> {
    let model::Endpoint::Tcp(model::TcpEndpoint {
        tls: Some(files), ..
    }) = endpoint
    else {
        return Ok(None);
    };
    tls_from(files, directory, protocols).map(Some)
}

/// Whether a listener could be opened with these files, and what clients may find odd about them; the error
/// names the one that is at fault.
pub fn check_tls(files: &model::Tls, directory: &Path) -> io::Result<Option<String>> {
    let files = tls_files(files, directory, &[]);
    tls::server_config(&files).map(|_| tls::oddity(&files))
}

fn tls_from(
    files: &model::Tls,
    directory: &Path,
    protocols: &'static [&'static [u8]],
) -> io::Result<Arc<tls::ServerConfig>> {
    let files = tls_files(files, directory, protocols);
    let config = tls::server_config(&files)?;
    if let Some(oddity) = tls::oddity(&files) {
        tracing::warn!("{oddity}");
    }
    Ok(config)
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
