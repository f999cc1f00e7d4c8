//! Frames as pika writes them: what is read of each is known, and written again it is the same.
//!
//! The expected values are Rust's own text of what was decoded; a row without one prints it.

use crosstie_amqp::frame::{self, Decoded};
use crosstie_amqp::{BasicProperties, ContentHeader, FrameKind, Method};

const ROWS: &str = include_str!("golden.txt");

#[test]
fn frames_of_a_client_are_read_and_written() {
    let mut found = String::new();
    for row in ROWS.lines().filter(|row| !row.starts_with("//")) {
        let bytes = unhex(row.split(' ').next().unwrap());
        let Ok(Decoded::Frame { frame, consumed }) = frame::decode(&bytes, 4096) else {
            panic!("a frame: {row}");
        };
        assert_eq!(consumed, bytes.len());
        for end in 0..bytes.len() {
            let part = frame::decode(&bytes[..end], 4096);
            assert!(
                matches!(part, Ok(Decoded::Incomplete { wanted }) if wanted > end),
                "{row} up to {end}: {part:?}"
            );
        }
        let mut written = Vec::new();
        let text = match frame.kind {
            FrameKind::Method => {
                let method = Method::decode(frame.payload).expect(row);
                frame::write(frame.kind, frame.channel, &mut written, |out| {
                    method.write(out)
                });
                format!("{} {method:?}", method.name())
            }
            FrameKind::Header => {
                let header = ContentHeader::decode(frame.payload).expect(row);
                let properties = header.properties.parse();
                let mut again = Vec::new();
                properties.write(&mut again);
                assert_eq!(again, header.properties.bytes(), "{row}");
                frame::write(frame.kind, frame.channel, &mut written, |out| {
                    out.extend_from_slice(&frame.payload[..12]);
                    out.extend_from_slice(&again);
                });
                format!("{} bytes, {}", header.body_bytes, shown(&properties))
            }
            FrameKind::Body | FrameKind::Heartbeat => {
                frame::write(frame.kind, frame.channel, &mut written, |out| {
                    out.extend_from_slice(frame.payload);
                });
                format!("{:?}", frame.payload.escape_ascii().to_string())
            }
        };
        assert_eq!(written, bytes, "{row}");
        let hex = row.split(' ').next().unwrap();
        found.push_str(&format!("{hex} {} {text}\n", frame.channel));
    }
    let rows: String = ROWS
        .lines()
        .filter(|row| !row.starts_with("//"))
        .flat_map(|row| [row, "\n"])
        .collect();
    assert!(found == rows, "found:\n{found}");
}

/// Without what is not there.
fn shown(properties: &BasicProperties<'_>) -> String {
    let mut text = format!("{properties:?}");
    for field in [
        "content_type",
        "content_encoding",
        "headers",
        "delivery_mode",
        "priority",
        "correlation_id",
        "reply_to",
        "expiration",
        "message_id",
        "timestamp",
        "kind",
        "user_id",
        "app_id",
        "cluster_id",
    ] {
        text = text.replace(&format!("{field}: None, "), "");
        text = text.replace(&format!("{field}: None"), "");
    }
    text
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect(text))
        .collect()
}
