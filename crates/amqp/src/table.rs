//! Field tables (section 4.2.5.5), kept as the bytes they came in.

use std::{fmt, str};

use crate::reader::{ReadError, Reader};

/// Tables and arrays within each other, at most.
pub(crate) const DEPTH_MAX: usize = 64;

/// A table whose bytes have been checked.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Table<'a> {
    bytes: &'a [u8],
}

/// An array whose bytes have been checked.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Array<'a> {
    bytes: &'a [u8],
}

/// A field's value. The kinds are those of RabbitMQ's errata, which all clients follow.
#[derive(Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Bool(bool),
    I8(i8),
    U8(u8),
    I16(i16),
    U16(u16),
    I32(i32),
    U32(u32),
    I64(i64),
    F32(f32),
    F64(f64),
    /// The number is `value` divided by ten to the power `scale`.
    Decimal {
        scale: u8,
        value: i32,
    },
    /// Text, mostly; the protocol does not say in which encoding.
    LongString(&'a [u8]),
    /// Bytes that are no text.
    ByteArray(&'a [u8]),
    /// Seconds since 1970.
    Timestamp(u64),
    Array(Array<'a>),
    Table(Table<'a>),
    Void,
}

impl<'a> Table<'a> {
    /// Reads a table with its length, and checks all of it.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, ReadError> {
        read_table(reader, DEPTH_MAX)
    }

    /// Its bytes without their length.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Checks bytes without a length.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, ReadError> {
        check_table(bytes, DEPTH_MAX)?;
        Ok(Self { bytes })
    }

    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// Its fields, in their order. A name may occur twice. A field whose name is not UTF-8 is passed on with the table,
    /// but not shown.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        let mut reader = Reader::new(self.bytes);
        std::iter::from_fn(move || {
            while !reader.rest().is_empty() {
                // Checked when the table was made.
                let name = reader.shortstr_bytes().ok()?;
                let value = read_value(&mut reader, DEPTH_MAX).ok()?;
                if let Ok(name) = str::from_utf8(name) {
                    return Some((name, value));
                }
            }
            None
        })
    }

    /// The first field of that name.
    pub fn find(self, name: &str) -> Option<Value<'a>> {
        self.iter().find(|(found, _)| *found == name).map(|f| f.1)
    }
}

impl<'a> Array<'a> {
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// Its values, in their order.
    pub fn iter(self) -> impl Iterator<Item = Value<'a>> {
        let mut reader = Reader::new(self.bytes);
        std::iter::from_fn(move || {
            if reader.rest().is_empty() {
                return None;
            }
            read_value(&mut reader, DEPTH_MAX).ok()
        })
    }
}

impl<'a> Value<'a> {
    /// A string's text, if it is one and UTF-8.
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            Self::LongString(bytes) => str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// An integer of any width.
    pub fn as_i64(self) -> Option<i64> {
        Some(match self {
            Self::I8(value) => value.into(),
            Self::U8(value) => value.into(),
            Self::I16(value) => value.into(),
            Self::U16(value) => value.into(),
            Self::I32(value) => value.into(),
            Self::U32(value) => value.into(),
            Self::I64(value) => value,
            _ => return None,
        })
    }

    /// The tag on the wire, by which RabbitMQ's texts call the kinds too.
    pub fn tag(self) -> u8 {
        match self {
            Self::Bool(_) => b't',
            Self::I8(_) => b'b',
            Self::U8(_) => b'B',
            Self::I16(_) => b's',
            Self::U16(_) => b'u',
            Self::I32(_) => b'I',
            Self::U32(_) => b'i',
            Self::I64(_) => b'l',
            Self::F32(_) => b'f',
            Self::F64(_) => b'd',
            Self::Decimal { .. } => b'D',
            Self::LongString(_) => b'S',
            Self::ByteArray(_) => b'x',
            Self::Timestamp(_) => b'T',
            Self::Array(_) => b'A',
            Self::Table(_) => b'F',
            Self::Void => b'V',
        }
    }
}

fn read_table<'a>(reader: &mut Reader<'a>, depth_left: usize) -> Result<Table<'a>, ReadError> {
    let bytes = reader.longstr()?;
    check_table(bytes, depth_left)?;
    Ok(Table { bytes })
}

fn check_table(bytes: &[u8], depth_left: usize) -> Result<(), ReadError> {
    let mut reader = Reader::new(bytes);
    while !reader.rest().is_empty() {
        reader.shortstr_bytes()?;
        read_value(&mut reader, depth_left)?;
    }
    Ok(())
}

fn read_array<'a>(reader: &mut Reader<'a>, depth_left: usize) -> Result<Array<'a>, ReadError> {
    let bytes = reader.longstr()?;
    let mut values = Reader::new(bytes);
    while !values.rest().is_empty() {
        read_value(&mut values, depth_left)?;
    }
    Ok(Array { bytes })
}

fn read_value<'a>(reader: &mut Reader<'a>, depth_left: usize) -> Result<Value<'a>, ReadError> {
    let deeper = || depth_left.checked_sub(1).ok_or(ReadError::TooDeep);
    Ok(match reader.octet()? {
        b't' => Value::Bool(reader.octet()? != 0),
        b'b' => Value::I8(i8::from_be_bytes(reader.array()?)),
        b'B' => Value::U8(reader.octet()?),
        b's' => Value::I16(i16::from_be_bytes(reader.array()?)),
        b'u' => Value::U16(reader.short()?),
        b'I' => Value::I32(i32::from_be_bytes(reader.array()?)),
        b'i' => Value::U32(reader.long()?),
        b'l' | b'L' => Value::I64(i64::from_be_bytes(reader.array()?)),
        b'f' => Value::F32(f32::from_be_bytes(reader.array()?)),
        b'd' => Value::F64(f64::from_be_bytes(reader.array()?)),
        b'D' => Value::Decimal {
            scale: reader.octet()?,
            value: i32::from_be_bytes(reader.array()?),
        },
        b'S' => Value::LongString(reader.longstr()?),
        b'x' => Value::ByteArray(reader.longstr()?),
        b'T' => Value::Timestamp(reader.longlong()?),
        b'A' => Value::Array(read_array(reader, deeper()?)?),
        b'F' => Value::Table(read_table(reader, deeper()?)?),
        b'V' => Value::Void,
        tag => return Err(ReadError::UnknownTag { tag }),
    })
}

/// A table being made, or kept.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct TableBuf {
    bytes: Vec<u8>,
}

impl TableBuf {
    /// Without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a field more. A name longer than 255 bytes is cut at a character's end.
    pub fn with(mut self, name: &str, value: Value<'_>) -> Self {
        let name = &name[..name.floor_char_boundary(255)];
        self.bytes.push(name.len() as u8);
        self.bytes.extend_from_slice(name.as_bytes());
        write_value(value, &mut self.bytes);
        self
    }

    /// As methods take it.
    pub fn as_table(&self) -> Table<'_> {
        Table { bytes: &self.bytes }
    }
}

impl From<Table<'_>> for TableBuf {
    fn from(table: Table<'_>) -> Self {
        Self {
            bytes: table.bytes.to_owned(),
        }
    }
}

fn write_value(value: Value<'_>, out: &mut Vec<u8>) {
    let long = |bytes: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        out.extend_from_slice(bytes);
    };
    out.push(value.tag());
    match value {
        Value::Bool(value) => out.push(value.into()),
        Value::I8(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::U8(value) => out.push(value),
        Value::I16(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::U16(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::I32(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::U32(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::I64(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::F32(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::F64(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Decimal { scale, value } => {
            out.push(scale);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Value::LongString(bytes) | Value::ByteArray(bytes) => long(bytes, out),
        Value::Timestamp(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Array(array) => long(array.bytes, out),
        Value::Table(table) => long(table.bytes, out),
        Value::Void => {}
    }
}

impl fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl fmt::Debug for TableBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_table().fmt(f)
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// As a literal, so that a table can be read in a log.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::I8(value) => write!(f, "{value}i8"),
            Self::U8(value) => write!(f, "{value}u8"),
            Self::I16(value) => write!(f, "{value}i16"),
            Self::U16(value) => write!(f, "{value}u16"),
            Self::I32(value) => write!(f, "{value}i32"),
            Self::U32(value) => write!(f, "{value}u32"),
            Self::I64(value) => write!(f, "{value}i64"),
            Self::F32(value) => write!(f, "{value:?}f32"),
            Self::F64(value) => write!(f, "{value:?}f64"),
            Self::Decimal { scale, value } => write!(f, "{value}e-{scale}"),
            Self::LongString(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::ByteArray(bytes) => write!(f, "b\"{}\"", bytes.escape_ascii()),
            Self::Timestamp(seconds) => write!(f, "@{seconds}"),
            Self::Array(array) => array.fmt(f),
            Self::Table(table) => table.fmt(f),
            Self::Void => f.write_str("void"),
        }
    }
}
