//! Reading JSON.

use std::borrow::Cow;

use super::super::DecodeError;
use super::super::reader::{Kind, Open, Reader, Result, Token, enter};
use super::plain::plain_length;
use super::{number, string};
use crate::text::from_utf8;

pub(in super::super) struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    tolerates: bool,
    doubtful: bool,
}

impl<'a> JsonReader<'a> {
    /// The next byte that is not whitespace, left unread.
    #[inline(always)]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                byte => return byte.copied(),
            }
        }
    }

    #[inline(always)]
    fn open(&mut self, opener: u8, expected: &'static str) -> Result<Open> {
        if self.peek() != Some(opener) {
            return Err(self.unexpected(expected));
        }
        self.at += 1;
        Ok(Open::delimited(opener == b'{'))
    }

    /// Reads a string from its opening quote; returns the range of its content, and whether it has escapes.
    #[inline(always)]
    fn string(&mut self) -> Result<(usize, usize, bool)> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            at += plain_length(&bytes[at..]);
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok((start, at, escaped));
                }
                Some(b'\\') => {
                    escaped = true;
                    let (character, length) = string::escape(bytes, at)?;
                    self.doubtful |= at == start && character == '\0';
                    at += length;
                }
                Some(_) => {
                    let found = "an unescaped control character";
                    return Err(DecodeError::unexpected(at, "a character", found));
                }
                None => return Err(DecodeError::unexpected(at, "a closing quote", "the end")),
            }
        }
    }

    fn literal(&mut self, literal: &'static str) -> Result<()> {
        if !self.text.as_bytes()[self.at..].starts_with(literal.as_bytes()) {
            return Err(DecodeError::unexpected(self.at, literal, "something else"));
        }
        self.at += literal.len();
        Ok(())
    }

    /// Walks over a number; returns its text and whether it is an integer.
    fn number(&mut self) -> Result<(&'a str, bool)> {
        let (length, integer) = number::length(&self.text.as_bytes()[self.at..], self.at)?;
        let text = &self.text[self.at..self.at + length];
        self.at += length;
        self.doubtful |= length >= number::LONG_BYTES_MIN;
        Ok((text, integer))
    }

    /// Reads NaN or infinity, if one comes next and may.
    #[cold]
    pub(super) fn not_a_number(&mut self) -> Option<f64> {
        let rest = &self.text[self.at..];
        let known = [
            ("NaN", f64::NAN),
            ("Infinity", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ];
        let (word, number) = known.into_iter().find(|(word, _)| rest.starts_with(word))?;
        if !self.tolerates {
            return None;
        }
        self.doubtful = true;
        self.at += word.len();
        Some(number)
    }

    /// A number, or an invalid one that may be skipped.
    fn skip_number(&mut self) -> Result<()> {
        if let Some(length) = number::short_length(&self.text.as_bytes()[self.at..]) {
            self.at += length;
            return Ok(());
        }
        match self.number() {
            Ok(_) => Ok(()),
            Err(error) => self.not_a_number().map(drop).ok_or(error),
        }
    }
}

impl<'a> Reader<'a> for JsonReader<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self> {
        match from_utf8(bytes) {
            Ok(text) => Ok(Self {
                text,
                at: 0,
                tolerates: false,
                doubtful: false,
            }),
            Err(error) => {
                let offset = error.valid_up_to();
                Err(DecodeError::unexpected(offset, "UTF-8", "other bytes"))
            }
        }
    }

    fn tolerate(&mut self) {
        self.tolerates = true;
    }

    fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    fn open_list(&mut self) -> Result<Open> {
        self.open(b'[', "list")
    }

    fn open_dict(&mut self) -> Result<Open> {
        self.open(b'{', "dictionary")
    }

    #[inline(always)]
    fn more(&mut self, open: &mut Open) -> Result<bool> {
        let closer = if open.dict { b'}' } else { b']' };
        let byte = self.peek();
        if byte == Some(closer) {
            self.at += 1;
            return Ok(false);
        }
        if open.first {
            open.first = false;
            return Ok(true);
        }
        if byte == Some(b',') {
            self.at += 1;
            return Ok(true);
        }
        let expected = if open.dict {
            "comma or closing brace"
        } else {
            "comma or closing bracket"
        };
        Err(self.unexpected(expected))
    }

    #[inline(always)]
    fn separator(&mut self) -> Result<()> {
        if self.peek() != Some(b':') {
            return Err(self.unexpected("colon"));
        }
        self.at += 1;
        Ok(())
    }

    #[inline(always)]
    fn null(&mut self) -> bool {
        self.peek() == Some(b'n') && self.literal("null").is_ok()
    }

    #[inline(always)]
    fn unsigned(&mut self) -> Result<u64> {
        match self.peek() {
            Some(b'0'..=b'9') => (),
            Some(b'-') if self.kind()? == Kind::Integer => {
                return Err(DecodeError::negative(self.at));
            }
            _ => return Err(self.unexpected("integer")),
        }
        let start = self.at;
        let bytes = &self.text.as_bytes()[start..];
        let mut value = 0_u64;
        let mut length = 0;
        // Nineteen digits cannot overflow; an id has at most sixteen.
        while let Some(digit) = bytes.get(length).map(|byte| byte.wrapping_sub(b'0')) {
            if digit > 9 || length == 19 {
                break;
            }
            value = value * 10 + u64::from(digit);
            length += 1;
        }
        let (text, integer) = match bytes.get(length) {
            Some(b'.' | b'e' | b'E' | b'0'..=b'9') => self.number()?,
            _ if length > 1 && bytes[0] == b'0' => self.number()?,
            _ => {
                self.at += length;
                return Ok(value);
            }
        };
        match text.parse() {
            Ok(number) if integer => Ok(number),
            Ok(_) | Err(_) => {
                self.at = start;
                let found = if integer { "larger integer" } else { "float" };
                Err(DecodeError::unexpected(start, "integer", found))
            }
        }
    }

    fn boolean(&mut self) -> Result<bool> {
        match self.peek() {
            Some(b't') => self.literal("true").map(|()| true),
            Some(b'f') => self.literal("false").map(|()| false),
            _ => Err(self.unexpected("boolean")),
        }
    }

    #[inline]
    fn text(&mut self) -> Result<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("text"));
        }
        let (start, end, escaped) = self.string()?;
        if escaped {
            return string::unescape(self.text, start, end);
        }
        Ok(Cow::Borrowed(&self.text[start..end]))
    }

    fn token(&mut self) -> Result<Token<'a>> {
        match self.peek() {
            Some(b'"') => {
                let text = self.text()?;
                Ok(match string::binary(&text) {
                    Some(bytes) => Token::Binary(Cow::Owned(bytes)),
                    None => Token::Text(text),
                })
            }
            Some(b'[') => self.open_list().map(Token::List),
            Some(b'{') => self.open_dict().map(Token::Dict),
            Some(b't') => self.literal("true").map(|()| Token::Boolean(true)),
            Some(b'f') => self.literal("false").map(|()| Token::Boolean(false)),
            Some(b'n') => self.literal("null").map(|()| Token::Null),
            Some(b'-' | b'0'..=b'9') => {
                let (text, integer) = match self.number() {
                    Ok(number) => number,
                    Err(error) => {
                        let number = self.not_a_number().ok_or(error)?;
                        return Ok(Token::Float(number));
                    }
                };
                Ok(number::value(text, integer))
            }
            _ => match self.not_a_number() {
                Some(number) => Ok(Token::Float(number)),
                None => Err(self.unexpected("value")),
            },
        }
    }

    #[inline]
    fn skip_text(&mut self) -> Result<()> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("text"));
        }
        self.string().map(|_| ())
    }

    fn skip(&mut self, depth_left: usize) -> Result<()> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.skip_number(),
            Some(b'[') => {
                let depth_left = enter(depth_left, self.at)?;
                let mut list = self.open_list()?;
                while self.more(&mut list)? {
                    self.skip(depth_left)?;
                }
                Ok(())
            }
            Some(b'{') => {
                let depth_left = enter(depth_left, self.at)?;
                let mut dict = self.open_dict()?;
                while self.more(&mut dict)? {
                    self.skip_text()?;
                    self.separator()?;
                    self.skip(depth_left)?;
                }
                Ok(())
            }
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            _ => match self.not_a_number() {
                Some(_) => Ok(()),
                None => Err(self.unexpected("value")),
            },
        }
    }

    fn kind(&mut self) -> Result<Kind> {
        Ok(match self.peek() {
            Some(b'"') => Kind::Text,
            Some(b'[') => Kind::List,
            Some(b'{') => Kind::Dict,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            Some(b'-' | b'0'..=b'9') => {
                match number::length(&self.text.as_bytes()[self.at..], self.at)? {
                    (_, true) => Kind::Integer,
                    (_, false) => Kind::Float,
                }
            }
            Some(_) => Kind::Foreign("other character"),
            None => Kind::End,
        })
    }

    fn value_offset(&mut self) -> usize {
        self.peek();
        self.at
    }

    fn offset(&self) -> usize {
        self.at
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }
}
