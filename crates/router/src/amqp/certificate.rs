//! The user name in a client certificate, for the mechanism `EXTERNAL`.

use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

/// Returns the subject's common name, or else the first DNS name or mail address of the alternative names. The TLS
/// handshake has verified the certificate.
pub(super) fn name(der: &[u8]) -> Option<String> {
    let (_, certificate) = parse_x509_certificate(der).ok()?;
    let common_names = certificate.subject().iter_common_name();
    let common_name = common_names.filter_map(|name| name.as_str().ok()).next();
    if let Some(name) = common_name {
        return Some(name.to_owned());
    }
    let alternatives = certificate.subject_alternative_name().ok()??;
    let mut names = alternatives.value.general_names.iter();
    names.find_map(|name| match name {
        GeneralName::DNSName(name) | GeneralName::RFC822Name(name) => Some((*name).to_owned()),
        _ => None,
    })
}
