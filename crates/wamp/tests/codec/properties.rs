//! Properties of the codecs on random values, messages and bytes, with other people's libraries
//! as oracles.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crosstie_wamp::codec::{
    Limits, decode, decode_value, encode, encode_value, encode_with, transcode,
};
use crosstie_wamp::{
    CallOptions, CancelMode, CancelOptions, Dict, Disclosed, EventDetails, ID_MAX,
    InterruptOptions, InvocationDetails, InvocationPolicy, MatchPolicy, Message, MessageType,
    Payload, PublicationId, PublishOptions, Receivers, RegisterOptions, RegistrationId, RequestId,
    ResultDetails, Revoked, Runmode, Seldom, Serializer, SessionId, Sharding, SubscribeOptions,
    SubscriptionId, Value, YieldOptions,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use crate::oracle;

const LIMITS: Limits = Limits { depth_max: 64 };

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// What an oracle writes is read as what it was; what we write, an oracle reads.
    #[test]
    fn values_agree_with_the_oracles(value in value()) {
        for serializer in Serializer::ALL {
            let bytes = oracle::encode(&value, serializer);
            prop_assert_eq!(decode_value(serializer, &bytes, &LIMITS).unwrap(), value.clone());
            let mut encoded = Vec::new();
            encode_value(&value, serializer, &mut encoded).unwrap();
            prop_assert_eq!(oracle::decode(&encoded, serializer).unwrap(), value.clone());
        }
    }

    /// The validator finds where the arguments begin and end, and refuses what is cut off.
    #[test]
    fn arguments_are_passed_on_as_they_came(args in vec(value(), 0..3), kwargs in dict()) {
        let (args, kwargs) = (Value::List(args), Value::Dict(kwargs));
        let list = [Value::from(50), Value::from(7), Value::Dict(vec![]), args.clone(), kwargs.clone()];
        for serializer in Serializer::ALL {
            let bytes = oracle::encode(&Value::List(list.to_vec()), serializer);
            let message = decode(serializer, &bytes, &LIMITS).unwrap();
            let payload = message.payload().unwrap();
            prop_assert_eq!(payload.args, oracle::encode(&args, serializer));
            prop_assert_eq!(payload.kwargs, oracle::encode(&kwargs, serializer));

            for end in 0..bytes.len() {
                prop_assert!(decode(serializer, &bytes[..end], &LIMITS).is_err());
            }
            let longer = [bytes.as_slice(), b"0"].concat();
            prop_assert!(decode(serializer, &longer, &LIMITS).is_err());
        }
    }

    /// From each serializer into each other and back.
    #[test]
    fn transcoding_keeps_the_value(value in value()) {
        for from in Serializer::ALL {
            let bytes = oracle::encode(&value, from);
            for into in Serializer::ALL {
                let mut transcoded = Vec::new();
                transcode(from, &bytes, into, &mut transcoded).unwrap();
                prop_assert_eq!(oracle::decode(&transcoded, into).unwrap(), value.clone());
                let mut back = Vec::new();
                transcode(into, &transcoded, from, &mut back).unwrap();
                prop_assert_eq!(decode_value(from, &back, &LIMITS).unwrap(), value.clone());
            }
        }
    }

    #[test]
    fn messages_are_read_as_they_were_written(
        message in message(),
        args in option::of(vec(value(), 0..3)),
        kwargs in option::of(dict()),
    ) {
        for from in Serializer::ALL {
            let written = |value: Option<Value>| value.map_or_else(Vec::new, |value| {
                let mut bytes = Vec::new();
                encode_value(&value, from, &mut bytes).unwrap();
                bytes
            });
            let args = written(args.clone().map(Value::List));
            let kwargs = written(kwargs.clone().map(Value::Dict));
            let payload = Payload::new(from, &args, &kwargs);
            let sent = with_payload(message.clone(), payload);

            for into in Serializer::ALL {
                let mut bytes = Vec::new();
                encode(&sent, into, &mut bytes).unwrap();
                let received = decode(into, &bytes, &LIMITS).unwrap();
                prop_assert_eq!(head(received.clone()), head(sent.clone()));
                let Some(payload) = received.payload() else { continue };
                let mut with = Vec::new();
                encode_with(&sent, payload, &mut with);
                prop_assert_eq!(with, bytes.clone());

                let mut back = Vec::new();
                encode(&received, from, &mut back).unwrap();
                let again = decode(from, &back, &LIMITS).unwrap();
                let payload = again.payload().unwrap();
                for (sent, again) in [(&args, payload.args), (&kwargs, payload.kwargs)] {
                    // Alone, keyword arguments are sent behind an empty list.
                    if !sent.is_empty() {
                        let sent = decode_value(from, sent, &LIMITS).unwrap();
                        prop_assert_eq!(decode_value(from, again, &LIMITS).unwrap(), sent);
                    }
                }
            }
        }
    }

    /// Damaged bytes are accepted where the oracle accepts them, and nowhere else.
    #[test]
    fn damaged_bytes_are_judged_as_by_the_oracles(
        value in value(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4),
    ) {
        for serializer in Serializer::ALL {
            let mut bytes = oracle::encode(&value, serializer);
            for (index, byte, way) in &damage {
                let index = index.index(bytes.len());
                match way {
                    0 => bytes[index] = *byte,
                    1 => bytes.insert(index, *byte),
                    _ if bytes.len() > 1 => drop(bytes.remove(index)),
                    _ => (),
                }
            }
            let ours = decode_value(serializer, &bytes, &LIMITS);
            let theirs = oracle::decode(&bytes, serializer);
            if let Err(error) = &ours {
                prop_assert!(error.offset() <= bytes.len());
            }
            let ours = ours.map_err(|error| error.to_string());
            let shown = oracle::hex(&bytes);
            let agreed = agree(serializer, &ours, &theirs);
            prop_assert!(agreed, "{serializer} {shown}: {ours:?}, the oracle: {theirs:?}");
        }
    }

    #[test]
    fn random_bytes_are_survived(bytes in vec(any::<u8>(), 0..64)) {
        for serializer in Serializer::ALL {
            let _ = decode(serializer, &bytes, &LIMITS);
            let _ = decode_value(serializer, &bytes, &LIMITS);
            for into in Serializer::ALL {
                // Only valid bytes are promised to be transcoded; others must do no harm.
                let _ = transcode(serializer, &bytes, into, &mut Vec::new());
            }
        }
    }
}

/// Whether two readers say the same, as far as they can.
fn agree(
    serializer: Serializer,
    ours: &Result<Value, String>,
    theirs: &Result<Value, String>,
) -> bool {
    match (serializer, ours, theirs) {
        // The oracle keeps the last of two equal keys.
        (Serializer::Json, Ok(_), Ok(_)) | (_, Err(_), Err(_)) => true,
        (_, Ok(ours), Ok(theirs)) => format!("{ours:?}") == format!("{theirs:?}"),
        // The oracle reads the reserved byte as nil.
        (Serializer::MsgPack, Err(ours), Ok(_)) => ours.contains("reserved byte 0xc1"),
        // The oracle does not know every simple value, and reads a bignum as an integer.
        (Serializer::Cbor, Err(ours), Ok(_)) => ours.contains("which only CBOR has"),
        _ => false,
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<u8>().prop_map(|number| Value::Integer(number.into())),
        any::<i64>().prop_map(|number| Value::Integer(number.into())),
        any::<u64>().prop_map(|number| Value::Integer(number.into())),
        edge().prop_map(Value::Integer),
        (prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO)
            .prop_map(Value::Float),
        (-1000..1000_i32).prop_map(|number| Value::Float(number.into())),
        text().prop_map(Value::String),
        vec(any::<u8>(), 0..20).prop_map(Value::Binary),
        (250..300_usize).prop_map(|length| Value::Binary(vec![7; length])),
        (0..300_usize).prop_map(|length| Value::String("x".repeat(length))),
        (12..30_usize).prop_map(|length| Value::List(vec![Value::Null; length])),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::List),
            btree_map(text(), inner, 0..4).prop_map(|dict| Value::Dict(dict.into_iter().collect())),
        ]
    })
}

/// Around the powers of two, where the widths of integers end.
fn edge() -> impl Strategy<Value = i128> {
    (0..=64_u32, -2..=2_i128, any::<bool>()).prop_map(|(bits, off, negative)| {
        let number = (1_i128 << bits) + off;
        let number = if negative { -number } else { number };
        number.clamp(i64::MIN.into(), u64::MAX.into())
    })
}

/// Text that cannot be taken for binary in JSON.
fn text() -> impl Strategy<Value = String> {
    let characters = prop_oneof![
        4 => prop::char::range(' ', '~'),
        1 => any::<char>(),
        1 => prop::sample::select(vec!['"', '\\', '/', '\n', '\u{1f}', '\u{7f}', 'é', '€', '😀']),
    ];
    vec(characters, 0..24)
        .prop_map(String::from_iter)
        .prop_filter("binary in JSON begins with U+0000", |text| {
            !text.starts_with('\0')
        })
}

fn cow() -> impl Strategy<Value = Cow<'static, str>> {
    text().prop_map(Cow::Owned)
}

fn dict() -> impl Strategy<Value = Dict> {
    btree_map(text(), value(), 0..4).prop_map(|dict| dict.into_iter().collect())
}

fn id() -> impl Strategy<Value = u64> {
    prop_oneof![1..300_u64, 1..=ID_MAX, Just(ID_MAX)]
}

fn request() -> impl Strategy<Value = RequestId> {
    id().prop_map(RequestId)
}

fn passthru() -> impl Strategy<Value = Option<Box<Dict>>> {
    let key = prop_oneof![
        Just("ppt_scheme".to_owned()),
        Just("enc_algo".to_owned()),
        text().prop_map(|text| format!("_{text}")),
    ];
    // A null is passed on behind an underscore, and counts as absent in other keys.
    let is_passed_on =
        |(key, value): &(String, Value)| key.starts_with('_') || *value != Value::Null;
    let entry = (key, value()).prop_filter("null in a known key", is_passed_on);
    // None at all, or at least one: an empty dictionary is not told from none. Beyond 24 entries
    // the heads of dictionaries grow.
    let dict = prop_oneof![
        vec(entry, 1..4).prop_map(|entries| entries.into_iter().collect::<BTreeMap<_, _>>()),
        (13..30).prop_map(|count| (0..count).map(|n| (format!("_{n}"), Value::Null)).collect()),
    ];
    option::of(dict.prop_map(|dict| Box::new(dict.into_iter().collect())))
}

fn disclosed() -> impl Strategy<Value = Option<Disclosed<'static>>> {
    option::of(
        (id(), cow(), cow()).prop_map(|(session, authid, authrole)| Disclosed {
            session: SessionId(session),
            authid,
            authrole,
        }),
    )
}

fn receivers() -> impl Strategy<Value = Option<Box<Receivers>>> {
    let sessions = || option::of(vec(id().prop_map(SessionId), 0..3));
    let texts = || option::of(vec(text(), 0..3));
    let lists = (sessions(), texts(), texts(), sessions(), texts(), texts());
    lists.prop_map(
        |(
            exclude,
            exclude_authid,
            exclude_authrole,
            eligible,
            eligible_authid,
            eligible_authrole,
        )| {
            let receivers = Receivers {
                exclude,
                exclude_authid,
                exclude_authrole,
                eligible,
                eligible_authid,
                eligible_authrole,
            };
            (receivers != Receivers::default()).then(|| Box::new(receivers))
        },
    )
}

fn match_policy() -> impl Strategy<Value = MatchPolicy> {
    prop::sample::select(vec![
        MatchPolicy::Exact,
        MatchPolicy::Prefix,
        MatchPolicy::Wildcard,
    ])
}

fn cancel_mode() -> impl Strategy<Value = CancelMode> {
    prop::sample::select(vec![
        CancelMode::Skip,
        CancelMode::Kill,
        CancelMode::KillNoWait,
    ])
}

fn session_message() -> impl Strategy<Value = Message<'static>> {
    prop_oneof![
        (cow(), dict()).prop_map(|(realm, details)| Message::Hello { realm, details }),
        (id(), dict()).prop_map(|(session, details)| {
            Message::Welcome {
                session: SessionId(session),
                details,
            }
        }),
        (dict(), cow()).prop_map(|(details, reason)| Message::Abort { details, reason }),
        (cow(), dict()).prop_map(|(method, extra)| Message::Challenge { method, extra }),
        (cow(), dict()).prop_map(|(signature, extra)| Message::Authenticate { signature, extra }),
        (dict(), cow()).prop_map(|(details, reason)| Message::Goodbye { details, reason }),
    ]
}

fn publish() -> impl Strategy<Value = Message<'static>> {
    let flags = (any::<[bool; 3]>(), any::<Option<bool>>());
    let retain_ms = option::of(0..1_u64 << 53);
    let lists = (receivers(), passthru(), rkey());
    (request(), flags, retain_ms, lists, cow()).prop_map(
        |(request, (flags, disclose_me), retain_ms, (receivers, passthru, sharding), topic)| {
            let [acknowledge, exclude_me, retain] = flags;
            let options = PublishOptions {
                acknowledge,
                exclude_me,
                disclose_me,
                retain,
                retain_ms,
                receivers,
                passthru,
                sharding,
            };
            Message::Publish {
                request,
                options,
                topic,
                payload: Payload::EMPTY,
            }
        },
    )
}

fn rkey() -> impl Strategy<Value = Seldom<Sharding>> {
    option::of(cow()).prop_map(|rkey| match rkey {
        None => Seldom::NONE,
        Some(rkey) => Seldom::from(Sharding {
            rkey: Some(rkey.into_owned().into()),
            ..Sharding::default()
        }),
    })
}

fn event() -> impl Strategy<Value = Message<'static>> {
    let details = (option::of(cow()), disclosed(), any::<bool>(), passthru());
    (id(), id(), details).prop_map(
        |(subscription, publication, (topic, publisher, retained, passthru))| Message::Event {
            subscription: SubscriptionId(subscription),
            publication: PublicationId(publication),
            details: EventDetails {
                topic,
                publisher,
                retained,
                acknowledged_delivery: !retained,
                passthru,
            },
            payload: Payload::EMPTY,
        },
    )
}

fn call() -> impl Strategy<Value = Message<'static>> {
    let flags = (any::<bool>(), any::<bool>(), any::<Option<bool>>());
    let kept = (passthru(), sharding());
    (request(), 0..=ID_MAX, flags, kept, cow()).prop_map(
        |(request, timeout_ms, flags, (passthru, sharding), procedure)| {
            let (receive_progress, progress, disclose_me) = flags;
            let options = CallOptions {
                timeout_ms,
                receive_progress,
                progress,
                disclose_me,
                passthru,
                sharding,
            };
            Message::Call {
                request,
                options,
                procedure,
                payload: Payload::EMPTY,
            }
        },
    )
}

fn sharding() -> impl Strategy<Value = Seldom<Sharding>> {
    let runmodes = prop::sample::select(vec![None, Some(Runmode::Partition), Some(Runmode::All)]);
    (option::of(cow()), runmodes).prop_map(|(rkey, runmode)| {
        let rkey = rkey.map(|rkey| rkey.into_owned().into());
        match rkey.is_some() || runmode.is_some() {
            false => Seldom::NONE,
            true => Seldom::from(Sharding {
                rkey,
                runmode,
                unsupported: None,
            }),
        }
    })
}

fn register() -> impl Strategy<Value = Message<'static>> {
    let policies = prop::sample::select(InvocationPolicy::ALL.to_vec());
    let flags = any::<[bool; 2]>();
    (
        request(),
        match_policy(),
        policies,
        flags,
        any::<u32>(),
        (option::of(cow()), cow()),
    )
        .prop_map(
            |(request, match_policy, invoke, flags, concurrency, (nkey, procedure))| {
                let [forward_timeout, force_reregister] = flags;
                let options = RegisterOptions {
                    match_policy,
                    invoke,
                    forward_timeout,
                    concurrency,
                    force_reregister,
                    nkey: nkey.map(|nkey| nkey.into_owned().into_boxed_str()).into(),
                    is_forwarded: false,
                    unsupported: None,
                };
                Message::Register {
                    request,
                    options,
                    procedure,
                }
            },
        )
}

fn invocation() -> impl Strategy<Value = Message<'static>> {
    let flags = (0..=ID_MAX, any::<bool>(), any::<bool>());
    (
        request(),
        id(),
        option::of(cow()),
        disclosed(),
        flags,
        passthru(),
    )
        .prop_map(
            |(request, registration, procedure, caller, flags, passthru)| {
                let (timeout_ms, receive_progress, progress) = flags;
                Message::Invocation {
                    request,
                    registration: RegistrationId(registration),
                    details: InvocationDetails {
                        procedure,
                        caller,
                        timeout_ms,
                        receive_progress,
                        progress,
                        passthru,
                    },
                    payload: Payload::EMPTY,
                }
            },
        )
}

fn answer() -> impl Strategy<Value = Message<'static>> {
    let payload = Payload::EMPTY;
    let failing = prop::sample::select(vec![
        MessageType::Publish,
        MessageType::Subscribe,
        MessageType::Unsubscribe,
        MessageType::Call,
        MessageType::Register,
        MessageType::Unregister,
        MessageType::Invocation,
    ]);
    prop_oneof![
        (failing, request(), dict(), cow()).prop_map(
            move |(request_type, request, details, error)| Message::Error {
                request_type,
                request,
                details,
                error,
                payload,
            }
        ),
        (request(), any::<bool>(), disclosed(), passthru()).prop_map(
            move |(request, progress, callee, passthru)| {
                let details = ResultDetails {
                    progress,
                    callee: callee.map(Box::new),
                    passthru,
                };
                Message::Result {
                    request,
                    details,
                    payload,
                }
            }
        ),
        (request(), any::<bool>(), passthru()).prop_map(move |(request, progress, passthru)| {
            Message::Yield {
                request,
                options: YieldOptions { progress, passthru },
                payload,
            }
        }),
    ]
}

fn small_message() -> impl Strategy<Value = Message<'static>> {
    prop_oneof![
        6 => reply_of_ids(),
        1 => subscribe(),
        1 => (request(), cancel_mode()).prop_map(|(request, mode)| {
            Message::Cancel {
                request,
                options: CancelOptions { mode },
            }
        }),
        1 => unregistered(),
        1 => (request(), option::of(cancel_mode()), option::of(cow())).prop_map(
            |(request, mode, reason)| {
                Message::Interrupt {
                    request,
                    options: InterruptOptions { mode, reason },
                }
            }
        ),
    ]
}

/// Messages of nothing but ids.
fn reply_of_ids() -> impl Strategy<Value = Message<'static>> {
    let two_ids = || (request(), id());
    prop_oneof![
        two_ids().prop_map(|(request, id)| {
            Message::Published {
                request,
                publication: PublicationId(id),
            }
        }),
        id().prop_map(|id| Message::EventReceived {
            publication: PublicationId(id),
        }),
        two_ids().prop_map(|(request, id)| {
            Message::Subscribed {
                request,
                subscription: SubscriptionId(id),
            }
        }),
        two_ids().prop_map(|(request, id)| {
            Message::Unsubscribe {
                request,
                subscription: SubscriptionId(id),
            }
        }),
        two_ids().prop_map(|(request, id)| {
            Message::Registered {
                request,
                registration: RegistrationId(id),
            }
        }),
        two_ids().prop_map(|(request, id)| {
            Message::Unregister {
                request,
                registration: RegistrationId(id),
            }
        }),
        unsubscribed(),
    ]
}

fn subscribe() -> impl Strategy<Value = Message<'static>> {
    (request(), match_policy(), any::<bool>(), cow()).prop_map(
        |(request, match_policy, get_retained, topic)| {
            let options = SubscribeOptions {
                match_policy,
                get_retained,
                acknowledged_delivery: get_retained,
                nkey: Seldom::NONE,
                is_forwarded: false,
                unsupported: None,
            };
            Message::Subscribe {
                request,
                options,
                topic,
            }
        },
    )
}

fn unregistered() -> impl Strategy<Value = Message<'static>> {
    (request(), revoked(RegistrationId))
        .prop_map(|(request, revoked)| Message::Unregistered { request, revoked })
}

fn unsubscribed() -> impl Strategy<Value = Message<'static>> {
    (request(), revoked(SubscriptionId))
        .prop_map(|(request, revoked)| Message::Unsubscribed { request, revoked })
}

fn revoked<Id: std::fmt::Debug>(
    make: fn(u64) -> Id,
) -> impl Strategy<Value = Option<Revoked<'static, Id>>> {
    let details = (id(), option::of(cow()));
    option::of(details.prop_map(move |(id, reason)| Revoked {
        id: make(id),
        reason,
    }))
}

fn message() -> impl Strategy<Value = Message<'static>> {
    prop_oneof![
        6 => session_message(),
        8 => small_message(),
        3 => answer(),
        1 => publish(),
        1 => event(),
        1 => call(),
        1 => register(),
        1 => invocation(),
    ]
}

/// `message` with `instead` in the place of its payload, when it has one.
fn with_payload<'a>(mut message: Message<'a>, instead: Payload<'a>) -> Message<'a> {
    match &mut message {
        Message::Error { payload, .. }
        | Message::Publish { payload, .. }
        | Message::Event { payload, .. }
        | Message::Call { payload, .. }
        | Message::Result { payload, .. }
        | Message::Invocation { payload, .. }
        | Message::Yield { payload, .. } => *payload = instead,
        _ => (),
    }
    message
}

/// The message without its payload.
fn head(message: Message<'_>) -> Message<'_> {
    with_payload(message, Payload::EMPTY)
}
