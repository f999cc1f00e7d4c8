//! The user name in a client certificate, for the mechanism `EXTERNAL`.

use crosstie_auth::x509::{self, Alternative};

/// Returns the subject's common name, or else the first DNS name or mail address of the alternative names. The TLS
/// handshake has verified the certificate.
pub(crate) fn name(der: &[u8]) -> Option<String> {
    let fields = x509::read(der)?;
    let name = fields.common_name().or_else(|| {
        let mut names = fields.alternatives().iter();
        names.find_map(|name| match name {
            Alternative::Dns(name) | Alternative::Email(name) => Some(*name),
            _ => None,
        })
    });
    name.map(str::to_owned)
}
