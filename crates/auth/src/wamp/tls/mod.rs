//! Client certificates: Crossbar.io's method `tls`. The TLS handshake has verified the issuer.

mod certificate;
mod login;

pub use certificate::{Certificate, CertificateHolder, CertificateHolders, fingerprint};
pub use login::Tls;
