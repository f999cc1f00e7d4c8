//! Sessions as scripts.
//!
//! `do` is an operation of the application, `<` a message from the router; `>` is a message to
//! the router and `=` an effect, both of which the line before must have had, and no others.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{
    CallOptions, CancelMode, MatchPolicy, Message, Payload, PublishOptions, RegisterOptions,
    RequestId, Serializer, YieldOptions,
};

use super::{Answer, Effect, ListenerKey, Session};
use crate::outgoing::{Format, Outgoing, Wire};

/// Runs a script in a session that has joined.
#[track_caller]
fn check(script: &str) {
    run(&format!(
        "do join\n> HELLO\n< [2, 7, {{}}]\n= joined 7\n{script}"
    ));
}

#[track_caller]
fn run(script: &str) {
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

struct Actor {
    session: Session<String, String>,
    outgoing: Outgoing,
    seen: Vec<String>,
}

impl Actor {
    fn new() -> Self {
        Self {
            session: Session::new(),
            outgoing: Outgoing::new(Format {
                serializer: Serializer::Json,
                wire: Wire::RawSocket,
                length_max: 1 << 24,
            }),
            seen: Vec::new(),
        }
    }

    /// An operation and its words; who waits for the answer is called as the operation.
    fn act(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let key = |at| ListenerKey(number(at));
        let request = |at| RequestId(number(at));
        let flag = |flag| words.contains(&flag);
        let payload = Payload {
            serializer: Serializer::Json,
            args: b"[1]",
            kwargs: b"",
        };
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
                session
                    .publish(words[1], options, payload, waiter, out)
                    .unwrap();
            }
            "register" => {
                let options = RegisterOptions::default();
                session
                    .register(key(1), words[2], options, waiter, out)
                    .unwrap();
            }
            "unregister" => {
                note = session.unregister(key(1), Some(waiter), out).unwrap();
            }
            "subscribe" => {
                let exact = MatchPolicy::Exact;
                session
                    .subscribe(key(1), words[2], exact, waiter, out)
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

    fn receive(&mut self, json: &str) {
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
        let mut octets = Vec::new();
        self.outgoing.take(&mut octets);
        let mut rest = &octets[..];
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

#[test]
fn join_challenged() {
    run(r#"
        do join
        > HELLO
        < [4, "ticket", {}]
        = challenged ticket
        do authenticate secret
        > [5,"secret",{}]
        < [2, 7, {}]
        = joined 7
    "#);
}

#[test]
fn join_refused() {
    run(r#"
        do join
        > HELLO
        < [3, {"message": "nobody knows it"}, "wamp.error.no_such_realm"]
        = aborted wamp.error.no_such_realm ["nobody knows it"]
        < [2, 7, {}]
        = violation: expected nothing outside a session, got WELCOME
    "#);
}

#[test]
fn out_of_order() {
    run(r#"
        do join
        > HELLO
        < [50, 1, {}]
        = violation: expected WELCOME, CHALLENGE or ABORT, got RESULT
    "#);
    check("< [2, 7, {}]\n= violation: expected a message that routers send, got WELCOME");
    check("< [50, 1, {}]\n= violation: expected request ids up to 0, got RESULT 1");
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [33, 1, 5]
        = violation: expected the answer to REGISTER 1, got SUBSCRIBED
        "#,
    );
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [8, 48, 1, {}, "x"]
        = violation: expected the answer to REGISTER 1, got ERROR
        "#,
    );
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [50, 1, {"progress": true}]
        = violation: expected the answer to REGISTER 1, got RESULT
        "#,
    );
}

#[test]
fn leave() {
    check(
        r#"
        do leave
        > [6,{},"wamp.close.close_realm"]
        do leave
        < [6, {}, "wamp.close.goodbye_and_out"]
        = left
        "#,
    );
}

#[test]
fn sent_away() {
    check(
        r#"
        < [6, {}, "wamp.close.system_shutdown"]
        > [6,{},"wamp.close.goodbye_and_out"]
        = sent away wamp.close.system_shutdown
        < [50, 1, {}]
        = violation: expected nothing outside a session, got RESULT
        "#,
    );
}

#[test]
fn goodbyes_cross() {
    check(
        r#"
        do leave
        > [6,{},"wamp.close.close_realm"]
        < [6, {}, "wamp.close.system_shutdown"]
        = left
        "#,
    );
}

#[test]
fn calls() {
    check(
        r#"
        do call a
        > [48,1,{},"a",[1]]
        do call b
        > [48,2,{},"b",[1]]
        < [50, 2, {}, [5]]
        = call b: result [5]
        < [8, 48, 1, {}, "com.error", ["why"]]
        = call a: com.error ["why"]
        < [50, 1, {}]
        "#,
    );
}

#[test]
fn progressive_results() {
    check(
        r#"
        do call a
        > [48,1,{},"a",[1]]
        < [50, 1, {"progress": true}, [1]]
        = call a: progress [1]
        < [50, 1, {}, [2]]
        = call a: result [2]
        < [50, 1, {"progress": true}, [3]]
        "#,
    );
}

#[test]
fn progressive_call() {
    check(
        r#"
        do call a more
        > [48,1,{"progress":true},"a",[1]]
        do send 1 a more
        > [48,1,{"progress":true},"a",[1]]
        = sent true
        do send 1 a
        > [48,1,{},"a",[1]]
        = sent true
        do send 1 a
        = sent false
        < [50, 1, {}]
        = call a more: result
        do send 1 a
        = sent false
        "#,
    );
}

#[test]
fn cancelled_call() {
    check(
        r#"
        do call a more
        > [48,1,{"progress":true},"a",[1]]
        do cancel 1
        > [49,1,{"mode":"kill"}]
        do send 1 a
        = sent false
        < [8, 48, 1, {}, "wamp.error.canceled"]
        = call a more: wamp.error.canceled
        do cancel 1
        "#,
    );
}

#[test]
fn publications() {
    check(
        r#"
        do publish a
        > [16,1,{},"a",[1]]
        do publish a acknowledge
        > [16,2,{"acknowledge":true},"a",[1]]
        < [17, 2, 99]
        = publish a acknowledge: published 99
        do publish a acknowledge
        > [16,3,{"acknowledge":true},"a",[1]]
        < [8, 16, 3, {}, "wamp.error.not_authorized"]
        = publish a acknowledge: wamp.error.not_authorized
        "#,
    );
}

#[test]
fn registrations() {
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [65, 1, 50]
        = register 1 a: done
        < [68, 1, 50, {}, [2]]
        = invoked 1 1 [2]
        do yield 1
        > [70,1,{},[1]]
        = sent true
        do yield 1
        = sent false
        < [68, 2, 50, {}]
        = invoked 1 2
        do yield 2 more
        > [70,2,{"progress":true},[1]]
        = sent true
        < [69, 2, {}]
        = handler 2: interrupted
        do fail 2 com.error
        > [8,68,2,{},"com.error",[1]]
        = sent true
        < [69, 2, {}]
        do unregister 1
        > [66,2,50]
        < [67, 2]
        = unregister 1: done
        < [68, 3, 50, {}]
        > [8,68,3,{},"wamp.error.unavailable"]
        do unregister 1
        = unregister 1
        "#,
    );
}

#[test]
fn registration_refused() {
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [8, 64, 1, {}, "wamp.error.procedure_already_exists"]
        = register 1 a: wamp.error.procedure_already_exists
        "#,
    );
}

#[test]
fn registration_abandoned() {
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        do unregister 1
        = unregister 1
        < [65, 1, 50]
        > [66,2,50]
        = register 1 a: done
        < [67, 2]
        "#,
    );
}

#[test]
fn progressive_invocation() {
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [65, 1, 50]
        = register 1 a: done
        < [68, 1, 50, {"progress": true}, [1]]
        = invoked 1 1 more [1]
        < [68, 1, 50, {"progress": true}, [2]]
        = handler 1: more [2]
        < [68, 1, 50, {}, [3]]
        = handler 1: last [3]
        < [68, 1, 50, {}, [4]]
        = violation: expected an INVOCATION with a new request id, got INVOCATION 1, which is open and not progressive
        "#,
    );
}

#[test]
fn progressive_invocation_answered_early() {
    check(
        r#"
        do register 1 a
        > [64,1,{},"a"]
        < [65, 1, 50]
        = register 1 a: done
        < [68, 1, 50, {"progress": true}, [1]]
        = invoked 1 1 more [1]
        do yield 1
        > [70,1,{},[1]]
        = sent true
        < [68, 1, 50, {"progress": true}, [2]]
        < [68, 1, 50, {}, [3]]
        < [68, 1, 50, {}, [4]]
        = invoked 1 1 [4]
        "#,
    );
}

#[test]
fn subscriptions() {
    check(
        r#"
        do subscribe 1 a
        > [32,1,{},"a"]
        < [33, 1, 60]
        = subscribe 1 a: done
        < [36, 60, 900, {}, [1]]
        = event 900 for [1] [1]
        do subscribe 2 a
        > [32,2,{},"a"]
        < [33, 2, 60]
        = subscribe 2 a: done
        < [36, 60, 901, {}]
        = event 901 for [1, 2]
        do unsubscribe 1
        = unsubscribe 1
        < [36, 60, 902, {}]
        = event 902 for [2]
        do unsubscribe 2
        > [34,3,60]
        < [36, 60, 903, {}]
        < [35, 3]
        = unsubscribe 2: done
        < [36, 60, 904, {}]
        "#,
    );
}

#[test]
fn subscription_abandoned() {
    check(
        r#"
        do subscribe 1 a
        > [32,1,{},"a"]
        do unsubscribe 1
        = unsubscribe 1
        < [33, 1, 60]
        > [34,2,60]
        = subscribe 1 a: done
        < [35, 2]
        "#,
    );
}

#[test]
fn a_new_listener_keeps_the_subscription() {
    check(
        r#"
        do subscribe 1 a
        > [32,1,{},"a"]
        < [33, 1, 60]
        = subscribe 1 a: done
        do subscribe 2 a
        > [32,2,{},"a"]
        do unsubscribe 1
        = unsubscribe 1
        < [33, 2, 60]
        = subscribe 2 a: done
        < [36, 60, 900, {}]
        = event 900 for [2]
        "#,
    );
}

#[test]
fn a_new_listener_that_is_refused_gives_the_subscription_up() {
    check(
        r#"
        do subscribe 1 a
        > [32,1,{},"a"]
        < [33, 1, 60]
        = subscribe 1 a: done
        do subscribe 2 a
        > [32,2,{},"a"]
        do unsubscribe 1
        = unsubscribe 1
        < [8, 32, 2, {}, "wamp.error.not_authorized"]
        > [34,3,60]
        = subscribe 2 a: wamp.error.not_authorized
        < [35, 3]
        "#,
    );
}

#[test]
fn a_new_listener_behind_an_unsubscribe() {
    check(
        r#"
        do subscribe 1 a
        > [32,1,{},"a"]
        < [33, 1, 60]
        = subscribe 1 a: done
        do unsubscribe 1
        > [34,2,60]
        do subscribe 2 a
        > [32,3,{},"a"]
        < [35, 2]
        = unsubscribe 1: done
        < [33, 3, 60]
        = subscribe 2 a: done
        < [36, 60, 900, {}]
        = event 900 for [2]
        "#,
    );
}

#[test]
fn an_unknown_interrupt_is_nothing() {
    check("< [69, 12, {}]");
}

#[test]
fn who_waits_is_given_back() {
    let mut actor = Actor::new();
    actor.act("join");
    actor.receive("[2, 7, {}]");
    for operation in [
        "call a",
        "publish a",
        "publish a acknowledge",
        "subscribe 1 a",
    ] {
        actor.act(operation);
    }
    let mut waiters: Vec<_> = actor.session.into_waiters().collect();
    waiters.sort();
    assert_eq!(
        waiters,
        ["call a", "publish a acknowledge", "subscribe 1 a"]
    );
}

#[test]
fn what_cannot_be_sent_takes_no_request_id() {
    let mut actor = Actor::new();
    actor.act("join");
    actor.receive("[2, 7, {}]");
    let huge = format!("[{:?}]", "x".repeat(1 << 24));
    let payload = Payload {
        serializer: Serializer::Json,
        args: huge.as_bytes(),
        kwargs: b"",
    };
    let options = CallOptions::default();
    let out = &mut actor.outgoing;
    let refused = actor
        .session
        .call("a", options, payload, "huge".to_owned(), out);
    assert!(refused.is_err());
    actor.seen.clear();
    actor.act("call b");
    assert_eq!(actor.seen, [r#"> [48,1,{},"b",[1]]"#]);
    assert_eq!(actor.session.into_waiters().collect::<Vec<_>>(), ["call b"]);
}

/// Every type of message, in a session that expects none of them, ends as a violation or as
/// nothing, never as a panic.
#[test]
fn no_message_is_a_surprise() {
    let messages = [
        "[1, \"r\", {}]",
        "[5, \"s\", {}]",
        "[16, 1, {}, \"t\"]",
        "[32, 1, {}, \"t\"]",
        "[48, 1, {}, \"p\"]",
        "[64, 1, {}, \"p\"]",
        "[70, 1, {}]",
        "[17, 1, 1]",
        "[35, 1]",
        "[67, 1]",
        "[69, 1, {}]",
        "[36, 1, 1, {}]",
        "[68, 1, 1, {}]",
    ];
    for json in messages {
        let mut actor = Actor::new();
        actor.receive(json);
        assert!(actor.seen[0].starts_with("= violation"), "{json}");
        let mut actor = Actor::new();
        actor.act("join");
        actor.receive("[2, 7, {}]");
        actor.receive(json);
        let limits = Limits::default();
        let octets = json.as_bytes();
        let message = codec::decode(Serializer::Json, octets, &limits).unwrap();
        let harmless = matches!(
            message,
            Message::Interrupt { .. } | Message::Event { .. } | Message::Invocation { .. }
        );
        let ended = actor
            .seen
            .iter()
            .any(|line| line.starts_with("= violation"));
        assert_eq!(ended, !harmless, "{json}: {:?}", actor.seen);
    }
}
