//! Random methods, tables and properties. What is written is judged by a second, slower writer that
//! knows the protocol's table of arguments as text, so that the two have no line in common.

use crosstie_amqp::{BasicProperties, Method, MethodError, Properties, ReadError, TableBuf, Value};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const METHODS: &str = include_str!("methods.txt");

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn methods_are_read_and_written(row in select(rows()), seeds in vec(any::<u64>(), 10), table in table()) {
        let (class_id, method_id, name, kinds) = row;
        let payload = payload(class_id, method_id, &kinds, &seeds, &table);
        let method = Method::decode(&payload).expect(name);
        prop_assert_eq!(method.name(), name);
        prop_assert_eq!(method.ids(), (class_id, method_id));
        let mut written = b"front".to_vec();
        method.write(&mut written);
        prop_assert_eq!(&written[5..], payload.as_slice());

        for end in 4..payload.len() {
            let expected = MethodError::Arguments { class_id, method_id, name, error: ReadError::Short };
            prop_assert_eq!(Method::decode(&payload[..end]), Err(expected));
        }
        let longer = [payload.as_slice(), &[0]].concat();
        let expected = MethodError::Arguments { class_id, method_id, name, error: ReadError::Long { bytes: 1 } };
        prop_assert_eq!(Method::decode(&longer), Err(expected));
    }

    #[test]
    fn tables_are_read_as_they_were_written(fields in vec(("[a-zä]{0,9}", value()), 0..6)) {
        let table = fields.iter().fold(TableBuf::new(), |table, (name, value)| {
            add(table, name, value)
        });
        let bytes: Vec<u8> = fields.iter().flat_map(|(name, value)| {
            let mut bytes = vec![name.len() as u8];
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(value);
            bytes
        }).collect();
        prop_assert_eq!(table.as_table().bytes(), bytes.as_slice());
        let read = crosstie_amqp::Table::from_bytes(&bytes).unwrap();
        let names: Vec<_> = read.iter().map(|(name, _)| name).collect();
        prop_assert_eq!(names, fields.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
        for end in 0..bytes.len() {
            // It may end where a field does, and is a table then.
            if let Ok(part) = crosstie_amqp::Table::from_bytes(&bytes[..end]) {
                prop_assert!(part.iter().count() < fields.len());
            }
        }
    }

    #[test]
    fn properties_are_read_as_they_were_written(
        texts in vec(option::of("[ -~ä]{0,20}"), 10),
        headers in option::of(table()),
        (delivery_mode, priority, timestamp) in any::<(Option<u8>, Option<u8>, Option<u64>)>(),
    ) {
        let text = |at: usize| texts[at].as_deref();
        let properties = BasicProperties {
            content_type: text(0),
            content_encoding: text(1),
            headers: headers.as_ref().map(TableBuf::as_table),
            delivery_mode,
            priority,
            correlation_id: text(2),
            reply_to: text(3),
            expiration: text(4),
            message_id: text(5),
            timestamp,
            kind: text(6),
            user_id: text(7),
            app_id: text(8),
            cluster_id: text(9),
        };
        let mut bytes = b"front".to_vec();
        properties.write(&mut bytes);
        let bytes = &bytes[5..];
        prop_assert_eq!(Properties::from_bytes(bytes).unwrap().parse(), properties);
        for end in 0..bytes.len() {
            prop_assert!(Properties::from_bytes(&bytes[..end]).is_err());
        }
    }
}

type Row = (u16, u16, &'static str, Vec<&'static str>);

fn rows() -> Vec<Row> {
    let rows = METHODS.lines().map(|line| {
        let mut words = line.split(' ');
        let mut number = || words.next().unwrap().parse().unwrap();
        let (class_id, method_id) = (number(), number());
        (class_id, method_id, words.next().unwrap(), words.collect())
    });
    rows.collect()
}

/// The arguments, each made of a seed of its own.
fn payload(
    class_id: u16,
    method_id: u16,
    kinds: &[&str],
    seeds: &[u64],
    table: &TableBuf,
) -> Vec<u8> {
    let mut out = [class_id.to_be_bytes(), method_id.to_be_bytes()].concat();
    let mut bits = 0;
    for (kind, seed) in kinds.iter().zip(seeds) {
        bits = if *kind == "bit" { bits } else { 0 };
        match *kind {
            "ticket" => out.extend([0, 0]),
            "octet" => out.push(*seed as u8),
            "short" => out.extend((*seed as u16).to_be_bytes()),
            "long" => out.extend((*seed as u32).to_be_bytes()),
            "longlong" => out.extend(seed.to_be_bytes()),
            "bit" => {
                if bits == 0 {
                    out.push(0);
                }
                *out.last_mut().unwrap() += (*seed as u8 & 1) << bits;
                bits += 1;
            }
            "shortstr" => {
                let text = "grün ".repeat((*seed % 43) as usize);
                out.push(text.len() as u8);
                out.extend(text.as_bytes());
            }
            "longstr" => {
                out.extend(((*seed % 300) as u32).to_be_bytes());
                out.extend((0..*seed % 300).map(|at| at as u8));
            }
            "table" => {
                out.extend((table.as_table().bytes().len() as u32).to_be_bytes());
                out.extend(table.as_table().bytes());
            }
            kind => panic!("no kind {kind}"),
        }
    }
    out
}

fn table() -> impl Strategy<Value = TableBuf> {
    vec(("[a-z]{0,9}", value()), 0..4).prop_map(|fields| {
        fields.iter().fold(TableBuf::new(), |table, (name, value)| {
            add(table, name, value)
        })
    })
}

/// A value with its tag, as bytes.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let long = |tag: u8, bytes: Vec<u8>| {
        [
            &[tag],
            (bytes.len() as u32).to_be_bytes().as_slice(),
            &bytes,
        ]
        .concat()
    };
    let plain = (select(b"tbBsuIilfdDTV".to_vec()), any::<[u8; 8]>()).prop_map(|(tag, bytes)| {
        let width = match tag {
            b'V' => 0,
            b't' | b'b' | b'B' => 1,
            b's' | b'u' => 2,
            b'I' | b'i' | b'f' => 4,
            b'D' => 5,
            _ => 8,
        };
        let mut bytes = bytes;
        if tag == b't' {
            bytes[0] &= 1;
        }
        [&[tag], &bytes[..width]].concat()
    });
    let text = (select(b"Sx".to_vec()), vec(any::<u8>(), 0..20))
        .prop_map(move |(tag, bytes)| long(tag, bytes));
    prop_oneof![plain, text].prop_recursive(3, 20, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(move |values| long(b'A', values.concat())),
            vec(inner, 0..4).prop_map(move |values| {
                let fields = values
                    .iter()
                    .flat_map(|value| [b"\x01n".as_slice(), value].concat());
                long(b'F', fields.collect())
            }),
        ]
    })
}

/// Adds a value that is given as bytes, by reading it first.
fn add(table: TableBuf, name: &str, value: &[u8]) -> TableBuf {
    let field = [&[0], value].concat();
    let read = crosstie_amqp::Table::from_bytes(&field).expect("a value");
    let value: Value<'_> = read.iter().next().expect("one field").1;
    table.with(name, value)
}
