//! Scripts, played by an application and a router.
//!
//! `do` is an operation of the application, `<` a message from the router; `>` is a message to the router and `=` an
//! effect. The line before must have caused exactly these.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{
    CallOptions, CancelMode, Payload, PublishOptions, RegisterOptions, RequestId, Serializer,
    SubscribeOptions, YieldOptions,
};

use crate::outgoing::{Format, Outgoing, WireFormat};
use crate::session::{Answer, Effect, ListenerKey, Session};

/// Runs a script in a session that has joined.
#[track_caller]
pub(super) fn check(script: &str) {
    run(&format!(
        "do join\n> HELLO\n< [2, 7, {{}}]\n= joined 7\n{script}"
    ));
}

#[track_caller]
pub(super) fn run(script: &str) {
    let mut actor = Actor::new();
    let mut seen: Vec<String> = Vec::new();
    for (number, line) in script.lines().map(str::trim).enumerate() {
        if line.is_empty() {
            continue;
        }
        let (kind, rest) = line.split_at(2);
        match kind {
            "> " | "= " => {
                let next = (!seen.is_empty()).then(|| seen.remove(0));
                assert_eq!(next.as_deref(), Some(line), "line {number}");
                continue;
            }
            _ => assert_eq!(seen, Vec::<String>::new(), "before line {number}: {line}"),
        }
        match kind {
            "do" => actor.act(rest.trim()),
            _ => actor.receive(rest.trim()),
        }
        seen = std::mem::take(&mut actor.seen);
    }
    assert_eq!(seen, Vec::<String>::new(), "at the end");
}

pub(super) struct Actor {
    pub(super) session: Session<String, String>,
    pub(super) outgoing: Outgoing,
    pub(super) seen: Vec<String>,
}

/// The payload of every message.
const PAYLOAD: Payload<'static> = Payload::new(Serializer::Json, b"[1]", b"");

impl Actor {
    pub(super) fn new() -> Self {
        Self {
            session: Session::new(),
            outgoing: Outgoing::new(Format {
                serializer: Serializer::Json,
                wire: WireFormat::RawSocket,
                length_max: 1 << 24,
            }),
            seen: Vec::new(),
        }
    }

    /// An operation and its words; the waiter for its answer has the operation's name.
    pub(super) fn act(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let key = |at| ListenerKey(number(at));
        let request = |at| RequestId(number(at));
        let flag = |flag| words.contains(&flag);
        let payload = PAYLOAD;
        let waiter = line.to_owned();
        let out = &mut self.outgoing;
        let session = &mut self.session;
        let calling = CallOptions {
            progress: flag("more"),
            ..CallOptions::default()
        };
        let yielding = YieldOptions {
            progress: flag("more"),
            passthru: None,
        };
        let mut note = None;
        match words[0] {
            "join" => session.hello("realm1", Vec::new(), out).unwrap(),
            "authenticate" => session.authenticate(words[1], Vec::new(), out).unwrap(),
            "leave" => session.goodbye("wamp.close.close_realm", out).unwrap(),
            "call" => drop(session.call(words[1], calling, payload, waiter, out)),
            "send" => {
                let sent = session.call_further(request(1), words[2], calling, payload, out);
                note = Some(format!("sent {}", sent.unwrap()));
            }
            "cancel" => session.cancel(request(1), CancelMode::Kill, out).unwrap(),
            "publish" => {
                let options = PublishOptions::default();
                let waiter = flag("acknowledge").then_some(waiter);
                let sent = session.publish(words[1], options, payload, waiter, out);
                sent.unwrap();
            }
            "register" => {
                let options = RegisterOptions::default();
                let sent = session.register(key(1), words[2], options, waiter, out);
                sent.unwrap();
            }
            "unregister" => {
                note = session.unregister(key(1), Some(waiter), out).unwrap();
            }
            "subscribe" => {
                let options = SubscribeOptions::default();
                session
                    .subscribe(key(1), words[2], options, waiter, out)
                    .unwrap();
            }
            "unsubscribe" => {
                note = session.unsubscribe(key(1), Some(waiter), out).unwrap();
            }
            "yield" => {
                let sent = session.yield_result(request(1), yielding, payload, out);
                note = Some(format!("sent {}", sent.unwrap()));
            }
            "fail" => {
                let sent = session.yield_error(request(1), words[2], payload, out);
                note = Some(format!("sent {}", sent.unwrap()));
            }
            other => panic!("no operation {other}"),
        }
        self.collect_sent();
        self.seen.extend(note.map(|note| format!("= {note}")));
    }

    pub(super) fn receive(&mut self, json: &str) {
        let limits = Limits::default();
        let message = codec::decode(Serializer::Json, json.as_bytes(), &limits).unwrap();
        let mut attached = None;
        let effect = match self.session.handle(message, &mut self.outgoing) {
            Ok(Effect::None) => None,
            Ok(Effect::Invoked {
                request,
                key,
                details,
                payload,
            }) => {
                attached = Some(request);
                let more = if details.progress { " more" } else { "" };
                Some(format!(
                    "invoked {} {request}{more}{}",
                    key.0,
                    text(&payload)
                ))
            }
            Ok(effect) => Some(shown(effect)),
            Err(violation) => Some(format!("violation: {violation}")),
        };
        if let Some(request) = attached {
            self.session.attach(request, format!("handler {request}"));
        }
        self.collect_sent();
        self.seen.extend(effect.map(|effect| format!("= {effect}")));
    }

    fn collect_sent(&mut self) {
        let mut bytes = Vec::new();
        self.outgoing.take(&mut bytes);
        let mut rest = &bytes[..];
        while let Some((prefix, behind)) = rest.split_first_chunk() {
            let (message, behind) = behind.split_at(u32::from_be_bytes(*prefix) as usize);
            rest = behind;
            let text = String::from_utf8(message.to_vec()).unwrap();
            self.seen.push(match text.starts_with("[1,") {
                true => "> HELLO".to_owned(),
                false => format!("> {text}"),
            });
        }
    }
}

fn text(payload: &Payload<'_>) -> String {
    match payload.is_empty() {
        true => String::new(),
        false => format!(" {}", String::from_utf8_lossy(payload.args)),
    }
}

fn shown(effect: Effect<'_, String, String>) -> String {
    match effect {
        Effect::None | Effect::Invoked { .. } => String::new(),
        Effect::Joined { session, .. } => format!("joined {session}"),
        Effect::Challenged { method, .. } => format!("challenged {method}"),
        Effect::Aborted(error) => format!("aborted {error}"),
        Effect::Left { asked: true, .. } => "left".to_owned(),
        Effect::Left { error, .. } => format!("sent away {error}"),
        Effect::Progress {
            waiter, payload, ..
        } => format!("{waiter}: progress{}", text(&payload)),
        Effect::Answered { waiter, answer } => match answer {
            Answer::Result(payload) => format!("{waiter}: result{}", text(&payload)),
            Answer::Published(publication) => format!("{waiter}: published {publication}"),
            Answer::Done => format!("{waiter}: done"),
            Answer::Refused { uri, payload } => format!("{waiter}: {uri}{}", text(&payload)),
        },
        Effect::Continued {
            running,
            last,
            payload,
            ..
        } => {
            let last = if last { "last" } else { "more" };
            format!("{running}: {last}{}", text(&payload))
        }
        Effect::Revoked(keys) => {
            let keys: Vec<_> = keys.iter().map(|key| key.0.to_string()).collect();
            format!("revoked {}", keys.join(" "))
        }
        Effect::Interrupted { running, .. } => format!("{running}: interrupted"),
        Effect::Event {
            listeners,
            publication,
            payload,
            ..
        } => {
            let keys: Vec<_> = listeners.iter().map(|key| key.0).collect();
            format!("event {publication} for {keys:?}{}", text(&payload))
        }
    }
}
