//! Measures a request for all sessions and subscriptions of a large realm, in each serializer. One call is one turn
//! under the realm's lock: the figure is how long other sessions wait.
//!
//! `cargo run --release -p crosstie-routing --example meta_list [SESSIONS]`

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example that measures reads the clock"
)]
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use crosstie_routing::{
    ClientFeatures, CloseReason, Identity, Outbox, Realm, RealmConfig, Refused, SessionKey, Time,
};
use crosstie_wamp::{
    CallOptions, Message, Payload, RequestId, Serializer, SubscribeOptions, codec,
};

const SESSIONS: u32 = 60_000;
const ROUNDS: u64 = 50;

fn main() {
    let argument = std::env::args().nth(1);
    let sessions = argument.map_or(SESSIONS, |text| text.parse().expect("a number"));
    let mut realm = Realm::new(RealmConfig::open("realm1"), 1);
    let mut out = Encode::default();
    let mut caller = None;
    for number in 0..sessions {
        let session = join(&mut realm);
        realm.welcomed(Time(0), session, &mut out);
        let subscribe = Message::Subscribe {
            request: RequestId(1),
            options: SubscribeOptions::default(),
            topic: format!("com.example.n{number}").into(),
        };
        let handled = realm.handle(Time(0), session, &subscribe, &mut out);
        handled.expect("no violations here");
        caller = Some(session);
    }
    let caller = caller.expect("there are some");
    for procedure in ["wamp.session.list", "wamp.subscription.list"] {
        for serializer in Serializer::ALL {
            out.serializer = serializer;
            let mut longest = Duration::ZERO;
            let start = Instant::now();
            for round in 0..ROUNDS {
                let call = Message::Call {
                    request: RequestId(2 + round),
                    options: CallOptions::default(),
                    procedure: procedure.into(),
                    payload: Payload {
                        serializer,
                        args: &[],
                        kwargs: &[],
                    },
                };
                let turn = Instant::now();
                let handled = realm.handle(Time(0), caller, &call, &mut out);
                handled.expect("no violations here");
                longest = longest.max(turn.elapsed());
            }
            let mean = start.elapsed() / ROUNDS as u32;
            println!(
                "{procedure:24} {:8} {:8} bytes: {:6.2} ms, longest {:6.2} ms",
                serializer.name(),
                out.bytes.len(),
                mean.as_secs_f64() * 1e3,
                longest.as_secs_f64() * 1e3,
            );
        }
    }
    black_box(out.bytes);
}

fn join(realm: &mut Realm<u32>) -> SessionKey {
    let identity = Identity::new("anonymous", "anonymous", "anonymous", "static");
    let joined = realm.join(Time(0), 7, identity, ClientFeatures::default());
    joined.expect("the role exists").0
}

/// Encodes each message, as a connection's queue does.
struct Encode {
    serializer: Serializer,
    bytes: Vec<u8>,
}

impl Default for Encode {
    fn default() -> Self {
        Self {
            serializer: Serializer::Json,
            bytes: Vec::new(),
        }
    }
}

impl Outbox<u32> for Encode {
    fn send(&mut self, _to: &u32, message: &Message<'_>) -> Result<(), Refused> {
        self.bytes.clear();
        codec::encode(message, self.serializer, &mut self.bytes)
            .map_err(|_| Refused::Unrepresentable("it was not written"))
    }

    fn publish(&mut self, _event: &Message<'_>, _receivers: &mut dyn Iterator<Item = &u32>) {}

    fn close(&mut self, _session: &u32, _reason: CloseReason) {}
}
