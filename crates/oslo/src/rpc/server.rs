//! A server: consumes a topic's requests, has an endpoint do them, sends replies.
//!
//! A request is acknowledged before it is dispatched, as oslo.messaging does: if the server dies
//! while it is at it, the caller's call times out, and nothing is done twice.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use crosstie_amqp::Method;
use crosstie_amqp::method::{
    BasicAck, BasicCancel, BasicConsume, QueueBind, QueueDeclare, QueueDelete,
};
use serde_json::Value;

use super::reply_sender::ReplySender;
use super::{CHANNEL, Endpoint, Incoming, Target, expiring};
use crate::connection::{Connection, ConnectionError, ConnectionOptions};
use crate::envelope::{EnvelopeError, Reply, read_request};
use crate::failure::RemoteFailure;
use crate::identifier::Identifiers;
use crate::url::TransportUrl;

/// How often a server that nobody calls looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Requests that take long, at once; more wait in the queue. As many as oslo.messaging has threads.
const SLOW_MAX: usize = 64;

/// Identifiers of the last requests, by which one that comes twice is known.
const SEEN_MAX: usize = 16;

/// Ends a server in good order, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// Why a server cannot go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerError {
    Connection(ConnectionError),
    /// The broker ended the consuming, mostly because somebody deleted the queue.
    Cancelled {
        consumer_tag: String,
    },
    /// The system gives no random number.
    Chance(getrandom::Error),
}

/// A server whose queues exist and are consumed from.
pub struct RpcServer {
    connection: Connection,
    replies: ReplySender,
    target: Target,
    fanout_queue: String,
    on_complaint: Box<dyn Fn(&str) + Sync>,
}

impl RpcServer {
    /// Connects and makes the queues of `target`, whose `server` is the server's name.
    /// `on_complaint` is told what went wrong with one request and is no reason to end.
    pub fn open(
        url: &TransportUrl,
        target: Target,
        options: &ConnectionOptions,
        on_complaint: impl Fn(&str) + Sync + 'static,
    ) -> Result<Self, ServerError> {
        let mut identifiers = Identifiers::new().map_err(ServerError::Chance)?;
        let mut connection = Connection::open(url, options)?;
        connection.open_channel(CHANNEL)?;
        let fanout_queue = format!("{}_fanout_{}", target.topic, identifiers.draw());
        declare(&mut connection, &target, &fanout_queue)?;
        Ok(Self {
            connection,
            replies: ReplySender::new(url, options, identifiers),
            target,
            fanout_queue,
            on_complaint: Box::new(on_complaint),
        })
    }

    /// Serves until it is told to stop; then takes no more requests, finishes those it has taken, and
    /// closes in good order.
    pub fn run(mut self, endpoint: &impl Endpoint, stop: &Stop) -> Result<(), ServerError> {
        let served = {
            let Self {
                connection,
                replies,
                on_complaint,
                target,
                ..
            } = &mut self;
            let (at_work, at_work_seen) = channel();
            let serving = Serving {
                replies,
                endpoint,
                target,
                complain: on_complaint.as_ref(),
                slow: AtomicUsize::new(0),
                at_work,
            };
            // Whoever is still at work when it ends is waited for.
            thread::scope(|scope| serving.serve(scope, connection, at_work_seen, stop))
        };
        served?;
        let delete = QueueDelete {
            queue: &self.fanout_queue,
            ..QueueDelete::default()
        };
        self.connection.call(CHANNEL, &delete)?;
        self.replies.close()?;
        Ok(self.connection.close()?)
    }

    pub fn target(&self) -> &Target {
        &self.target
    }
}

impl Stop {
    /// To end soon.
    pub fn wish(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_wished(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Exchanges, queues, bindings and consumers, in the order in which oslo.messaging makes them.
fn declare(
    connection: &mut Connection,
    target: &Target,
    fanout_queue: &str,
) -> Result<(), ConnectionError> {
    let own = format!(
        "{}.{}",
        target.topic,
        target.server.as_deref().unwrap_or("")
    );
    let fanout = target.fanout_exchange();
    let expiring = expiring();
    let queues = [
        (target.topic.as_str(), target.exchange.as_str(), false),
        (&own, &target.exchange, false),
        (fanout_queue, &fanout, true),
    ];
    for (queue, exchange, is_fanout) in queues {
        let of = Target {
            fanout: is_fanout,
            ..target.clone()
        };
        connection.call(CHANNEL, &of.exchange_declare(exchange))?;
        let mut declare = QueueDeclare {
            queue,
            ..QueueDeclare::default()
        };
        if is_fanout {
            declare.arguments = expiring.as_table();
        }
        connection.call(CHANNEL, &declare)?;
        let bind = QueueBind {
            queue,
            exchange,
            routing_key: if is_fanout { &target.topic } else { queue },
            ..QueueBind::default()
        };
        connection.call(CHANNEL, &bind)?;
    }
    for ((queue, ..), consumer_tag) in queues.into_iter().zip(CONSUMER_TAGS) {
        let consume = BasicConsume {
            queue,
            consumer_tag,
            ..BasicConsume::default()
        };
        connection.call(CHANNEL, &consume)?;
    }
    Ok(())
}

const CONSUMER_TAGS: [&str; 3] = ["1", "2", "3"];

/// What every request's handling needs.
struct Serving<'a, E> {
    replies: &'a ReplySender,
    endpoint: &'a E,
    target: &'a Target,
    complain: &'a (dyn Fn(&str) + Sync),
    slow: AtomicUsize,
    /// Calls whose callers want to hear that they still run.
    at_work: Sender<AtWork>,
}

/// A call that takes long, and whose caller wants to hear of it meanwhile.
struct AtWork {
    msg_id: String,
    queue: String,
    interval: Duration,
    next: Instant,
    is_done: Arc<AtomicBool>,
}

impl<E: Endpoint> Serving<'_, E> {
    fn serve<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        connection: &mut Connection,
        at_work_seen: Receiver<AtWork>,
        stop: &Stop,
    ) -> Result<(), ServerError> {
        let mut seen: VecDeque<String> = VecDeque::with_capacity(SEEN_MAX);
        let mut at_work = Vec::new();
        let look = connection.keep_alive_interval().unwrap_or(Duration::MAX);
        let mut kept_alive = Instant::now();
        while !stop.is_wished() {
            if self.slow.load(Ordering::Acquire) < SLOW_MAX {
                if let Some(request) = self.next_request(connection)? {
                    self.handle(scope, request, &mut seen);
                }
            } else {
                // What has come stays unacknowledged, in the socket, meanwhile.
                thread::sleep(LOOK_EVERY / 20);
            }
            at_work.extend(at_work_seen.try_iter());
            self.tell_callers(&mut at_work);
            if kept_alive.elapsed() > look / 2 {
                kept_alive = Instant::now();
                connection.keep_alive()?;
                self.keep_replies_alive();
            }
        }
        for consumer_tag in CONSUMER_TAGS {
            let cancel = BasicCancel {
                consumer_tag,
                no_wait: false,
            };
            connection.call(CHANNEL, &cancel)?;
        }
        // What came and is not acknowledged goes back to its queue when the channel closes; the
        // callers of what is being done still hear of it.
        while self.slow.load(Ordering::Acquire) > 0 {
            thread::sleep(LOOK_EVERY / 20);
            at_work.extend(at_work_seen.try_iter());
            self.tell_callers(&mut at_work);
            if kept_alive.elapsed() > look / 2 {
                kept_alive = Instant::now();
                connection.keep_alive()?;
            }
        }
        Ok(())
    }

    /// The next request, acknowledged.
    fn next_request(
        &self,
        connection: &mut Connection,
    ) -> Result<Option<Result<Incoming, EnvelopeError>>, ServerError> {
        let Some(event) = connection.next_event(Some(LOOK_EVERY))? else {
            return Ok(None);
        };
        let (delivery_tag, request) = match (&event.method, &event.content) {
            (Method::BasicDeliver(deliver), Some(content)) => {
                (deliver.delivery_tag, read_request(&content.body))
            }
            (Method::BasicCancel(cancel), _) => {
                let consumer_tag = cancel.consumer_tag.to_owned();
                return Err(ServerError::Cancelled { consumer_tag });
            }
            _ => return Ok(None),
        };
        let ack = BasicAck {
            delivery_tag,
            multiple: false,
        };
        connection.send(CHANNEL, &ack);
        connection.flush()?;
        Ok(Some(request.map(|request| Incoming { request })))
    }

    fn handle<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        request: Result<Incoming, EnvelopeError>,
        seen: &mut VecDeque<String>,
    ) {
        let incoming = match request {
            Ok(incoming) => incoming,
            Err(error) => return (self.complain)(&format!("dropped a request: {error}")),
        };
        if let Some(unique_id) = &incoming.request.unique_id {
            if seen.contains(unique_id) {
                return (self.complain)(&format!("dropped a request that came twice: {unique_id}"));
            }
            if seen.len() == SEEN_MAX {
                seen.pop_front();
            }
            seen.push_back(unique_id.clone());
        }
        if !self.endpoint.is_slow(&incoming.request.call.method) {
            return self.dispatch(&incoming);
        }
        self.slow.fetch_add(1, Ordering::AcqRel);
        let is_done = Arc::new(AtomicBool::new(false));
        self.watch(&incoming, &is_done);
        scope.spawn(move || {
            self.dispatch(&incoming);
            is_done.store(true, Ordering::Release);
            self.slow.fetch_sub(1, Ordering::AcqRel);
        });
    }

    /// Has the endpoint do it, and sends what came of it.
    fn dispatch(&self, incoming: &Incoming) {
        let request = &incoming.request;
        let outcome = match self.refused(incoming) {
            Some(failure) => Err(failure),
            None => self.endpoint.invoke(incoming),
        };
        let (Some(msg_id), Some(queue)) = (&request.msg_id, &request.reply_queue) else {
            if let Err(failure) = outcome {
                (self.complain)(&format!(
                    "a cast of {} failed: {failure}",
                    request.call.method
                ));
            }
            return;
        };
        let reply = Reply {
            msg_id: Some(msg_id.clone()),
            outcome,
            is_ending: true,
        };
        if let Err(error) = self.replies.send(queue, &reply) {
            (self.complain)(&format!("cannot reply to {msg_id}: {error}"));
        }
    }

    /// Why the request is for somebody else.
    fn refused(&self, incoming: &Incoming) -> Option<Box<RemoteFailure>> {
        let call = &incoming.request.call;
        let asked = call.version.as_deref().unwrap_or(VERSION);
        let offered = self.target.version.as_deref().unwrap_or(VERSION);
        let is_namespace = match &self.target.namespace {
            Some(_) => call.namespace == self.target.namespace,
            None => call.namespace.is_none(),
        };
        (!is_namespace || !is_compatible(offered, asked))
            .then(|| RemoteFailure::unsupported_version(asked, &call.method))
    }

    /// Has a slow call's caller hear of it, if that is wished for.
    fn watch(&self, incoming: &Incoming, is_done: &Arc<AtomicBool>) {
        let request = &incoming.request;
        let interval = request.monitor_timeout_s.map(|seconds| seconds / 2.0);
        if let (Some(msg_id), Some(queue), Some(seconds)) =
            (&request.msg_id, &request.reply_queue, interval)
            && seconds >= 1.0
            && let Ok(interval) = Duration::try_from_secs_f64(seconds)
        {
            let watched = AtWork {
                msg_id: msg_id.clone(),
                queue: queue.clone(),
                interval,
                next: Instant::now() + interval,
                is_done: is_done.clone(),
            };
            // Its receiver lives as long as the serving.
            let _ = self.at_work.send(watched);
        }
    }

    fn tell_callers(&self, at_work: &mut Vec<AtWork>) {
        at_work.retain(|call| !call.is_done.load(Ordering::Acquire));
        for call in at_work {
            let now = Instant::now();
            if now < call.next {
                continue;
            }
            call.next = now + call.interval;
            let reply = Reply {
                msg_id: Some(call.msg_id.clone()),
                outcome: Ok(Value::Null),
                is_ending: false,
            };
            if let Err(error) = self.replies.send(&call.queue, &reply) {
                (self.complain)(&format!("cannot tell a caller to wait: {error}"));
            }
        }
    }

    fn keep_replies_alive(&self) {
        if let Err(error) = self.replies.keep_alive() {
            (self.complain)(&format!("a connection for replies is lost: {error}"));
        }
        match self.replies.take_lost() {
            0 => {}
            lost => (self.complain)(&format!("{lost} replies reached no caller's queue")),
        }
    }
}

/// What a request asks for, and a server offers, when nothing is said of it.
const VERSION: &str = "1.0";

/// Whether who offers one version can do what asks for the other: the same first number, and a second
/// one that is not less.
fn is_compatible(offered: &str, asked: &str) -> bool {
    let numbers = |version: &str| -> Option<(u32, u32)> {
        let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
        let minor = minor.split('.').next().unwrap_or("0");
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    match (numbers(offered), numbers(asked)) {
        (Some(offered), Some(asked)) => offered.0 == asked.0 && offered.1 >= asked.1,
        _ => false,
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => error.fmt(f),
            Self::Cancelled { consumer_tag } => {
                write!(
                    f,
                    "the broker ended consumer {consumer_tag}; its queue is gone"
                )
            }
            Self::Chance(error) => write!(f, "the system gives no random number: {error}"),
        }
    }
}

impl std::error::Error for ServerError {}

impl From<ConnectionError> for ServerError {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}

#[cfg(test)]
mod tests {
    use super::is_compatible;

    #[test]
    fn versions_are_compared() {
        let rows = [
            ("1.0", "1.0", true),
            ("1.3", "1.2", true),
            ("1.2", "1.3", false),
            ("2.0", "1.0", false),
            ("1", "1.0", true),
            ("1.0", "x", false),
        ];
        for (offered, asked, expected) in rows {
            assert_eq!(is_compatible(offered, asked), expected, "{offered} {asked}");
        }
    }
}
