//! The first bytes of a connection on a listener that speaks several protocols.

/// The beginning of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// A handshake of four bytes.
    Handshake([u8; 4]),
    /// The request line of HTTP/1.1, or the beginning of one.
    Request,
    /// The preface of HTTP/2 as a whole.
    Preface,
    /// The first packet of MQTT.
    Connect,
}

/// The protocols that a listener tells apart.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The first byte of a handshake, which no request begins with.
    pub magic: u8,
    /// The preface of HTTP/2, if that is spoken.
    pub preface: Option<&'static [u8]>,
    /// Whether MQTT is spoken.
    pub is_mqtt_spoken: bool,
}

/// The first byte of MQTT's CONNECT, a control character that no request begins with.
const CONNECT: u8 = 0x10;

/// Judges the first bytes; `None` asks for more.
pub fn sniff(input: &[u8], known: Known) -> Option<First> {
    let first = *input.first()?;
    if first == known.magic {
        return input.first_chunk().copied().map(First::Handshake);
    }
    if known.is_mqtt_spoken && first == CONNECT {
        return Some(First::Connect);
    }
    let Some(preface) = known.preface else {
        return Some(First::Request);
    };
    let seen = input.len().min(preface.len());
    match input[..seen] == preface[..seen] {
        true => (seen == preface.len()).then_some(First::Preface),
        false => Some(First::Request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_told_apart_as_soon_as_they_can_be() {
        let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        for (input, is_http2_spoken, expected) in [
            (&b""[..], true, None),
            (b"\x7f\xf1\0", true, None),
            (
                b"\x7f\xf1\0\0x",
                true,
                Some(First::Handshake(*b"\x7f\xf1\0\0")),
            ),
            (b"G", true, Some(First::Request)),
            (b"\x10", true, Some(First::Connect)),
            (b"\x10", false, Some(First::Request)),
            (b"P", true, None),
            (b"P", false, Some(First::Request)),
            (b"PRI * HTTP/2.0\r\n", true, None),
            (b"POST / HTTP/1.1\r\n", true, Some(First::Request)),
            (preface, true, Some(First::Preface)),
            (preface, false, Some(First::Request)),
        ] {
            let known = Known {
                magic: 0x7f,
                preface: is_http2_spoken.then_some(preface),
                is_mqtt_spoken: is_http2_spoken,
            };
            assert_eq!(sniff(input, known), expected, "{input:?}");
        }
    }
}
