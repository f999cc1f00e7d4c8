//! Certificates of clients, and lists of revoked ones: any bytes are read without a panic, and to the same fields whatever follows them.

use crosstie_auth::x509::{self, read};

/// The first octets of a certificate: every length counts from there.
pub fn certificate(data: &[u8]) {
    let Some(fields) = read(data) else {
        return;
    };
    for time in [fields.not_before, fields.not_after] {
        assert!(time.to_string().ends_with('Z'));
    }
    assert!(!fields.is_valid_at(fields.not_before.unix_s() - 1));
    let longer = [data, &[0x30, 0x80]].concat();
    assert_eq!(read(&longer), Some(fields));
}

/// A list of revoked certificates, which is read up to its entries.
pub fn revocations(data: &[u8]) {
    if let Some(list) = x509::revocations(data) {
        let longer = [data, &[0x30, 0x80]].concat();
        assert_eq!(x509::revocations(&longer), Some(list));
    }
}

pub fn revocations_seeds() -> Vec<Vec<u8>> {
    vec![include_bytes!("revocations.der").to_vec()]
}

/// A certificate with a subject, alternative names of every kind and two other extensions.
pub fn certificate_seeds() -> Vec<Vec<u8>> {
    vec![include_bytes!("certificate.der").to_vec()]
}
