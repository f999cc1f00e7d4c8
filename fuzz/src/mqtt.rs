//! MQTT's decoders on any bytes: they must not panic, and what they accept is written again as the same packet.

use crosstie_mqtt::topic::{self, Share};
use crosstie_mqtt::{
    Decoded, Head, Message, Packet, PacketType, Place, Properties, PropertiesBuf, Side, Version,
    decode, decode_connect,
};

/// MQTT 3.1. See [`packets`].
pub fn packets_v31(data: &[u8]) {
    packets(data, Version::V31);
}

/// MQTT 3.1.1. See [`packets`].
pub fn packets_v311(data: &[u8]) {
    packets(data, Version::V311);
}

/// MQTT 5. See [`packets`].
pub fn packets_v5(data: &[u8]) {
    packets(data, Version::V5);
}

/// The first bytes choose the largest packet, the rest is a stream of them: a packet that is whole is read the same
/// way again when it was written, and one that is not wants more than there is.
fn packets(data: &[u8], version: Version) {
    let Some((limit, mut input)) = data.split_first_chunk() else {
        return;
    };
    let size_max = u32::from(u16::from_be_bytes(*limit));
    if let Err(error) = decode_connect(input, size_max) {
        assert!(!error.to_string().is_empty());
    }
    loop {
        match decode(input, version, size_max) {
            Ok(Decoded::Packet { packet, consumed }) => {
                assert!(consumed <= size_max as usize);
                again(packet, version);
                for end in [consumed - 1, consumed / 2] {
                    let part = decode(&input[..end], version, size_max);
                    assert!(matches!(part, Ok(Decoded::Incomplete { wanted }) if wanted > end));
                }
                input = &input[consumed..];
            }
            Ok(Decoded::Incomplete { wanted }) => {
                assert!(wanted > input.len());
                break;
            }
            Err(error) => {
                assert!(error.reason().is_error());
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
}

fn again(packet: Packet<'_>, version: Version) {
    let mut written = Vec::new();
    packet.encode(version, &mut written).expect("what was read");
    assert_eq!(packet.encoded_bytes(version), Ok(written.len()));
    let consumed = written.len();
    let expected = Decoded::Packet { packet, consumed };
    assert_eq!(decode(&written, version, u32::MAX), Ok(expected));
    for side in [Side::Client, Side::Server] {
        if let Err(error) = packet.check_sender(side, version) {
            assert!(!error.to_string().is_empty());
        }
    }
    if let Packet::Publish(publish) = packet {
        pass_on(publish, version);
    }
}

/// A message for a receiver: the publisher's own properties are gone, and the payload is the same.
fn pass_on(publish: crosstie_mqtt::Publish<'_>, version: Version) {
    let head = Head {
        delivery: publish.delivery,
        dup: publish.dup,
        retain: publish.retain,
        expiry: publish.properties.message_expiry(),
        subscription_ids: &[7, 300],
        topic_alias: publish.properties.topic_alias(),
    };
    let message = Message {
        topic: publish.topic,
        properties: publish.properties,
        payload: publish.payload,
    };
    let mut written = Vec::new();
    message
        .encode(version, &head, &mut written)
        .expect("what was read");
    assert_eq!(message.encoded_bytes(version, &head), Ok(written.len()));
    let Ok(Decoded::Packet {
        packet: Packet::Publish(found),
        ..
    }) = decode(&written, version, u32::MAX)
    else {
        panic!("a PUBLISH that was passed on");
    };
    assert_eq!(found.payload, publish.payload);
    assert_eq!(found.topic, publish.topic);
    let user = |properties: Properties<'_>| {
        let pairs = properties.user_properties();
        pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(user(found.properties), user(publish.properties));
}

/// The first byte chooses the place, the rest is a block of properties: put together again it has the same bytes.
pub fn properties(data: &[u8]) {
    let Some((choice, block)) = data.split_first() else {
        return;
    };
    let place = PacketType::from_number(choice & 15).map_or(Place::Will, Place::Packet);
    let Ok(properties) = Properties::from_bytes(block, place) else {
        // Found up to the fault.
        assert!(Properties::from_checked_bytes(block).iter().count() <= block.len());
        return;
    };
    let mut made = PropertiesBuf::new();
    for property in properties.iter() {
        assert!(property.is_allowed_in(place));
        made.push(property);
    }
    assert_eq!(made.as_properties().bytes(), block);
    assert_eq!(Properties::from_checked_bytes(block), properties);
    let mut passed_on = Vec::new();
    properties.write_passed_on(&mut passed_on);
    assert_eq!(properties.passed_on_bytes(), passed_on.len());
    let publish = Place::Packet(PacketType::Publish);
    Properties::from_bytes(&passed_on, publish).expect("what is passed on");
}

/// A filter and a name, a line each: they match as a naive matcher says, and a PUBLISH is
/// accepted if its name is valid.
pub fn topics(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (filter, name) = text.split_once('\n').unwrap_or((text, ""));
    if let Ok(Some(Share { name, filter })) = topic::split_share(filter) {
        assert!(!name.contains(['/', '+', '#']) && !filter.is_empty());
    }
    let is_name = topic::check_name(name).is_ok();
    assert_eq!(is_published(name), is_name);
    if topic::check_filter(filter).is_err() || !is_name {
        return;
    }
    let filters: Vec<_> = filter.split('/').collect();
    let names: Vec<_> = name.split('/').collect();
    let is_hidden = name.starts_with('$') && !filter.starts_with(|c| !matches!(c, '+' | '#'));
    let expected = !is_hidden && naive(&filters, &names);
    assert_eq!(topic::matches(filter, name), expected);
}

/// Whether a PUBLISH to the name is accepted.
fn is_published(name: &str) -> bool {
    let message = Message {
        topic: name,
        properties: Properties::EMPTY,
        payload: b"",
    };
    let mut packet = Vec::new();
    let written = message.encode(Version::V311, &Head::PLAIN, &mut packet);
    written.is_ok() && decode(&packet, Version::V311, u32::MAX).is_ok()
}

fn naive(filter: &[&str], name: &[&str]) -> bool {
    match (filter, name) {
        (["#"], _) => true,
        ([], []) => true,
        ([level, filter @ ..], [one, name @ ..]) => {
            (*level == "+" || level == one) && naive(filter, name)
        }
        _ => false,
    }
}

/// Packets as clients and a server wrote them, each behind a limit and once more behind itself.
pub fn packet_seeds(version: Version) -> Vec<Vec<u8>> {
    let of_version = format!("{version}");
    let rows = golden().filter(|(_, row)| *row == of_version);
    let streams = rows.map(|(packet, _)| [&[1, 0], packet.as_slice(), &packet].concat());
    streams.collect()
}

/// Blocks of properties, each behind its place.
pub fn property_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (packet, _) in golden() {
        let Ok(Decoded::Packet { packet, .. }) = decode(&packet, Version::V5, u32::MAX) else {
            continue;
        };
        let properties = match packet {
            Packet::Connect(connect) => connect.properties,
            Packet::ConnAck(connack) => connack.properties,
            Packet::Publish(publish) => publish.properties,
            Packet::Disconnect(disconnect) => disconnect.properties,
            _ => Properties::EMPTY,
        };
        let place = packet.packet_type() as u8;
        seeds.push([&[place], properties.bytes()].concat());
    }
    // All that a CONNACK may have.
    seeds.push(
        b"\x02\x11\0\0\0\x01\x12\0\x01a\x13\0\x01\x15\0\x01m\x16\0\x01d\x1a\0\x01i\x1c\0\x01s\x1f\0\x01r\x21\0\x01\
          \x22\0\x01\x24\x01\x25\x01\x26\0\x01a\0\x01b\x27\0\0\0\x01\x28\x01\x29\0\x2a\x01"
            .to_vec(),
    );
    seeds
}

pub fn topic_seeds() -> Vec<Vec<u8>> {
    let seeds = [
        "a/+/#\na/b/c",
        "#\n$SYS/a",
        "$share/g/+/b\n/b",
        "/+/\n//",
        "+/b/#\na/b",
    ];
    seeds.map(|seed| seed.as_bytes().to_vec()).into()
}

/// Packets with the versions in which they were written.
fn golden() -> impl Iterator<Item = (Vec<u8>, &'static str)> {
    let rows = include_str!("../../crates/mqtt/tests/golden.txt").lines();
    let rows = rows.filter(|row| !row.starts_with("//"));
    rows.filter_map(|row| {
        let mut words = row.split(' ');
        Some((unhex(words.next()?)?, words.next()?))
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.map(byte).collect()
}
