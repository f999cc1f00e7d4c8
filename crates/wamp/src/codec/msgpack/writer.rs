//! Writing MessagePack, in its shortest forms.

use super::super::TranscodeError;
use super::super::big::BigInteger;
use super::super::writer::{Opened, Result, Writer};

pub(in super::super) struct MsgPackWriter<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> MsgPackWriter<'o> {
    pub(in super::super) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }

    fn open(&mut self, count: Option<usize>, dict: bool) -> Opened {
        let start = self.out.len();
        let header = Header::of_collection(count.unwrap_or_default(), dict);
        self.out.extend_from_slice(header.bytes());
        Opened {
            start,
            count: 0,
            announced: Some(count.unwrap_or_default()),
            dict,
        }
    }
}

/// A marker and the length behind it.
struct Header {
    bytes: [u8; 5],
    length: usize,
}

impl Header {
    #[inline]
    fn new(marker: u8, length: &[u8]) -> Self {
        let mut bytes = [marker; 5];
        bytes[1..=length.len()].copy_from_slice(length);
        Self {
            bytes,
            length: 1 + length.len(),
        }
    }

    /// The format has no longer lengths than 32 bits; a message is far below that.
    #[inline]
    fn of_collection(count: usize, dict: bool) -> Self {
        let (short, long) = if dict { (0x80, 0xde) } else { (0x90, 0xdc) };
        match count {
            0..=15 => Self::new(short | count as u8, &[]),
            16..=0xffff => Self::new(long, &(count as u16).to_be_bytes()),
            _ => Self::new(long + 1, &(count as u32).to_be_bytes()),
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

const NO_INTEGER: &str = "MessagePack has no integers beyond 64 bits";

impl Writer for MsgPackWriter<'_> {
    const TEXT_KEYS_ONLY: bool = true;
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
        let announced = Header::of_collection(announced.unwrap_or_default(), dict).length;
        let header = Header::of_collection(count, dict);
        self.out
            .splice(start..start + announced, header.bytes().iter().copied());
    }

    fn null(&mut self) {
        self.out.push(0xc0);
    }

    fn boolean(&mut self, flag: bool) {
        self.out.push(if flag { 0xc3 } else { 0xc2 });
    }

    #[inline]
    fn unsigned(&mut self, number: u64) {
        match number {
            0..=0x7f => self.out.push(number as u8),
            0x80..=0xff => self.out.extend_from_slice(&[0xcc, number as u8]),
            0x100..=0xffff => self
                .out
                .extend_from_slice(Header::new(0xcd, &(number as u16).to_be_bytes()).bytes()),
            0x1_0000..=0xffff_ffff => self
                .out
                .extend_from_slice(Header::new(0xce, &(number as u32).to_be_bytes()).bytes()),
            _ => {
                let mut bytes = [0xcf; 9];
                bytes[1..].copy_from_slice(&number.to_be_bytes());
                self.out.extend_from_slice(&bytes);
            }
        }
    }

    fn integer(&mut self, number: i128) -> Result<()> {
        if let Ok(number) = u64::try_from(number) {
            self.unsigned(number);
            return Ok(());
        }
        let Ok(number) = i64::try_from(number) else {
            return Err(TranscodeError::new(NO_INTEGER));
        };
        match number {
            -32.. => self.out.push(number as u8),
            -0x80..=-33 => self.out.extend_from_slice(&[0xd0, number as u8]),
            -0x8000..=-0x81 => {
                self.out.push(0xd1);
                self.out.extend_from_slice(&(number as i16).to_be_bytes());
            }
            -0x8000_0000..=-0x8001 => {
                self.out.push(0xd2);
                self.out.extend_from_slice(&(number as i32).to_be_bytes());
            }
            _ => {
                self.out.push(0xd3);
                self.out.extend_from_slice(&number.to_be_bytes());
            }
        }
        Ok(())
    }

    fn big_integer(&mut self, _number: &BigInteger) -> Result<()> {
        Err(TranscodeError::new(NO_INTEGER))
    }

    fn float(&mut self, number: f64) -> Result<()> {
        self.out.push(0xcb);
        self.out.extend_from_slice(&number.to_be_bytes());
        Ok(())
    }

    #[inline]
    fn text(&mut self, text: &str) {
        let header = match text.len() {
            length @ 0..=31 => Header::new(0xa0 | length as u8, &[]),
            length @ 32..=0xff => Header::new(0xd9, &[length as u8]),
            length @ 0x100..=0xffff => Header::new(0xda, &(length as u16).to_be_bytes()),
            length => Header::new(0xdb, &(length as u32).to_be_bytes()),
        };
        self.out.extend_from_slice(header.bytes());
        self.out.extend_from_slice(text.as_bytes());
    }

    fn binary(&mut self, bytes: &[u8]) {
        let header = match bytes.len() {
            length @ 0..=0xff => Header::new(0xc4, &[length as u8]),
            length @ 0x100..=0xffff => Header::new(0xc5, &(length as u16).to_be_bytes()),
            length => Header::new(0xc6, &(length as u32).to_be_bytes()),
        };
        self.out.extend_from_slice(header.bytes());
        self.out.extend_from_slice(bytes);
    }
}
