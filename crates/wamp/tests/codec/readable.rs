//! Values that common receivers can or cannot read, one a row, each in the arguments of a message. The tables were
//! found by running the libraries (docs/values.md).

use crosstie_wamp::codec::{Limits, check_readable, check_value, decode_to_pass_on, decode_value};
use crosstie_wamp::{Payload, Serializer};

use crate::oracle::unhex;

const LIMITS: Limits = Limits { depth_max: 64 };

/// A RESULT with `value` as its second argument.
fn message_around(serializer: Serializer, value: &[u8]) -> Vec<u8> {
    let (head, tail) = match serializer {
        Serializer::Json => (b"[50,1,{},[0,".to_vec(), b"]]".to_vec()),
        Serializer::MsgPack => (unhex("94 32 01 80 92 00"), vec![]),
        Serializer::Cbor => (unhex("84 1832 01 a0 82 00"), vec![]),
    };
    [head, value.to_vec(), tail].concat()
}

/// The text about an unreadable value: its place, and the reason. Readable values have none.
#[track_caller]
fn judge(serializer: Serializer, value: &[u8]) -> Option<String> {
    let bytes = message_around(serializer, value);
    let mut is_doubtful = false;
    let message = decode_to_pass_on(serializer, &bytes, &LIMITS, &mut is_doubtful).unwrap();
    let unreadable = check_readable(message.payload().unwrap()).err();
    assert!(
        is_doubtful || unreadable.is_none(),
        "an unreadable value was doubtful before"
    );
    unreadable.map(|unreadable| unreadable.to_string())
}

#[track_caller]
fn readable(serializer: Serializer, values: &[&str]) {
    for value in values {
        let bytes = match serializer {
            Serializer::Json => value.as_bytes().to_vec(),
            _ => unhex(value),
        };
        assert_eq!(judge(serializer, &bytes), None, "{value}");
    }
}

#[track_caller]
fn unreadable(serializer: Serializer, rows: &[(&str, &str)]) {
    for (value, expected) in rows {
        let bytes = match serializer {
            Serializer::Json => value.as_bytes().to_vec(),
            _ => unhex(value),
        };
        let said = judge(serializer, &bytes);
        assert_eq!(said.as_deref(), Some(*expected), "{value}");
    }
}

#[test]
fn json() {
    let nines = "9".repeat(4_300);
    let (long, negative) = (format!("{nines}9"), format!("[-{nines}9]"));
    readable(
        Serializer::Json,
        &[
            &nines,
            &format!("-{nines}"),
            &format!("0.{nines}9"),
            "1e400",
            r#""\u0000""#,
            r#""\u0000AAE=""#,
            r#""a\u0000b""#,
            // Keys are no values.
            r#"{"\u0000abc":"NaN"}"#,
        ],
    );
    let many = "arguments[1]: an integer of more than 4300 digits";
    let base64 = "text after NUL that is not Base64";
    let finite = "NaN or infinity, which JSON does not have";
    unreadable(
        Serializer::Json,
        &[
            (&long, many),
            (
                &negative,
                "arguments[1][0]: an integer of more than 4300 digits",
            ),
            (r#""\u0000abc""#, &format!("arguments[1]: {base64}")),
            (
                r#"{"a":["\u0000\u0000"]}"#,
                &format!("arguments[1].a[0]: {base64}"),
            ),
            ("NaN", &format!("arguments[1]: {finite}")),
            ("[1,Infinity]", &format!("arguments[1][1]: {finite}")),
            (
                r#"{"\u0000k":-Infinity}"#,
                &format!("arguments[1].\\0k: {finite}"),
            ),
        ],
    );
}

#[test]
fn invalid_json_stays_invalid() {
    for text in [
        "nan",
        "NaN1",
        "-NaN",
        "Infinit",
        "+Infinity",
        "--Infinity",
        "-Inf",
    ] {
        let bytes = message_around(Serializer::Json, text.as_bytes());
        let decoded = decode_to_pass_on(Serializer::Json, &bytes, &LIMITS, &mut false);
        assert!(decoded.is_err(), "{text}");
    }
    // A message may have it; a value alone is strict JSON.
    for text in ["NaN", "Infinity", "-Infinity"] {
        assert!(decode_value(Serializer::Json, text.as_bytes(), &LIMITS).is_err());
        assert!(check_value(Serializer::Json, text.as_bytes(), &LIMITS).is_err());
    }
    let mut is_doubtful = false;
    let id = decode_to_pass_on(Serializer::Json, b"[50,NaN,{}]", &LIMITS, &mut is_doubtful);
    assert!(id.is_err());
}

#[test]
fn msgpack() {
    readable(
        Serializer::MsgPack,
        &[
            "81 a161 02",
            "81 c40161 02",
            "d6ff 00000000",
            "d7ff ee6b27fc 00000000",
            "c70cff 3b9ac9ff 7fffffffffffffff",
        ],
    );
    let time = "a timestamp of a wrong length or with nanoseconds from 1,000,000,000 on";
    unreadable(
        Serializer::MsgPack,
        &[
            ("81 01 02", "arguments[1]: map key 1 is not text"),
            (
                "92 c0 81 d0df 02",
                "arguments[1][1]: map key -33 is not text",
            ),
            (
                "81 a161 81 c0 02",
                "arguments[1].a: map key null is not text",
            ),
            ("81 c3 02", "arguments[1]: map key true is not text"),
            (
                "81 cb3ff8000000000000 02",
                "arguments[1]: map key 1.5 is not text",
            ),
            ("81 90 02", "arguments[1]: a map key that is not text"),
            ("81 d40100 02", "arguments[1]: a map key that is not text"),
            (
                "d4 01 00",
                "arguments[1]: extension type 1 is not known to receivers",
            ),
            (
                "d4 00 00",
                "arguments[1]: extension type 0 is not known to receivers",
            ),
            (
                "c700 80",
                "arguments[1]: extension type -128 is not known to receivers",
            ),
            ("d4 ff 00", &format!("arguments[1]: {time}")),
            ("c700 ff", &format!("arguments[1]: {time}")),
            ("d7ff ee6b2800 00000000", &format!("arguments[1]: {time}")),
            (
                "c70cff 3b9aca00 0000000000000000",
                &format!("arguments[1]: {time}"),
            ),
        ],
    );
}

#[test]
fn cbor_tags_with_their_content() {
    readable(
        Serializer::Cbor,
        &[
            "c0 74 323032302d30312d30315430303a30303a30305a",
            "c0 7819 323032342d30322d32395432333a35393a35392d30313a3330",
            "c1 00",
            "c1 fb3ff8000000000000",
            "c1 1b0000003afff4417f",
            "c2 40",
            "c3 5f 4101 ff",
            "c4 82 21 1870",
            "c4 82 01 c24105",
            "c5 82 20 01",
            "d818 01",
            "d81c 80",
            "82 d81c 81 01 d81d 00",
            "82 d81c 81 d81c 01 82 d81d 00 d81d 01",
            "d81e 82 01 02",
            "d81e 82 c24101 21",
            "d820 01",
            "d823 63 5e6124",
            "d824 60",
            "d825 50 00000000000000000000000000000000",
            "d834 44 01020304",
            "d834 82 1818 43 010203",
            "d834 82 44 01020304 1818",
            "d836 82 1840 48 0000000000000001",
            "d840 42 0102",
            "d841 42 0102",
            "d856 48 0000000000000000",
            "d864 1a002cc0a0",
            "d9 0102 82 01 81 02",
            "d9 0104 46 010203040506",
            "d9 0105 a1 44 c0a80000 1818",
            "d9 03ec 6a 323032302d30312d3031",
            "d9 a7f8 82 01 f93c00",
            "d9 d9f7 01",
            "d9 ffff 81 a1 81 01 c1 00",
            "da fffffffe 01",
            "82 f7 f97e00",
            "a3 01 02 4161 03 80 04",
        ],
    );
}

/// Tags, and values with each that are not what belongs to it.
const MISPLACED: &[(&str, &str)] = &[
    ("0", "c0 60"),
    ("0", "c0 01"),
    ("0", "c0 6a 323032302d30312d3031"),
    ("0", "c0 74 323032302d31332d30315430303a30303a30305a"),
    ("0", "c0 74 323032302d30322d33305430303a30303a30305a"),
    ("0", "c0 74 303030302d30312d30315430303a30303a30305a"),
    ("0", "c0 74 323032302d30312d30315430303a30303a36305a"),
    ("1", "c1 60"),
    ("1", "c1 1bffffffffffffffff"),
    ("1", "c1 1b0000003afff44180"),
    ("1", "c1 f97e00"),
    ("1", "c1 f5"),
    ("2", "c2 60"),
    ("3", "c3 01"),
    ("4", "c4 81 01"),
    ("4", "c4 83 010203"),
    ("4", "c4 82 f93c00 01"),
    ("4", "c4 82 1bffffffffffffffff 01"),
    ("5", "c5 60"),
    ("5", "c5 82 1a7fffffff 01"),
    ("25", "d819 00"),
    ("25", "d9 0100 82 63616161 d819 00"),
    ("29", "d81d 00"),
    ("29", "d81d 60"),
    ("29", "82 d81d 00 d81c 80"),
    ("29", "d81c 81 d81d 00"),
    ("29", "82 d81c 81 01 a1 d81d 00 01"),
    ("29", "82 d81c 81 01 d9 0102 81 d81d 00"),
    ("30", "d81e 82 01 00"),
    ("30", "d81e 82 01 c240"),
    ("30", "d81e 81 01"),
    ("35", "d823 61 28"),
    ("35", "d823 01"),
    ("36", "d824 4161"),
    ("37", "d825 41 00"),
    ("37", "d825 60"),
    ("37", "d825 01"),
    ("37", "d825 51 0000000000000000000000000000000000"),
    ("52", "d834 41 01"),
    ("52", "d834 82 1818 44 01020304"),
    ("52", "d834 82 1821 43 010203"),
    ("54", "d836 41 01"),
    ("64", "d840 01"),
    ("69", "d845 43 010203"),
    ("81", "d851 42 0000"),
    ("100", "d864 60"),
    ("100", "d864 1a002cc0a1"),
    ("258", "d9 0102 63 616263"),
    ("260", "d9 0104 41 01"),
    ("261", "d9 0105 a0"),
    ("1004", "d9 03ec 61 61"),
    ("43000", "d9 a7f8 81 01"),
];

#[test]
fn cbor_tags_with_foreign_content() {
    for (tag, value) in MISPLACED {
        let said = judge(Serializer::Cbor, &unhex(value)).unwrap_or_default();
        let expected = format!("]: the content of tag {tag} is not ");
        assert!(said.starts_with("arguments[1"), "{value}: {said}");
        assert!(said.contains(&expected), "{value}: {said}");
        // Behind a tag of no meaning, in a key, and in a value of a map.
        for around in ["d9 ffff", "a1 01", "81"] {
            let said = judge(Serializer::Cbor, &unhex(&format!("{around} {value}")));
            assert!(said.is_some(), "{around} {value}");
        }
    }
    unreadable(
        Serializer::Cbor,
        &[
            (
                "a1 6161 82 00 c1 60",
                "arguments[1].a[1]: the content of tag 1 is not a number of seconds in the years from 1 to 9999",
            ),
            ("e0", "arguments[1]: a simple value without a meaning"),
            (
                "81 f820",
                "arguments[1][0]: a simple value without a meaning",
            ),
            (
                "da ffffffff 01",
                "arguments[1]: a tag from 4,294,967,295 on",
            ),
        ],
    );
}

/// Counts go on from the arguments into the keyword arguments; a place names the part that it is in.
#[test]
fn both_parts_of_a_payload() {
    let (args, kwargs) = (unhex("81 d81c 80"), unhex("a1 616b d81d 00"));
    let payload = Payload::new(Serializer::Cbor, &args, &kwargs);
    assert_eq!(check_readable(&payload), Ok(()));
    let alone = Payload {
        args: &[],
        ..payload
    };
    let said = check_readable(&alone).unwrap_err().to_string();
    assert!(
        said.starts_with("keyword arguments.k: the content of tag 29"),
        "{said}"
    );
}

#[test]
fn a_place_is_cut() {
    let deep = format!("{}NaN{}", "[".repeat(20), "]".repeat(20));
    let said = judge(Serializer::Json, deep.as_bytes()).unwrap();
    assert!(
        said.starts_with("arguments[1][0][0][0][0][0][0][0]…: NaN"),
        "{said}"
    );
    let key = format!(r#"{{"{}\n":NaN}}"#, "k".repeat(39));
    let said = judge(Serializer::Json, key.as_bytes()).unwrap();
    assert!(said.contains(r"kkk\n: NaN"), "{said}");
}
