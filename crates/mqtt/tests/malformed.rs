//! Octets that are no packets, what is said of each, and what answers them.
//!
//! A row that is not as expected is printed as it should stand.

use crosstie_mqtt::{
    DecodeError, Decoded, Packet, PacketType, ReasonCode, Side, Version, decode, decode_connect,
};

const ROWS: &str = include_str!("malformed.txt");
const GOLDEN: &str = include_str!("golden.txt");

const V311: Version = Version::V311;
const V5: Version = Version::V5;
const CLIENT: Side = Side::Client;
const SERVER: Side = Side::Server;

/// The longest packet that is taken here.
const SIZE_MAX: u32 = 4096;

#[test]
fn every_fault_is_named() {
    let mut found = String::new();
    for row in ROWS.lines() {
        if row.starts_with("//") {
            found.push_str(row);
        } else {
            let mut words = row.splitn(3, ' ');
            let (name, hex) = (words.next().unwrap(), words.next().unwrap());
            let error = fault(name, &unhex(hex), row);
            let reason = error.reason();
            let by_disconnect = reason.is_allowed_in(PacketType::Disconnect);
            assert!(by_disconnect || error.connack().is_some(), "{row}");
            if let Some((_, code)) = error.connack() {
                assert!(code.is_allowed_in(PacketType::ConnAck), "{row}");
            }
            let answer = match error.connack() {
                Some((version, _)) if name == "-" => format!(" CONNACK of {version}"),
                None if name == "-" => " no answer".to_owned(),
                _ => String::new(),
            };
            found.push_str(&format!("{name} {hex} {reason}{answer} | {error}"));
        }
        found.push('\n');
    }
    assert!(found == ROWS, "found:\n{found}");
}

fn fault(name: &str, bytes: &[u8], row: &str) -> DecodeError {
    let fault = match Version::ALL.into_iter().find(|one| one.to_string() == name) {
        Some(version) => decode(bytes, version, SIZE_MAX).map(|_| ()),
        None => decode_connect(bytes, SIZE_MAX).map(|_| ()),
    };
    fault.expect_err(row)
}

/// Each packet that others wrote, cut within its body and with octets behind it: never a panic, and what is accepted
/// was complete.
#[test]
fn packets_that_end_elsewhere_are_refused() {
    for row in GOLDEN.lines().filter(|row| !row.starts_with("//")) {
        let mut words = row.split(' ');
        let bytes = unhex(words.next().unwrap());
        let name = words.next().unwrap();
        let version = Version::ALL.into_iter().find(|one| one.to_string() == name);
        let version = version.expect(row);
        let body = &bytes[1
            + bytes[1..]
                .iter()
                .position(|octet| octet & 0x80 == 0)
                .unwrap()
            + 1..];
        for end in 0..body.len() {
            let cut = packet(bytes[0], &body[..end]);
            if let Ok(decoded) = decode(&cut, version, SIZE_MAX) {
                assert!(may_be_shorter(&decoded, version), "{row} up to {end}");
            }
        }
        let longer = packet(bytes[0], &[body, &[0x7f]].concat());
        if let Ok(decoded) = decode(&longer, version, SIZE_MAX) {
            assert!(may_be_shorter(&decoded, version), "{row} and an octet");
        }
    }
}

/// Packets that are complete with fewer octets or more: a payload, lists, and what may be left out at the end.
fn may_be_shorter(decoded: &Decoded<Packet<'_>>, version: Version) -> bool {
    match decoded {
        Decoded::Incomplete { .. } => false,
        Decoded::Packet { packet, .. } => match packet {
            Packet::Publish(_)
            | Packet::Subscribe(_)
            | Packet::Unsubscribe(_)
            | Packet::SubAck(_)
            | Packet::UnsubAck(_) => true,
            Packet::Connect(_) => version == Version::V31,
            _ => version == Version::V5,
        },
    }
}

/// Version, sender, octets, and what is said of them.
const SENDERS: &[(Version, Side, &[u8], &str)] = &[
    (
        V311,
        CLIENT,
        b"\x20\x02\0\0",
        "CONNACK: sent by a client, expected from a server only",
    ),
    (V311, SERVER, b"\x20\x02\0\0", ""),
    (
        V5,
        SERVER,
        b"\xc0\0",
        "PINGREQ: sent by a server, expected from a client only",
    ),
    (V5, CLIENT, b"\xc0\0", ""),
    (
        V311,
        SERVER,
        b"\xe0\0",
        "DISCONNECT: sent by a server, expected from a client only",
    ),
    (V5, SERVER, b"\xe0\0", ""),
    (V5, SERVER, b"\x30\x06\0\x01a\x02\x0b\x01", ""),
    (
        V5,
        CLIENT,
        b"\x30\x06\0\x01a\x02\x0b\x01",
        "PUBLISH: property subscription identifier, which the client must not send",
    ),
    (V5, CLIENT, b"\xe0\x07\0\x05\x11\0\0\0\x01", ""),
    (
        V5,
        SERVER,
        b"\xe0\x07\0\x05\x11\0\0\0\x01",
        "DISCONNECT: property session expiry interval, which the server must not send",
    ),
    (V5, CLIENT, b"\xe0\x01\x04", ""),
    (
        V5,
        SERVER,
        b"\xe0\x01\x04",
        "DISCONNECT: reason code 0x04 (disconnect with will message), which the server must not send",
    ),
    (V5, SERVER, b"\xe0\x01\x8b", ""),
    (
        V5,
        CLIENT,
        b"\xe0\x01\x8b",
        "DISCONNECT: reason code 0x8b (server shutting down), which the client must not send",
    ),
    (V5, CLIENT, b"\xf0\x06\x18\x04\x15\0\x01m", ""),
    (V5, SERVER, b"\xf0\x06\x18\x04\x15\0\x01m", ""),
    (V5, CLIENT, b"\xf0\x06\x19\x04\x15\0\x01m", ""),
    (
        V5,
        SERVER,
        b"\xf0\x06\x19\x04\x15\0\x01m",
        "AUTH: reason code 0x19 (re-authenticate), which the server must not send",
    ),
    (V5, SERVER, b"\xf0\x06\0\x04\x15\0\x01m", ""),
    (
        V5,
        CLIENT,
        b"\xf0\x06\0\x04\x15\0\x01m",
        "AUTH: reason code 0x00 (success), which the client must not send",
    ),
];

#[test]
fn packets_of_the_other_side_are_refused() {
    for (version, side, bytes, expected) in SENDERS {
        let Ok(Decoded::Packet { packet, .. }) = decode(bytes, *version, SIZE_MAX) else {
            panic!("a packet: {}", bytes.escape_ascii());
        };
        let error = packet.check_sender(*side, *version).err();
        let found = error.map_or_else(String::new, |error| error.to_string());
        assert_eq!(found, *expected, "{}", bytes.escape_ascii());
        let reason = error.map(|error| error.reason());
        assert!(matches!(reason, None | Some(ReasonCode::ProtocolError)));
    }
}

#[test]
fn a_second_connect_is_a_protocol_error_whatever_its_faults() {
    let unknown_version = packet(0x10, b"\0\x04MQTT\x09\x02\0\0\0\0");
    let error = decode(&unknown_version, V5, SIZE_MAX).unwrap_err();
    assert_eq!(error.reason(), ReasonCode::UnsupportedProtocolVersion);
    assert_eq!(error.disconnect_reason(), ReasonCode::ProtocolError);
    for row in ROWS.lines() {
        if let Some(bytes) = row.strip_prefix("5 ").and_then(|row| row.split(' ').next()) {
            let error = decode(&unhex(bytes), V5, SIZE_MAX).unwrap_err();
            let reason = error.disconnect_reason();
            assert!(reason.is_allowed_in(PacketType::Disconnect), "{row}");
        }
    }
}

#[test]
fn reason_codes_are_those_of_their_packets() {
    let named = |text: &str| {
        let mut all = ReasonCode::ALL.iter();
        all.find(|code| code.name() == text).copied().expect(text)
    };
    assert_eq!(ReasonCode::ALL.len(), 43);
    for octet in 0..=u8::MAX {
        if let Some(code) = ReasonCode::from_octet(octet) {
            assert_eq!(code.octet(), octet);
            assert_eq!(named(code.name()), code);
        }
    }
    for octet in 0..=5 {
        let code = ReasonCode::from_return_code(octet).unwrap();
        assert_eq!(code.return_code(), octet);
    }
    assert_eq!(ReasonCode::from_return_code(6), None);
    assert_eq!(named("quota exceeded").return_code(), 3);
}

fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    let mut rest = body.len();
    while rest > 0x7f {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    [out.as_slice(), body].concat()
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect(text))
        .collect()
}
