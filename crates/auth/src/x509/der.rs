//! Values of DER, one after the other: a tag, a length, that many bytes. Nothing is copied, and nothing is recursive.

/// The rest of some bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'d>(&'d [u8]);

/// A value: its identifier octet and its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'d> {
    pub(super) tag: u8,
    pub(super) content: &'d [u8],
}

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const NUMERIC_STRING: u8 = 0x12;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const IA5_STRING: u8 = 0x16;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The class of a tag in a context: `[0]`, `[1]`, …
pub(super) const CONTEXT: u8 = 0x80;
pub(super) const CLASS: u8 = 0xc0;
pub(super) const CONSTRUCTED: u8 = 0x20;
/// The number of a tag, which is below this.
pub(super) const NUMBER: u8 = 0x1f;

impl<'d> Reader<'d> {
    pub(super) fn new(bytes: &'d [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The next value. `None`: the bytes end within it, its tag has more than one octet, or its length is indefinite or
    /// longer than it needs to be.
    pub(super) fn next(&mut self) -> Option<Element<'d>> {
        let (&tag, rest) = self.0.split_first()?;
        if tag & NUMBER == NUMBER {
            return None;
        }
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..0x80 => (usize::from(first), rest),
            _ => long_length(first, rest)?,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Element { tag, content })
    }

    /// The content of the next value, if it has this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<&'d [u8]> {
        let found = self.next()?;
        (found.tag == tag).then_some(found.content)
    }

    /// The content of the next value if it has this tag, which is passed then.
    pub(super) fn optional(&mut self, tag: u8) -> Option<&'d [u8]> {
        let mut ahead = *self;
        let content = ahead.expect(tag)?;
        *self = ahead;
        Some(content)
    }

    /// The values inside of the next one, if it has this tag.
    pub(super) fn inside(&mut self, tag: u8) -> Option<Self> {
        self.expect(tag).map(Self)
    }

    /// `None` unless everything has been read.
    pub(super) fn end(self) -> Option<()> {
        self.is_empty().then_some(())
    }
}

/// A length of several octets, as short as it can be written.
fn long_length(first: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    let count = usize::from(first & 0x7f);
    if !(1..=4).contains(&count) {
        return None;
    }
    let (octets, rest) = rest.split_at_checked(count)?;
    let length = octets
        .iter()
        .fold(0, |length, octet| length << 8 | usize::from(*octet));
    let is_short = octets[0] != 0 && length >= 0x80;
    is_short.then_some((length, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        #[track_caller]
        fn check(bytes: &[u8], content: Option<usize>) {
            let found = Reader::new(bytes).next();
            assert_eq!(found.map(|element| element.content.len()), content);
        }
        check(&[4, 0], Some(0));
        check(&[4, 2, 1, 1, 9], Some(2));
        check(&[], None);
        check(&[4], None);
        check(&[4, 2, 1], None);
        // Indefinite, not the shortest form, of five octets, of a tag that goes on.
        check(&[4, 0x80, 0, 0], None);
        check(&[4, 0x81, 2, 1, 1], None);
        check(&[4, 0x82, 0, 200], None);
        check(&[4, 0x85, 0, 0, 0, 0, 1, 1], None);
        check(&[0x1f, 1, 1], None);
        check(&[&[4, 0x81, 200][..], &[0; 200]].concat(), Some(200));
        check(&[&[4, 0x82, 1, 4][..], &[0; 260]].concat(), Some(260));
        check(&[4, 0x84, 0xff, 0xff, 0xff, 0xff, 1], None);
    }
}
