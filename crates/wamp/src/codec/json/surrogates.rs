//! Lone surrogates: half of a character, as a browser escapes it when a text was cut inside an emoji.
//!
//! The grammar of JSON allows them, Unicode does not, and no other serializer can hold one. The reader refuses them. A
//! caller that wants to continue has them replaced and reads again, so that well-formed texts pay nothing.

use std::ops::Range;

use super::string::hex_unit;

/// The replacement for a character that cannot be shown: U+FFFD, as long as the escape it replaces.
const REPLACEMENT: &[u8; 6] = b"\\ufffd";

/// The text with U+FFFD in the place of each surrogate without its other half, and how many there were;
/// `None` if there were none. Everything else stays as it is, at its place; whether the text is JSON
/// at all is the reader's question.
pub fn replace_lone_surrogates(json: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut replaced = json.to_vec();
    let mut count = 0;
    let mut at = 0;
    while let Some(skipped) = json[at..].iter().position(|byte| *byte == b'\\') {
        at += skipped;
        match lone_surrogate(json, at) {
            Escape::Lone(place) => {
                at = place.end;
                replaced[place].copy_from_slice(REPLACEMENT);
                count += 1;
            }
            Escape::Other(length) => at = json.len().min(at + length),
        }
    }
    (count > 0).then_some((replaced, count))
}

enum Escape {
    /// The range of the lone surrogate.
    Lone(Range<usize>),
    /// That many bytes belong together.
    Other(usize),
}

fn lone_surrogate(json: &[u8], at: usize) -> Escape {
    if json.get(at + 1) != Some(&b'u') {
        return Escape::Other(2);
    }
    match hex_unit(json, at) {
        Ok(0xd800..=0xdbff) if has_low_half(json, at + 6) => Escape::Other(12),
        Ok(0xd800..=0xdfff) => Escape::Lone(at..at + 6),
        // Four digits are missing: the reader says so.
        Ok(_) | Err(_) => Escape::Other(2),
    }
}

fn has_low_half(json: &[u8], at: usize) -> bool {
    json.get(at..at + 2) == Some(b"\\u") && matches!(hex_unit(json, at), Ok(0xdc00..=0xdfff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_nothing_else() {
        for (text, expected) in [
            (r#"["\ud83d"]"#, Some((r#"["\ufffd"]"#, 1))),
            (
                r#"["\uDE00 \ud83d\ud83d\ude00"]"#,
                Some((r#"["\ufffd \ufffd\ud83d\ude00"]"#, 2)),
            ),
            (
                r#"["\ud83d\u0041\udc00"]"#,
                Some((r#"["\ufffd\u0041\ufffd"]"#, 2)),
            ),
            (
                r#"{"\udfff":"\\\udbff"}"#,
                Some((r#"{"\ufffd":"\\\ufffd"}"#, 2)),
            ),
            (r#"["\ud83d\n"]"#, Some((r#"["\ufffd\n"]"#, 1))),
            // A whole pair, an escaped backslash, truncated text, and invalid JSON.
            (r#"["\ud83d\ude00"]"#, None),
            (r#"["\\ud83d"]"#, None),
            (r#"["\ud83"]"#, None),
            (r#"["\ud8"#, None),
            ("\\", None),
            ("", None),
        ] {
            let expected = expected.map(|(text, count)| (text.as_bytes().to_vec(), count));
            assert_eq!(replace_lone_surrogates(text.as_bytes()), expected, "{text}");
        }
    }
}
