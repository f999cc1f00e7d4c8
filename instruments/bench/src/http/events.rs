//! The latency of events to subscribers, over long-poll or WebSocket: a thread for each, and one that publishes.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use crosstie_wamp::{Message, Payload, PublishOptions, RequestId, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client::{Client, LongPoll};
use super::servers::{LONG_POLL_PATH, WEBSOCKET_PATH};
use crate::load::{Latencies, in_windows, monotonic_ns, of_all};
use crate::process::WorkerError;
use crate::subject::{Case, Endpoint, Target};
use crate::wamp::pipe::Pipe;

const TOPIC: &str = "crosstie.bench.http.events";
/// Interval of publications: time for every subscriber to send its next request.
const INTERVAL: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(super) is_longpoll: bool,
    pub(super) address: SocketAddr,
    pub(super) subscribers: usize,
    /// The publisher's address.
    pub(super) publisher: Target,
}

pub(super) fn work(order: &Order) -> Result<(), WorkerError> {
    let subscribe = |_| Subscriber::subscribe(order);
    let subscribers = (0..order.subscribers).map(subscribe);
    let mut subscribers = subscribers.collect::<Result<Vec<_>, _>>()?;
    let mut publisher = Pipe::connect(&order.publisher)?;
    publisher.join(&order.publisher.realm)?;
    let mut next = 0;
    in_windows(|seconds, _| {
        let count = (seconds / INTERVAL.as_secs_f64()).ceil().max(10.0) as u64;
        let times = window(&mut publisher, &mut subscribers, next, count)?;
        next += count;
        Ok(times)
    })
}

/// So many publications to all; returns the latency of each, from when it was due.
fn window(
    publisher: &mut Pipe,
    subscribers: &mut [Subscriber],
    first: u64,
    count: u64,
) -> Result<Latencies, WorkerError> {
    thread::scope(|scope| {
        let threads: Vec<_> = subscribers
            .iter_mut()
            .map(|subscriber| scope.spawn(move || subscriber.receive(first, count)))
            .collect();
        publish(publisher, first, count)?;
        of_all(threads)
    })
}

fn publish(pipe: &mut Pipe, first: u64, count: u64) -> Result<(), WorkerError> {
    let begun = monotonic_ns();
    for number in 0..count {
        let due_ns = begun + INTERVAL.as_nanos() as u64 * number;
        thread::sleep(Duration::from_nanos(due_ns.saturating_sub(monotonic_ns())));
        let args = arguments(first + number, due_ns);
        pipe.push(&Message::Publish {
            request: RequestId(first + number + 1),
            options: PublishOptions::default(),
            topic: TOPIC.into(),
            payload: Payload::new(Serializer::MsgPack, &args, &[]),
        })?;
        pipe.flush()?;
    }
    Ok(())
}

/// Two numbers in MessagePack: the publication's number, and the time when it was due.
fn arguments(number: u64, due_ns: u64) -> Vec<u8> {
    let mut bytes = vec![0x92];
    for number in [number, due_ns] {
        bytes.push(0xCF);
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    bytes
}

/// A session that has subscribed.
enum Subscriber {
    LongPoll(Client, LongPoll),
    WebSocket(Pipe),
}

impl Subscriber {
    fn subscribe(order: &Order) -> Result<Self, WorkerError> {
        let (address, realm) = (order.address, &order.publisher.realm);
        if order.is_longpoll {
            let mut client = Client::connect(address, &address.to_string())?;
            let session = LongPoll::open(&mut client, LONG_POLL_PATH, realm)?;
            session.subscribe(&mut client, TOPIC)?;
            // The SUBSCRIBED.
            client.post(&session.receive_path(), "")?;
            return Ok(Self::LongPoll(client, session));
        }
        let resource = format!("/{WEBSOCKET_PATH}");
        let target = Target::own(Endpoint::Tcp(address), Case::OF_THE_DOCUMENT[1], &resource);
        let mut pipe = Pipe::connect(&target)?;
        pipe.join(realm)?;
        pipe.subscribe(TOPIC)?;
        Ok(Self::WebSocket(pipe))
    }

    /// Receives so many events, in order.
    fn receive(&mut self, first: u64, count: u64) -> Result<Latencies, WorkerError> {
        let mut times = Latencies::default();
        let mut next = first;
        let mut note = |number: u64, due_ns: u64| {
            if number != next {
                let why = format!("event {number} came in place of {next}");
                return Err(WorkerError::Handshake(why));
            }
            next += 1;
            times.record(monotonic_ns().saturating_sub(due_ns));
            Ok(next == first + count)
        };
        let mut is_done = false;
        while !is_done {
            match self {
                Self::LongPoll(client, session) => {
                    let body = client.post(&session.receive_path(), "")?;
                    let event: Vec<Value> = serde_json::from_slice(&body)?;
                    let args = event.into_iter().nth(4).unwrap_or_default();
                    let (number, due_ns) = serde_json::from_value(args)?;
                    is_done = note(number, due_ns)?;
                }
                Self::WebSocket(pipe) => {
                    let is_open = pipe.receive(|message, _| match message {
                        Message::Event { payload, .. } => {
                            let (number, due_ns) = serde_json::from_slice(payload.args)?;
                            is_done = note(number, due_ns)?;
                            Ok(())
                        }
                        other => Err(WorkerError::unexpected("EVENT", other)),
                    })?;
                    if !is_open {
                        return Err(WorkerError::Closed("sending events"));
                    }
                }
            }
        }
        Ok(times)
    }
}
