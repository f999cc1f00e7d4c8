//! The states of the files of a listener's certificate.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use crosstie_config as model;

/// Distinguishes states of a file; `None` if the file does not exist.
pub(crate) type Stamp = Option<(SystemTime, u64, u64)>;

/// The present states of the files of an endpoint's certificate.
pub(crate) fn stamps(endpoint: &model::Endpoint, directory: &Path) -> Vec<Stamp> {
    let Some(tls) = endpoint.tls() else {
        return Vec::new();
    };
    let stamp = |file: &String| -> Stamp {
        let found = fs::metadata(directory.join(file)).ok()?;
        Some((found.modified().ok()?, found.len(), found.ino()))
    };
    let files = [&tls.certificate, &tls.key].into_iter();
    let files = files.chain(&tls.chain_certificates);
    files.chain(&tls.client_authorities).map(stamp).collect()
}
