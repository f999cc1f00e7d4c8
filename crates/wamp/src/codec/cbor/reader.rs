//! Reading CBOR.

use std::borrow::Cow;

use super::super::DecodeError;
use super::super::reader::{Kind, Open, Reader, Result, Token, check_text, enter, text};
use super::tags::UINT8_ARRAY;
use super::{BINARY, BREAK, DICT, LIST, NEGATIVE, SIMPLE, TAG, TEXT, UNSIGNED, tags};

pub(in super::super) struct CborReader<'a> {
    bytes: &'a [u8],
    at: usize,
    doubtful: bool,
}

/// An initial byte and its argument.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) major: u8,
    info: u8,
    pub(super) argument: u64,
}

impl Head {
    fn is_indefinite(self) -> bool {
        self.info == 31
    }
}

impl<'a> CborReader<'a> {
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

    #[inline(always)]
    pub(super) fn head(&mut self) -> Result<Head> {
        let initial = self.peek()?;
        let (major, info) = (initial >> 5, initial & 0x1f);
        let argument = match info {
            0..=23 => {
                self.at += 1;
                u64::from(info)
            }
            24 => self.argument::<1>()?,
            25 => self.argument::<2>()?,
            26 => self.argument::<4>()?,
            27 => self.argument::<8>()?,
            31 if matches!(major, BINARY..=DICT) => {
                self.at += 1;
                0
            }
            _ => {
                let found = if initial == BREAK {
                    "a break"
                } else {
                    "a reserved byte"
                };
                return Err(DecodeError::unexpected(self.at, "value", found));
            }
        };
        Ok(Head {
            major,
            info,
            argument,
        })
    }

    #[inline(always)]
    fn argument<const WIDTH: usize>(&mut self) -> Result<u64> {
        let start = self.at + 1;
        let Some(bytes) = self.bytes.get(start..start + WIDTH) else {
            return Err(self.cut_off());
        };
        self.at = start + WIDTH;
        let mut wide = [0; 8];
        wide[8 - WIDTH..].copy_from_slice(bytes);
        Ok(u64::from_be_bytes(wide))
    }

    /// The head of a value that must be of this kind.
    #[inline(always)]
    fn head_of(&mut self, major: u8, expected: &'static str) -> Result<Head> {
        if self.peek()? >> 5 != major {
            return Err(self.unexpected(expected));
        }
        self.head()
    }

    #[inline(always)]
    fn take(&mut self, length: u64) -> Result<&'a [u8]> {
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

    #[inline]
    fn take_text(&mut self, length: u64) -> Result<&'a str> {
        let start = self.at;
        text(self.take(length)?, start)
    }

    #[inline]
    fn skip_chunk(&mut self, length: u64) -> Result<()> {
        let start = self.at;
        check_text(self.take(length)?, start)
    }

    /// The next chunk of text or binary without a definite length: its bytes' count.
    fn chunk(&mut self, major: u8) -> Result<Option<u64>> {
        let offset = self.at;
        if self.peek()? == BREAK {
            self.at += 1;
            return Ok(None);
        }
        let head = self.head()?;
        if head.major != major || head.is_indefinite() {
            let expected = "a chunk of the same kind with a length";
            return Err(DecodeError::unexpected(offset, expected, "another value"));
        }
        Ok(Some(head.argument))
    }

    #[inline]
    fn text_behind(&mut self, head: Head) -> Result<Cow<'a, str>> {
        if !head.is_indefinite() {
            return self.take_text(head.argument).map(Cow::Borrowed);
        }
        let mut text = String::new();
        while let Some(length) = self.chunk(TEXT)? {
            text.push_str(self.take_text(length)?);
        }
        Ok(Cow::Owned(text))
    }

    fn binary_behind(&mut self, head: Head) -> Result<Cow<'a, [u8]>> {
        if !head.is_indefinite() {
            return self.take(head.argument).map(Cow::Borrowed);
        }
        let mut binary = Vec::new();
        while let Some(length) = self.chunk(BINARY)? {
            binary.extend_from_slice(self.take(length)?);
        }
        Ok(Cow::Owned(binary))
    }

    fn skip_text_behind(&mut self, head: Head) -> Result<()> {
        if !head.is_indefinite() {
            return self.skip_chunk(head.argument);
        }
        while let Some(length) = self.chunk(TEXT)? {
            self.skip_chunk(length)?;
        }
        Ok(())
    }

    fn skip_binary_behind(&mut self, head: Head) -> Result<()> {
        if !head.is_indefinite() {
            return self.take(head.argument).map(|_| ());
        }
        while let Some(length) = self.chunk(BINARY)? {
            self.take(length)?;
        }
        Ok(())
    }

    fn skip_collection_behind(&mut self, head: Head, depth_left: usize) -> Result<()> {
        let depth_left = enter(depth_left, self.at)?;
        let mut open = open(head);
        while self.more(&mut open)? {
            self.skip(depth_left)?;
            if open.dict {
                self.skip(depth_left)?;
            }
        }
        Ok(())
    }

    /// One byte can say a simple value below 32 in two ways; the longer is not well-formed.
    fn simple(&self, head: Head) -> Result<u8> {
        if head.info == 24 && head.argument < 32 {
            return Err(DecodeError::unexpected(
                self.at - 2,
                "value",
                "a reserved simple value",
            ));
        }
        Ok(head.argument as u8)
    }
}

#[inline]
fn open(head: Head) -> Open {
    let dict = head.major == DICT;
    if head.is_indefinite() {
        Open::delimited(dict)
    } else {
        Open::counted(head.argument, dict)
    }
}

impl<'a> Reader<'a> for CborReader<'a> {
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

    #[inline]
    fn open_list(&mut self) -> Result<Open> {
        self.head_of(LIST, "list").map(open)
    }

    #[inline]
    fn open_dict(&mut self) -> Result<Open> {
        self.head_of(DICT, "dictionary").map(open)
    }

    #[inline(always)]
    fn more(&mut self, open: &mut Open) -> Result<bool> {
        if let Some(left) = &mut open.left {
            let more = *left > 0;
            *left = left.saturating_sub(1);
            return Ok(more);
        }
        let more = self.peek()? != BREAK;
        self.at += usize::from(!more);
        Ok(more)
    }

    #[inline(always)]
    fn null(&mut self) -> bool {
        let null = matches!(self.bytes.get(self.at), Some(0xf6 | 0xf7));
        self.at += usize::from(null);
        null
    }

    #[inline(always)]
    fn unsigned(&mut self) -> Result<u64> {
        match self.peek()? >> 5 {
            UNSIGNED => Ok(self.head()?.argument),
            NEGATIVE => Err(DecodeError::negative(self.at)),
            _ => Err(self.unexpected("integer")),
        }
    }

    fn boolean(&mut self) -> Result<bool> {
        let flag = match self.peek()? {
            0xf4 => false,
            0xf5 => true,
            _ => return Err(self.unexpected("boolean")),
        };
        self.at += 1;
        Ok(flag)
    }

    #[inline]
    fn text(&mut self) -> Result<Cow<'a, str>> {
        let head = self.head_of(TEXT, "text")?;
        self.text_behind(head)
    }

    fn token(&mut self) -> Result<Token<'a>> {
        let head = self.head()?;
        Ok(match head.major {
            UNSIGNED => Token::Integer(head.argument.into()),
            NEGATIVE => Token::Integer(-1 - i128::from(head.argument)),
            BINARY => Token::Binary(self.binary_behind(head)?),
            TEXT => Token::Text(self.text_behind(head)?),
            LIST => Token::List(open(head)),
            DICT => Token::Dict(open(head)),
            TAG => return tags::token(self, head.argument),
            _ => match head.info {
                20 | 21 => Token::Boolean(head.info == 21),
                22 | 23 => Token::Null,
                25 => Token::Float(half_float(head.argument as u16)),
                26 => Token::Float(f32::from_bits(head.argument as u32).into()),
                27 => Token::Float(f64::from_bits(head.argument)),
                _ => {
                    self.simple(head)?;
                    Token::Foreign("a simple value, which only CBOR has")
                }
            },
        })
    }

    #[inline]
    fn skip_text(&mut self) -> Result<()> {
        let head = self.head_of(TEXT, "text")?;
        self.skip_text_behind(head)
    }

    fn skip(&mut self, mut depth_left: usize) -> Result<()> {
        loop {
            match self.peek()? {
                // Values of one byte, and short text, need no look at a head.
                0..=0x17 | 0x20..=0x37 | 0xf4..=0xf7 => {
                    self.at += 1;
                    return Ok(());
                }
                initial @ 0x60..=0x77 => {
                    self.at += 1;
                    return self.skip_chunk(u64::from(initial & 0x1f));
                }
                _ => (),
            }
            let head = self.head()?;
            return match head.major {
                UNSIGNED | NEGATIVE => Ok(()),
                BINARY => self.skip_binary_behind(head),
                TEXT => self.skip_text_behind(head),
                LIST | DICT => self.skip_collection_behind(head, depth_left),
                // The value that a tag is for stands right behind it. Tags of tags are as deep as
                // lists of lists to the receiver that decodes them.
                TAG => {
                    depth_left = enter(depth_left, self.at - 1)?;
                    self.doubtful |= head.argument != UINT8_ARRAY || self.peek()? >> 5 != BINARY;
                    continue;
                }
                // These have no assigned meaning.
                _ if head.info <= 24 => {
                    self.doubtful |= !matches!(head.info, 20..=23);
                    self.simple(head).map(|_| ())
                }
                _ => Ok(()),
            };
        }
    }

    fn kind(&mut self) -> Result<Kind> {
        let Some(&initial) = self.bytes.get(self.at) else {
            return Ok(Kind::End);
        };
        Ok(match initial >> 5 {
            UNSIGNED | NEGATIVE => Kind::Integer,
            BINARY => Kind::Binary,
            TEXT => Kind::Text,
            LIST => Kind::List,
            DICT => Kind::Dict,
            TAG => Kind::Foreign("tag"),
            SIMPLE.. => match initial & 0x1f {
                20 | 21 => Kind::Boolean,
                22 | 23 => Kind::Null,
                25..=27 => Kind::Float,
                31 => Kind::Foreign("break"),
                _ => Kind::Foreign("simple value"),
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

/// IEEE 754 binary16: one bit sign, five exponent (bias 15), ten fraction.
fn half_float(half: u16) -> f64 {
    let exponent = i32::from(half >> 10 & 0x1f);
    let fraction = f64::from(half & 0x3ff);
    let magnitude = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (fraction + 1024.0) * 2_f64.powi(exponent - 25),
    };
    if half >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    }
}
