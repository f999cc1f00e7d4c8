//! A server at work: requests, replies, and the reconnection to a lost broker.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use crosstie_amqp::Method;
use crosstie_amqp::method::BasicAck;
use crosstie_joints::{EnvelopeError, RemoteFailure, Reply, is_compatible, read_request};
use serde_json::Value;

use super::at_work::AtWork;
use super::reply_sender::ReplySender;
use super::server::{Reconnect, ServerError, Stop};
use super::{CHANNEL, Endpoint, Incoming, Target, consumer};
use crosstie_amqp_client::{Connection, ConnectionError};

/// The interval at which an idle server checks for a stop request.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Maximum number of concurrent slow requests, which is the number of oslo.messaging's threads; more wait in the queue.
const SLOW_MAX: usize = 64;

/// Number of remembered request identifiers, by which repetitions are recognized.
const SEEN_MAX: usize = 16;

/// Time limit and interval for a slow call's reply while the broker is away. Oslo.messaging waits as long for the queue
/// of a caller that reconnects itself.
const REPLY_TRIED_FOR: Duration = Duration::from_secs(60);
const REPLY_TRIED_EVERY: Duration = Duration::from_millis(250);

/// The context of every request.
pub(super) struct Service<'a, E> {
    pub(super) replies: &'a ReplySender,
    pub(super) endpoint: &'a E,
    pub(super) target: &'a Target,
    pub(super) complain: &'a (dyn Fn(&str) + Sync),
    pub(super) stop: &'a Stop,
    pub(super) reconnect: Option<&'a Reconnect>,
    pub(super) open: &'a (dyn Fn() -> Result<Connection, ConnectionError> + Sync),
    pub(super) slow: AtomicUsize,
    /// Calls whose callers request progress messages.
    pub(super) at_work: Sender<AtWork>,
}

/// The serving thread's memory across connections.
struct Memory {
    seen: VecDeque<String>,
    at_work: Vec<AtWork>,
    at_work_seen: Receiver<AtWork>,
    kept_alive: Instant,
}

/// Counts a slow call for as long as it lasts, however it ends.
struct Slow<'a> {
    count: &'a AtomicUsize,
    is_done: Arc<AtomicBool>,
}

impl Drop for Slow<'_> {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Release);
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<E: Endpoint> Service<'_, E> {
    /// Serves until a stop request, and then until the accepted requests are done. Returns the connection, if the
    /// broker is there.
    pub(super) fn serve<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        connection: Connection,
        at_work_seen: Receiver<AtWork>,
    ) -> Result<Option<Connection>, ServerError> {
        let mut memory = Memory {
            seen: VecDeque::with_capacity(SEEN_MAX),
            at_work: Vec::new(),
            at_work_seen,
            kept_alive: Instant::now(),
        };
        let mut connection = Some(connection);
        while let Some(open) = &mut connection {
            let Err(error) = self.consume(scope, open, &mut memory) else {
                break;
            };
            let Some(reconnect) = self.reconnect else {
                return Err(error);
            };
            (self.complain)(&format!("{error}; connecting again"));
            // The receiver must not wait for it.
            drop(connection.take());
            self.replies.forget_idle();
            connection = self.connect_again(reconnect);
        }
        if let Some(connection) = &mut connection {
            consumer::cancel(connection)?;
        }
        // Unacknowledged requests return to their queue when the channel closes; the callers of running ones still get
        // progress.
        while self.slow.load(Ordering::Acquire) > 0 {
            thread::sleep(LOOK_EVERY / 20);
            self.look_after(connection.as_mut(), &mut memory)?;
        }
        Ok(connection)
    }

    /// Serves on a connection until a stop request.
    fn consume<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        connection: &mut Connection,
        memory: &mut Memory,
    ) -> Result<(), ServerError> {
        while !self.stop.is_wished() {
            if self.slow.load(Ordering::Acquire) < SLOW_MAX {
                if let Some(request) = self.next_request(connection)? {
                    self.handle(scope, request, &mut memory.seen);
                }
            } else {
                // Received requests stay unacknowledged, in the socket, meanwhile.
                thread::sleep(LOOK_EVERY / 20);
            }
            self.look_after(Some(connection), memory)?;
        }
        Ok(())
    }

    /// Connects as soon as the broker is available; `None` after a stop request.
    fn connect_again(&self, reconnect: &Reconnect) -> Option<Connection> {
        let mut delay = reconnect.delay;
        let mut said = String::new();
        while !self.stop.is_wished() {
            match (self.open)() {
                Ok(connection) => {
                    (self.complain)("connected again");
                    return Some(connection);
                }
                Err(error) => {
                    let error = error.to_string();
                    // An operator wants new errors only, not one for each attempt.
                    if error != said {
                        (self.complain)(&format!("{error}; trying again"));
                        said = error;
                    }
                }
            }
            let until = Instant::now() + delay;
            while !self.stop.is_wished() && Instant::now() < until {
                thread::sleep(delay.min(LOOK_EVERY));
            }
            delay = (delay * 2).min(reconnect.delay_max);
        }
        None
    }

    /// Sends progress to callers, and heartbeats to the broker.
    fn look_after(
        &self,
        connection: Option<&mut Connection>,
        memory: &mut Memory,
    ) -> Result<(), ServerError> {
        memory.at_work.extend(memory.at_work_seen.try_iter());
        self.tell_callers(&mut memory.at_work);
        let Some(connection) = connection else {
            return Ok(());
        };
        let interval = connection.keep_alive_interval().unwrap_or(Duration::MAX);
        if memory.kept_alive.elapsed() > interval / 2 {
            memory.kept_alive = Instant::now();
            connection.keep_alive()?;
            self.keep_replies_alive();
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
        let ack = BasicAck::one(delivery_tag);
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
            return self.dispatch(&incoming, Duration::ZERO);
        }
        self.slow.fetch_add(1, Ordering::AcqRel);
        let is_done = Arc::new(AtomicBool::new(false));
        if let Some(at_work) = AtWork::of(&incoming, &is_done) {
            // Its receiver lives as long as the serving.
            let _ = self.at_work.send(at_work);
        }
        let slow = Slow {
            count: &self.slow,
            is_done,
        };
        scope.spawn(move || {
            let _slow = slow;
            self.dispatch(&incoming, REPLY_TRIED_FOR);
        });
    }

    /// Calls the endpoint, and sends the result, retrying for so long.
    fn dispatch(&self, incoming: &Incoming, tried_for: Duration) {
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
        let mut sent = self.replies.send(queue, &reply);
        if sent.is_err() {
            let until = Instant::now() + tried_for;
            while sent.is_err() && Instant::now() < until && !self.stop.is_wished() {
                thread::sleep(REPLY_TRIED_EVERY);
                sent = self.replies.send(queue, &reply);
            }
        }
        if let Err(error) = sent {
            (self.complain)(&format!("cannot reply to {msg_id}: {error}"));
        }
    }

    /// The reason why the request is for another server.
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

    fn tell_callers(&self, at_work: &mut Vec<AtWork>) {
        at_work.retain(|call| !call.is_done());
        for call in at_work {
            if !call.is_due() {
                continue;
            }
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
            lost => (self.complain)(&format!(
                "{lost} replies are not known to have reached a caller's queue"
            )),
        }
    }
}

/// The default version of requests and servers.
const VERSION: &str = "1.0";
