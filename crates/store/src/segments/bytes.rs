//! Numbers and strings as bytes: what all formats of this folder share.
//!
//! A decoder returns `None` if the bytes end early or a number is out of range. It never allocates more than its input.

/// More records are never written: the next sequences of any that is read are numbers too.
pub(crate) const SEQUENCE_MAX: u64 = 1 << 62;

/// The last time that a store notes, in milliseconds since 1970: in the year 10889. A clock that was wrong once, or a crafted
/// file, must not bring later times to an overflow.
pub(crate) const TIME_MAX_MS: u64 = 1 << 48;

/// Appends a number in groups of seven bits, the lowest first.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number that may be negative; small ones of both signs are short.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Appends bytes with their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(crate) fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.fixed().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.fixed().map(u64::from_le_bytes)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return None;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// A number that later ones can be counted from.
    pub(crate) fn sequence(&mut self) -> Option<u64> {
        self.number().filter(|sequence| *sequence <= SEQUENCE_MAX)
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A count of parts, each of which takes at least one byte.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.rest.len()).then_some(count)
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.count()?;
        self.take(count)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_return_as_they_were() {
        let numbers = [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX];
        let mut out = Vec::new();
        for number in numbers {
            put_number(&mut out, number);
            put_signed(&mut out, number as i64);
        }
        let mut cursor = Cursor::new(&out);
        for number in numbers {
            assert_eq!(cursor.number(), Some(number));
            assert_eq!(cursor.signed(), Some(number as i64));
        }
        assert!(cursor.is_empty());
    }

    #[test]
    fn what_ends_early_or_is_too_large_is_no_number() {
        assert_eq!(Cursor::new(&[0x80]).number(), None);
        assert_eq!(Cursor::new(&[0xff; 10]).number(), None);
        assert_eq!(Cursor::new(&[5, 1, 2]).bytes(), None);
        assert_eq!(Cursor::new(&[]).byte(), None);
    }
}
