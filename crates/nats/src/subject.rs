//! Validity of subjects and patterns.

use std::fmt::Write as _;

/// Whether this names one subject: tokens between dots, none of them empty or a wildcard.
pub fn is_subject(text: &str) -> bool {
    text.split('.')
        .all(|word| is_word(word) && word != "*" && word != ">")
}

/// Whether this can be subscribed to: a token may be `*`, which stands for any one, and the last token `>`, for one or
/// more.
pub fn is_pattern(text: &str) -> bool {
    let Some((rest, last)) = text.rsplit_once('.') else {
        return is_word(text);
    };
    is_word(last) && rest.split('.').all(|word| is_word(word) && word != ">")
}

/// Escapes any name as one token of a subject or of other names: letters, digits, `-` and `_` stay, other bytes become
/// `=HH`, and an empty name `=`.
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
