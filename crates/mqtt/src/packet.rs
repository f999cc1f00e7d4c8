//! Packets of all types: from octets, and to octets.

use crate::ack::{Ack, Auth, Disconnect};
use crate::connect::{ConnAck, Connect};
use crate::error::{DecodeError, EncodeError, Fault};
use crate::header::{Header, HeaderDecoded, decode_header};
use crate::packet_type::PacketType;
use crate::publish::Publish;
use crate::sink::Body;
use crate::subscribe::{SubAck, Subscribe, UnsubAck, Unsubscribe};
use crate::values::Version;

/// A packet (chapter 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    Connect(Connect<'a>),
    ConnAck(ConnAck<'a>),
    Publish(Publish<'a>),
    PubAck(Ack<'a>),
    PubRec(Ack<'a>),
    PubRel(Ack<'a>),
    PubComp(Ack<'a>),
    Subscribe(Subscribe<'a>),
    SubAck(SubAck<'a>),
    Unsubscribe(Unsubscribe<'a>),
    UnsubAck(UnsubAck<'a>),
    PingReq,
    PingResp,
    Disconnect(Disconnect<'a>),
    Auth(Auth<'a>),
}

/// The packet at the front of an input, if it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<P> {
    Packet {
        packet: P,
        consumed: usize,
    },
    /// The packet is not all there; it needs `wanted` bytes, as far as is known.
    Incomplete {
        wanted: usize,
    },
}

/// Reads the packet at the front of `bytes`. A packet of more than `size_max` octets is an error as soon as its length
/// is known. A CONNECT has its own version, whatever the argument.
#[inline]
pub fn decode(
    bytes: &[u8],
    version: Version,
    size_max: u32,
) -> Result<Decoded<Packet<'_>>, DecodeError> {
    let header = match decode_header(bytes, version, size_max)? {
        HeaderDecoded::Header(header) => header,
        HeaderDecoded::Incomplete { wanted } => return Ok(Decoded::Incomplete { wanted }),
    };
    let consumed = header.header_bytes + header.remaining_bytes;
    let Some(body) = bytes.get(header.header_bytes..consumed) else {
        return Ok(Decoded::Incomplete { wanted: consumed });
    };
    let packet = Packet::decode(header, body, version)?;
    Ok(Decoded::Packet { packet, consumed })
}

/// Reads the first packet of a client's connection, which has to be CONNECT.
pub fn decode_connect(bytes: &[u8], size_max: u32) -> Result<Decoded<Connect<'_>>, DecodeError> {
    // Any: CONNECT decides, and its fixed header is the same in all versions.
    let version = Version::V311;
    if let Some(first) = bytes.first()
        && let Some(packet_type) = PacketType::from_number(first >> 4)
        && packet_type != PacketType::Connect
    {
        return Err(DecodeError::new(packet_type, version, Fault::NotConnect));
    }
    match decode(bytes, version, size_max)? {
        Decoded::Packet {
            packet: Packet::Connect(packet),
            consumed,
        } => Ok(Decoded::Packet { packet, consumed }),
        // Excluded by the first octet.
        Decoded::Packet { .. } => Err(DecodeError::without_type(version, Fault::NotConnect)),
        Decoded::Incomplete { wanted } => Ok(Decoded::Incomplete { wanted }),
    }
}

impl<'a> Packet<'a> {
    /// Reads the octets behind a fixed header.
    #[inline]
    pub fn decode(header: Header, body: &'a [u8], version: Version) -> Result<Self, DecodeError> {
        let packet_type = header.packet_type;
        let packet = match packet_type {
            PacketType::Publish => Publish::decode(header.flags, body, version).map(Self::Publish),
            PacketType::Connect => {
                let found = Connect::decode(body, version).map(Self::Connect);
                return found
                    .map_err(|(version, fault)| DecodeError::new(packet_type, version, fault));
            }
            _ => Self::decode_other(packet_type, body, version),
        };
        match packet {
            Ok(packet) => Ok(packet),
            Err(fault) => Err(DecodeError::new(packet_type, version, fault)),
        }
    }

    #[inline(never)]
    fn decode_other(
        packet_type: PacketType,
        body: &'a [u8],
        version: Version,
    ) -> Result<Self, Fault> {
        let ack = || Ack::decode(packet_type, body, version);
        let empty = |packet| match body.len() {
            0 => Ok(packet),
            bytes => Err(Fault::Trailing { bytes }),
        };
        match packet_type {
            PacketType::Connect => Connect::decode(body, version)
                .map(Self::Connect)
                .map_err(|(_, fault)| fault),
            PacketType::ConnAck => ConnAck::decode(body, version).map(Self::ConnAck),
            PacketType::Publish => Publish::decode(0, body, version).map(Self::Publish),
            PacketType::PubAck => ack().map(Self::PubAck),
            PacketType::PubRec => ack().map(Self::PubRec),
            PacketType::PubRel => ack().map(Self::PubRel),
            PacketType::PubComp => ack().map(Self::PubComp),
            PacketType::Subscribe => Subscribe::decode(body, version).map(Self::Subscribe),
            PacketType::SubAck => SubAck::decode(body, version).map(Self::SubAck),
            PacketType::Unsubscribe => Unsubscribe::decode(body, version).map(Self::Unsubscribe),
            PacketType::UnsubAck => UnsubAck::decode(body, version).map(Self::UnsubAck),
            PacketType::PingReq => empty(Self::PingReq),
            PacketType::PingResp => empty(Self::PingResp),
            PacketType::Disconnect => Disconnect::decode(body, version).map(Self::Disconnect),
            PacketType::Auth => Auth::decode(body).map(Self::Auth),
        }
    }

    pub fn packet_type(&self) -> PacketType {
        match self {
            Self::Connect(_) => PacketType::Connect,
            Self::ConnAck(_) => PacketType::ConnAck,
            Self::Publish(_) => PacketType::Publish,
            Self::PubAck(_) => PacketType::PubAck,
            Self::PubRec(_) => PacketType::PubRec,
            Self::PubRel(_) => PacketType::PubRel,
            Self::PubComp(_) => PacketType::PubComp,
            Self::Subscribe(_) => PacketType::Subscribe,
            Self::SubAck(_) => PacketType::SubAck,
            Self::Unsubscribe(_) => PacketType::Unsubscribe,
            Self::UnsubAck(_) => PacketType::UnsubAck,
            Self::PingReq => PacketType::PingReq,
            Self::PingResp => PacketType::PingResp,
            Self::Disconnect(_) => PacketType::Disconnect,
            Self::Auth(_) => PacketType::Auth,
        }
    }

    /// Octets of the whole packet, to compare with the receiver's maximum packet size.
    pub fn encoded_bytes(&self, version: Version) -> Result<usize, EncodeError> {
        match self {
            Self::Connect(packet) => packet.size(version),
            Self::ConnAck(packet) => packet.size(version),
            Self::Publish(packet) => packet.size(version),
            Self::PubAck(packet)
            | Self::PubRec(packet)
            | Self::PubRel(packet)
            | Self::PubComp(packet) => packet.size(version),
            Self::Subscribe(packet) => packet.size(version),
            Self::SubAck(packet) => packet.size(version),
            Self::Unsubscribe(packet) => packet.size(version),
            Self::UnsubAck(packet) => packet.size(version),
            Self::PingReq | Self::PingResp => Ok(2),
            Self::Disconnect(packet) => packet.size(version),
            Self::Auth(packet) => self
                .check_version(version)
                .and_then(|()| packet.size(version)),
        }
    }

    /// Appends the packet in the form of the version; an error appends nothing. Fields that the version does not have
    /// are left out. CONNECT has its own version, whatever the argument.
    #[inline]
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let first = self.packet_type().first_octet();
        match self {
            Self::Publish(packet) => packet.encode(version, out),
            Self::PubAck(packet)
            | Self::PubRec(packet)
            | Self::PubRel(packet)
            | Self::PubComp(packet) => packet.append(first, version, out),
            Self::Connect(packet) => packet.append(first, version, out),
            Self::ConnAck(packet) => packet.append(first, version, out),
            Self::Subscribe(packet) => packet.append(first, version, out),
            Self::SubAck(packet) => packet.append(first, version, out),
            Self::Unsubscribe(packet) => packet.append(first, version, out),
            Self::UnsubAck(packet) => packet.append(first, version, out),
            Self::PingReq | Self::PingResp => {
                out.extend_from_slice(&[first, 0]);
                Ok(())
            }
            Self::Disconnect(packet) => packet.append(first, version, out),
            Self::Auth(packet) => {
                self.check_version(version)?;
                packet.append(first, version, out)
            }
        }
    }

    /// That the version has the packet's type.
    fn check_version(&self, version: Version) -> Result<(), EncodeError> {
        let packet_type = self.packet_type();
        match packet_type == PacketType::Auth && !version.is_v5() {
            true => Err(EncodeError::Absent {
                packet_type,
                version,
            }),
            false => Ok(()),
        }
    }
}
