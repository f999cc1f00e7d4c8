//! Packets as mosquitto and Paho's client for Python write them: what is read of each is known, and written again it
//! is the same.
//!
//! The expected values are Rust's own text of what was decoded; a row without one prints it.

use crosstie_mqtt::{Decoded, Packet, Side, Version, decode, decode_connect};

const ROWS: &str = include_str!("golden.txt");

#[test]
fn packets_of_others_are_read_and_written() {
    let mut found = String::new();
    for row in ROWS.lines().filter(|row| !row.starts_with("//")) {
        let [hex, name, sender] = row.splitn(4, ' ').collect::<Vec<_>>()[..3] else {
            panic!("bytes, version and sender: {row}");
        };
        let bytes = unhex(hex);
        let version = Version::ALL.into_iter().find(|one| one.to_string() == name);
        let version = version.expect(row);
        let side = match sender {
            "C" => Side::Client,
            _ => Side::Server,
        };
        let packet = whole(&bytes, version, row);
        assert_eq!(packet.check_sender(side, version), Ok(()), "{row}");
        for end in 0..bytes.len() {
            let part = decode(&bytes[..end], version, 4096);
            assert!(
                matches!(part, Ok(Decoded::Incomplete { wanted }) if wanted > end && wanted <= bytes.len().max(2)),
                "{row} up to {end}: {part:?}"
            );
        }
        let size = bytes.len() as u32;
        assert!(decode(&bytes, version, size).is_ok(), "{row}");
        assert!(decode(&bytes, version, size - 1).is_err(), "{row}");

        let mut written = b"front".to_vec();
        packet.encode(version, &mut written).expect(row);
        let written = &written[5..];
        assert_eq!(packet.encoded_bytes(version), Ok(written.len()), "{row}");
        assert_eq!(whole(written, version, row), packet, "{row}");
        let other_form = match written == bytes {
            true => String::new(),
            false => format!(" written as {}", hexed(written)),
        };
        found.push_str(&format!("{hex} {name} {sender} {packet:?}{other_form}\n"));
    }
    let rows: String = ROWS
        .lines()
        .filter(|row| !row.starts_with("//"))
        .flat_map(|row| [row, "\n"])
        .collect();
    assert!(found == rows, "found:\n{found}");
}

fn whole<'a>(bytes: &'a [u8], version: Version, row: &str) -> Packet<'a> {
    let Decoded::Packet { packet, consumed } = decode(bytes, version, 4096).expect(row) else {
        panic!("a packet: {row}");
    };
    assert_eq!(consumed, bytes.len(), "{row}");
    if let Packet::Connect(connect) = packet {
        assert_eq!(connect.version, version, "{row}");
        let packet = connect;
        let expected = Decoded::Packet { packet, consumed };
        assert_eq!(decode_connect(bytes, 4096), Ok(expected), "{row}");
    }
    packet
}

fn hexed(bytes: &[u8]) -> String {
    bytes.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect(text))
        .collect()
}
