//! Headers of proxies: any bytes are read without a panic. A header is found as soon as its last byte is there, and is the
//! same whatever follows.

use crosstie_transport::proxy_header::{PROXY_HEADER_BYTES_MAX, ProxyHeader};

/// The first bytes of a connection behind a proxy.
pub fn header(data: &[u8]) {
    let Ok(Some(found)) = ProxyHeader::decode(data) else {
        return;
    };
    assert!((15..=PROXY_HEADER_BYTES_MAX).contains(&found.bytes));
    let (own, _) = data.split_at(found.bytes);
    assert_eq!(ProxyHeader::decode(own), Ok(Some(found)));
    assert_eq!(ProxyHeader::decode(&own[..own.len() - 1]), Ok(None));
    let longer = [own, b"PROXY UNKNOWN\r\n"].concat();
    assert_eq!(ProxyHeader::decode(&longer), Ok(Some(found)));
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut six = b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x29".to_vec();
    six.extend([1; 36]);
    six.extend([5, 0, 2, 7, 7]);
    vec![
        b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nAMQP".to_vec(),
        b"PROXY TCP6 2001:db8::1 ::1 1 65535\r\n".to_vec(),
        b"PROXY UNKNOWN\r\n".to_vec(),
        b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0".to_vec(),
        // Of HAProxy 2.6.12, with a checksum.
        b"\r\n\r\n\0\r\nQUIT\n!\x11\0\x16\x7f\0\0\x01\x7f\0\0\x01\x9c@Bi\x03\0\x04*\x85E\xbd\x05\0\0".to_vec(),
        six,
    ]
}
