//! JSON numbers.

use super::super::DecodeError;
use super::super::big::{BigInteger, DIGITS_MAX};
use super::super::reader::{Result, Token};
use super::TOO_MANY_DIGITS;

/// The length of the number at the start of `bytes`, and whether it is an integer's text.
/// Bytes behind the number are not looked at.
pub(super) fn length(bytes: &[u8], offset: usize) -> Result<(usize, bool)> {
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let wrong = |at: usize| DecodeError::unexpected(offset + at, "a digit", "something else");
    match digits(&bytes[at..]) {
        0 => return Err(wrong(at)),
        count if count > 1 && bytes[at] == b'0' => {
            return Err(DecodeError::unexpected(
                offset + at,
                "a number",
                "a leading zero",
            ));
        }
        count => at += count,
    }
    let mut integer = true;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(&bytes[at + 1..]);
        at += 1 + fraction;
        integer = false;
        if fraction == 0 {
            return Err(wrong(at));
        }
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        let exponent = digits(&bytes[at..]);
        at += exponent;
        integer = false;
        if exponent == 0 {
            return Err(wrong(at));
        }
    }
    Ok((at, integer))
}

/// The length of an integer of few digits and without a sign: most numbers of a payload. `None` says nothing.
#[inline(always)]
pub(super) fn short_length(bytes: &[u8]) -> Option<usize> {
    let length = digits(bytes);
    let is_integer = !matches!(bytes.get(length), Some(b'.' | b'e' | b'E'));
    let is_well_formed = length == 1 || (length > 1 && bytes[0] != b'0');
    (is_integer && is_well_formed && length < LONG_BYTES_MIN).then_some(length)
}

fn digits(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}

/// Bytes of a number's text from which on it may be an integer of too many digits.
pub(super) const LONG_BYTES_MIN: usize = DIGITS_MAX + 1;

/// Whether the text of an integer has more digits than common receivers read.
pub(super) fn is_too_long(integer: &str) -> bool {
    integer.trim_start_matches('-').len() > DIGITS_MAX
}

/// The value of a number's text. Integers keep all their digits, and −0 is one.
pub(super) fn value<'a>(text: &str, integer: bool) -> Token<'a> {
    if integer {
        if let Ok(number) = text.parse::<u64>() {
            return Token::Integer(number.into());
        }
        if let Ok(number) = text.parse::<i64>() {
            return Token::Integer(number.into());
        }
        if is_too_long(text) {
            return Token::Foreign(TOO_MANY_DIGITS);
        }
        let number = BigInteger::from_decimal(text);
        return match number.small() {
            Some(number) => Token::Integer(number),
            None => Token::BigInteger(number),
        };
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Token::Float(number),
        _ => Token::Foreign("a number beyond the range of a double"),
    }
}

/// Appends `number` in decimal.
pub(super) fn write_unsigned(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_length_is_the_length_of_an_integer() {
        let digits = "1".repeat(LONG_BYTES_MIN);
        for text in ["0", "7", "10", "1,", "0]", "12 ", &digits[1..]] {
            let whole = length(text.as_bytes(), 0).expect("an integer");
            assert_eq!(short_length(text.as_bytes()), Some(whole.0), "{text}");
            assert!(whole.1, "{text}");
        }
        for text in ["", "-1", "00", "01", "1.5", "1e3", "1E3", "x", &digits] {
            assert_eq!(short_length(text.as_bytes()), None, "{text}");
        }
    }
}
