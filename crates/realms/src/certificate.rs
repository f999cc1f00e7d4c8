//! A client's certificate: the names of principals, and its details for authenticators. The TLS handshake has verified
//! the certificate.

use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crosstie_auth::wamp::Certificate;
use crosstie_auth::x509::{self, Alternative, Fields};
use crosstie_wamp::{Dict, Value};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

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
pub fn read(der: &[u8]) -> Option<Certificate> {
    x509::read(der).map(|fields| known(der, &fields))
}

fn known(der: &[u8], fields: &Fields<'_>) -> Certificate {
    let alternatives = fields.alternatives().iter().map(written).collect();
    Certificate::new(der, attributes(&fields.subject), alternatives)
}

/// An alternative name as OpenSSL writes it.
fn written(name: &Alternative<'_>) -> String {
    match name {
        Alternative::Dns(name) => format!("DNS:{name}"),
        Alternative::Email(name) => format!("email:{name}"),
        Alternative::Uri(name) => format!("URI:{name}"),
        Alternative::Ip(ip) => format!("IP Address:{ip}"),
    }
}

/// The details for authenticators, in Autobahn's terms.
pub fn details(der: &[u8]) -> Option<Value> {
    let fields = x509::read(der)?;
    let known = known(der, &fields);
    let serial = fields.serial.iter().map(|octet| format!("{octet:02x}"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs().cast_signed());
    let extensions = fields.extensions.iter().map(|extension| {
        let names = || Value::String(known.alternatives.join(", "));
        let value = extension
            .alternatives
            .as_ref()
            .map_or(Value::Null, |_| names());
        Value::Dict(vec![
            ("name".to_owned(), Value::from(extension.name.as_str())),
            ("value".to_owned(), value),
            ("critical".to_owned(), Value::from(extension.is_critical)),
        ])
    });
    let entries = [
        ("sha1", Value::String(fingerprint(&known.sha1))),
        ("sha256", Value::String(fingerprint(&known.sha256))),
        ("expired", Value::from(!fields.is_valid_at(now))),
        ("serial", Value::String(serial.collect())),
        ("version", Value::from(u64::from(fields.version))),
        ("not_before", Value::String(fields.not_before.to_string())),
        ("not_after", Value::String(fields.not_after.to_string())),
        ("subject", dict(&known.subject)),
        ("issuer", dict(&attributes(&fields.issuer))),
        ("extensions", Value::List(extensions.collect())),
    ];
    let entries = entries.map(|(key, value)| (key.to_owned(), value));
    Some(Value::Dict(entries.into()))
}

fn attributes(found: &[(String, &str)]) -> Vec<(String, String)> {
    let found = found.iter();
    let owned = found.map(|(name, value)| (name.clone(), (*value).to_owned()));
    owned.collect()
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
