//! JavaScript's undefined and its large ids, as its libraries write them: they count as absent, and as ids.

use crosstie_wamp::Serializer;
use crosstie_wamp::codec::{self, Limits};

/// A message's bytes in hexadecimal, and what it is in JSON.
const MESSAGES: &[(Serializer, &str, &str)] = &[
    // [32, 1, {"match": undefined, "get_retained": undefined}, "a"]
    (
        Serializer::MsgPack,
        "942001 82 a56d61746368 d40000 ac6765745f72657461696e6564 d40000 a161",
        r#"[32,1,{},"a"]"#,
    ),
    (
        Serializer::Cbor,
        "84182001 a2 656d61746368 f7 6c6765745f72657461696e6564 f7 6161",
        r#"[32,1,{},"a"]"#,
    ),
    // [1, "a", {"roles": {"caller": {}}, "authid": undefined}], and with undefined inside the roles
    (
        Serializer::MsgPack,
        "9301a161 82 a5726f6c6573 81 a663616c6c6572 80 a6617574686964 d40000",
        r#"[1,"a",{"roles":{"caller":{}},"authid":null}]"#,
    ),
    (
        Serializer::MsgPack,
        "9301a161 81 a5726f6c6573 81 a663616c6c6572 d40000",
        r#"[1,"a",{"roles":{"caller":null}}]"#,
    ),
    // [16, 1, {"exclude": [2^32 as a float]}, "a"]
    (
        Serializer::MsgPack,
        "941001 81 a76578636c756465 91 cb41f0000000000000 a161",
        r#"[16,1,{"exclude":[4294967296]},"a"]"#,
    ),
    (
        Serializer::Cbor,
        "841001 a1 676578636c756465 81 fb41f0000000000000 6161",
        r#"[16,1,{"exclude":[4294967296]},"a"]"#,
    ),
    // [34, 1, 2^32 as a float], also as one of 32 bits
    (
        Serializer::MsgPack,
        "932201 cb41f0000000000000",
        "[34,1,4294967296]",
    ),
    (Serializer::Cbor, "83182201 fa4f800000", "[34,1,4294967296]"),
    // [48, 1, {}, "a", undefined]
    (
        Serializer::MsgPack,
        "953001 80 a161 d40000",
        r#"[48,1,{},"a"]"#,
    ),
];

/// Such an extension with other content is no undefined.
#[rustfmt::skip]
const REFUSED: &[(Serializer, &str, &str)] = &[
    (Serializer::MsgPack, "942001 81 a56d61746368 d40001 a161", "expected text, found extension type"),
    (Serializer::MsgPack, "942001 81 a56d61746368 d40100 a161", "expected text, found extension type"),
    (Serializer::MsgPack, "942001 81 a56d61746368 d400", "expected text, found extension type"),
];

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<_> = hexadecimal.bytes().filter(|byte| *byte != b' ').collect();
    let pairs = digits.chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

#[test]
fn undefined_counts_as_absent_and_a_whole_double_as_an_id() {
    for (serializer, hexadecimal, expected) in MESSAGES {
        let bytes = bytes(hexadecimal);
        let message = codec::decode(*serializer, &bytes, &Limits::default()).unwrap();
        let mut written = Vec::new();
        codec::encode(&message, Serializer::Json, &mut written).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert_eq!(written, *expected, "{serializer:?} {hexadecimal}");
    }
}

#[test]
fn other_extensions_are_refused() {
    for (serializer, hexadecimal, expected) in REFUSED {
        let bytes = bytes(hexadecimal);
        let refused = codec::decode(*serializer, &bytes, &Limits::default());
        let said = refused.map(|_| ()).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
}
