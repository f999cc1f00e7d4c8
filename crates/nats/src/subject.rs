//! What may be a subject, and what may be subscribed to.

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

fn is_word(word: &str) -> bool {
    let is_allowed = |byte: u8| byte > b' ' && byte != 0x7f;
    !word.is_empty() && word.bytes().all(is_allowed)
}
