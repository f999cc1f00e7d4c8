//! Every message in every serializer, good and bad, as tables of JSON text. MessagePack and CBOR
//! are written and read by other people's libraries.

use std::borrow::Cow;

use crosstie_wamp::codec::{
    Detail, Limits, decode, encode, encode_value, encode_welcome, encode_with, transcode,
};
use crosstie_wamp::{
    CallOptions, CancelMode, CancelOptions, Disclosed, EventDetails, InterruptOptions,
    InvocationDetails, InvocationPolicy, MatchPolicy, Message, MessageType, Payload, PublicationId,
    PublishOptions, Receivers, RegisterOptions, RegistrationId, RequestId, ResultDetails, Revoked,
    Runmode, Seldom, Serializer, SessionId, Sharding, SubscribeOptions, SubscriptionId,
    Unsupported, Value, YieldOptions,
};

use crate::oracle;

const LIMITS: Limits = Limits { depth_max: 64 };

/// Messages that are written exactly as they are read.
const CANONICAL: &[&str] = &[
    r#"[1,"realm1",{}]"#,
    r#"[1,"realm1",{"roles":{"caller":{"features":{"call_timeout":true}}},"authmethods":["ticket"],"n":-5}]"#,
    r#"[2,9129137332,{"roles":{"broker":{}},"realm":"realm1"}]"#,
    r#"[3,{"message":"The realm does not exist."},"wamp.error.no_such_realm"]"#,
    r#"[4,"wampcra",{"challenge":"{ \"nonce\": 1 }"}]"#,
    r#"[5,"gir1mSx+deCDUV7wRM5SGIn/+R/ClqLZuH4m7FJeBVI=",{}]"#,
    r#"[6,{},"wamp.close.normal"]"#,
    r#"[8,48,814,{},"com.example.error"]"#,
    r#"[8,68,814,{"ppt_scheme":"mqtt"},"com.example.error",["why"]]"#,
    r#"[8,32,814,{"a":1},"com.example.error",[],{"why":null}]"#,
    r#"[16,239714735,{},"com.example.topic"]"#,
    r#"[16,239714735,{"acknowledge":true,"exclude_me":false,"disclose_me":true},"com.example.topic",["a"],{"b":1}]"#,
    r#"[16,1,{"exclude":[1,9007199254740992],"exclude_authid":["a"],"exclude_authrole":["b","c"],"eligible":[],"eligible_authid":["d"],"eligible_authrole":[]},"a"]"#,
    r#"[16,1,{"disclose_me":false,"ppt_scheme":"x_mine","ppt_serializer":"cbor","enc_algo":"cryptobox","_trace":{"id":[1,-2]}},"a",["x"]]"#,
    r#"[16,1,{"enc_algo":"cryptobox","enc_key":"k","enc_serializer":"json"},"a","\u0000AAEC"]"#,
    r#"[8,48,1,{"enc_algo":"cryptobox"},"com.example.error","\u0000AAEC"]"#,
    r#"[36,2,3,{"enc_algo":"x_mine"},"text in place of arguments"]"#,
    r#"[48,1,{"enc_algo":"mqtt"},"a","\u0000AAEC"]"#,
    r#"[50,1,{"progress":true,"enc_algo":"cryptobox"},"\u0000AAEC"]"#,
    r#"[68,1,2,{"enc_algo":"cryptobox"},""]"#,
    r#"[70,1,{"enc_algo":"cryptobox"},"\u0000"]"#,
    "[17,239714735,4429313566]",
    r#"[32,713845233,{},"com.example.topic"]"#,
    r#"[32,713845233,{"match":"prefix"},"com.example."]"#,
    r#"[32,713845233,{"match":"wildcard"},"com..topic"]"#,
    "[33,713845233,5512315355]",
    "[34,85346237,5512315355]",
    "[35,85346237]",
    "[35,0]",
    "[36,5512315355,4429313566,{}]",
    r#"[36,5512315355,4429313566,{"topic":"a.b","publisher":3335656,"publisher_authid":"joe","publisher_authrole":"user","_x":1},[1,2],{"c":[3]}]"#,
    r#"[48,7814135,{},"com.example.procedure"]"#,
    r#"[48,7814135,{"timeout":5000,"receive_progress":true,"progress":true,"disclose_me":true,"_x":null},"a.b",[1],{"k":2}]"#,
    r#"[49,7814135,{"mode":"skip"}]"#,
    r#"[49,7814135,{"mode":"kill"}]"#,
    r#"[49,7814135,{"mode":"killnowait"}]"#,
    "[50,7814135,{}]",
    r#"[50,7814135,{"progress":true,"ppt_cipher":"xsalsa20poly1305"},["partial"]]"#,
    r#"[64,25349185,{},"com.example.procedure"]"#,
    r#"[64,25349185,{"match":"wildcard","invoke":"roundrobin","forward_timeout":true},"com..procedure"]"#,
    r#"[64,25349185,{"match":"prefix","invoke":"first"},"a"]"#,
    r#"[64,25349185,{"invoke":"last"},"a"]"#,
    r#"[64,25349185,{"invoke":"random"},"a"]"#,
    "[65,25349185,2103333224]",
    "[66,788923562,2103333224]",
    "[67,788923562]",
    r#"[67,0,{"registration":2,"reason":"wamp.error.unregistered"}]"#,
    r#"[67,0,{"registration":2}]"#,
    r#"[50,7814135,{"callee":3335656,"callee_authid":"joe","callee_authrole":"user"}]"#,
    r#"[64,25349185,{"concurrency":7,"force_reregister":true},"a"]"#,
    r#"[32,713845233,{"get_retained":true},"com.example.topic"]"#,
    r#"[32,713845233,{"x_acknowledged_delivery":true},"com.example.topic"]"#,
    r#"[36,5512315355,4429313566,{"x_acknowledged_delivery":true},[1]]"#,
    r#"[337,4429313566]"#,
    r#"[36,5512315355,4429313566,{"retained":true}]"#,
    r#"[16,1,{"retain":true,"transaction_hash":"0x00"},"a"]"#,
    "[67,0]",
    "[68,6131533,9823526,{}]",
    r#"[68,6131533,9823526,{"procedure":"a.b","caller":3335656,"caller_authid":"joe","caller_authrole":"user","timeout":30000,"receive_progress":true,"progress":true,"_x":"y"},["Hello, world!"],{"k":{}}]"#,
    "[69,6131533,{}]",
    r#"[69,6131533,{"mode":"kill","reason":"wamp.error.canceled"}]"#,
    "[70,6131533,{}]",
    r#"[70,6131533,{"progress":true,"_x":{"y":"z"}},["Hey"],{"k":false}]"#,
];

/// Messages that are written in another way than they are read.
const OTHERWISE: &[(&str, &str)] = &[
    // Unknown options and details are walked over.
    (
        r#"[48,1,{"x":{"y":[1]},"timeout":7},"a"]"#,
        r#"[48,1,{"timeout":7},"a"]"#,
    ),
    (r#"[37,4429313566]"#, r#"[337,4429313566]"#),
    (
        r#"[32,1,{"get_retained":false,"x":1,"nkey":null},"a"]"#,
        r#"[32,1,{},"a"]"#,
    ),
    (
        r#"[36,1,2,{"retained":false,"forward_for":null}]"#,
        "[36,1,2,{}]",
    ),
    (r#"[49,1,{}]"#, r#"[49,1,{"mode":"killnowait"}]"#),
    // The default, said aloud.
    (r#"[32,1,{"match":"exact"},"a"]"#, r#"[32,1,{},"a"]"#),
    (
        r#"[64,1,{"match":"exact","invoke":"single","forward_timeout":false},"a"]"#,
        r#"[64,1,{},"a"]"#,
    ),
    (
        r#"[16,1,{"acknowledge":false,"exclude_me":true},"a"]"#,
        r#"[16,1,{},"a"]"#,
    ),
    // Some clients write every number as a double.
    (
        r#"[48,1,{"timeout":2000.0},"a"]"#,
        r#"[48,1,{"timeout":2000},"a"]"#,
    ),
    (
        r#"[64,1,{"concurrency":2.0},"a"]"#,
        r#"[64,1,{"concurrency":2},"a"]"#,
    ),
    (
        r#"[64,1,{"concurrency":9007199254740992},"a"]"#,
        r#"[64,1,{"concurrency":4294967295},"a"]"#,
    ),
    // An option without a value, or a word without letters, counts as absent.
    (
        r#"[16,1,{"acknowledge":null,"exclude_me":null,"disclose_me":null,"retain":null,"exclude":null,"eligible":null,"eligible_authid":null,"exclude_authrole":null,"rkey":null,"runmode":null},"a"]"#,
        r#"[16,1,{},"a"]"#,
    ),
    (
        r#"[32,1,{"match":null,"get_retained":null,"x_acknowledged_delivery":null},"a"]"#,
        r#"[32,1,{},"a"]"#,
    ),
    (
        r#"[48,1,{"timeout":null,"receive_progress":null,"progress":null,"disclose_me":null,"ppt_scheme":null},"a"]"#,
        r#"[48,1,{},"a"]"#,
    ),
    (r#"[49,1,{"mode":null}]"#, r#"[49,1,{"mode":"killnowait"}]"#),
    (r#"[49,1,{"mode":""}]"#, r#"[49,1,{"mode":"killnowait"}]"#),
    (
        r#"[64,1,{"match":"","invoke":"","concurrency":null,"force_reregister":null,"forward_timeout":null},"a"]"#,
        r#"[64,1,{},"a"]"#,
    ),
    (
        r#"[48,1,{"rkey":"r","runmode":""},"a"]"#,
        r#"[48,1,{"rkey":"r"},"a"]"#,
    ),
    (r#"[69,1,{"mode":"","reason":null}]"#, "[69,1,{}]"),
    (r#"[70,1,{"progress":null}]"#, "[70,1,{}]"),
    // An id beyond 32 bits is a double to some clients.
    ("[34,1.0,9007199254740992.0]", "[34,1,9007199254740992]"),
    (
        r#"[16,1,{"exclude":[5e9],"eligible":[5000000001.0]},"a"]"#,
        r#"[16,1,{"exclude":[5000000000],"eligible":[5000000001]},"a"]"#,
    ),
    (
        r#"[16,1,{"forward_for":[{"session":5e9,"authid":"a","authrole":"b"}]},"a"]"#,
        r#"[16,1,{"forward_for":[{"session":5000000000,"authid":"a","authrole":"b"}]},"a"]"#,
    ),
    // And some write null for arguments that are not there.
    (r#"[48,1,{},"a",null]"#, r#"[48,1,{},"a"]"#),
    (r#"[48,1,{},"a",null,null]"#, r#"[48,1,{},"a"]"#),
    (
        r#"[48,1,{},"a",null,{"b":2}]"#,
        r#"[48,1,{},"a",[],{"b":2}]"#,
    ),
    // Somebody without a session is nobody.
    (r#"[36,1,2,{"publisher_authid":"joe"}]"#, "[36,1,2,{}]"),
    // A router that revokes says so unasked, with details; an ABORT may have arguments.
    (r#"[35,0,{"reason":"nobody's"}]"#, "[35,0]"),
    (r#"[67,0,{"reason":"nobody's"}]"#, "[67,0]"),
    (r#"[3,{},"a.b",[1],{"k":2}]"#, r#"[3,{},"a.b"]"#),
];

/// Messages that are refused, and what is said of them (without the byte's number, which differs
/// between serializers).
#[rustfmt::skip]
const BAD: &[(&str, &str)] = &[
    ("1", "expected list, found integer"),
    (r#""1""#, "expected list, found text"),
    ("{}", "expected list, found dictionary"),
    ("null", "expected list, found null"),
    ("[]", "message type expected one more element, found the end of the message"),
    (r#"["HELLO"]"#, "message type expected integer, found text"),
    ("[1.5]", "message type expected integer, found float"),
    ("[7]", "message type expected type of a WAMP message, found 7"),
    ("[0]", "message type expected type of a WAMP message, found 0"),
    ("[304,1]", "message type expected type of a WAMP message, found 304"),
    ("[1]", "HELLO: realm expected one more element, found the end of the message"),
    ("[1,7,{}]", "HELLO: realm expected text, found integer"),
    (r#"[1,"realm1",[]]"#, "HELLO: details expected dictionary, found list"),
    (r#"[1,"realm1",{},1]"#, "HELLO: expected the end of the message, found an element"),
    ("[2,0,{}]", "WELCOME: session expected id from 1 to 2^53, found 0"),
    ("[3,{},1]", "ABORT: reason expected text, found integer"),
    ("[3,[],1]", "ABORT: details expected dictionary, found list"),
    (r#"[4,"ticket"]"#, "CHALLENGE: extra expected one more element, found the end of the message"),
    ("[5,[],{}]", "AUTHENTICATE: signature expected text, found list"),
    (r#"[6,{},"a",[]]"#, "GOODBYE: expected the end of the message, found an element"),
    (r#"[8,70,1,{},"a"]"#, "ERROR: request type expected type of a request, found YIELD"),
    (r#"[8,9,1,{},"a"]"#, "ERROR: request type expected type of a WAMP message, found 9"),
    (r#"[8,48,0,{},"a"]"#, "ERROR: request expected id from 1 to 2^53, found 0"),
    (r#"[8,48,1,{},"a",{}]"#, "ERROR: arguments expected list, found dictionary"),
    (r#"[16,0,{},"a"]"#, "PUBLISH: request expected id from 1 to 2^53, found 0"),
    (r#"[16,9007199254740993,{},"a"]"#, "PUBLISH: request expected id from 1 to 2^53, found 9007199254740993"),
    (r#"[16,"1",{},"a"]"#, "PUBLISH: request expected integer, found text"),
    (r#"[16,1.5,{},"a"]"#, "PUBLISH: request expected integer, found float"),
    (r#"[16,1,null,"a"]"#, "PUBLISH: options expected dictionary, found null"),
    (r#"[16,1,{"acknowledge":1},"a"]"#, "PUBLISH: options.acknowledge expected boolean, found integer"),
    (r#"[16,1,{"exclude":1},"a"]"#, "PUBLISH: options.exclude expected list, found integer"),
    (r#"[16,1,{"exclude":["a"]},"a"]"#, "PUBLISH: options.exclude expected integer, found text"),
    (r#"[16,1,{"eligible":[0]},"a"]"#, "PUBLISH: options.eligible expected id from 1 to 2^53, found 0"),
    (r#"[16,1,{"eligible_authrole":[[]]},"a"]"#, "PUBLISH: options.eligible_authrole expected text, found list"),
    (r#"[16,1,{},1]"#, "PUBLISH: topic expected text, found integer"),
    (r#"[16,1,{},"a",[],[]]"#, "PUBLISH: keyword arguments expected dictionary, found list"),
    (r#"[16,1,{},"a",[],{},1]"#, "PUBLISH: expected the end of the message, found an element"),
    ("[17,1]", "PUBLISHED: publication expected one more element, found the end of the message"),
    ("[17,1,2,{}]", "PUBLISHED: expected the end of the message, found an element"),
    (
        r#"[32,1,{"match":"regex"},"a"]"#,
        "SUBSCRIBE: options.match expected exact, prefix or wildcard, found another word",
    ),
    ("[33,1,0.0]", "SUBSCRIBED: subscription expected id from 1 to 2^53, found 0"),
    ("[33,1,1.5]", "SUBSCRIBED: subscription expected integer, found float"),
    ("[33,1,9007199254740994.0]", "SUBSCRIBED: subscription expected integer, found float"),
    ("[33,1,-1.0]", "SUBSCRIBED: subscription expected integer, found float"),
    (
        r#"[32,1,{"forward_for":[1]},"a"]"#,
        "SUBSCRIBE: options.forward_for expected a list of dictionaries with session, authid and authrole, found something else",
    ),
    ("[33,1,0]", "SUBSCRIBED: subscription expected id from 1 to 2^53, found 0"),
    ("[34,1,2,3]", "UNSUBSCRIBE: expected the end of the message, found an element"),
    ("[35,1,[]]", "UNSUBSCRIBED: details expected dictionary, found list"),
    ("[35,1,{},1]", "UNSUBSCRIBED: expected the end of the message, found an element"),
    (r#"[36,1,2,{"publisher":"a"}]"#, "EVENT: details.publisher expected integer, found text"),
    (r#"[36,1,2,{"topic":1}]"#, "EVENT: details.topic expected text, found integer"),
    (r#"[48,1,{},12]"#, "CALL: procedure expected text, found integer"),
    (
        r#"[48,1,{"timeout":-1},"a"]"#,
        "CALL: options.timeout expected milliseconds, from 0 to 2^53, found another value",
    ),
    (
        r#"[48,1,{"timeout":1.5},"a"]"#,
        "CALL: options.timeout expected milliseconds, from 0 to 2^53, found another value",
    ),
    (r#"[48,1,{"progress":"a"},"a"]"#, "CALL: options.progress expected boolean, found text"),
    (r#"[49,1,{"mode":"abort"}]"#, "CANCEL: options.mode expected skip, kill or killnowait, found another word"),
    (r#"[50,1,{"progress":0}]"#, "RESULT: details.progress expected boolean, found integer"),
    (
        r#"[64,1,{"invoke":"all"},"a"]"#,
        "REGISTER: options.invoke expected single, first, last, roundrobin, random, x_least_busy or x_sticky, found another word",
    ),
    (r#"[64,1,{"forward_timeout":[]},"a"]"#, "REGISTER: options.forward_timeout expected boolean, found list"),
    ("[65,1,-1]", "REGISTERED: registration expected integer that is not negative, found negative integer"),
    ("[66,1]", "UNREGISTER: registration expected one more element, found the end of the message"),
    ("[67,9007199254740993]", "UNREGISTERED: request expected id from 1 to 2^53, found 9007199254740993"),
    (r#"[68,1,2,{"caller":0}]"#, "INVOCATION: details.caller expected id from 1 to 2^53, found 0"),
    (r#"[69,1,{"reason":{}}]"#, "INTERRUPT: options.reason expected text, found dictionary"),
    ("[70,1]", "YIELD: options expected one more element, found the end of the message"),
    (
        r#"[64,1,{"concurrency":0},"a"]"#,
        "REGISTER: options.concurrency expected invocations, from 1 to 2^53, found another value",
    ),
];

/// The message's bytes in `serializer`, by the oracle.
fn bytes(json: &str, serializer: Serializer) -> Vec<u8> {
    match serializer {
        // As it is: the oracle would hide what is peculiar about it.
        Serializer::Json => json.as_bytes().to_vec(),
        _ => oracle::encode(&oracle::value(json), serializer),
    }
}

#[track_caller]
fn check_good(json: &str, canonical: &str) {
    for from in Serializer::ALL {
        let bytes = bytes(json, from);
        let message =
            decode(from, &bytes, &LIMITS).unwrap_or_else(|e| panic!("{json}: {from}: {e}"));
        for into in Serializer::ALL {
            let mut encoded = vec![0xff];
            encode(&message, into, &mut encoded).unwrap();
            assert_eq!(encoded.remove(0), 0xff, "what was in front stays");
            let read = oracle::decode(&encoded, into).unwrap();
            assert_eq!(read, oracle::value(canonical), "{json}: {from} to {into}");
            let shortest = oracle::encode(&oracle::value(canonical), into);
            assert_eq!(
                oracle::hex(&encoded),
                oracle::hex(&shortest),
                "{json}: {from} to {into}"
            );
        }
    }
}

#[test]
fn messages_are_read_and_written() {
    for json in CANONICAL {
        check_good(json, json);
    }
    for (json, canonical) in OTHERWISE {
        check_good(json, canonical);
    }
}

#[test]
fn every_message_type_is_in_the_table() {
    for kind in MessageType::ALL {
        let code = |json: &str| json[1..].split(',').next()?.parse().ok();
        let is_it = |json: &&str| code(json).and_then(MessageType::from_code) == Some(kind);
        assert!(CANONICAL.iter().any(is_it), "{}", kind.name());
    }
}

#[test]
fn bad_messages_are_refused() {
    for (json, expected) in BAD {
        for serializer in Serializer::ALL {
            let error = decode(serializer, &bytes(json, serializer), &LIMITS).unwrap_err();
            let said = error
                .to_string()
                .replace(&format!("at byte {}: ", error.offset()), "");
            assert_eq!(said, *expected, "{json}: {serializer}");
            assert!(!error.is_limit());
        }
    }
}

#[test]
fn faults_are_located() {
    let check = |json: &str, expected: &str| {
        let error = decode(Serializer::Json, json.as_bytes(), &LIMITS).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(
        r#"[48,7814, {}, 12]"#,
        "CALL: procedure at byte 14: expected text, found integer",
    );
    check(
        r#"[48,1,{"timeout" : true},"a"]"#,
        "CALL: options.timeout at byte 19: expected milliseconds, from 0 to 2^53, found another value",
    );
    check(
        "[48,1,{},\"a\"] x",
        "CALL: at byte 14: expected the end, found 1 more bytes",
    );
    // A key is the peer's word: it is cut and escaped before it gets into a log.
    check(
        "[48,1,{\"_\\n\\u0007234567890123456789012345678901234567890123456789\":+},\"a\"]",
        "CALL: options._\\n\\u{7}2345678901234567890123456789012345678 at byte 67: expected value, found other character",
    );
}

// The fields one by one, for a mistake that reading and writing would share.

const NO_ARGUMENTS: Payload<'static> = Payload {
    serializer: Serializer::Json,
    args: b"",
    kwargs: b"",
};

fn check_fields(json: &'static str, expected: Message<'static>) {
    let message = decode(Serializer::Json, json.as_bytes(), &LIMITS).unwrap();
    assert_eq!(message, expected);
}

fn text(text: &'static str) -> Cow<'static, str> {
    Cow::Borrowed(text)
}

fn number(key: &str, number: u64) -> (String, Value) {
    (key.to_owned(), Value::from(number))
}

#[test]
fn fields_of_session_messages_are_told_apart() {
    check_fields(
        r#"[1,"r",{"a":1}]"#,
        Message::Hello {
            realm: text("r"),
            details: vec![number("a", 1)],
        },
    );
    check_fields(
        "[2,5,{}]",
        Message::Welcome {
            session: SessionId(5),
            details: vec![],
        },
    );
    check_fields(
        r#"[3,{},"a"]"#,
        Message::Abort {
            details: vec![],
            reason: text("a"),
        },
    );
    check_fields(
        r#"[4,"m",{}]"#,
        Message::Challenge {
            method: text("m"),
            extra: vec![],
        },
    );
    check_fields(
        r#"[5,"s",{}]"#,
        Message::Authenticate {
            signature: text("s"),
            extra: vec![],
        },
    );
    check_fields(
        r#"[6,{},"a"]"#,
        Message::Goodbye {
            details: vec![],
            reason: text("a"),
        },
    );
    check_fields(
        r#"[8,64,7,{"x":1},"e", [ 1 ,2 ] , {"k" : []} ]"#,
        Message::Error {
            request_type: MessageType::Register,
            request: RequestId(7),
            details: vec![number("x", 1)],
            error: text("e"),
            payload: Payload::new(Serializer::Json, b"[ 1 ,2 ]", br#"{"k" : []}"#),
        },
    );
}

#[test]
fn fields_of_publications_are_told_apart() {
    check_fields(
        r#"[16,1,{"exclude_me":false,"retain":true,"retain_ms":60000,"exclude":[1],"exclude_authid":["b"],"exclude_authrole":["c"],"eligible":[4],"eligible_authid":["e"],"eligible_authrole":["f"],"rkey":"r"},"t"]"#,
        Message::Publish {
            request: RequestId(1),
            options: PublishOptions {
                acknowledge: false,
                exclude_me: false,
                disclose_me: None,
                retain: true,
                retain_ms: Some(60_000),
                receivers: Some(Box::new(Receivers {
                    exclude: Some(vec![SessionId(1)]),
                    exclude_authid: Some(vec!["b".to_owned()]),
                    exclude_authrole: Some(vec!["c".to_owned()]),
                    eligible: Some(vec![SessionId(4)]),
                    eligible_authid: Some(vec!["e".to_owned()]),
                    eligible_authrole: Some(vec!["f".to_owned()]),
                })),
                passthru: None,
                sharding: Seldom::from(Sharding {
                    rkey: Some("r".into()),
                    ..Sharding::default()
                }),
            },
            topic: text("t"),
            payload: NO_ARGUMENTS,
        },
    );
    check_fields(
        "[17,1,2]",
        Message::Published {
            request: RequestId(1),
            publication: PublicationId(2),
        },
    );
    check_fields(
        r#"[36,1,2,{"topic":"t","publisher":3,"publisher_authid":"i","publisher_authrole":"r","retained":true}]"#,
        Message::Event {
            subscription: SubscriptionId(1),
            publication: PublicationId(2),
            details: EventDetails {
                topic: Some(text("t")),
                publisher: Some(Disclosed {
                    session: SessionId(3),
                    authid: text("i"),
                    authrole: text("r"),
                }),
                retained: true,
                acknowledged_delivery: false,
                passthru: None,
            },
            payload: NO_ARGUMENTS,
        },
    );
}

#[test]
fn fields_of_subscriptions_are_told_apart() {
    check_fields(
        r#"[32,1,{"match":"wildcard","get_retained":true,"nkey":"n","rkey":1},"t"]"#,
        Message::Subscribe {
            request: RequestId(1),
            options: SubscribeOptions {
                match_policy: MatchPolicy::Wildcard,
                get_retained: true,
                acknowledged_delivery: false,
                nkey: Some(Box::from("n")).into(),
                is_forwarded: false,
                unsupported: Some(Unsupported::Rkey),
            },
            topic: text("t"),
        },
    );
    check_fields(
        "[33,1,2]",
        Message::Subscribed {
            request: RequestId(1),
            subscription: SubscriptionId(2),
        },
    );
    check_fields(
        "[34,1,2]",
        Message::Unsubscribe {
            request: RequestId(1),
            subscription: SubscriptionId(2),
        },
    );
    check_fields(
        "[35,1]",
        Message::Unsubscribed {
            request: RequestId(1),
            revoked: None,
        },
    );
    check_fields(
        r#"[35,0,{"more":1,"reason":"r","subscription":2}]"#,
        Message::Unsubscribed {
            request: RequestId(0),
            revoked: Some(Revoked {
                id: SubscriptionId(2),
                reason: Some(text("r")),
            }),
        },
    );
}

#[test]
fn fields_of_calls_are_told_apart() {
    check_fields(
        r#"[48,1,{"timeout":5,"receive_progress":true,"disclose_me":false,"_x":6,"rkey":"r7","runmode":"partition","nkey":1},"p"]"#,
        Message::Call {
            request: RequestId(1),
            options: CallOptions {
                timeout_ms: 5,
                receive_progress: true,
                progress: false,
                disclose_me: Some(false),
                passthru: Some(Box::new(vec![number("_x", 6)])),
                sharding: Seldom::from(Sharding {
                    rkey: Some("r7".into()),
                    runmode: Some(Runmode::Partition),
                    unsupported: Some(Unsupported::Nkey),
                }),
            },
            procedure: text("p"),
            payload: NO_ARGUMENTS,
        },
    );
    check_fields(
        r#"[49,1,{"mode":"kill"}]"#,
        Message::Cancel {
            request: RequestId(1),
            options: CancelOptions {
                mode: CancelMode::Kill,
            },
        },
    );
    check_fields(
        r#"[50,1,{"progress":true,"callee":3,"callee_authid":"i","callee_authrole":"r"}]"#,
        Message::Result {
            request: RequestId(1),
            details: ResultDetails {
                progress: true,
                callee: Some(Box::new(Disclosed {
                    session: SessionId(3),
                    authid: text("i"),
                    authrole: text("r"),
                })),
                passthru: None,
            },
            payload: NO_ARGUMENTS,
        },
    );
}

#[test]
fn fields_of_registrations_are_told_apart() {
    check_fields(
        r#"[64,1,{"invoke":"last","match":"prefix","forward_timeout":true,"concurrency":5,"force_reregister":true,"forward_for":null,"nkey":"n"},"p"]"#,
        Message::Register {
            request: RequestId(1),
            options: RegisterOptions {
                match_policy: MatchPolicy::Prefix,
                invoke: InvocationPolicy::Last,
                forward_timeout: true,
                concurrency: 5,
                force_reregister: true,
                nkey: Some(Box::from("n")).into(),
                is_forwarded: false,
                unsupported: None,
            },
            procedure: text("p"),
        },
    );
    check_fields(
        "[65,1,2]",
        Message::Registered {
            request: RequestId(1),
            registration: RegistrationId(2),
        },
    );
    check_fields(
        "[66,1,2]",
        Message::Unregister {
            request: RequestId(1),
            registration: RegistrationId(2),
        },
    );
    check_fields(
        "[67,1]",
        Message::Unregistered {
            request: RequestId(1),
            revoked: None,
        },
    );
    check_fields(
        r#"[67,0,{"registration":2,"reason":"r","more":[]}]"#,
        Message::Unregistered {
            request: RequestId(0),
            revoked: Some(Revoked {
                id: RegistrationId(2),
                reason: Some(text("r")),
            }),
        },
    );
}

#[test]
fn fields_of_invocations_are_told_apart() {
    check_fields(
        r#"[68,1,2,{"procedure":"p","caller":3,"caller_authid":"i","caller_authrole":"r","timeout":4,"progress":true}]"#,
        Message::Invocation {
            request: RequestId(1),
            registration: RegistrationId(2),
            details: InvocationDetails {
                procedure: Some(text("p")),
                caller: Some(Disclosed {
                    session: SessionId(3),
                    authid: text("i"),
                    authrole: text("r"),
                }),
                timeout_ms: 4,
                receive_progress: false,
                progress: true,
                passthru: None,
            },
            payload: NO_ARGUMENTS,
        },
    );
    check_fields(
        r#"[69,1,{"reason":"a"}]"#,
        Message::Interrupt {
            request: RequestId(1),
            options: InterruptOptions {
                mode: None,
                reason: Some(text("a")),
            },
        },
    );
    check_fields(
        r#"[70,1,{"progress":true}]"#,
        Message::Yield {
            request: RequestId(1),
            options: YieldOptions {
                progress: true,
                passthru: None,
            },
            payload: NO_ARGUMENTS,
        },
    );
}

#[test]
fn a_payload_transcoded_before_is_put_in() {
    let json = r#"[68,1,2,{"_x":"y"},[1,"two"],{"three":[3.5]}]"#;
    let message = decode(Serializer::Json, json.as_bytes(), &LIMITS).unwrap();
    let payload = *message.payload().unwrap();
    for serializer in Serializer::ALL {
        let mut args = Vec::new();
        transcode(payload.serializer, payload.args, serializer, &mut args).unwrap();
        let mut kwargs = Vec::new();
        transcode(payload.serializer, payload.kwargs, serializer, &mut kwargs).unwrap();
        let mut encoded = Vec::new();
        let transcoded = Payload::new(serializer, &args, &kwargs);
        encode_with(&message, &transcoded, &mut encoded);
        assert_eq!(
            oracle::decode(&encoded, serializer).unwrap(),
            oracle::value(json)
        );
    }
}

/// What may stand in place of the arguments, and what must be there beside it.
#[test]
fn a_payload_in_place_of_arguments_is_announced() {
    let algo = r#""enc_algo":"cryptobox""#;
    for (options, payload, expected) in [
        (algo, r#""text""#, Ok(())),
        (algo, r#"[1],{"a":2}"#, Ok(())),
        (algo, r#"null,{"a":2}"#, Ok(())),
        (
            "",
            r#""text""#,
            Err("PUBLISH: arguments at byte 13: expected list, found text"),
        ),
        (
            r#""enc_key":"k""#,
            r#""\u0000AAEC""#,
            Err("PUBLISH: arguments at byte 26: expected list, found text"),
        ),
        (
            r#""enc_algo":true"#,
            r#""text""#,
            Err("PUBLISH: arguments at byte 28: expected list, found text"),
        ),
        (
            algo,
            "1",
            Err("PUBLISH: arguments at byte 35: expected list, found integer"),
        ),
        (
            algo,
            r#"["unended]"#,
            Err("PUBLISH: arguments at byte 46: expected a closing quote, found the end"),
        ),
        (
            algo,
            r#""text",{"a":2}"#,
            Err("PUBLISH: at byte 42: expected the end of the message, found an element"),
        ),
    ] {
        let json = format!(r#"[16,1,{{{options}}},"a",{payload}]"#);
        let read = decode(Serializer::Json, json.as_bytes(), &LIMITS).map(|_| ());
        let read = read.map_err(|error| error.to_string());
        assert_eq!(read, expected.map_err(str::to_owned), "{json}");
    }
    let abort = br#"[3,{"enc_algo":"cryptobox"},"a.b","text"]"#;
    assert!(decode(Serializer::Json, abort, &LIMITS).is_err());
}

#[test]
fn keyword_arguments_alone_get_an_empty_list() {
    let payload = Payload::new(Serializer::Json, b"", br#"{"a":1}"#);
    let options = YieldOptions::default();
    let message = Message::Yield {
        request: RequestId(1),
        options,
        payload,
    };
    for serializer in Serializer::ALL {
        let mut encoded = Vec::new();
        encode(&message, serializer, &mut encoded).unwrap();
        let read = oracle::decode(&encoded, serializer).unwrap();
        assert_eq!(read, oracle::value(r#"[70,1,{},[],{"a":1}]"#));
    }
}

#[test]
fn a_failed_encoding_leaves_no_bytes() {
    let nan = Value::List(vec![Value::from(1), Value::Float(f64::NAN)]);
    let options = YieldOptions {
        progress: true,
        passthru: Some(Box::new(vec![("_x".to_owned(), nan.clone())])),
    };
    let payload = Payload::EMPTY;
    let message = Message::Yield {
        request: RequestId(1),
        options,
        payload,
    };

    let mut out = b"before".to_vec();
    let error = encode(&message, Serializer::Json, &mut out).unwrap_err();
    assert_eq!(error.reason, "JSON has no numbers that are not finite");
    assert_eq!(out, b"before");
    encode_value(&nan, Serializer::Json, &mut out).unwrap_err();
    assert_eq!(out, b"before");
    let cbor = oracle::unhex("82 01 c0 61 61");
    transcode(Serializer::Cbor, &cbor, Serializer::Json, &mut out).unwrap_err();
    assert_eq!(out, b"before");

    // Where there can be no error, it is a null.
    out.clear();
    encode_with(&message, &payload, &mut out);
    assert_eq!(out, br#"[70,1,{"progress":true,"_x":[1,null]}]"#);
}

/// WELCOME of parts is WELCOME, whichever of them were written before.
#[test]
fn a_welcome_of_parts() {
    let role = Value::Dict(vec![("x".to_owned(), Value::Bool(true))]);
    let details = vec![
        ("realm".to_owned(), Value::from("realm1")),
        ("roles".to_owned(), role.clone()),
        ("pid".to_owned(), Value::from(70_000_u64)),
        (
            "authextra".to_owned(),
            Value::Dict(vec![("role".to_owned(), role.clone())]),
        ),
    ];
    let session = SessionId(9_129_137_332);
    for serializer in Serializer::ALL {
        let mut written = Vec::new();
        encode_value(&role, serializer, &mut written).expect("can be written");
        let parts = [
            ("realm", Detail::Text("realm1")),
            ("roles", Detail::Written(&written)),
            ("pid", Detail::Number(70_000)),
            (
                "authextra",
                Detail::Dict(vec![("role", Detail::Value(&role))]),
            ),
        ];
        let [mut of_parts, mut whole] = [vec![7], vec![7]];
        encode_welcome(session, &parts, serializer, &mut of_parts).expect("can be written");
        let details = details.clone();
        encode(
            &Message::Welcome { session, details },
            serializer,
            &mut whole,
        )
        .expect("can be written");
        assert_eq!(of_parts, whole, "{serializer}");
    }
    let parts = [("n", Detail::Value(&Value::Float(f64::NAN)))];
    let mut out = vec![7];
    encode_welcome(session, &parts, Serializer::Json, &mut out).expect_err("JSON has no NaN");
    assert_eq!(out, [7]);
}
