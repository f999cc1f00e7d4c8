//! Values from outside a configuration: environment variables and files of secrets.

use crate::Environment;
use crate::catalogue::Kind;
use crate::tree::{Node, Value};

/// The file that `{file: PATH}` names, for a key that accepts a secret in a file.
pub(crate) fn file_of_secret(node: &Node, kind: &Kind) -> Option<String> {
    let Kind::Either(Kind::Text(_), Kind::Object(_)) = kind else {
        return None;
    };
    match (
        &node.value,
        node.entry("file").map(|entry| &entry.node.value),
    ) {
        (Value::Object(entries), Some(Value::Text(file))) if entries.len() == 1 => {
            Some(file.clone())
        }
        _ => None,
    }
}

/// The variable that `$VARIABLE` or `${VARIABLE}` names.
pub(crate) fn variable(node: &Node) -> Option<&str> {
    let Value::Text(text) = &node.value else {
        return None;
    };
    let name = text.strip_prefix('$')?;
    let braced = name
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'));
    let name = braced.unwrap_or(name);
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let fits = name.bytes().all(word) && !name.starts_with(|c: char| c.is_ascii_digit());
    (fits && !name.is_empty()).then_some(name)
}

/// A text with its variables replaced, or the variable that is not set. A `$` without a name remains.
pub(crate) fn expanded(text: &str, environment: Environment<'_>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let braced = after
            .strip_prefix('{')
            .and_then(|after| after.split_once('}'));
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = after.find(|c| !is_word(c)).unwrap_or(after.len());
        let (name, behind) = braced.unwrap_or_else(|| after.split_at(end));
        if name.is_empty() {
            out.push('$');
            rest = after;
            continue;
        }
        out.push_str(&environment(name).ok_or_else(|| name.to_owned())?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}
