//! The reason why a private key in PEM cannot be used for TLS. The TLS library itself reports only that it cannot.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The curves that the TLS library does not support, by the object identifier in a key and in its certificate.
const CURVES: [(&[u8], &str); 5] = [
    (
        b"\x06\x05\x2b\x81\x04\x00\x23",
        "ECDSA on P-521 (secp521r1)",
    ),
    (
        b"\x06\x05\x2b\x81\x04\x00\x21",
        "ECDSA on P-224 (secp224r1)",
    ),
    (b"\x06\x05\x2b\x81\x04\x00\x0a", "ECDSA on secp256k1"),
    // The prefix common to all sizes.
    (
        b"\x06\x09\x2b\x24\x03\x03\x02\x08\x01\x01",
        "ECDSA on a Brainpool curve",
    ),
    (
        b"\x06\x07\x2a\x86\x48\xce\x3d\x01\x01",
        "ECDSA on a curve without a name",
    ),
];

/// Other algorithms that the TLS library does not support.
const OTHERS: [(&[u8], &str); 3] = [
    (b"\x30\x05\x06\x03\x2b\x65\x71", "Ed448"),
    (b"\x06\x07\x2a\x86\x48\xce\x38\x04\x01", "DSA"),
    (b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a", "RSA-PSS"),
];

/// The object identifier of RSA.
const RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
/// The size in bytes of keys of 2048 to 4096 bits.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 1_100..=2_500;

const USABLE: &str = "expected ECDSA on P-256 or P-384, Ed25519, or RSA of 2048 to 4096 bits";

/// The reason why TLS cannot use any private key in the file, if one is recognized. `None` proves nothing.
pub fn why_unusable(pem: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(pem);
    let blocks = blocks(&text);
    let has = |label: &str| blocks.iter().any(|(found, _)| *found == label);
    if has("ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") {
        return Some(
            "the private key is encrypted, and the node cannot ask for its passphrase: decrypt it \
             (`openssl pkey -in ENCRYPTED -out KEY`) into a file that only the node's user can read"
                .to_owned(),
        );
    }
    if has("OPENSSH PRIVATE KEY") {
        return Some(
            "the private key has OpenSSH's form, expected PKCS#8 (`ssh-keygen -p -m PKCS8 -f KEY` converts it)"
                .to_owned(),
        );
    }
    let is_key = |label: &str| label.ends_with("PRIVATE KEY");
    let Some((label, content)) = blocks.iter().find(|(label, _)| is_key(label)) else {
        let found = blocks.first().map(|(label, _)| *label)?;
        return Some(format!("expected a private key in PEM, found {found:?}"));
    };
    if *label == "DSA PRIVATE KEY" {
        return Some(format!("the private key is for DSA, {USABLE}"));
    }
    let lines: String = content.split_whitespace().collect();
    let der = STANDARD.decode(lines).ok()?;
    if let Some(algorithm) = find(&CURVES, &der).or_else(|| find(&OTHERS, &der)) {
        return Some(format!("the private key is for {algorithm}, {USABLE}"));
    }
    let is_rsa = *label == "RSA PRIVATE KEY" || contains(&der, RSA);
    (is_rsa && !RSA_BYTES.contains(&der.len())).then(|| {
        let than = match der.len() < *RSA_BYTES.start() {
            true => "fewer than 2048",
            false => "more than 4096",
        };
        format!("the private key is for RSA of {than} bits, {USABLE}")
    })
}

/// The curve of a certificate's key, in DER, if the TLS library cannot verify its signatures.
pub fn unusable_curve(certificate: &[u8]) -> Option<&'static str> {
    find(&CURVES, certificate)
}

fn find(names: &[(&[u8], &'static str)], der: &[u8]) -> Option<&'static str> {
    let mut found = names
        .iter()
        .filter(|(identifier, _)| contains(der, identifier));
    found.next().map(|(_, name)| *name)
}

fn contains(der: &[u8], part: &[u8]) -> bool {
    der.windows(part.len()).any(|window| window == part)
}

/// The blocks of a PEM file: label and content.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    for rest in text.split("-----BEGIN ").skip(1) {
        if let Some((label, rest)) = rest.split_once("-----") {
            let content = rest.split("-----END").next().unwrap_or_default();
            blocks.push((label, content));
        }
    }
    blocks
}
