//! JSON values in Python's form, for lines that are compared with those of the original programs.

use std::fmt::{self, Write};

use serde_json::Value;

/// A value in the form of Python's `repr` of the result of its `json.loads`.
pub fn python_repr(value: &Value) -> impl fmt::Display + '_ {
    Repr(value)
}

struct Repr<'a>(&'a Value);

impl fmt::Display for Repr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("None"),
            Value::Bool(true) => f.write_str("True"),
            Value::Bool(false) => f.write_str("False"),
            Value::Number(number) => write_number(number, f),
            Value::String(text) => write_text(text, f),
            Value::Array(values) => {
                f.write_char('[')?;
                for (at, value) in values.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    Self(value).fmt(f)?;
                }
                f.write_char(']')
            }
            Value::Object(fields) => {
                f.write_char('{')?;
                for (at, (key, value)) in fields.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    write_text(key, f)?;
                    f.write_str(": ")?;
                    Self(value).fmt(f)?;
                }
                f.write_char('}')
            }
        }
    }
}

/// Integers are unchanged; Python prints floating point numbers with exponents from 1e16 and below 1e-4.
fn write_number(number: &serde_json::Number, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let value = match number.as_f64() {
        Some(value) if number.is_f64() => value,
        _ => return write!(f, "{number}"),
    };
    if value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
        return write!(f, "{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    write!(f, "{digits}e{sign}{exponent:0>2}")
}

/// In single quotes, unless it contains single quotes and no double ones.
fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let quote = match text.contains('\'') && !text.contains('"') {
        true => '"',
        false => '\'',
    };
    f.write_char(quote)?;
    for character in text.chars() {
        match character {
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\\' => f.write_str("\\\\")?,
            character if character == quote => write!(f, "\\{character}")?,
            '\0'..=' ' | '\x7f'..='\u{a0}' | '\u{ad}' if character != ' ' => {
                write!(f, "\\x{:02x}", u32::from(character))?;
            }
            '\u{2028}' | '\u{2029}' => write!(f, "\\u{:04x}", u32::from(character))?,
            character => f.write_char(character)?,
        }
    }
    f.write_char(quote)
}

#[cfg(test)]
mod tests {
    use super::python_repr;

    #[test]
    fn values_are_shown_as_python_does() {
        let check = |json: &str, expected: &str| {
            let value = serde_json::from_str(json).expect(json);
            assert_eq!(python_repr(&value).to_string(), expected);
        };
        check(
            r#"{"a": null, "b": [true, false, 1, -2.5, 1e300, 1e16, 123456.0, 0.0001, 0.00001]}"#,
            "{'a': None, 'b': [True, False, 1, -2.5, 1e+300, 1e+16, 123456.0, 0.0001, 1e-05]}",
        );
        check(
            r#"["it's", "say \"it's\"", "\"", "a\\b\n\u0001\u007fä😀"]"#,
            r#"["it's", 'say "it\'s"', '"', 'a\\b\n\x01\x7fä😀']"#,
        );
        check("[{}, []]", "[{}, []]");
    }
}
