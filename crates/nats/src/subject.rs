//! What may be a subject, and what may be subscribed to.

use std::fmt::Write as _;

/// Whether that names one subject: words between dots, none of them empty, and none a wildcard.
pub fn is_subject(text: &str) -> bool {
    text.split('.')
        .all(|word| is_word(word) && word != "*" && word != ">")
}

/// Whether that may be subscribed to: a word may be `*`, which stands for any one, and the last one `>`, for one
/// or more.
pub fn is_pattern(text: &str) -> bool {
    let Some((rest, last)) = text.rsplit_once('.') else {
        return is_word(text);
    };
    is_word(last) && rest.split('.').all(|word| is_word(word) && word != ">")
}

/// Any name as one word of a subject, or of what else servers name: letters, digits, `-` and `_` stay, other octets are
/// `=HH`, and nothing is `=`.
pub fn escaped(name: &str) -> String {
    if name.is_empty() {
        return "=".to_owned();
    }
    let mut word = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => word.push(byte.into()),
            // Writing to a string cannot fail.
            _ => drop(write!(word, "={byte:02X}")),
        }
    }
    word
}

fn is_word(word: &str) -> bool {
    let is_allowed = |byte: u8| byte > b' ' && byte != 0x7f;
    !word.is_empty() && word.bytes().all(is_allowed)
}
