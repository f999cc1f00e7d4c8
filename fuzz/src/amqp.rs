//! AMQP's decoders on any bytes: they must not panic, and what they accept is written again as it
//! was, but for what the protocol reserves.

use crosstie_amqp::frame::{self, Decoded};
use crosstie_amqp::{Array, ContentHeader, Method, Table, TableBuf, Value, Version};

/// The first bytes choose the longest frame, the rest is a stream of them: however much of it is
/// there, a frame that is whole is the same one, and one that is not wants more than there is.
pub fn frames(data: &[u8]) {
    let Some((limit, mut input)) = data.split_first_chunk() else {
        return;
    };
    let bytes_max = u32::from(u16::from_be_bytes(*limit));
    while let Ok(decoded) = frame::decode(input, bytes_max) {
        match decoded {
            Decoded::Frame { frame, consumed } => {
                let mut written = Vec::new();
                frame::write(frame.kind, frame.channel, &mut written, |out| {
                    out.extend_from_slice(frame.payload);
                });
                assert_eq!(written, input[..consumed]);
                for end in [consumed - 1, consumed / 2] {
                    let part = frame::decode(&input[..end], bytes_max);
                    assert!(matches!(part, Ok(Decoded::Incomplete { wanted }) if wanted > end));
                }
                input = &input[consumed..];
            }
            Decoded::Incomplete { wanted } => {
                assert!(wanted > input.len());
                break;
            }
        }
    }
}

/// A method frame's payload. What was read and written is read as the same, and its tables can be
/// walked.
pub fn method(data: &[u8]) {
    match Version::V0_8.decode(data) {
        Ok(method @ (Method::ConnectionClose(_) | Method::ConnectionCloseOk(_))) => {
            let mut written = Vec::new();
            Version::V0_8.write_any(&method, &mut written);
            assert_eq!(written, data);
        }
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
    let method = match Method::decode(data) {
        Ok(method) => method,
        Err(error) => return assert!(!error.to_string().contains(char::is_control)),
    };
    let mut written = Vec::new();
    method.write(&mut written);
    assert_eq!(written.len(), data.len());
    let again = Method::decode(&written).expect("what was written can be read");
    let mut twice = Vec::new();
    again.write(&mut twice);
    assert_eq!(twice, written, "nothing was lost");
    // Walks all of its tables.
    assert_eq!(format!("{again:?}"), format!("{method:?}"));
}

/// A content header's payload: its properties by name, written again.
pub fn properties(data: &[u8]) {
    let Ok(header) = ContentHeader::decode(data) else {
        return;
    };
    assert_eq!(header.properties.bytes(), &data[12..]);
    let parsed = header.properties.parse();
    let mut written = Vec::new();
    parsed.write(&mut written);
    let again = crosstie_amqp::Properties::from_bytes(&written).expect("what was written");
    assert_eq!(format!("{:?}", again.parse()), format!("{parsed:?}"));
}

/// A table: made anew of its fields it has the same bytes, if all of them have names that are text.
pub fn table(data: &[u8]) {
    let Ok(table) = Table::from_bytes(data) else {
        return;
    };
    let made = table.iter().fold(TableBuf::new(), |made, (name, value)| {
        made.with(name, value)
    });
    let again = Table::from_bytes(made.as_table().bytes()).expect("what was made");
    assert_eq!(again.iter().count(), table.iter().count());
    assert!(made.as_table().bytes().len() <= data.len());
    table.iter().for_each(|(_, value)| walk(value));
}

fn walk(value: Value<'_>) {
    match value {
        Value::Table(table) => table.iter().for_each(|(_, value)| walk(value)),
        Value::Array(array) => {
            let array: Array<'_> = array;
            array.iter().for_each(walk);
        }
        _ => {}
    }
}

/// Frames of every kind, as clients write them.
pub fn frame_seeds() -> Vec<Vec<u8>> {
    let rows = include_str!("../../crates/amqp/tests/golden.txt").lines();
    let rows = rows.filter(|row| !row.starts_with("//"));
    rows.filter_map(|row| unhex(row.split(' ').next()?))
        .collect()
}

/// Their payloads, of the frames of one kind.
pub fn payload_seeds(kind: u8) -> Vec<Vec<u8>> {
    let frames = frame_seeds().into_iter();
    let frames = frames.filter(|frame| frame[0] == kind);
    frames
        .map(|frame| frame[7..frame.len() - 1].to_vec())
        .collect()
}

/// Tables with values of every kind, in each other.
pub fn table_seeds() -> Vec<Vec<u8>> {
    let inner = TableBuf::new()
        .with("I", Value::I32(-1))
        .with("l", Value::I64(1 << 40))
        .with("d", Value::F64(1.5))
        .with(
            "D",
            Value::Decimal {
                scale: 2,
                value: 314,
            },
        )
        .with("T", Value::Timestamp(1_700_000_000))
        .with("x", Value::ByteArray(b"\xff"))
        .with("V", Value::Void);
    let outer = TableBuf::new()
        .with("t", Value::Bool(true))
        .with("S", Value::LongString(b"text"))
        .with("F", Value::Table(inner.as_table()));
    let array = b"\x01aA\0\0\0\x0bI\0\0\0\x01S\0\0\0\x01x".to_vec();
    vec![
        inner.as_table().bytes().to_vec(),
        outer.as_table().bytes().to_vec(),
        array,
    ]
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.map(byte).collect()
}
