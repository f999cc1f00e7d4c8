//! A client's certificate: the names of principals, and its details for authenticators. The TLS handshake has verified
//! the certificate.

use std::io;
use std::path::Path;

use crosstie_auth::wamp::Certificate;
use crosstie_wamp::{Dict, Value};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::objects::{oid_registry, oid2abbrev, oid2sn};
use x509_parser::parse_x509_certificate;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

/// The certificates of a PEM file: their names for principals, and their details for authenticators.
pub fn certificates(path: &Path) -> io::Result<Vec<(Certificate, Dict)>> {
    let wrong = |error: String| io::Error::new(io::ErrorKind::InvalidData, error);
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(format!("expected certificates in PEM: {error}")))?;
    let read = |der: CertificateDer<'_>| match (read(&der), details(&der)) {
        (Some(certificate), Some(Value::Dict(details))) => Ok((certificate, details)),
        _ => Err(wrong("a certificate of it cannot be read".to_owned())),
    };
    found.into_iter().map(read).collect()
}

/// The certificate's names for principals.
pub(crate) fn read(der: &[u8]) -> Option<Certificate> {
    let (_, certificate) = parse_x509_certificate(der).ok()?;
    let subject = attributes(certificate.subject());
    Some(Certificate::new(der, subject, alternatives(&certificate)))
}

/// The details for authenticators, in Autobahn's terms.
pub(crate) fn details(der: &[u8]) -> Option<Value> {
    let (_, certificate) = parse_x509_certificate(der).ok()?;
    let known = read(der)?;
    let validity = certificate.validity();
    let serial = certificate.raw_serial_as_string();
    let extensions = certificate.extensions().iter().map(|extension| {
        let name = oid2sn(&extension.oid, oid_registry());
        let name = name.map_or_else(|_| extension.oid.to_id_string(), str::to_owned);
        let value = match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(_) => {
                Value::from(known.alternatives.join(", ").as_str())
            }
            _ => Value::Null,
        };
        Value::Dict(vec![
            ("name".to_owned(), Value::String(name)),
            ("value".to_owned(), value),
            ("critical".to_owned(), Value::from(extension.critical)),
        ])
    });
    let entries = [
        ("sha1", Value::String(fingerprint(&known.sha1))),
        ("sha256", Value::String(fingerprint(&known.sha256))),
        ("expired", Value::from(!validity.is_valid())),
        ("serial", Value::String(serial.replace(':', ""))),
        ("version", Value::from(u64::from(certificate.version().0))),
        ("not_before", Value::String(time(validity.not_before))),
        ("not_after", Value::String(time(validity.not_after))),
        ("subject", dict(&known.subject)),
        ("issuer", dict(&attributes(certificate.issuer()))),
        ("extensions", Value::List(extensions.collect())),
    ];
    let entries = entries.map(|(key, value)| (key.to_owned(), value));
    Some(Value::Dict(entries.into()))
}

/// Each attribute with its short name in lower case.
fn attributes(name: &X509Name<'_>) -> Vec<(String, String)> {
    let attributes = name.iter_attributes().filter_map(|attribute| {
        let oid = attribute.attr_type();
        let name = oid2abbrev(oid, oid_registry());
        let name = name.map_or_else(|_| oid.to_id_string(), str::to_ascii_lowercase);
        Some((name, attribute.as_str().ok()?.to_owned()))
    });
    attributes.collect()
}

/// In OpenSSL's notation.
fn alternatives(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = extension.value.general_names.iter();
    let names = names.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(format!("DNS:{name}")),
        GeneralName::RFC822Name(name) => Some(format!("email:{name}")),
        GeneralName::URI(name) => Some(format!("URI:{name}")),
        GeneralName::IPAddress(bytes) => address(bytes).map(|ip| format!("IP Address:{ip}")),
        _ => None,
    });
    names.collect()
}

fn address(bytes: &[u8]) -> Option<std::net::IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(Into::into);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(Into::into))
        .ok()
}

fn dict(attributes: &[(String, String)]) -> Value {
    let entries = attributes.iter();
    let entries = entries.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    Value::Dict(entries.collect::<Dict>())
}

fn fingerprint(bytes: &[u8]) -> String {
    let bytes = bytes.iter().map(|byte| format!("{byte:02X}"));
    bytes.collect::<Vec<_>>().join(":")
}

/// `YYYYMMDDhhmmssZ`.
fn time(time: ASN1Time) -> String {
    let time = time.to_datetime();
    let (hour, minute, second) = time.to_hms();
    let month = u8::from(time.month());
    format!(
        "{:04}{month:02}{:02}{hour:02}{minute:02}{second:02}Z",
        time.year(),
        time.day()
    )
}
