//! The path of a request: its components, decoded once, none of which leads outside.

use std::fmt;

/// A path that no service accepts (RFC 3986 sections 2.1 and 5.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPath {
    /// `%` without two hexadecimal digits.
    Escape,
    /// An escape is not UTF-8.
    Text,
    /// A component that cannot be a file's name: it contains a slash, a backslash or a control character.
    Component,
    /// `.` or `..`, which clients resolve themselves.
    Dots,
}

impl fmt::Display for BadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Escape => "the path has a '%' without two hexadecimal digits",
            Self::Text => "invalid percent-encoding in the path: not UTF-8",
            Self::Component => "a component of the path has a slash or a control character in it",
            Self::Dots => "the path has a component '.' or '..'",
        })
    }
}

/// The components of a request's path, which begins with a slash. A trailing empty one stands for a trailing slash;
/// other empty ones are dropped, as in file systems.
pub fn components(path: &str) -> Result<Vec<String>, BadPath> {
    let mut components = Vec::new();
    let mut parts = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(part) = parts.next() {
        if part.is_empty() && parts.peek().is_some() {
            continue;
        }
        let component = decoded(part)?;
        if component == "." || component == ".." {
            return Err(BadPath::Dots);
        }
        if component.contains(|c: char| matches!(c, '/' | '\\') || c.is_control()) {
            return Err(BadPath::Component);
        }
        components.push(component);
    }
    Ok(components)
}

/// Decodes a text's escapes once: the result is not decoded again.
pub fn decoded(text: &str) -> Result<String, BadPath> {
    if !text.contains('%') {
        return Ok(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            let digit = rest.next().and_then(|byte| char::from(byte).to_digit(16));
            digit.ok_or(BadPath::Escape)
        };
        let value = digit()? * 16 + digit()?;
        // Two hexadecimal digits are at most 255.
        bytes.push(value as u8);
    }
    String::from_utf8(bytes).map_err(|_| BadPath::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_their_components() {
        let rows: &[(&str, Result<&[&str], BadPath>)] = &[
            ("/", Ok(&[""])),
            ("/a", Ok(&["a"])),
            ("/a/", Ok(&["a", ""])),
            ("/a/b.html", Ok(&["a", "b.html"])),
            ("//a///b", Ok(&["a", "b"])),
            ("/a%20b", Ok(&["a b"])),
            ("/%C3%A9", Ok(&["é"])),
            ("/%2561", Ok(&["%61"])),
            ("/..", Err(BadPath::Dots)),
            ("/a/../b", Err(BadPath::Dots)),
            ("/%2e%2e/b", Err(BadPath::Dots)),
            ("/a%2Fb", Err(BadPath::Component)),
            ("/..%2f..%2fetc", Err(BadPath::Component)),
            ("/a%5cb", Err(BadPath::Component)),
            ("/a%00", Err(BadPath::Component)),
            ("/%", Err(BadPath::Escape)),
            ("/%4", Err(BadPath::Escape)),
            ("/%zz", Err(BadPath::Escape)),
            ("/%ff", Err(BadPath::Text)),
            ("/%C3/%A9", Err(BadPath::Text)),
        ];
        for (path, expected) in rows {
            let found = components(path);
            let expected = expected.map(|parts| parts.iter().map(|p| (*p).to_owned()).collect());
            assert_eq!(found, expected, "{path}");
        }
    }
}
