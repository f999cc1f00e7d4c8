//! The user name in a client certificate, for the mechanism `EXTERNAL` and for clients of other protocols.

use crosstie_auth::x509::{self, Alternative};
use crosstie_transport::Connection;

/// The name in a client's certificate: the subject's common name, or else the first DNS name or mail address of the
/// alternative names. The TLS handshake has verified the certificate.
pub fn certified_name(connection: &Connection) -> Option<String> {
    let der = connection.peer_certificate()?;
    let fields = x509::read(&der)?;
    let name = fields.common_name().or_else(|| {
        let mut names = fields.alternatives().iter();
        names.find_map(|name| match name {
            Alternative::Dns(name) | Alternative::Email(name) => Some(*name),
            _ => None,
        })
    });
    name.map(str::to_owned)
}
