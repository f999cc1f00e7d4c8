//! The fixed header (section 2.1): a packet's type, its flags and the remaining length.

use crate::error::{DecodeError, Fault};
use crate::packet_type::PacketType;
use crate::values::Version;

/// A fixed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub packet_type: PacketType,
    /// The low four bits of the first octet, valid for the type.
    pub flags: u8,
    /// Octets of the header itself.
    pub header_bytes: usize,
    /// Octets behind the header.
    pub remaining_bytes: usize,
}

/// The header at the front of an input, if it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderDecoded {
    Header(Header),
    /// The header is not all there; the packet needs `wanted` bytes, as far as is known.
    Incomplete {
        wanted: usize,
    },
}

/// DUP of PUBLISH, and in 3.1 of the packets that are repeated.
pub(crate) const DUP: u8 = 8;
pub(crate) const RETAIN: u8 = 1;

/// Reads the header at the front of `bytes`. A type or flags that the version does not have, and a packet of more than
/// `size_max` octets, are errors as soon as they show. `size_max` counts the whole packet, as the property maximum
/// packet size does.
pub fn decode_header(
    bytes: &[u8],
    version: Version,
    size_max: u32,
) -> Result<HeaderDecoded, DecodeError> {
    let Some((&first, lengths)) = bytes.split_first() else {
        return Ok(HeaderDecoded::Incomplete { wanted: 2 });
    };
    let packet_type = packet_type(first, version)?;
    let flags = check_flags(packet_type, first & 0x0f, version)?;
    let error = |fault| DecodeError::new(packet_type, version, fault);
    let mut remaining = 0;
    for (at, octet) in lengths.iter().take(4).enumerate() {
        remaining |= usize::from(octet & 0x7f) << (7 * at);
        if octet & 0x80 != 0 {
            continue;
        }
        // 3.1.1 and 3.1 do not forbid it.
        if at > 0 && *octet == 0 && version.is_v5() {
            return Err(error(Fault::LengthOverlong));
        }
        let header_bytes = at + 2;
        let size = header_bytes + remaining;
        if size > size_max as usize {
            let bytes = size as u32;
            return Err(error(Fault::TooLarge {
                bytes,
                bytes_max: size_max,
            }));
        }
        return Ok(HeaderDecoded::Header(Header {
            packet_type,
            flags,
            header_bytes,
            remaining_bytes: remaining,
        }));
    }
    match lengths.len() {
        0..4 => Ok(HeaderDecoded::Incomplete {
            wanted: bytes.len() + 1,
        }),
        _ => Err(error(Fault::LengthTooLong)),
    }
}

fn packet_type(first: u8, version: Version) -> Result<PacketType, DecodeError> {
    let number = first >> 4;
    match PacketType::from_number(number) {
        Some(PacketType::Auth) if !version.is_v5() => Err(DecodeError::without_type(
            version,
            Fault::PacketType { number },
        )),
        Some(packet_type) => Ok(packet_type),
        None => Err(DecodeError::without_type(
            version,
            Fault::PacketType { number },
        )),
    }
}

/// The flags, if they are those of the type. In 3.1 a packet that is repeated has DUP, whatever its type (section 2.1 of
/// 3.1).
fn check_flags(packet_type: PacketType, flags: u8, version: Version) -> Result<u8, DecodeError> {
    if packet_type == PacketType::Publish {
        return Ok(flags);
    }
    let expected = packet_type.flags();
    let ignored = match version == Version::V31 && expected != 0 {
        true => DUP,
        false => 0,
    };
    if flags & !ignored != expected {
        let fault = Fault::Flags {
            found: flags,
            expected,
        };
        return Err(DecodeError::new(packet_type, version, fault));
    }
    Ok(flags)
}
