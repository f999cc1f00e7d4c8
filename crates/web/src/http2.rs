//! How a connection shows that it speaks HTTP/2 from its first byte on (RFC 9113 section 3.4).

/// The first bytes of such a client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether what has come of a connection may be those, as far as it goes.
pub fn may_begin(input: &[u8]) -> bool {
    let length = input.len().min(PREFACE.len());
    input[..length] == PREFACE[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes() {
        for (input, expected) in [
            (&b""[..], true),
            (b"P", true),
            (b"PRI * HTTP/2.0\r\n", true),
            (PREFACE, true),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0", true),
            (b"PUT", false),
            (b"PRI * HTTP/2.1", false),
        ] {
            assert_eq!(may_begin(input), expected, "{input:?}");
        }
    }
}
