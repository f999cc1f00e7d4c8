//! Templates of names: a text with placeholders in braces.

use std::fmt;

/// A text such as `com.example.{method}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(String),
}

/// Why a text is not a valid template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// An unmatched brace.
    Brace,
    /// An unknown name.
    Unknown { name: String, known: String },
}

/// Replaces characters that a URI cannot contain.
const REPLACEMENT: char = '_';

impl Template {
    /// Parses a text with `known` names in braces.
    pub fn parse(text: &str, known: &[&str]) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((front, behind)) = rest.split_once('{') {
            let (name, behind) = behind.split_once('}').ok_or(TemplateError::Brace)?;
            if front.contains('}') {
                return Err(TemplateError::Brace);
            }
            if !known.contains(&name) {
                return Err(TemplateError::Unknown {
                    name: name.to_owned(),
                    known: known.join("}, {"),
                });
            }
            if !front.is_empty() {
                parts.push(Part::Text(front.to_owned()));
            }
            parts.push(Part::Place(name.to_owned()));
            rest = behind;
        }
        if rest.contains('}') {
            return Err(TemplateError::Brace);
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// The text with the `value` of each name inserted.
    pub fn fill<'v>(&self, value: impl Fn(&str) -> std::borrow::Cow<'v, str>) -> String {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Place(name) => filled.push_str(&value(name)),
            }
        }
        filled
    }

    /// The whole text, if it has no placeholder.
    pub fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text in front of the first placeholder.
    pub fn front(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }
}

/// A name as part of a URI: whitespace, `#` and control characters are replaced, and so are empty components.
pub fn uri_part(name: &str) -> String {
    let mut part = String::with_capacity(name.len());
    for (at, component) in name.split('.').enumerate() {
        if at > 0 {
            part.push('.');
        }
        if component.is_empty() {
            part.push(REPLACEMENT);
        }
        part.extend(component.chars().map(|character| {
            match character.is_whitespace() || character.is_control() || character == '#' {
                true => REPLACEMENT,
                false => character,
            }
        }));
    }
    part
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Brace => f.write_str("a brace without the other one"),
            Self::Unknown { name, known } if known.is_empty() => {
                write!(f, "{{{name}}}, where nothing can stand in braces")
            }
            Self::Unknown { name, known } => write!(f, "{{{name}}}, where there is {{{known}}}"),
        }
    }
}

impl std::error::Error for TemplateError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled() {
        for (text, expected) in [
            ("", ""),
            ("com.example", "com.example"),
            ("{a}", "1"),
            ("com.{a}.{b}.x{a}", "com.1.2.x1"),
        ] {
            let template = Template::parse(text, &["a", "b"]).expect(text);
            let filled = template.fill(|name| if name == "a" { "1" } else { "2" }.into());
            assert_eq!(filled, expected);
            assert_eq!(template.literal().is_some(), text == expected);
            assert!(filled.starts_with(template.front()));
        }
        for (text, expected) in [
            ("{c}", "{c}, where there is {a}, {b}"),
            ("{a", "a brace without the other one"),
            ("a}", "a brace without the other one"),
            ("a}{a}", "a brace without the other one"),
        ] {
            let error = Template::parse(text, &["a", "b"]).expect_err(text);
            assert_eq!(error.to_string(), expected);
        }
        let error = Template::parse("{x}", &[]).expect_err("nothing is known");
        assert_eq!(error.to_string(), "{x}, where nothing can stand in braces");
    }

    #[test]
    fn any_name_is_part_of_a_uri() {
        for (name, expected) in [
            ("", "_"),
            ("task.sent", "task.sent"),
            ("a..b.", "a._.b._"),
            ("a b#c\u{0}\u{a0}", "a_b_c__"),
        ] {
            assert_eq!(uri_part(name), expected);
        }
    }
}
