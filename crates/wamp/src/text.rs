//! The check that octets are UTF-8.

use std::str::{self, Utf8Error};

/// From this length on the vectorized check is faster, and by far if the text is not ASCII.
const LONG_BYTES_MIN: usize = 128;

/// The same as [`str::from_utf8`].
#[inline]
pub(crate) fn from_utf8(bytes: &[u8]) -> Result<&str, Utf8Error> {
    match bytes.len() {
        ..LONG_BYTES_MIN => str::from_utf8(bytes),
        _ => long(bytes),
    }
}

/// The vectorized check does not tell where an error is.
fn long(bytes: &[u8]) -> Result<&str, Utf8Error> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| str::from_utf8(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of character and of error, at every place of a block of either check.
    #[test]
    fn long_texts_are_judged_as_the_standard_library_does() {
        let pieces: [&[u8]; 16] = [
            b"a",
            "\u{80}".as_bytes(),
            "\u{7ff}".as_bytes(),
            "\u{800}".as_bytes(),
            "\u{d7ff}".as_bytes(),
            "\u{e000}".as_bytes(),
            "\u{ffff}".as_bytes(),
            "\u{10000}".as_bytes(),
            "\u{10ffff}".as_bytes(),
            b"\x80",
            b"\xc0\x80",
            b"\xe0\x9f\xbf",
            b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80",
            b"\xf8",
            b"\xe2\x82",
        ];
        for filling in ["x", "é", "路"] {
            for piece in pieces {
                for place in 0..140 {
                    let mut bytes = filling.repeat(place).into_bytes();
                    bytes.extend_from_slice(piece);
                    for behind in [0, 150] {
                        bytes.extend_from_slice(filling.repeat(behind).as_bytes());
                        let expected = str::from_utf8(&bytes);
                        assert_eq!(from_utf8(&bytes), expected, "{piece:x?} at {place}");
                    }
                }
            }
        }
    }
}
