//! The contents of a file with credentials: keys, certificates, an issuer's keys, a token.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use crosstie_auth::wamp::jwt::{Jwks, unverified};
use crosstie_auth::wamp::{Certificate, rfc3339};
use crosstie_node::certificates;
use crosstie_node::directory::KeyFile;
use crosstie_wamp::{Dict, Serializer, Value, codec};

/// Longer files are refused.
const BYTES_MAX: u64 = 1 << 20;
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Prints the contents of the file, a line each: `key: value`.
pub(super) fn show(file: &Path, private: bool) -> anyhow::Result<()> {
    let text = text(file).with_context(|| format!("cannot read '{}'", file.display()))?;
    let text = text.trim();
    if text.contains(CERTIFICATE) {
        let found = certificates(file).with_context(|| file.display().to_string())?;
        for (number, (certificate, details)) in (1..).zip(&found) {
            if number > 1 {
                say!("")?;
            }
            show_certificate(certificate, details)?;
        }
        return Ok(());
    }
    if text.starts_with('{') {
        let keys = Jwks::parse(text).with_context(|| file.display().to_string())?;
        return show_issuer(&keys);
    }
    if let Some([head, claims]) = unverified(text) {
        return show_token(head, claims);
    }
    match KeyFile::read(file)? {
        KeyFile::Pair(key) => super::show(&key, private),
        KeyFile::Public(digits) => {
            say!("public-key-ed25519: {digits}")?;
            Ok(())
        }
    }
}

/// Empty for a file that is not text.
fn text(file: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(file)?.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

/// In the form of a principal of the method `tls`, as far as that goes.
fn show_certificate(certificate: &Certificate, details: &Dict) -> anyhow::Result<()> {
    let subject = certificate.subject.iter();
    let subject = subject.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    say!("certificate-sha256: {}", told(details, "sha256"))?;
    say!("certificate-sha1: {}", told(details, "sha1"))?;
    say!("subject: {}", json(&Value::Dict(subject.collect())))?;
    for name in &certificate.alternatives {
        say!("san: {name}")?;
    }
    for name in ["issuer", "serial", "not_before", "not_after", "expired"] {
        say!("{name}: {}", told(details, name))?;
    }
    Ok(())
}

fn show_issuer(keys: &Jwks) -> anyhow::Result<()> {
    for (id, kind, algorithm) in keys.descriptions() {
        let algorithm = algorithm.map(|algorithm| format!(", for {} alone", algorithm.name()));
        let id = id.unwrap_or("(without a name)");
        say!("{id}: {kind}{}", algorithm.unwrap_or_default())?;
    }
    Ok(())
}

fn show_token(head: Dict, claims: Dict) -> anyhow::Result<()> {
    for name in ["nbf", "exp"] {
        let time_s = find(&claims, name).and_then(Value::as_u64);
        if let Some(time_s) = time_s {
            let time = rfc3339(time_s.saturating_mul(1_000));
            say!("{name}: {time}")?;
        }
    }
    say!("head: {}", json(&Value::Dict(head)))?;
    say!("claims: {}", json(&Value::Dict(claims)))?;
    say!("verified: no, the file's writer can have forged it")?;
    Ok(())
}

fn told(details: &Dict, name: &str) -> String {
    match find(details, name) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => json(value),
        None => String::new(),
    }
}

fn find<'d>(dict: &'d Dict, name: &str) -> Option<&'d Value> {
    let found = dict.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value)
}

fn json(value: &Value) -> String {
    let mut bytes = Vec::new();
    // A value from JSON, or text, has a JSON form.
    let _ = codec::encode_value(value, Serializer::Json, &mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}
