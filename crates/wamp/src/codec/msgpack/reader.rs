//! Reading MessagePack.

use std::borrow::Cow;

use super::super::DecodeError;
use super::super::reader::{Kind, Open, Reader, Result, Token, check_text, enter, text};

const EXTENSION: &str = "an extension type, which only MessagePack has";

/// JavaScript's `undefined` as JavaScript libraries write it: an extension of type 0 whose only byte is 0.
const UNDEFINED: [u8; 3] = [0xd4, 0, 0];

pub(in super::super) struct MsgPackReader<'a> {
    bytes: &'a [u8],
    at: usize,
    doubtful: bool,
}

impl<'a> MsgPackReader<'a> {
    #[inline(always)]
    pub(super) fn peek(&self) -> Result<u8> {
        self.bytes
            .get(self.at)
            .copied()
            .ok_or_else(|| self.cut_off())
    }

    #[cold]
    fn cut_off(&self) -> DecodeError {
        DecodeError::unexpected(self.bytes.len(), "more bytes", "the end")
    }

    /// The big-endian number behind the peeked marker; reads both.
    #[inline(always)]
    fn number<const WIDTH: usize>(&mut self) -> Result<u64> {
        let start = self.at + 1;
        let Some(bytes) = self.bytes.get(start..start + WIDTH) else {
            return Err(self.cut_off());
        };
        self.at = start + WIDTH;
        let mut wide = [0; 8];
        wide[8 - WIDTH..].copy_from_slice(bytes);
        Ok(u64::from_be_bytes(wide))
    }

    /// The same for a two's complement number.
    fn signed<const WIDTH: usize>(&mut self) -> Result<i64> {
        let shift = 64 - 8 * WIDTH as u32;
        let unsigned = self.number::<WIDTH>()?;
        Ok((unsigned << shift) as i64 >> shift)
    }

    #[inline(always)]
    pub(super) fn take(&mut self, length: u64) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        match usize::try_from(length)
            .ok()
            .and_then(|length| rest.get(..length))
        {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(self.cut_off()),
        }
    }

    /// Length of the text whose marker comes next; reads the marker.
    #[inline(always)]
    fn text_length(&mut self) -> Result<u64> {
        match self.peek()? {
            marker @ 0xa0..=0xbf => {
                self.at += 1;
                Ok(u64::from(marker & 0x1f))
            }
            0xd9 => self.number::<1>(),
            0xda => self.number::<2>(),
            0xdb => self.number::<4>(),
            _ => Err(self.unexpected("text")),
        }
    }

    /// Length of the extension whose marker comes next, its type included.
    pub(super) fn extension_length(&mut self, marker: u8) -> Result<u64> {
        match marker {
            0xc7 => self.number::<1>().map(|length| length + 1),
            0xc8 => self.number::<2>().map(|length| length + 1),
            0xc9 => self.number::<4>().map(|length| length + 1),
            _ => {
                self.at += 1;
                Ok(1 + (1 << (marker - 0xd4)))
            }
        }
    }

    fn skip_values(&mut self, count: u64, depth_left: usize) -> Result<()> {
        let depth_left = enter(depth_left, self.at)?;
        for _ in 0..count {
            self.skip(depth_left)?;
        }
        Ok(())
    }

    fn skip_entries(&mut self, count: u64, depth_left: usize) -> Result<()> {
        let depth_left = enter(depth_left, self.at)?;
        for _ in 0..count {
            match self.peek()? {
                0xa0..=0xbf | 0xd9..=0xdb => self.skip_text()?,
                marker => {
                    self.doubtful |= !is_usual_key(marker);
                    self.skip(depth_left)?;
                }
            }
            self.skip(depth_left)?;
        }
        Ok(())
    }

    fn reserved(&self) -> DecodeError {
        DecodeError::unexpected(self.at, "value", "the reserved byte 0xc1")
    }
}

impl<'a> Reader<'a> for MsgPackReader<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self> {
        Ok(Self {
            bytes,
            at: 0,
            doubtful: false,
        })
    }

    fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    #[inline(always)]
    fn open_list(&mut self) -> Result<Open> {
        let count = match self.peek()? {
            marker @ 0x90..=0x9f => {
                self.at += 1;
                u64::from(marker & 0x0f)
            }
            0xdc => self.number::<2>()?,
            0xdd => self.number::<4>()?,
            _ => return Err(self.unexpected("list")),
        };
        Ok(Open::counted(count, false))
    }

    #[inline(always)]
    fn open_dict(&mut self) -> Result<Open> {
        let count = match self.peek()? {
            marker @ 0x80..=0x8f => {
                self.at += 1;
                u64::from(marker & 0x0f)
            }
            0xde => self.number::<2>()?,
            0xdf => self.number::<4>()?,
            _ => return Err(self.unexpected("dictionary")),
        };
        Ok(Open::counted(count, true))
    }

    #[inline(always)]
    fn more(&mut self, open: &mut Open) -> Result<bool> {
        let left = open.left.unwrap_or_default().checked_sub(1);
        if left.is_some() {
            open.left = left;
        }
        Ok(left.is_some())
    }

    #[inline(always)]
    fn null(&mut self) -> bool {
        let width = match self.bytes.get(self.at) {
            Some(0xc0) => 1,
            Some(0xd4) if self.bytes[self.at..].starts_with(&UNDEFINED) => UNDEFINED.len(),
            _ => return false,
        };
        self.at += width;
        true
    }

    #[inline(always)]
    fn unsigned(&mut self) -> Result<u64> {
        let start = self.at;
        let signed = match self.peek()? {
            marker @ 0..=0x7f => {
                self.at += 1;
                return Ok(marker.into());
            }
            0xcc => return self.number::<1>(),
            0xcd => return self.number::<2>(),
            0xce => return self.number::<4>(),
            0xcf => return self.number::<8>(),
            0xd0 => self.signed::<1>()?,
            0xd1 => self.signed::<2>()?,
            0xd2 => self.signed::<4>()?,
            0xd3 => self.signed::<8>()?,
            0xe0..=0xff => -1,
            _ => return Err(self.unexpected("integer")),
        };
        u64::try_from(signed).map_err(|_| DecodeError::negative(start))
    }

    fn boolean(&mut self) -> Result<bool> {
        let flag = match self.peek()? {
            0xc2 => false,
            0xc3 => true,
            _ => return Err(self.unexpected("boolean")),
        };
        self.at += 1;
        Ok(flag)
    }

    #[inline]
    fn text(&mut self) -> Result<Cow<'a, str>> {
        let length = self.text_length()?;
        let start = self.at;
        text(self.take(length)?, start).map(Cow::Borrowed)
    }

    fn token(&mut self) -> Result<Token<'a>> {
        Ok(match self.peek()? {
            marker @ 0..=0x7f => {
                self.at += 1;
                Token::Integer(marker.into())
            }
            0x80..=0x8f | 0xde | 0xdf => Token::Dict(self.open_dict()?),
            0x90..=0x9f | 0xdc | 0xdd => Token::List(self.open_list()?),
            0xa0..=0xbf | 0xd9..=0xdb => Token::Text(self.text()?),
            marker @ (0xc0 | 0xc2 | 0xc3) => {
                self.at += 1;
                if marker == 0xc0 {
                    Token::Null
                } else {
                    Token::Boolean(marker == 0xc3)
                }
            }
            0xc1 => return Err(self.reserved()),
            marker @ 0xc4..=0xc6 => {
                let length = match marker {
                    0xc4 => self.number::<1>()?,
                    0xc5 => self.number::<2>()?,
                    _ => self.number::<4>()?,
                };
                Token::Binary(Cow::Borrowed(self.take(length)?))
            }
            0xca => Token::Float(f32::from_bits(self.number::<4>()? as u32).into()),
            0xcb => Token::Float(f64::from_bits(self.number::<8>()?)),
            0xcc..=0xcf => Token::Integer(self.unsigned()?.into()),
            0xd0 => Token::Integer(self.signed::<1>()?.into()),
            0xd1 => Token::Integer(self.signed::<2>()?.into()),
            0xd2 => Token::Integer(self.signed::<4>()?.into()),
            0xd3 => Token::Integer(self.signed::<8>()?.into()),
            0xc7..=0xc9 | 0xd4..=0xd8 => Token::Foreign(EXTENSION),
            marker @ 0xe0..=0xff => {
                self.at += 1;
                Token::Integer((marker as i8).into())
            }
        })
    }

    #[inline]
    fn skip_text(&mut self) -> Result<()> {
        let length = self.text_length()?;
        let start = self.at;
        check_text(self.take(length)?, start)
    }

    fn skip(&mut self, depth_left: usize) -> Result<()> {
        let marker = self.peek()?;
        let width = match marker {
            0..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => {
                self.at += 1;
                return Ok(());
            }
            0xa0..=0xbf | 0xd9..=0xdb => return self.skip_text(),
            0x80..=0x8f | 0xde | 0xdf => {
                let count = self.open_dict()?.left.unwrap_or_default();
                return self.skip_entries(count, depth_left);
            }
            0x90..=0x9f | 0xdc | 0xdd => {
                let count = self.open_list()?.left.unwrap_or_default();
                return self.skip_values(count, depth_left);
            }
            0xc1 => return Err(self.reserved()),
            0xc4 => self.number::<1>()?,
            0xc5 => self.number::<2>()?,
            0xc6 => self.number::<4>()?,
            0xc7..=0xc9 | 0xd4..=0xd8 => {
                self.doubtful = true;
                self.extension_length(marker)?
            }
            0xcc | 0xd0 => 2,
            0xcd | 0xd1 => 3,
            0xca | 0xce | 0xd2 => 5,
            0xcb | 0xcf | 0xd3 => 9,
        };
        self.take(width).map(|_| ())
    }

    fn kind(&mut self) -> Result<Kind> {
        Ok(match self.bytes.get(self.at) {
            None => Kind::End,
            Some(byte) => match byte {
                0..=0x7f | 0xcc..=0xd3 | 0xe0..=0xff => Kind::Integer,
                0x80..=0x8f | 0xde | 0xdf => Kind::Dict,
                0x90..=0x9f | 0xdc | 0xdd => Kind::List,
                0xa0..=0xbf | 0xd9..=0xdb => Kind::Text,
                0xc0 => Kind::Null,
                0xc1 => return Err(self.reserved()),
                0xc2 | 0xc3 => Kind::Boolean,
                0xc4..=0xc6 => Kind::Binary,
                0xc7..=0xc9 | 0xd4..=0xd8 => Kind::Foreign("extension type"),
                0xca | 0xcb => Kind::Float,
            },
        })
    }

    fn value_offset(&mut self) -> usize {
        self.at
    }

    fn offset(&self) -> usize {
        self.at
    }

    fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Whether a key that begins so is text or binary.
#[inline(always)]
pub(super) fn is_usual_key(marker: u8) -> bool {
    matches!(marker, 0xa0..=0xbf | 0xc4..=0xc6 | 0xd9..=0xdb)
}
