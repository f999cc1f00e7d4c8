//! The query of a request: the first field of each name.

use std::borrow::Cow;

/// The fields of a signed request, as they were signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields<'q> {
    pub(super) key: Option<Cow<'q, [u8]>>,
    pub(super) timestamp: Option<Cow<'q, [u8]>>,
    pub(super) seq: Option<Cow<'q, [u8]>>,
    pub(super) nonce: Option<Cow<'q, [u8]>>,
    pub(super) signature: Option<Cow<'q, [u8]>>,
}

impl<'q> Fields<'q> {
    /// Reads them from the part behind the question mark.
    pub(super) fn read(query: &'q str) -> Self {
        let mut fields = Self::default();
        for field in query.split('&') {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            let place = match &*decoded(name) {
                b"key" => &mut fields.key,
                b"timestamp" => &mut fields.timestamp,
                b"seq" => &mut fields.seq,
                b"nonce" => &mut fields.nonce,
                b"signature" => &mut fields.signature,
                _ => continue,
            };
            if place.is_none() {
                *place = Some(decoded(value));
            }
        }
        fields
    }
}

/// Form-encoded text (`application/x-www-form-urlencoded`): invalid escapes stay unchanged.
fn decoded(text: &str) -> Cow<'_, [u8]> {
    let bytes = text.as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(bytes);
    }
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => decoded.push(b' '),
            b'%' => match escaped(after) {
                Some(value) => {
                    decoded.push(value);
                    rest = &after[2..];
                }
                None => decoded.push(b'%'),
            },
            other => decoded.push(*other),
        }
    }
    Cow::Owned(decoded)
}

fn escaped(bytes: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    // Two digits are at most 255.
    Some((digit(0)? * 16 + digit(1)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        for (text, expected) in [
            ("", &b""[..]),
            ("abc", b"abc"),
            ("a+b%20c", b"a b c"),
            ("%3D%3d", b"=="),
            ("%", b"%"),
            ("%4", b"%4"),
            ("%zz%ff", b"%zz\xff"),
            ("%2541", b"%41"),
        ] {
            assert_eq!(&*decoded(text), expected, "{text}");
        }
    }

    #[test]
    fn the_first_of_each_field_counts() {
        let fields = Fields::read("a=b&key=x&&key=y&nonce&se%71=1&=&signature=a%3D=");
        let text = |text: &'static str| Some(Cow::Borrowed(text.as_bytes()));
        assert_eq!(fields.key, text("x"));
        assert_eq!(fields.nonce, text(""));
        assert_eq!(fields.seq, text("1"));
        assert_eq!(fields.signature, text("a=="));
        assert_eq!(fields.timestamp, None);
    }
}
