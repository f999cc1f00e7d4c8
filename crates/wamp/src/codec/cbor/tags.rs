//! Tags with a form in other serializers (RFC 8949, section 3.4; RFC 8746).

use super::super::big::BigInteger;
use super::super::reader::{Reader as _, Result, Token};
use super::{BINARY, CborReader, LIST, NEGATIVE, TAG, UNSIGNED};

/// The high bits of the head of a tag.
pub(super) const TAGGED: u8 = TAG << 5;

pub(super) const BIGNUM: u64 = 2;
pub(super) const NEGATIVE_BIGNUM: u64 = 3;
pub(super) const DECIMAL: u64 = 4;
/// JavaScript's `Uint8Array`: bytes.
pub(super) const UINT8_ARRAY: u64 = 64;
/// Marks the bytes as CBOR; not a part of the value.
const SELF_DESCRIBED: u64 = 55_799;

const FOREIGN: Token<'_> = Token::Foreign("a tag, which only CBOR has");

/// The value behind a tag that was read.
pub(super) fn token<'a>(reader: &mut CborReader<'a>, mut tag: u64) -> Result<Token<'a>> {
    while tag == SELF_DESCRIBED {
        if reader.peek()? >> 5 != TAG {
            return reader.token();
        }
        tag = reader.head()?.argument;
    }
    Ok(match tag {
        BIGNUM | NEGATIVE_BIGNUM => match bignum(reader, tag)? {
            Some(number) => match number.small() {
                Some(number) => Token::Integer(number),
                None => Token::BigInteger(number),
            },
            None => FOREIGN,
        },
        DECIMAL => match decimal(reader)? {
            Some(text) => Token::Text(text.into()),
            None => FOREIGN,
        },
        UINT8_ARRAY if reader.peek()? >> 5 == BINARY => reader.token()?,
        _ => FOREIGN,
    })
}

/// The number of a bignum whose tag was read.
pub(super) fn bignum(reader: &mut CborReader<'_>, tag: u64) -> Result<Option<BigInteger>> {
    if reader.peek()? >> 5 != BINARY {
        return Ok(None);
    }
    let Token::Binary(bytes) = reader.token()? else {
        return Ok(None);
    };
    Ok(Some(match tag {
        BIGNUM => BigInteger::new(false, &bytes),
        _ => BigInteger::negative(&bytes),
    }))
}

/// The integer that comes next, with or without a bignum's tag.
pub(super) fn integer(reader: &mut CborReader<'_>) -> Result<Option<BigInteger>> {
    let major = reader.peek()? >> 5;
    if !matches!(major, UNSIGNED | NEGATIVE | TAG) {
        return Ok(None);
    }
    let head = reader.head()?;
    match (major, head.argument) {
        (UNSIGNED, number) => Ok(Some(BigInteger::new(false, &number.to_be_bytes()))),
        (NEGATIVE, number) => Ok(Some(BigInteger::negative(&number.to_be_bytes()))),
        (_, tag @ (BIGNUM | NEGATIVE_BIGNUM)) => bignum(reader, tag),
        _ => Ok(None),
    }
}

/// The exponent and the mantissa behind the tag of a decimal fraction or a bigfloat.
pub(super) fn exponent_and_mantissa(
    reader: &mut CborReader<'_>,
) -> Result<Option<(i64, BigInteger)>> {
    if reader.peek()? >> 5 != LIST {
        return Ok(None);
    }
    let mut list = reader.open_list()?;
    let exponent = match reader.more(&mut list)? {
        true => integer(reader)?,
        false => None,
    };
    let Some(exponent) = exponent else {
        return Ok(None);
    };
    let mantissa = match reader.more(&mut list)? {
        true => integer(reader)?,
        false => None,
    };
    let Some(mantissa) = mantissa else {
        return Ok(None);
    };
    if reader.more(&mut list)? {
        return Ok(None);
    }
    let exponent = exponent
        .small()
        .and_then(|exponent| exponent.try_into().ok());
    Ok(exponent.map(|exponent| (exponent, mantissa)))
}

/// A decimal fraction as text, as Crossbar.io writes it: `1.12`, `1E+3`.
fn decimal(reader: &mut CborReader<'_>) -> Result<Option<String>> {
    let Some((exponent, mantissa)) = exponent_and_mantissa(reader)? else {
        return Ok(None);
    };
    Ok(mantissa
        .digits()
        .map(|digits| scientific(&digits, exponent)))
}

/// The "to-scientific-string" of the General Decimal Arithmetic.
fn scientific(signed: &str, exponent: i64) -> String {
    let (sign, digits) = match signed.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", signed),
    };
    // Digits in front of the point.
    let whole = i128::from(exponent) + digits.len() as i128;
    let is_plain = exponent <= 0 && whole > -6;
    let point = if is_plain { whole } else { 1 };
    let mut text = match usize::try_from(point) {
        Ok(0) | Err(_) => format!(
            "{sign}0.{}{digits}",
            "0".repeat(point.unsigned_abs() as usize)
        ),
        Ok(point) if point >= digits.len() => format!("{sign}{digits}"),
        Ok(point) => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
    };
    if !is_plain && whole != point {
        text.push_str(&format!("E{:+}", whole - point));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::scientific;

    /// The expected texts are those of Python's `str(Decimal(…))`.
    #[test]
    fn decimals_are_written_as_python_writes_them() {
        for (digits, exponent, text) in [
            ("112", -2, "1.12"),
            ("-112", -2, "-1.12"),
            ("112", 0, "112"),
            ("0", -2, "0.00"),
            ("0", 0, "0"),
            ("5", -6, "0.000005"),
            ("5", -7, "5E-7"),
            ("1", 1, "1E+1"),
            ("12345", 3, "1.2345E+7"),
            ("12345", -5, "0.12345"),
            ("12345", -7, "0.0012345"),
            ("-12345", -20, "-1.2345E-16"),
            ("1", i64::MAX, "1E+9223372036854775807"),
            ("10", i64::MIN, "1.0E-9223372036854775807"),
        ] {
            assert_eq!(scientific(digits, exponent), text);
        }
    }
}
