//! Several frames for one node in one message of the engine.
//!
//! ```text
//! | 0 0 0 24 | frame of 24 octets | 0 0 1 2 | frame of 258 octets | …
//! ```
//!
//! Each frame follows its length of four bytes, the first of which is 0: no frame begins so. A message that begins
//! otherwise is a single frame.

/// Maximum size of a frame that is packed with others.
pub const FRAME_BYTES_MAX: usize = (1 << 24) - 1;

/// The length prefix of a frame.
pub fn length(frame: &[u8]) -> [u8; 4] {
    debug_assert!(frame.len() <= FRAME_BYTES_MAX, "{}", frame.len());
    (frame.len() as u32).to_be_bytes()
}

/// The frames of a message. A malformed message is returned as it is, and is not a valid frame.
pub fn frames(message: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut left = Some(message);
    std::iter::from_fn(move || {
        let rest = left.take()?;
        let Some((first, behind)) = rest.split_first_chunk::<4>().filter(|(f, _)| f[0] == 0) else {
            return Some(rest);
        };
        let length = u32::from_be_bytes(*first) as usize;
        let Some((frame, behind)) = behind.split_at_checked(length) else {
            return Some(rest);
        };
        left = (!behind.is_empty()).then_some(behind);
        Some(frame)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_in_a_message() {
        let frame = |number: u8| vec![1, number, 0];
        let mut message = Vec::new();
        for number in 0..3 {
            let frame = frame(number);
            message.extend_from_slice(&length(&frame));
            message.extend_from_slice(&frame);
        }
        let found: Vec<_> = frames(&message).map(<[u8]>::to_vec).collect();
        assert_eq!(found, [frame(0), frame(1), frame(2)]);
        let found: Vec<_> = frames(b"\x01alone").collect();
        assert_eq!(found, [b"\x01alone"]);
        for (bad, expected) in [
            (&b""[..], vec![&b""[..]]),
            (b"\0", vec![b"\0"]),
            (b"\0\0\0", vec![b"\0\0\0"]),
            (b"\0\0\0\x09x", vec![b"\0\0\0\x09x"]),
            (b"\0\0\0\0", vec![b""]),
            (b"\0\0\0\x01x\0", vec![b"x", b"\0"]),
            (b"\0\0\0\x01xyz", vec![b"x", b"yz"]),
        ] {
            assert_eq!(frames(bad).collect::<Vec<_>>(), expected, "{bad:?}");
        }
    }
}
