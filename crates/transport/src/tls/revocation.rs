//! Lists of revoked certificates (RFC 5280 section 5): which clients are refused though their authority is trusted.
//!
//! A client is refused, too, if one of its authorities has no list here, or one past its next update: then it is
//! unknown whether its certificate is revoked.

use std::io;
use std::path::PathBuf;

use rustls::server::ClientCertVerifierBuilder;
use rustls_pki_types::CertificateRevocationListDer;
use rustls_pki_types::pem::PemObject as _;

use super::invalid;

/// The verifier with the lists in these files; an error names the faulty file.
pub(super) fn checked(
    verifier: ClientCertVerifierBuilder,
    files: &[PathBuf],
) -> io::Result<ClientCertVerifierBuilder> {
    let mut verifier = verifier.enforce_revocation_expiration();
    for path in files {
        let lists: Vec<_> = CertificateRevocationListDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|e| invalid(path, &format!("expected revocation lists in PEM: {e}")))?;
        if lists.is_empty() {
            let why = "expected a revocation list in PEM, found none";
            return Err(invalid(path, why));
        }
        verifier = verifier.with_crls(lists);
        // Names the file, which an error of all lists together would not.
        let built = verifier.clone().build();
        built.map_err(|e| {
            let why = "expected revocation lists as RFC 5280 has them, of version 2 with the extension \
                       cRLNumber (`openssl ca` writes it with `crlnumber` and `crl_extensions`)";
            invalid(path, &format!("{why}: {e}"))
        })?;
    }
    Ok(verifier)
}
