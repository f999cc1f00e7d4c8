//! The fields of an X.509 certificate that name its owner: bytes in, names, times and extensions out. Of a list of revoked
//! certificates, its authority and the time of its next update.
//!
//! Nothing is verified here; the TLS handshake does that. The encoding has to be DER as RFC 5280 has it: a certificate
//! that is not is no certificate. Own code, because a library for all of X.509 brings fourteen packages.

mod der;
mod identifiers;
pub mod public_key;

use std::fmt;
use std::net::IpAddr;

use chrono::{NaiveDate, NaiveDateTime};

use self::der::{
    BIT_STRING, BOOLEAN, CLASS, CONSTRUCTED, CONTEXT, GENERALIZED_TIME, IA5_STRING, INTEGER,
    NUMBER, NUMERIC_STRING, OBJECT_IDENTIFIER, OCTET_STRING, PRINTABLE_STRING, Reader, SEQUENCE,
    SET, UTC_TIME, UTF8_STRING,
};

/// The fields of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields<'d> {
    /// As it is encoded: 2 is version 3.
    pub version: u32,
    /// The octets of the number.
    pub serial: &'d [u8],
    /// Attributes with a text: short name in lower case, value.
    pub issuer: Vec<(String, &'d str)>,
    pub subject: Vec<(String, &'d str)>,
    pub not_before: Time,
    pub not_after: Time,
    pub extensions: Vec<Extension<'d>>,
}

/// A moment, to the second. Shown as `YYYYMMDDhhmmssZ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(NaiveDateTime);

impl Time {
    /// Seconds since 1970.
    pub fn unix_s(self) -> i64 {
        self.0.and_utc().timestamp()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format("%Y%m%d%H%M%SZ"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension<'d> {
    /// Its name, or its identifier in dotted form.
    pub name: String,
    pub is_critical: bool,
    /// The names, if it is the subject's alternative names and can be read.
    pub alternatives: Option<Vec<Alternative<'d>>>,
}

/// An alternative name of a kind that a certificate of TLS has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alternative<'d> {
    Dns(&'d str),
    Email(&'d str),
    Uri(&'d str),
    Ip(IpAddr),
}

/// The extension with the subject's alternative names.
const ALTERNATIVES: &str = "subjectAltName";

/// Reads a certificate. `None`: it is none. Octets behind it are ignored.
pub fn read(der: &[u8]) -> Option<Fields<'_>> {
    let mut certificate = Reader::new(der).inside(SEQUENCE)?;
    let mut fields = certificate.inside(SEQUENCE)?;
    algorithm(&mut certificate)?;
    certificate.expect(BIT_STRING)?;
    certificate.end()?;

    let version = match fields.optional(CONTEXT | CONSTRUCTED) {
        Some(content) => version(content)?,
        None => 0,
    };
    let serial = fields.expect(INTEGER)?;
    algorithm(&mut fields)?;
    let issuer = attributes(&mut fields)?;
    let mut validity = fields.inside(SEQUENCE)?;
    let (not_before, not_after) = (time(&mut validity)?, time(&mut validity)?);
    validity.end()?;
    let subject = attributes(&mut fields)?;
    let mut key = fields.inside(SEQUENCE)?;
    algorithm(&mut key)?;
    key.expect(BIT_STRING)?;
    key.end()?;
    // The unique identifiers, which RFC 5280 has fallen into disuse.
    fields.optional(CONTEXT | 1);
    fields.optional(CONTEXT | 2);
    let extensions = match fields.optional(CONTEXT | CONSTRUCTED | 3) {
        Some(content) => extensions(content)?,
        None => Vec::new(),
    };
    fields.end()?;
    Some(Fields {
        version,
        serial,
        issuer,
        subject,
        not_before,
        not_after,
        extensions,
    })
}

/// What identifies a list of revoked certificates (RFC 5280 section 5.1), and when its next update is due, if it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocations<'d> {
    /// The name of the authority, encoded.
    pub issuer: &'d [u8],
    pub next_update: Option<Time>,
}

/// Reads such a list up to its entries. `None`: it is none.
pub fn revocations(der: &[u8]) -> Option<Revocations<'_>> {
    let mut list = Reader::new(der).inside(SEQUENCE)?;
    let mut fields = list.inside(SEQUENCE)?;
    fields.optional(INTEGER);
    algorithm(&mut fields)?;
    let issuer = fields.expect(SEQUENCE)?;
    time(&mut fields)?;
    Some(Revocations {
        issuer,
        next_update: time(&mut fields),
    })
}

impl<'d> Fields<'d> {
    /// Whether the certificate is valid at a time, in seconds since 1970.
    pub fn is_valid_at(&self, unix_s: i64) -> bool {
        (self.not_before.unix_s()..=self.not_after.unix_s()).contains(&unix_s)
    }

    /// The subject's alternative names. None are there if the extension is absent, unreadable, or there twice.
    pub fn alternatives(&self) -> &[Alternative<'d>] {
        let is_meant = |extension: &&Extension<'_>| extension.name == ALTERNATIVES;
        let mut found = self.extensions.iter().filter(is_meant);
        match (found.next(), found.next()) {
            (Some(extension), None) => extension.alternatives.as_deref().unwrap_or_default(),
            _ => &[],
        }
    }

    /// The first common name of the subject.
    pub fn common_name(&self) -> Option<&'d str> {
        let mut attributes = self.subject.iter();
        attributes.find_map(|(name, value)| (name == "cn").then_some(*value))
    }
}

fn version(content: &[u8]) -> Option<u32> {
    let mut reader = Reader::new(content);
    let number = reader.expect(INTEGER)?;
    reader.end()?;
    match number {
        [number @ 0..0x80] => Some(u32::from(*number)),
        _ => None,
    }
}

/// Passes an AlgorithmIdentifier.
fn algorithm(reader: &mut Reader<'_>) -> Option<()> {
    let mut algorithm = reader.inside(SEQUENCE)?;
    algorithm.expect(OBJECT_IDENTIFIER)?;
    if !algorithm.is_empty() {
        algorithm.next()?;
    }
    algorithm.end()
}

/// A Name. Attributes without a text are left out.
fn attributes<'d>(reader: &mut Reader<'d>) -> Option<Vec<(String, &'d str)>> {
    let mut sets = reader.inside(SEQUENCE)?;
    let mut found = Vec::new();
    while !sets.is_empty() {
        let mut set = sets.inside(SET)?;
        loop {
            let mut attribute = set.inside(SEQUENCE)?;
            let identifier = attribute.expect(OBJECT_IDENTIFIER)?;
            let value = attribute.next()?;
            attribute.end()?;
            let is_text = matches!(
                value.tag,
                UTF8_STRING | NUMERIC_STRING | PRINTABLE_STRING | IA5_STRING
            );
            let text = std::str::from_utf8(value.content).ok();
            if let Some(text) = text.filter(|_| is_text) {
                found.push((identifiers::attribute(identifier), text));
            }
            if set.is_empty() {
                break;
            }
        }
    }
    Some(found)
}

/// A moment in UTC, to the second: `YYMMDDhhmmssZ` of 1950 to 2049, or `YYYYMMDDhhmmssZ`.
fn time(reader: &mut Reader<'_>) -> Option<Time> {
    let found = reader.next()?;
    let digits = found.content.strip_suffix(b"Z")?;
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0, |number, digit| {
            let is_digit = digit.is_ascii_digit();
            is_digit.then(|| 10 * number + u32::from(digit - b'0'))
        })
    };
    let (year, rest) = match (found.tag, digits.len()) {
        (UTC_TIME, 12) => {
            let year = number(&digits[..2])?;
            (
                if year < 50 { 2000 + year } else { 1900 + year },
                &digits[2..],
            )
        }
        (GENERALIZED_TIME, 14) => (number(&digits[..4])?, &digits[4..]),
        _ => return None,
    };
    let mut pairs = rest.chunks_exact(2).map(number);
    let mut next = || pairs.next().flatten();
    let date = NaiveDate::from_ymd_opt(year.cast_signed(), next()?, next()?)?;
    date.and_hms_opt(next()?, next()?, next()?).map(Time)
}

fn extensions(content: &[u8]) -> Option<Vec<Extension<'_>>> {
    let mut explicit = Reader::new(content);
    let mut list = explicit.inside(SEQUENCE)?;
    explicit.end()?;
    let mut found = Vec::new();
    while !list.is_empty() {
        let mut extension = list.inside(SEQUENCE)?;
        let name = identifiers::extension(extension.expect(OBJECT_IDENTIFIER)?);
        let is_critical = match extension.optional(BOOLEAN) {
            None | Some([0]) => false,
            Some([0xff]) => true,
            Some(_) => return None,
        };
        let value = extension.expect(OCTET_STRING)?;
        extension.end()?;
        let alternatives = match name == ALTERNATIVES {
            true => alternatives(value),
            false => None,
        };
        found.push(Extension {
            name,
            is_critical,
            alternatives,
        });
    }
    Some(found)
}

/// GeneralNames. Names of other kinds, and texts that are not UTF-8, are left out.
fn alternatives(value: &[u8]) -> Option<Vec<Alternative<'_>>> {
    let mut outer = Reader::new(value);
    let mut names = outer.inside(SEQUENCE)?;
    outer.end()?;
    let mut found = Vec::new();
    while !names.is_empty() {
        let name = names.next()?;
        if name.tag & CLASS != CONTEXT {
            return None;
        }
        let text = || std::str::from_utf8(name.content).ok();
        found.extend(match name.tag & NUMBER {
            1 => text().map(Alternative::Email),
            2 => text().map(Alternative::Dns),
            6 => text().map(Alternative::Uri),
            7 => address(name.content).map(Alternative::Ip),
            _ => None,
        });
    }
    Some(found)
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(octets).map(Into::into);
    four.or_else(|_| <[u8; 16]>::try_from(octets).map(Into::into))
        .ok()
}
