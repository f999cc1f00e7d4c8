//! Crossbar.io's text form of keys: a heading, an empty line, then `tag: value` lines.

use std::collections::BTreeMap;

/// A key file is far smaller.
pub(super) const BYTES_MAX: u64 = 64 << 10;

pub(super) const CREATOR: &str = "creator";
pub(super) const CREATED_AT: &str = "created-at";
pub(super) const MACHINE_ID: &str = "machine-id";
pub(super) const NODE_AUTHID: &str = "node-authid";
pub(super) const PUBLIC_KEY: &str = "public-key-ed25519";
pub(super) const PRIVATE_KEY: &str = "private-key-ed25519";

/// The tags of a file. Unknown tags are accepted: versions of Crossbar.io had several more.
pub(super) type Tags = BTreeMap<String, String>;

pub(super) fn parse(text: &str) -> Result<Tags, String> {
    let mut tags = Tags::new();
    let mut is_head = true;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() {
            is_head = false;
        } else if !is_head {
            let (tag, value) = line
                .split_once(':')
                .ok_or_else(|| format!("line {number}: expected 'tag: value'"))?;
            let tag = tag.trim().to_ascii_lowercase();
            if tags.contains_key(&tag) {
                return Err(format!("line {number}: a second '{tag}'"));
            }
            tags.insert(tag, value.trim().to_owned());
        }
    }
    Ok(tags)
}

pub(super) fn write(head: &str, tags: &[(&str, &str)]) -> String {
    let lines = tags.iter().map(|(tag, value)| format!("{tag}: {value}\n"));
    format!("{head}\n\n{}", lines.collect::<String>())
}

/// 32 bytes in hexadecimal digits.
pub(super) fn key_bytes(tags: &Tags, tag: &str) -> Result<[u8; 32], String> {
    let Some(value) = tags.get(tag) else {
        return Err(format!("expected a line '{tag}: …'"));
    };
    let expected = || format!("expected 64 hexadecimal digits as '{tag}'");
    if value.len() != 64 || !value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(expected());
    }
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&value[at..at + 2], 16).map_err(|_| expected())?;
    }
    Ok(bytes)
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_after_the_first_empty_line() {
        let text = "Words: not a tag\n\n\n Creator : me@here\r\ncreated-at: 2022-07-05T12:29:48.832Z\n\nx: y: z\n";
        let expected = [
            ("creator", "me@here"),
            ("created-at", "2022-07-05T12:29:48.832Z"),
            ("x", "y: z"),
        ];
        let expected = expected.map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(parse(text), Ok(expected.into()));
        assert_eq!(parse("creator: me"), Ok(Tags::new()), "all of it is head");
        assert_eq!(
            parse("\na: 1\nb"),
            Err("line 3: expected 'tag: value'".to_owned())
        );
        assert_eq!(
            parse("\na: 1\nA: 2"),
            Err("line 3: a second 'a'".to_owned())
        );
    }

    #[test]
    fn bytes_of_a_key() {
        let full = "0aFF".repeat(16);
        for (value, is_one) in [
            (full.as_str(), true),
            (&full[1..], false),
            ("", false),
            (&"é".repeat(32), false),
            (&"+f".repeat(32), false),
        ] {
            let tags = Tags::from([("k".to_owned(), value.to_owned())]);
            assert_eq!(key_bytes(&tags, "k").is_ok(), is_one, "{value}");
        }
        let tags = Tags::from([("k".to_owned(), full.clone())]);
        let bytes = key_bytes(&tags, "k").expect("a key");
        assert_eq!(hexadecimal(&bytes), full.to_lowercase());
    }
}
