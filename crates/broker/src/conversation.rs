//! One AMQP connection from its first byte: header, negotiation, frames, end.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crosstie_amqp::frame::HEARTBEAT;
use crosstie_amqp::method::{ConnectionClose, ConnectionCloseOk};
use crosstie_amqp::{Method, PROTOCOL_HEADER, Version};
use crosstie_config::AmqpTransport;
use crosstie_front::admission::Excess;
use crosstie_front::cause::{self, Facts};
use crosstie_front::counters::{Counter, counters};
use crosstie_front::end_reason::EndReason;
use crosstie_front::listen::Listening;
use crosstie_front::report;
use crosstie_front::serve::{Arrival, Converse, Endpoint, HandedOver, Successor, serve};
use crosstie_front::watch::{self, WatchKey};
use crosstie_queues::Fault;
use crosstie_transport::proxy_header::{ProxyHeader, UNEXPECTED_PROXY_HEADER};
use crosstie_transport::{Connection, ConnectionLimits, Ended, Outcome, Place, Protocol};

use super::broker::Broker;
use super::handled::{End, Handled};
use super::let_in::LetIn;
use super::negotiation::{self, Negotiation, Next};
use super::open::{Entered, Open, decode_alone, next_frame};
use super::peer;
use super::splice::{self, Cluster, Greeting, Spliced};
use super::turned_away::TurnedAway;

mod elsewhere;

/// The state that a listener's AMQP conversations share.
pub struct AmqpEndpoint {
    pub(crate) options: AmqpTransport,
    pub(crate) broker: Arc<Broker>,
    /// Set on listeners for other nodes, which bring their clients here.
    pub(crate) cluster: Option<Cluster>,
}

impl AmqpEndpoint {
    pub fn new(options: AmqpTransport, broker: Arc<Broker>, cluster: Option<Cluster>) -> Self {
        Self {
            options,
            broker,
            cluster,
        }
    }

    /// The bounds of a connection. A consumer may be slow: unread messages stay in its queues, and heartbeats detect a
    /// dead client. The output queue has room for answers behind the largest message.
    pub fn limits(&self, router: &ConnectionLimits) -> ConnectionLimits {
        ConnectionLimits {
            queue_bytes_max: router.queue_bytes_max + self.broker.message_bytes_max(),
            stall_max: Duration::MAX,
            message_max: router.message_max,
            bytes_per_second_min: router.bytes_per_second_min,
            account: Arc::clone(&router.account),
        }
    }
}

/// The server's side of one connection.
pub(crate) struct Conversation {
    listening: Arc<Listening>,
    endpoint: Arc<AmqpEndpoint>,
    connection: Arc<Connection>,
    watch: WatchKey,
    /// Set if the connection limit is reached: this connection is refused.
    excess: Option<Excess>,
    /// The protocol version, once the client has sent its header.
    version: Version,
    state: State,
}

enum State {
    /// Waits for the protocol header.
    Header,
    Negotiating(Box<Negotiation>),
    /// Waits for a node to describe its client.
    Greeting(Greeting),
    /// The client enters as soon as its vhost has an owner.
    Waiting(Box<LetIn>, Instant),
    /// Another node has the vhost; the splice reads from here on.
    PassedOn(Option<Box<Spliced>>),
    Open(Box<Open>),
    /// The broker has sent `connection.close`; everything before the answer is dropped.
    Closing,
    /// Everything is sent. Further input is dropped until the client closes its socket or the timeout ends.
    Over,
}

impl Conversation {
    pub(crate) fn new(
        listening: Arc<Listening>,
        endpoint: Arc<AmqpEndpoint>,
        connection: Arc<Connection>,
        excess: Option<Excess>,
    ) -> Self {
        let watch = &listening.watch;
        let within = listening.handshake_timeout;
        let watch = watch.add(Arc::clone(&connection), listening.number, within);
        Self {
            listening,
            endpoint,
            connection,
            watch,
            excess,
            version: Version::default(),
            state: State::Header,
        }
    }

    /// Handles the front of `input` in the current state.
    fn handle(&mut self, input: &[u8]) -> Handled {
        match &mut self.state {
            State::Header => self.open(input),
            State::Negotiating(_) => self.negotiate(input),
            State::Greeting(_) => self.greet(input),
            State::Waiting(..) => self.go_on(),
            State::Open(open) => open.handle(input, &self.endpoint.broker),
            State::Closing => self.await_answer(input),
            State::Over | State::PassedOn(_) => Handled::Wait {
                consumed: input.len(),
                wanted: 0,
            },
        }
    }

    /// Reads the protocol header (section 4.2.2), or starts a node's greeting.
    fn open(&mut self, input: &[u8]) -> Handled {
        if !input.is_empty() {
            self.connection.note_spoken();
        }
        if self.endpoint.cluster.is_some() {
            self.state = State::Greeting(Greeting::default());
            return Handled::Done { consumed: 0 };
        }
        let version = match Version::asked_for(input) {
            Ok(Some(version)) => version,
            Ok(None) => {
                return Handled::Wait {
                    consumed: 0,
                    wanted: PROTOCOL_HEADER.len(),
                };
            }
            Err(e) => {
                let found = input[..input.len().min(PROTOCOL_HEADER.len())].escape_ascii();
                let text = match ProxyHeader::begins(input) {
                    true => UNEXPECTED_PROXY_HEADER.to_owned(),
                    false => format!("bad protocol header \"{found}\": {e}"),
                };
                report::peer_fault(&self.connection, "handshake", &text);
                // Sends the header of the supported version, then ends.
                self.append(&PROTOCOL_HEADER);
                self.count_refused();
                return Handled::End(End::Answered);
            }
        };
        if let Some(excess) = self.excess {
            let refused = report::Refused::new(excess.reason(), excess.text());
            report::connection_refused(&self.connection, &refused);
            self.count_refused();
            return Handled::End(End::Answered);
        }
        let AmqpEndpoint {
            options, broker, ..
        } = &*self.endpoint;
        let negotiation = Negotiation::begin(&self.connection, version, broker, options);
        self.version = version;
        self.state = State::Negotiating(Box::new(negotiation));
        Handled::Done {
            consumed: PROTOCOL_HEADER.len(),
        }
    }

    fn count_refused(&self) {
        counters().count(Counter::ConnectionsRefused);
        let totals = &self.endpoint.broker.totals;
        totals.connections_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Handles a frame of a client that has not entered a vhost.
    fn negotiate(&mut self, input: &[u8]) -> Handled {
        let (frame, consumed) = match next_frame(input, negotiation::FRAME_BYTES_MAX) {
            Ok(found) => found,
            Err(handled) => return handled,
        };
        let method = match decode_alone(&frame, self.version) {
            Ok(Some(Method::ConnectionClose(_))) => return Handled::End(End::ByClient),
            Ok(Some(Method::ConnectionCloseOk(_))) => return Handled::End(End::Answered),
            Ok(Some(method)) => method,
            Ok(None) => return Handled::Done { consumed },
            Err(fault) => return Handled::End(End::Fault(fault)),
        };
        let AmqpEndpoint {
            options, broker, ..
        } = &*self.endpoint;
        let State::Negotiating(negotiation) = &mut self.state else {
            return Handled::Done { consumed };
        };
        match negotiation.handle(&method, &self.connection, broker, options) {
            Ok(Next::Method) => Handled::Done { consumed },
            Ok(Next::Again) => Handled::Yield { consumed: 0 },
            Ok(Next::Enter(client)) => self.admit(client, None, consumed),
            Err(away) => Handled::End(End::TurnedAway(Box::new(away))),
        }
    }

    /// Lets a client into its vhost. Returns whether it may enter. A client that arrives while its listener stops is
    /// closed silently, as if it had come later: after `connection.open-ok` and 320 many libraries stop reconnecting.
    fn enter(&mut self, entered: Entered) -> bool {
        let AmqpEndpoint {
            options, broker, ..
        } = &*self.endpoint;
        let heartbeat_s = entered.client.heartbeat_s;
        self.version = entered.client.version;
        let transport = (self.listening.number, options);
        let open = Open::enter(entered, &self.connection, transport, self.watch, broker);
        let watch = &self.listening.watch;
        watch.opened_with_heartbeats(self.watch, heartbeat_s, &HEARTBEAT);
        let peer = Arc::clone(open.peer());
        broker.add_peer(&peer);
        self.state = State::Open(Box::new(open));
        if self.listening.is_stopping() {
            return false;
        }
        // One whose rights have gone meanwhile hears only that.
        if !peer.is_told_to_close() {
            Negotiation::welcome(&self.connection, self.version);
        }
        peer.report_opened();
        true
    }

    /// Handles a frame after the broker's `connection.close`: only `connection.close-ok` or the client's own close
    /// counts.
    fn await_answer(&self, input: &[u8]) -> Handled {
        let (frame, consumed) = match next_frame(input, self.endpoint.options.frame_bytes_max) {
            Ok(found) => found,
            Err(Handled::End(_)) => return Handled::End(End::Answered),
            Err(handled) => return handled,
        };
        // A frame that is not a method is dropped too.
        match decode_alone(&frame, self.version) {
            Ok(Some(Method::ConnectionClose(_))) => Handled::End(End::ByClient),
            Ok(Some(Method::ConnectionCloseOk(_))) => Handled::End(End::Answered),
            _ => Handled::Done { consumed },
        }
    }

    /// Ends the conversation as `end` says.
    fn end(&mut self, end: End) {
        let is_open = matches!(self.state, State::Open(_));
        match end {
            End::ByClient => self.answer_close(),
            End::Answered => self.finish(),
            // The cause was noted before.
            End::Forced => self.set_closing(),
            End::Fault(fault) => {
                if !is_open {
                    self.count_refused();
                }
                report::peer_fault(&self.connection, fault.code.name(), &fault.text);
                self.say_close(&fault);
            }
            End::TurnedAway(away) => {
                self.count_refused();
                report::connection_refused(&self.connection, &away.refused());
                let TurnedAway {
                    fault, is_silent, ..
                } = *away;
                match is_silent {
                    true => self.finish(),
                    false => self.say_close(&fault),
                }
            }
        }
    }

    /// Sends `connection.close` with the fault.
    fn say_close(&mut self, fault: &Fault) {
        peer::send(
            &self.connection,
            self.version,
            &ConnectionClose {
                reply_code: fault.code.code(),
                reply_text: &peer::reply_text(&fault.text),
                class_id: fault.class_id,
                method_id: fault.method_id,
            },
        );
        self.set_closing();
    }

    /// From now on only the client's answer counts, within the closing timeout.
    fn set_closing(&mut self) {
        self.leave(EndReason::Violation);
        self.state = State::Closing;
        self.await_end();
    }

    /// Answers `connection.close`. The client closes the socket, as with RabbitMQ: a library that finds the end of the
    /// stream behind the answer, or instead of it, reports a broken connection.
    fn answer_close(&mut self) {
        // Unacknowledged deliveries are requeued before the client reads the answer.
        self.leave(EndReason::Goodbye);
        peer::send(&self.connection, self.version, &ConnectionCloseOk {});
        self.await_end();
    }

    /// Sends the output queue, and gives the peer the closing timeout to close its side.
    fn finish(&mut self) {
        self.leave(EndReason::Goodbye);
        self.connection.finish();
        self.await_end();
    }

    /// Starts the closing timeout.
    fn await_end(&self) {
        let watch = &self.listening.watch;
        watch.closing(self.watch, self.endpoint.options.closing_timeout);
    }

    /// Stops reading and takes the client out of its vhost. The noted cause of the end takes precedence over `seen`.
    fn leave(&mut self, seen: EndReason) {
        if let State::Open(open) = mem::replace(&mut self.state, State::Over) {
            let facts = Facts::of(&self.connection, self.listening.is_stopping(), seen);
            report::connection_closed(&self.connection, &open.peer().about.user, &facts);
            open.leave(&self.endpoint.broker);
        }
    }

    fn append(&self, bytes: &[u8]) {
        // A new connection has room; if it is gone already, its reader sees that.
        let _ = self.connection.append(|out| {
            out.extend_from_slice(bytes);
            Ok::<(), ()>(())
        });
    }
}

impl Converse for Conversation {
    const IS_METERED: bool = true;

    fn take_successor(&mut self) -> Option<Successor> {
        let State::PassedOn(spliced) = &mut self.state else {
            return None;
        };
        let spliced = spliced.take()?;
        let endpoint = Arc::clone(&self.endpoint);
        Some(Box::new(move |handed| pass_on(endpoint, spliced, handed)))
    }

    fn handle_ended(&mut self, ended: &Ended) {
        match (ended, &self.state) {
            (Ended::StageFailed(e), _) => {
                report::peer_fault(&self.connection, "stage", &e.to_string());
            }
            (Ended::ByPeer { unconsumed: 1.. }, State::Open(_)) if !self.connection.is_closed() => {
                report::peer_fault(&self.connection, "truncated", "closed inside a frame");
            }
            (_, State::Open(_)) => watch::look_given_up(&self.connection),
            _ => {}
        }
        self.leave(cause::seen(ended));
    }
}

/// Splices a client to the node that has its vhost.
fn pass_on(endpoint: Arc<AmqpEndpoint>, spliced: Box<Spliced>, handed: HandedOver<'_>) {
    let kept = Arc::clone(&handed.connection);
    let workers = handed.workers;
    let serving = splice::serve(
        handed.admitted,
        endpoint,
        spliced,
        handed.connection,
        handed.input,
    );
    if let Err(e) = workers.spawn_web(serving) {
        tracing::error!("cannot start a thread for clients of other nodes: {e}");
        kept.close();
    }
}

impl Endpoint for AmqpEndpoint {
    fn start(self: Arc<Self>, arrival: Arrival) {
        let listening = arrival.listening();
        serve(arrival, Place::Any, |connection, excess| {
            Conversation::new(listening, self, connection, excess)
        });
    }
}

impl Protocol for Conversation {
    fn may_move(&self) -> bool {
        true
    }

    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        counters().count(Counter::Reads);
        counters().add(Counter::ReceivedBytes, input.len() as u64);
        let mut at = 0;
        loop {
            match self.handle(&input[at..]) {
                Handled::Done { consumed } => at += consumed,
                Handled::Wait { consumed, wanted } => {
                    let consumed = at + consumed;
                    return Outcome::Continue { consumed, wanted };
                }
                Handled::Yield { consumed } => {
                    let consumed = at + consumed;
                    return Outcome::Yield { consumed };
                }
                Handled::HandOver { consumed } => {
                    let consumed = at + consumed;
                    return Outcome::HandOver { consumed };
                }
                Handled::End(end) => {
                    // Input behind a fault is dropped. Behind a forced end, the client's answer may follow.
                    if let End::Fault(_) = end {
                        at = input.len();
                    }
                    self.end(end);
                }
            }
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // Also if the task is dropped with its runtime, or unwound by a panic.
        self.leave(EndReason::Lost);
        self.listening.watch.remove(self.watch);
        if std::thread::panicking() {
            self.connection.close();
        }
    }
}
