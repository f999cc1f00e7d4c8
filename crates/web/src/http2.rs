//! The preface of HTTP/2 connections with prior knowledge (RFC 9113 section 3.4).

/// The first bytes of such a client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether the input is a prefix of the preface, or begins with it.
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
