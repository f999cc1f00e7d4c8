//! JSON numbers.

use super::super::DecodeError;
use super::super::reader::{Result, Token};

/// The length of the number at the start of `octets`, and whether it is an integer's text.
/// What follows the number is not looked at.
pub(super) fn length(octets: &[u8], offset: usize) -> Result<(usize, bool)> {
    let mut at = usize::from(octets.first() == Some(&b'-'));
    let wrong = |at: usize| DecodeError::unexpected(offset + at, "a digit", "something else");
    match digits(&octets[at..]) {
        0 => return Err(wrong(at)),
        count if count > 1 && octets[at] == b'0' => {
            return Err(DecodeError::unexpected(
                offset + at,
                "a number",
                "a leading zero",
            ));
        }
        count => at += count,
    }
    let mut integer = true;
    if octets.get(at) == Some(&b'.') {
        let fraction = digits(&octets[at + 1..]);
        at += 1 + fraction;
        integer = false;
        if fraction == 0 {
            return Err(wrong(at));
        }
    }
    if matches!(octets.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(octets.get(at), Some(b'+' | b'-')));
        let exponent = digits(&octets[at..]);
        at += exponent;
        integer = false;
        if exponent == 0 {
            return Err(wrong(at));
        }
    }
    Ok((at, integer))
}

fn digits(octets: &[u8]) -> usize {
    octets
        .iter()
        .take_while(|octet| octet.is_ascii_digit())
        .count()
}

/// The value of a number's text. What neither `i64` nor `u64` holds is a double, as everywhere
/// in the JSON world; so is the negative zero.
pub(super) fn value<'a>(text: &str, integer: bool) -> Token<'a> {
    if integer && text != "-0" {
        if let Ok(number) = text.parse::<u64>() {
            return Token::Integer(number.into());
        }
        if let Ok(number) = text.parse::<i64>() {
            return Token::Integer(number.into());
        }
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
