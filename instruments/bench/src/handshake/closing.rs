//! The closing handshake, in the client's role. RFC 6455 section 7.

use crate::wamp::pipe::CLIENT_MASK;

/// A server that sends more than this before its close frame is not closing.
const BYTES_MAX: usize = 64 * 1024;

/// The close frame of a client that leaves.
pub(super) fn close_frame() -> [u8; 8] {
    let [high, low] = 1001_u16.to_be_bytes();
    let [a, b, c, d] = CLIENT_MASK;
    [0x88, 0x82, a, b, c, d, high ^ a, low ^ b]
}

/// The state of a server's frames, for a client that closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// The close frame has not arrived yet.
    Waiting,
    Closed,
    /// A frame that a server must not send.
    Wrong(&'static str),
}

/// Searches frames for the close frame; earlier frames are skipped.
pub(super) fn closing(bytes: &[u8]) -> Closing {
    let mut rest = bytes;
    loop {
        if bytes.len() > BYTES_MAX {
            return Closing::Wrong("it answered a close frame with more than 64 KiB of others");
        }
        let [head, second, more @ ..] = rest else {
            return Closing::Waiting;
        };
        if second & 0x80 != 0 {
            return Closing::Wrong("it sent a masked frame");
        }
        let (length, after) = match (second, more) {
            (126, [a, b, after @ ..]) => (u64::from(u16::from_be_bytes([*a, *b])), after),
            (127, [a, b, c, d, e, f, g, h, after @ ..]) => {
                let length = u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
                (length, after)
            }
            (126 | 127, _) => return Closing::Waiting,
            (length, after) => (u64::from(*length), after),
        };
        match usize::try_from(length).ok().and_then(|n| after.get(n..)) {
            None if length > BYTES_MAX as u64 => {
                return Closing::Wrong("it answered a close frame with more than 64 KiB of others");
            }
            None => return Closing::Waiting,
            Some(_) if head & 0x0f == 8 => return Closing::Closed,
            Some(after) => rest = after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_close_frame_is_found() {
        #[track_caller]
        fn check(bytes: &[u8], expected: Closing) {
            assert_eq!(closing(bytes), expected);
        }
        use Closing::{Closed, Waiting};
        check(&[], Waiting);
        check(&[0x88], Waiting);
        check(&[0x88, 0], Closed);
        check(&[0x88, 2, 3], Waiting);
        check(&[0x88, 2, 3, 0xe9], Closed);
        check(&[0x81, 1, b'x', 0x88, 2, 3, 0xe9], Closed);
        check(&[0x82, 126, 0], Waiting);
        check(&[0x82, 126, 0, 1, 7, 0x88, 0], Closed);
        check(&[0x82, 127, 0, 0, 0, 0, 0, 0, 0, 1, 7, 0x88, 0], Closed);
        for bytes in [
            &[0x88, 0x80, 1, 2, 3, 4][..],
            &[0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0][..],
            &[0x82; BYTES_MAX + 1][..],
        ] {
            assert!(matches!(closing(bytes), Closing::Wrong(_)));
        }
    }

    #[test]
    fn the_close_frame_has_the_code_of_a_leaving_client() {
        let [head, length, mask @ .., high, low] = close_frame();
        assert_eq!((head, length), (0x88, 0x82));
        let code = u16::from_be_bytes([high ^ mask[0], low ^ mask[1]]);
        assert_eq!(code, 1001);
    }
}
