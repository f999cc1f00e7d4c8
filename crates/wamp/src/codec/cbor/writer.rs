//! Writing CBOR, in its shortest forms and with definite lengths.

use super::super::TranscodeError;
use super::super::big::BigInteger;
use super::super::writer::{Opened, Result, Writer};
use super::{BINARY, DICT, LIST, NEGATIVE, TEXT, UNSIGNED, tags};

pub(in super::super) struct CborWriter<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> CborWriter<'o> {
    pub(in super::super) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }

    #[inline]
    fn head(&mut self, major: u8, argument: u64) {
        self.out
            .extend_from_slice(Head::new(major, argument).bytes());
    }

    #[inline]
    fn open(&mut self, count: Option<usize>, dict: bool) -> Opened {
        let start = self.out.len();
        let count = count.unwrap_or_default();
        self.head(if dict { DICT } else { LIST }, count as u64);
        Opened {
            start,
            count: 0,
            announced: Some(count),
            dict,
        }
    }
}

/// An initial byte and its argument.
struct Head {
    bytes: [u8; 9],
    length: usize,
}

impl Head {
    #[inline]
    fn new(major: u8, argument: u64) -> Self {
        let major = major << 5;
        match argument {
            0..=23 => Self::of(major | argument as u8, &[]),
            24..=0xff => Self::of(major | 24, &[argument as u8]),
            0x100..=0xffff => Self::of(major | 25, &(argument as u16).to_be_bytes()),
            0x1_0000..=0xffff_ffff => Self::of(major | 26, &(argument as u32).to_be_bytes()),
            _ => Self::of(major | 27, &argument.to_be_bytes()),
        }
    }

    #[inline]
    fn of(initial: u8, argument: &[u8]) -> Self {
        let mut bytes = [initial; 9];
        bytes[1..=argument.len()].copy_from_slice(argument);
        Self {
            bytes,
            length: 1 + argument.len(),
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Writer for CborWriter<'_> {
    const TEXT_KEYS_ONLY: bool = false;
    const BINARY_KEYS: bool = true;

    fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    #[inline]
    fn open_list(&mut self, count: Option<usize>) -> Opened {
        self.open(count, false)
    }

    #[inline]
    fn open_dict(&mut self, count: Option<usize>) -> Opened {
        self.open(count, true)
    }

    #[inline]
    fn close(&mut self, opened: Opened) {
        let Opened {
            start,
            count,
            announced,
            dict,
        } = opened;
        if announced == Some(count) {
            return;
        }
        let major = if dict { DICT } else { LIST };
        let announced = Head::new(major, announced.unwrap_or_default() as u64).length;
        let head = Head::new(major, count as u64);
        self.out
            .splice(start..start + announced, head.bytes().iter().copied());
    }

    fn null(&mut self) {
        self.out.push(0xf6);
    }

    fn boolean(&mut self, flag: bool) {
        self.out.push(if flag { 0xf5 } else { 0xf4 });
    }

    #[inline]
    fn unsigned(&mut self, number: u64) {
        self.head(UNSIGNED, number);
    }

    fn integer(&mut self, number: i128) -> Result<()> {
        let (major, argument) = if number < 0 {
            (NEGATIVE, -1 - number)
        } else {
            (UNSIGNED, number)
        };
        let Ok(argument) = u64::try_from(argument) else {
            return Err(TranscodeError::new(
                "CBOR has no integers beyond 64 bits and a sign",
            ));
        };
        self.head(major, argument);
        Ok(())
    }

    fn big_integer(&mut self, number: &BigInteger) -> Result<()> {
        if number.negative {
            self.out.push(tags::TAGGED | tags::NEGATIVE_BIGNUM as u8);
            self.binary(&number.negative_argument());
        } else {
            self.out.push(tags::TAGGED | tags::BIGNUM as u8);
            self.binary(number.magnitude());
        }
        Ok(())
    }

    fn float(&mut self, number: f64) -> Result<()> {
        self.out.push(0xfb);
        self.out.extend_from_slice(&number.to_be_bytes());
        Ok(())
    }

    #[inline]
    fn text(&mut self, text: &str) {
        self.head(TEXT, text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
    }

    fn binary(&mut self, bytes: &[u8]) {
        self.head(BINARY, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }
}
