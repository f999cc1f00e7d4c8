//! Nanoseconds per message for decoding and encoding, in each serializer: for tuning the codecs
//! (`cargo run --release -p crosstie-wamp --example codec_speed`).

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example that measures reads the clock"
)]
#![expect(clippy::print_stdout, reason = "a program for a person at a terminal")]

use std::borrow::Cow;
use std::hint::black_box;
use std::time::{Duration, Instant};

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{
    CallOptions, Disclosed, InvocationDetails, Message, Payload, PublishOptions, RegistrationId,
    RequestId, Serializer, SessionId, YieldOptions,
};

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(40);

fn main() {
    println!(
        "{:<28} {:<8} {:>7} {:>10} {:>10}",
        "message", "", "bytes", "decode", "encode"
    );
    for (name, message) in samples() {
        for serializer in Serializer::ALL {
            let bytes = encoded(&message, serializer);
            let limits = Limits::default();
            let decode = fastest(|| {
                black_box(codec::decode(serializer, black_box(&bytes), &limits).is_ok());
            });
            let Ok(decoded) = codec::decode(serializer, &bytes, &limits) else {
                continue;
            };
            let mut out = Vec::with_capacity(bytes.len() + 256);
            let encode = fastest(|| {
                out.clear();
                black_box(codec::encode(black_box(&decoded), serializer, &mut out).is_ok());
            });
            let serializer = serializer.name();
            let length = bytes.len();
            println!("{name:<28} {serializer:<8} {length:>7} {decode:>7.1} ns {encode:>7.1} ns");
        }
    }
}

/// Mean nanoseconds per run of the fastest round: disturbances only add to a round.
fn fastest(mut run: impl FnMut()) -> f64 {
    let round = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        let mut runs = 0_u32;
        while start.elapsed() < ROUND {
            for _ in 0..1_000 {
                run();
            }
            runs += 1_000;
        }
        start.elapsed().as_nanos() as f64 / f64::from(runs)
    };
    (0..ROUNDS)
        .map(|_| round(&mut run))
        .fold(f64::INFINITY, f64::min)
}

fn encoded(message: &Message<'_>, serializer: Serializer) -> Vec<u8> {
    let mut bytes = Vec::new();
    // The samples hold nothing that a serializer could not.
    let _ = codec::encode(message, serializer, &mut bytes);
    bytes
}

const REQUEST: RequestId = RequestId(1_234);

fn samples() -> Vec<(&'static str, Message<'static>)> {
    let greeting = json(br#"["Hello, world!"]"#, b"");
    let order = json(
        br#"[{"order":48151623,"customer":"com.example.customer.42","lines":[{"article":"A-1","count":3,"price":12.5},{"article":"B-2","count":1,"price":100}],"paid":true,"note":null}]"#,
        br#"{"trace":"4bf92f3577b34da6a3ce929d0e0e4736"}"#,
    );
    let (add, submit) = ("com.example.add2", "com.example.order.submit");
    let patient = CallOptions {
        timeout_ms: 5_000,
        receive_progress: true,
        ..CallOptions::default()
    };
    let disclosed = Disclosed {
        session: SessionId(6_131_533_123_456_789),
        authid: Cow::Borrowed("joe"),
        authrole: Cow::Borrowed("frontend"),
    };
    vec![
        ("CALL, no arguments", call(None, add, Payload::EMPTY)),
        ("CALL, one text", call(None, add, greeting)),
        (
            "CALL, options, an order",
            call(Some(patient), submit, order),
        ),
        ("INVOCATION, one text", invocation(None, greeting)),
        (
            "INVOCATION, caller disclosed",
            invocation(Some(disclosed), greeting),
        ),
        (
            "YIELD, one text",
            Message::Yield {
                request: REQUEST,
                options: YieldOptions::default(),
                payload: greeting,
            },
        ),
        (
            "PUBLISH, an order",
            Message::Publish {
                request: REQUEST,
                options: PublishOptions::default(),
                topic: Cow::Borrowed("com.example.order.placed"),
                payload: order,
            },
        ),
    ]
}

fn call(
    options: Option<CallOptions>,
    procedure: &'static str,
    payload: Payload<'static>,
) -> Message<'static> {
    Message::Call {
        request: REQUEST,
        options: options.unwrap_or_default(),
        procedure: Cow::Borrowed(procedure),
        payload,
    }
}

fn invocation(caller: Option<Disclosed<'static>>, payload: Payload<'static>) -> Message<'static> {
    Message::Invocation {
        request: REQUEST,
        registration: RegistrationId(7_814_135),
        details: InvocationDetails {
            caller,
            ..InvocationDetails::default()
        },
        payload,
    }
}

fn json(args: &'static [u8], kwargs: &'static [u8]) -> Payload<'static> {
    Payload::new(Serializer::Json, args, kwargs)
}
