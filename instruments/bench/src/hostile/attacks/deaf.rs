//! Subscribers that do not read, or hardly, until the budget of all queues is spent; and beside them callers that only
//! want their results.

use std::thread;
use std::time::{Duration, Instant};

use crosstie_wamp::{CallOptions, Message, Payload, PublishOptions, RequestId, YieldOptions};
use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::{TextArguments, register, subscribe, text_arguments};
use crate::hostile::strike::Strike;
use crate::process::WorkerError;
use crate::wamp::pipe::Pipe;

const DEAF: usize = 90;
const SLOW: usize = 80;
const TOPIC: &str = "crosstie.hostile.much";
const EVENT_BYTES: usize = 1 << 20;
const EVENTS: usize = 18;

/// The bytes that slow ones read, and the interval.
const SIP_BYTES: usize = 256 * 1024;
const SIP: Duration = Duration::from_secs(10);

const PROCEDURE: &str = "crosstie.hostile.result";
const CALLERS: usize = 5;
const RESULT_BYTES: usize = 3_000_000;

/// How long the callers call.
const CALLED: Duration = Duration::from_secs(5);

/// So small that bytes for it wait in the router.
const RECEIVE_BUFFER_BYTES: usize = 4096;

pub(in crate::hostile) fn deaf(strike: &mut Strike) -> Result<(), WorkerError> {
    let subscribers = spend(strike, DEAF)?;
    innocents(strike, CALLED);
    drop(subscribers);
    Ok(())
}

pub(in crate::hostile) fn slow(strike: &mut Strike) -> Result<(), WorkerError> {
    let subscribers = spend(strike, SLOW)?;
    let end = strike.deadline.checked_sub(Duration::from_secs(1));
    let end = end.unwrap_or(strike.deadline);
    thread::scope(|scope| {
        scope.spawn(|| sip(&subscribers, end));
        innocents(strike, end.saturating_duration_since(Instant::now()));
    });
    Ok(())
}

/// Publishes more than all of them together may owe.
fn spend(strike: &mut Strike, full: usize) -> Result<Vec<Pipe>, WorkerError> {
    let mut subscribers = Vec::new();
    for _ in 0..strike.few(full) {
        let mut subscriber = strike.session()?;
        set_socket_recv_buffer_size(&subscriber, RECEIVE_BUFFER_BYTES)
            .map_err(std::io::Error::from)?;
        subscribe(&mut subscriber, TOPIC)?;
        subscribers.push(subscriber);
    }
    let mut publisher = strike.session()?;
    let payload = text_arguments(publisher.serializer(), b'x', EVENT_BYTES);
    for number in 1..=EVENTS as u64 {
        publisher.push(&Message::Publish {
            request: RequestId(number),
            options: PublishOptions::default(),
            topic: TOPIC.into(),
            payload: payload.as_payload(),
        })?;
        publisher.flush()?;
    }
    strike.made("subscribers", subscribers.len() as u64);
    strike.made("events", EVENTS as u64);
    Ok(subscribers)
}

/// A sip each, periodically.
fn sip(subscribers: &[Pipe], end: Instant) {
    let mut buffer = vec![0; SIP_BYTES];
    while Instant::now() < end {
        for subscriber in subscribers {
            let mut read = 0;
            while read < SIP_BYTES {
                // Bytes that are not there yet are not awaited.
                match subscriber.stream().try_read(&mut buffer[read..]) {
                    Ok(0) | Err(_) => break,
                    Ok(length) => read += length,
                }
            }
        }
        thread::sleep(SIP.min(end.saturating_duration_since(Instant::now())));
    }
}

/// Callers beside it; lost sessions are counted.
fn innocents(strike: &mut Strike, longest: Duration) {
    let end = (Instant::now() + longest).min(strike.deadline);
    let results: Vec<Result<u64, WorkerError>> = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|number| {
                let strike = &*strike;
                scope.spawn(move || call_on(strike, number, end))
            })
            .collect();
        let joined = callers.into_iter().flat_map(thread::ScopedJoinHandle::join);
        joined.collect()
    });
    for result in results {
        match result {
            Ok(calls) => strike.made("results to callers beside it", calls),
            Err(error) => {
                strike.made("callers beside it lost", 1);
                strike.made(&format!("of them: {error}"), 1);
            }
        }
    }
}

fn call_on(strike: &Strike, number: usize, end: Instant) -> Result<u64, WorkerError> {
    let procedure = format!("{PROCEDURE}{number}");
    let mut callee = strike.session()?;
    register(&mut callee, &procedure)?;
    let mut caller = strike.session()?;
    let result = text_arguments(callee.serializer(), b'x', RESULT_BYTES);
    let mut calls = 0;
    while Instant::now() < end {
        calls += 1;
        caller.push(&Message::Call {
            request: RequestId(calls),
            options: CallOptions::default(),
            procedure: (&procedure).into(),
            payload: Payload::EMPTY,
        })?;
        caller.flush()?;
        answer(&mut callee, &result)?;
        take(&mut caller)?;
    }
    Ok(calls)
}

fn answer(callee: &mut Pipe, result: &TextArguments) -> Result<(), WorkerError> {
    let received = callee.receive(|message, output| match message {
        Message::Invocation { request, .. } => output.push(&Message::Yield {
            request: *request,
            options: YieldOptions::default(),
            payload: result.as_payload(),
        }),
        other => Err(WorkerError::unexpected("INVOCATION", other)),
    })?;
    match received {
        true => callee.flush(),
        false => Err(WorkerError::Closed("invoking")),
    }
}

fn take(caller: &mut Pipe) -> Result<(), WorkerError> {
    let received = caller.receive(|message, _| match message {
        Message::Result { .. } => Ok(()),
        Message::Error { error, .. } => Err(WorkerError::Refused(error.to_string())),
        Message::Abort { reason, .. } => Err(WorkerError::Dismissed(reason.to_string())),
        other => Err(WorkerError::unexpected("RESULT", other)),
    })?;
    match received {
        true => Ok(()),
        false => Err(WorkerError::Closed("giving a result")),
    }
}
