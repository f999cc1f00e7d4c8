//! Finds values that common receivers cannot read in JSON that was walked over.

use super::super::found::{Found, Result};
use super::super::reader::{Reader as _, Token};
use super::{JsonReader, TOO_MANY_DIGITS};

const NOT_FINITE: &str = "NaN or infinity, which JSON does not have";
const NOT_BASE64: &str = "text after NUL that is not Base64";

/// Looks at every value of one part of a payload.
pub(in super::super) fn check(part: &[u8]) -> Result<()> {
    let mut reader = JsonReader::new(part)?;
    reader.tolerate();
    value(&mut reader)
}

fn value(reader: &mut JsonReader<'_>) -> Result<()> {
    let offset = reader.value_offset();
    match reader.token()? {
        Token::List(mut list) => {
            while reader.more(&mut list)? {
                value(reader)?;
            }
        }
        Token::Dict(mut dict) => {
            while reader.more(&mut dict)? {
                reader.skip_text()?;
                reader.separator()?;
                value(reader)?;
            }
        }
        Token::Text(text) if text.starts_with('\0') => return Err(Found::new(offset, NOT_BASE64)),
        Token::Float(number) if !number.is_finite() => return Err(Found::new(offset, NOT_FINITE)),
        Token::Foreign(TOO_MANY_DIGITS) => return Err(Found::new(offset, TOO_MANY_DIGITS)),
        _ => {}
    }
    Ok(())
}
