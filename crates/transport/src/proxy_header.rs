//! The header of the PROXY protocol, versions 1 and 2: a proxy sends the client's address in it, before the client's own
//! bytes.
//!
//! The decoder is our own. The libraries for this protocol have 1,700 to 3,100 lines, because they also write headers and
//! keep every field. One of three verifies the checksum, and none has a fuzz target. Only the client's address and the
//! header's length are of use here.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A complete header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    pub bytes: usize,
    /// `None`: the connection is the proxy's own (a health check), or the proxy does not know an IP address.
    pub client: Option<SocketAddr>,
}

/// The reason why the first bytes of a connection are no valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeaderError {
    /// The connection begins with something else.
    Missing,
    TooLong {
        bytes: usize,
    },
    /// The first field that is invalid.
    Malformed(&'static str),
    WrongChecksum,
}

/// Maximum size of a header. Version 1 permits 107 bytes; in version 2 additional fields may follow the addresses.
pub const PROXY_HEADER_BYTES_MAX: usize = 4096;

/// The log's text about a header that nobody asked for.
pub const UNEXPECTED_PROXY_HEADER: &str = "PROXY protocol header from an address that is not in \"proxy_protocol\" of \
                                           the listener's endpoint";

/// Version 1, section 2.1.
const TEXT: &[u8] = b"PROXY ";
const TEXT_BYTES_MAX: usize = 107;

/// Version 2, section 2.2.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const FIXED_BYTES: usize = 16;
const CHECKSUM_TYPE: u8 = 0x03;

impl ProxyHeader {
    /// Decodes the header at the front of `input`; `None` asks for more.
    pub fn decode(input: &[u8]) -> Result<Option<Self>, ProxyHeaderError> {
        let begins = |with: &[u8]| {
            let seen = input.len().min(with.len());
            input[..seen] == with[..seen]
        };
        match () {
            () if begins(SIGNATURE) => decode_binary(input),
            () if begins(TEXT) => decode_text(input),
            () => Err(ProxyHeaderError::Missing),
        }
    }

    /// Whether a connection's first bytes are those of a header.
    pub fn begins(input: &[u8]) -> bool {
        let text = input.strip_prefix(TEXT);
        input.starts_with(SIGNATURE)
            || text.is_some_and(|rest| rest.starts_with(b"TCP") || rest.starts_with(b"UNKNOWN"))
    }
}

fn decode_text(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderError> {
    let seen = &input[..input.len().min(TEXT_BYTES_MAX)];
    let Some(end) = seen.windows(2).position(|pair| pair == b"\r\n") else {
        return match input.len() < TEXT_BYTES_MAX {
            true => Ok(None),
            false => Err(ProxyHeaderError::Malformed("the line has no end")),
        };
    };
    let bytes = end + 2;
    let line = std::str::from_utf8(&seen[TEXT.len()..end]);
    let line = line.map_err(|_| ProxyHeaderError::Malformed("the line is not UTF-8"))?;
    let fields: Vec<&str> = line.split(' ').collect();
    let client = match fields[..] {
        ["UNKNOWN", ..] => None,
        ["TCP4", source, destination, from, to] => {
            let address: Ipv4Addr = parse(source)?;
            let _: Ipv4Addr = parse(destination)?;
            port(to)?;
            Some(SocketAddr::new(address.into(), port(from)?))
        }
        ["TCP6", source, destination, from, to] => {
            let address: Ipv6Addr = parse(source)?;
            let _: Ipv6Addr = parse(destination)?;
            port(to)?;
            Some(SocketAddr::new(
                IpAddr::from(address).to_canonical(),
                port(from)?,
            ))
        }
        _ => return Err(ProxyHeaderError::Malformed("the fields of the line")),
    };
    Ok(Some(ProxyHeader { bytes, client }))
}

fn parse<A: std::str::FromStr>(address: &str) -> Result<A, ProxyHeaderError> {
    let parsed = address.parse();
    parsed.map_err(|_| ProxyHeaderError::Malformed("an address"))
}

/// A port in digits, without a sign or leading zeros.
fn port(text: &str) -> Result<u16, ProxyHeaderError> {
    let is_plain = text == "0" || text.starts_with(|first: char| ('1'..='9').contains(&first));
    let parsed = text.parse().ok().filter(|_| is_plain);
    parsed.ok_or(ProxyHeaderError::Malformed("a port"))
}

fn decode_binary(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderError> {
    let Some((fixed, _)) = input.split_first_chunk::<FIXED_BYTES>() else {
        return Ok(None);
    };
    let [.., command, family, high, low] = *fixed;
    if command >> 4 != 2 {
        return Err(ProxyHeaderError::Malformed("the version"));
    }
    let bytes = FIXED_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if bytes > PROXY_HEADER_BYTES_MAX {
        return Err(ProxyHeaderError::TooLong { bytes });
    }
    let Some(whole) = input.get(..bytes) else {
        return Ok(None);
    };
    let rest = &whole[FIXED_BYTES..];
    let (client, fields) = match (command & 0xf, family) {
        // LOCAL: the specification has the rest dropped unread.
        (0, _) => {
            return Ok(Some(ProxyHeader {
                bytes,
                client: None,
            }));
        }
        (1, 0x00) => (None, &[][..]),
        (1, 0x11) => {
            let (addresses, fields) = split::<12>(rest)?;
            let [a, b, c, d, _, _, _, _, from @ .., _, _] = *addresses;
            let client = SocketAddr::new([a, b, c, d].into(), u16::from_be_bytes(from));
            (Some(client), fields)
        }
        (1, 0x21) => {
            let (addresses, fields) = split::<36>(rest)?;
            let (source, _) = split::<16>(addresses)?;
            let from = u16::from_be_bytes([addresses[32], addresses[33]]);
            let address = IpAddr::from(*source).to_canonical();
            (Some(SocketAddr::new(address, from)), fields)
        }
        // Paths of Unix sockets: the client is on the proxy's machine.
        (1, 0x31) => (None, split::<216>(rest)?.1),
        (1, _) => return Err(ProxyHeaderError::Malformed("the address family")),
        _ => return Err(ProxyHeaderError::Malformed("the command")),
    };
    check_fields(whole, fields)?;
    Ok(Some(ProxyHeader { bytes, client }))
}

fn split<const N: usize>(rest: &[u8]) -> Result<(&[u8; N], &[u8]), ProxyHeaderError> {
    let split = rest.split_first_chunk();
    split.ok_or(ProxyHeaderError::Malformed("the length of the addresses"))
}

/// Walks the additional fields, and verifies the checksum, if there is one.
fn check_fields(whole: &[u8], mut fields: &[u8]) -> Result<(), ProxyHeaderError> {
    const MALFORMED: ProxyHeaderError = ProxyHeaderError::Malformed("the additional fields");
    let mut is_checked = false;
    while !fields.is_empty() {
        let ([kind, high, low], rest) = fields.split_first_chunk().ok_or(MALFORMED)?;
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (value, rest) = rest.split_at_checked(length).ok_or(MALFORMED)?;
        if *kind == CHECKSUM_TYPE {
            // Each would cost a pass over the whole header.
            if std::mem::replace(&mut is_checked, true) {
                return Err(MALFORMED);
            }
            let stated = value.try_into().map_err(|_| MALFORMED)?;
            let end = whole.len() - rest.len();
            if checksum(whole, end - value.len()..end) != u32::from_be_bytes(stated) {
                return Err(ProxyHeaderError::WrongChecksum);
            }
        }
        fields = rest;
    }
    Ok(())
}

/// CRC32C, with zeros in the place of the checksum itself. A header has a few hundred bytes at most: a table would not
/// pay.
fn checksum(whole: &[u8], own: std::ops::Range<usize>) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut sum = u32::MAX;
    for (at, byte) in whole.iter().enumerate() {
        sum ^= if own.contains(&at) {
            0
        } else {
            u32::from(*byte)
        };
        for _ in 0..8 {
            sum = (sum >> 1) ^ if sum & 1 == 1 { POLYNOMIAL } else { 0 };
        }
    }
    !sum
}

impl fmt::Display for ProxyHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("expected a PROXY protocol header, found other bytes"),
            Self::TooLong { bytes } => {
                write!(
                    f,
                    "a PROXY protocol header of {bytes} bytes, where {PROXY_HEADER_BYTES_MAX} are the maximum"
                )
            }
            Self::Malformed(what) => write!(f, "invalid PROXY protocol header: {what}"),
            Self::WrongChecksum => f.write_str("PROXY protocol header with a wrong checksum"),
        }
    }
}

impl std::error::Error for ProxyHeaderError {}
