//! A frame that is written around a payload is, with it, the frame that is written whole.

use crosstie_wamp::codec::{encode, encode_around, encode_value};
use crosstie_wamp::framing::{APART_BYTES_MIN, Framing};
use crosstie_wamp::{
    InvocationDetails, Message, Payload, RegistrationId, RequestId, Serializer, Value,
};

const FRAMINGS: [Framing; 4] = [
    Framing::RawSocket,
    Framing::WebSocketServer { batched: false },
    Framing::WebSocketServer { batched: true },
    Framing::WebSocketServerAutobahn,
];

#[test]
fn around_a_payload() {
    for serializer in Serializer::ALL {
        let encoded = |value: &Value| {
            let mut bytes = Vec::new();
            encode_value(value, serializer, &mut bytes).expect("a value");
            bytes
        };
        let text = Value::String("x".repeat(APART_BYTES_MIN));
        let list = encoded(&Value::List(vec![text.clone()]));
        let dict = encoded(&Value::Dict(vec![("key".to_owned(), text)]));
        for (args, kwargs) in [(&list[..], &[][..]), (&[], &dict), (&list, &dict)] {
            let payload = Payload::new(serializer, args, kwargs);
            for framing in FRAMINGS {
                check(framing, payload);
            }
        }
    }
}

fn check(framing: Framing, payload: Payload<'_>) {
    let serializer = payload.serializer;
    let message = Message::Invocation {
        request: RequestId(7),
        registration: RegistrationId(300),
        details: InvocationDetails::default(),
        payload,
    };
    // Something is in the queue already.
    let (mut whole, mut head) = (b"before".to_vec(), b"before".to_vec());
    framing
        .frame(serializer, payload.len(), &mut whole, |out| {
            encode(&message, serializer, out)
        })
        .expect("fits");
    let mut places = [0; 2];
    framing
        .frame_around(serializer, 0, payload.len(), &mut head, |out| {
            places = encode_around(&message, &payload, out);
            Ok::<(), ()>(())
        })
        .expect("fits");
    assert_eq!(head.len() + payload.len(), whole.len());
    let (first, second) = (places[0], places[1].max(places[0]));
    let parts = [
        &head[..first],
        payload.args,
        &head[first..second],
        payload.kwargs,
        &head[second..],
    ];
    assert!(parts.concat() == whole, "{framing:?}, {serializer:?}");
}
