//! TLS clients' certificates: Crossbar.io's method `tls`. The TLS handshake has checked who signed them.

mod certificate;
mod login;

pub use certificate::{Certificate, CertificateHolder, CertificateHolders, fingerprint};
pub use login::Tls;
