//! Integers beyond those of CBOR's and MessagePack's own heads: JSON writes their digits, CBOR their
//! bytes (RFC 8949, section 3.4.3), MessagePack has none.

/// Digits of the longest integer that common receivers read: Python refuses longer ones in JSON.
pub(super) const DIGITS_MAX: usize = 4_300;

/// Bytes of the longest integer that has no more digits, rounded up.
const MAGNITUDE_BYTES_MAX: usize = 1_786;

/// An integer of any length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BigInteger {
    pub(super) negative: bool,
    /// Big-endian, without zeros in front.
    magnitude: Vec<u8>,
}

impl BigInteger {
    /// The integer whose absolute value is that, in big-endian bytes.
    pub(super) fn new(negative: bool, magnitude: &[u8]) -> Self {
        let zeros = magnitude.iter().take_while(|byte| **byte == 0).count();
        let magnitude = magnitude[zeros..].to_vec();
        let negative = negative && !magnitude.is_empty();
        Self {
            negative,
            magnitude,
        }
    }

    /// −1 − n, for the n in big-endian bytes: a negative bignum of CBOR.
    pub(super) fn negative(n: &[u8]) -> Self {
        let mut magnitude = [&[0], n].concat();
        for byte in magnitude.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
        Self::new(true, &magnitude)
    }

    /// An integer in decimal, with or without a minus in front.
    pub(super) fn from_decimal(text: &str) -> Self {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        // Little-endian.
        let mut limbs: Vec<u64> = Vec::with_capacity(digits.len() / 19 + 1);
        for chunk in digits.as_bytes().chunks(19) {
            let number = chunk.iter().map(|digit| u64::from(digit - b'0'));
            let mut carry = u128::from(number.fold(0, |number, digit| number * 10 + digit));
            let scale = 10_u128.pow(chunk.len() as u32);
            for limb in &mut limbs {
                let wide = u128::from(*limb) * scale + carry;
                *limb = wide as u64;
                carry = wide >> 64;
            }
            if carry > 0 {
                limbs.push(carry as u64);
            }
        }
        let bytes: Vec<u8> = limbs.iter().rev().flat_map(|l| l.to_be_bytes()).collect();
        Self::new(negative, &bytes)
    }

    /// The number, if it is one of CBOR's without a tag: from −2^64 to 2^64 − 1.
    pub(super) fn small(&self) -> Option<i128> {
        if self.magnitude.len() > 9 {
            return None;
        }
        let number = self
            .magnitude
            .iter()
            .fold(0_i128, |number, byte| number << 8 | i128::from(*byte));
        let number = if self.negative { -number } else { number };
        let is_small = (-(1_i128 << 64)..1_i128 << 64).contains(&number);
        is_small.then_some(number)
    }

    /// Its digits with their sign, unless there are more than [`DIGITS_MAX`].
    pub(super) fn digits(&self) -> Option<String> {
        const BASE: u64 = 1_000_000_000;
        if self.magnitude.len() > MAGNITUDE_BYTES_MAX {
            return None;
        }
        // Little-endian, nine digits each.
        let mut groups: Vec<u32> = Vec::with_capacity(self.magnitude.len() * 2 / 7 + 1);
        let (front, words) = self.magnitude.as_rchunks::<4>();
        let front = front
            .iter()
            .fold(0, |word, byte| word << 8 | u32::from(*byte));
        let words = words.iter().map(|word| u32::from_be_bytes(*word));
        for word in std::iter::once(front).chain(words) {
            let mut carry = u64::from(word);
            for group in &mut groups {
                let wide = (u64::from(*group) << 32) + carry;
                *group = (wide % BASE) as u32;
                carry = wide / BASE;
            }
            while carry > 0 {
                groups.push((carry % BASE) as u32);
                carry /= BASE;
            }
        }
        let mut digits = String::with_capacity(groups.len() * 9 + 1);
        if self.negative {
            digits.push('-');
        }
        match groups.pop() {
            Some(first) => digits.push_str(&first.to_string()),
            None => digits.push('0'),
        }
        for group in groups.iter().rev() {
            digits.push_str(&format!("{group:09}"));
        }
        let is_short = digits.len() - usize::from(self.negative) <= DIGITS_MAX;
        is_short.then_some(digits)
    }

    /// Big-endian, without zeros in front.
    pub(super) fn magnitude(&self) -> &[u8] {
        &self.magnitude
    }

    /// The n of −1 − n, for a number that is negative.
    pub(super) fn negative_argument(&self) -> Vec<u8> {
        let mut bytes = self.magnitude.clone();
        for byte in bytes.iter_mut().rev() {
            *byte = byte.wrapping_sub(1);
            if *byte != 0xff {
                break;
            }
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes.split_off(zeros)
    }

    /// The nearest double.
    pub(super) fn to_f64(&self) -> f64 {
        let digits = self.digits().and_then(|digits| digits.parse().ok());
        digits.unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_bytes_are_the_same_number() {
        let long = format!("-1{}7", "0".repeat(4_298));
        for text in [
            "0",
            "1",
            "-1",
            "255",
            "256",
            "-256",
            "4294967296",
            "18446744073709551615",
            "18446744073709551616",
            "-18446744073709551616",
            "-18446744073709551617",
            "1000000000000000000000000000000",
            "340282366920938463463374607431768211456",
            "100000000000000000000000000000000000000000000000009",
            &long,
        ] {
            let big = BigInteger::from_decimal(text);
            assert_eq!(big.digits().as_deref(), Some(text));
            if big.negative {
                let argument = big.negative_argument();
                assert_eq!(BigInteger::negative(&argument), big);
            }
            let number = text.parse::<i128>().ok();
            let small = number.filter(|n| (-(1 << 64)..1 << 64).contains(n));
            assert_eq!(big.small(), small, "{text}");
        }
        assert_eq!(
            BigInteger::from_decimal("-0").digits().as_deref(),
            Some("0")
        );
        assert_eq!(BigInteger::from_decimal(&"9".repeat(4_301)).digits(), None);
        assert_eq!(BigInteger::new(false, &[1; 100_000]).digits(), None);
        assert_eq!(BigInteger::negative(&[]).digits().as_deref(), Some("-1"));
        assert_eq!(BigInteger::negative(&[0xff; 9]).magnitude().len(), 10);
    }
}
