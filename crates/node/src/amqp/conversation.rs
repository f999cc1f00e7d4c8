//! What one AMQP connection says, from its first octet: header, negotiation, frames, its end.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crosstie_amqp::frame::{self, Decoded, Frame};
use crosstie_amqp::method::{ConnectionClose, ConnectionCloseOk};
use crosstie_amqp::{Method, PROTOCOL_HEADER, ReplyCode};
use crosstie_config::AmqpTransport;
use crosstie_queues::Fault;
use crosstie_transport::{Connection, ConnectionLimits, Ended, Outcome, Protocol};

use super::broker::Broker;
use super::negotiation::{self, Entered, Negotiation, Step, TurnedAway};
use super::open::{Open, Then, decode_alone};
use super::peer;
use crate::counters::{Counter, counters};
use crate::listen::Listening;
use crate::report;
use crate::watch::WatchKey;

/// What AMQP's conversations of a listener share.
pub(crate) struct AmqpEndpoint {
    pub(crate) options: AmqpTransport,
    pub(crate) broker: Arc<Broker>,
}

impl AmqpEndpoint {
    /// The bounds of a connection. A consumer may take its time: what it does not read stays in
    /// its queues, and heartbeats say whether it lives. Answers have room behind the largest
    /// message.
    pub(crate) fn limits(&self, router: &ConnectionLimits) -> ConnectionLimits {
        ConnectionLimits {
            queue_bytes_max: router.queue_bytes_max + self.broker.message_bytes_max,
            stall_max: Duration::MAX,
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
    /// There are as many connections as may be: this one is turned away.
    is_excess: bool,
    stage: Stage,
}

enum Stage {
    /// The protocol header is awaited.
    Header,
    Negotiating(Box<Negotiation>),
    Open(Box<Open>),
    /// The broker has said `connection.close`; what comes before the answer is nobody's.
    Closing,
    /// Everything is said; what still comes is nobody's, and the client has so long to close its
    /// socket.
    Over,
}

/// What becomes of the connection after a frame outside of a vhost.
enum Flow {
    Continue,
    /// The client closes the connection.
    Answer,
    /// The client has answered that the broker closes it.
    Answered,
}

impl Conversation {
    pub(crate) fn new(
        listening: Arc<Listening>,
        endpoint: Arc<AmqpEndpoint>,
        connection: Arc<Connection>,
        is_excess: bool,
    ) -> Self {
        let watch = &listening.router.watch;
        let within = listening.handshake_timeout;
        let watch = watch.add(Arc::clone(&connection), listening.number, within);
        Self {
            listening,
            endpoint,
            connection,
            watch,
            is_excess,
            stage: Stage::Header,
        }
    }

    /// Cleans up after the connection, however it ended.
    pub(crate) fn handle_ended(&mut self, ended: &Ended) {
        match (ended, &self.stage) {
            (Ended::StageFailed(e), _) => {
                report::peer_fault(&self.connection, "stage", &e.to_string());
            }
            (Ended::ByPeer { unconsumed }, Stage::Open(_)) if *unconsumed > 0 => {
                report::peer_fault(&self.connection, "truncated", "closed inside a frame");
            }
            (Ended::ByPeer { .. } | Ended::Failed(_), Stage::Open(open)) => {
                let text = "client unexpectedly closed TCP connection";
                report::connection_closed(&self.connection, &open.peer().about.user, text);
            }
            _ => {}
        }
        self.leave();
    }

    /// Looks at the protocol header (section 4.2.2); `None` asks for more.
    fn open(&mut self, input: &[u8]) -> Option<usize> {
        let known = input.len().min(PROTOCOL_HEADER.len());
        if input[..known] != PROTOCOL_HEADER[..known] {
            let found = input[..known].escape_ascii();
            report::peer_fault(
                &self.connection,
                "handshake",
                &format!("bad protocol header \"{found}\", expected AMQP 0-9-1"),
            );
            // The version that is spoken here, and the end.
            self.append(&PROTOCOL_HEADER);
            return Some(self.turn_away());
        }
        if known < PROTOCOL_HEADER.len() {
            return None;
        }
        if self.is_excess {
            let text = "there are as many connections as are allowed";
            report::session_refused(&self.connection, "connections_max", text);
            return Some(self.turn_away());
        }
        let AmqpEndpoint { options, broker } = &*self.endpoint;
        let negotiation = Negotiation::begin(&self.connection, broker, options);
        self.stage = Stage::Negotiating(Box::new(negotiation));
        Some(PROTOCOL_HEADER.len())
    }

    /// Ends a connection that was never in a vhost.
    fn turn_away(&mut self) -> usize {
        self.count_refused();
        self.finish();
        0
    }

    fn count_refused(&self) {
        counters().count(Counter::ConnectionsRefused);
        let totals = &self.endpoint.broker.totals;
        totals.connections_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Handles a frame of a client that has not entered a vhost.
    fn negotiate(&mut self, frame: &Frame<'_>) -> Flow {
        let method = match decode_alone(frame) {
            Ok(Some(method)) => method,
            Ok(None) => return Flow::Continue,
            Err(fault) => return self.refuse(fault),
        };
        match method {
            Method::ConnectionClose(_) => return Flow::Answer,
            Method::ConnectionCloseOk(_) => return Flow::Answered,
            _ => {}
        }
        let AmqpEndpoint { options, broker } = &*self.endpoint;
        let Stage::Negotiating(negotiation) = &mut self.stage else {
            return Flow::Continue;
        };
        match negotiation.handle(&method, &self.connection, broker, options) {
            Ok(Step::More) => Flow::Continue,
            Ok(Step::Entered(entered)) => {
                self.enter(*entered);
                Flow::Continue
            }
            Err(TurnedAway {
                fault,
                why,
                is_silent,
            }) => {
                self.count_refused();
                report::session_refused(&self.connection, fault.code.name(), &why);
                match is_silent {
                    true => Flow::Answered,
                    false => self.say_close(&fault),
                }
            }
        }
    }

    /// Ends a negotiation that was none.
    fn refuse(&mut self, fault: Fault) -> Flow {
        self.count_refused();
        report::peer_fault(&self.connection, fault.code.name(), &fault.text);
        self.say_close(&fault)
    }

    /// Lets a client into its vhost.
    fn enter(&mut self, entered: Entered) {
        let AmqpEndpoint { options, broker } = &*self.endpoint;
        let heartbeat_s = entered.client.heartbeat_s;
        let transport = (self.listening.number, options);
        let open = Open::enter(entered, &self.connection, transport, self.watch, broker);
        let watch = &self.listening.router.watch;
        watch.opened_amqp(self.watch, heartbeat_s);
        Negotiation::welcome(&self.connection);
        let peer = open.peer();
        broker.add_peer(peer);
        report::connection_opened(peer);
        // A router that stopped meanwhile did not find it.
        if self.listening.is_stopping() {
            // It may have been told so for another reason.
            let _ = broker.close_connection(watch, peer.number, "shutdown");
        }
        self.stage = Stage::Open(Box::new(open));
    }

    /// Handles the frames of a client in a vhost; how many octets are done with, and how many are
    /// wanted.
    fn handle_open(&mut self, input: &[u8]) -> (usize, usize) {
        let Stage::Open(open) = &mut self.stage else {
            return (0, 0);
        };
        match open.handle(input, &self.endpoint.broker) {
            Then::Read { consumed, wanted } => return (consumed, wanted),
            Then::Forced => {
                self.set_closing();
                return (0, 0);
            }
            Then::ClosedByClient => {
                let user = &open.peer().about.user;
                report::connection_closed(&self.connection, user, "closed by the client");
                self.answer_close();
            }
            Then::Answered => self.finish(),
            Then::Fault(fault) => {
                report::peer_fault(&self.connection, fault.code.name(), &fault.text);
                self.say_close(&fault);
            }
        }
        (input.len(), 0)
    }

    /// Handles everything else frame by frame.
    fn handle_other(&mut self, input: &[u8]) -> Outcome {
        let mut consumed = 0;
        loop {
            if let Stage::Open(_) = self.stage {
                let (more, wanted) = self.handle_open(&input[consumed..]);
                consumed += more;
                // It may have begun to close by what somebody else did.
                if !matches!(self.stage, Stage::Closing) || consumed == input.len() {
                    return Outcome::Continue { consumed, wanted };
                }
            }
            if let Stage::Over = self.stage {
                let consumed = input.len();
                return Outcome::Continue {
                    consumed,
                    wanted: 0,
                };
            }
            let frame_bytes_max = match self.stage {
                Stage::Negotiating(_) => negotiation::FRAME_BYTES_MAX,
                _ => self.endpoint.options.frame_bytes_max,
            };
            let frame = match frame::decode(&input[consumed..], frame_bytes_max) {
                Ok(Decoded::Frame { frame, consumed: n }) => {
                    consumed += n;
                    frame
                }
                Ok(Decoded::Incomplete { wanted }) => {
                    return Outcome::Continue { consumed, wanted };
                }
                Err(e) => {
                    let code = ReplyCode::FrameError;
                    let fault = Fault::in_method(code, (0, 0), e.to_string());
                    match self.stage {
                        Stage::Negotiating(_) => drop(self.refuse(fault)),
                        _ => self.finish(),
                    }
                    let consumed = input.len();
                    return Outcome::Continue {
                        consumed,
                        wanted: 0,
                    };
                }
            };
            let flow = match self.stage {
                Stage::Negotiating(_) => self.negotiate(&frame),
                // What is no method is nobody's either.
                _ => match decode_alone(&frame) {
                    Ok(Some(Method::ConnectionClose(_))) => Flow::Answer,
                    Ok(Some(Method::ConnectionCloseOk(_))) => Flow::Answered,
                    _ => Flow::Continue,
                },
            };
            match flow {
                Flow::Answer => self.answer_close(),
                Flow::Answered => self.finish(),
                Flow::Continue => {}
            }
        }
    }

    /// Says that the broker closes the connection, and for what.
    fn say_close(&mut self, fault: &Fault) -> Flow {
        peer::send(
            &self.connection,
            &ConnectionClose {
                reply_code: fault.code.code(),
                reply_text: &peer::reply_text(&fault.text),
                class_id: fault.class_id,
                method_id: fault.method_id,
            },
        );
        self.set_closing();
        Flow::Continue
    }

    /// From now on only the client's answer counts, and it has not long for it.
    fn set_closing(&mut self) {
        self.leave();
        self.stage = Stage::Closing;
        self.await_end();
    }

    /// Answers that the client closes the connection. Its socket is left to the client, as by
    /// RabbitMQ: one that finds the end behind the answer, or in place of it, takes it for a
    /// connection that broke.
    fn answer_close(&mut self) {
        // What it has not acknowledged is requeued before it hears that all is over.
        self.leave();
        peer::send(&self.connection, &ConnectionCloseOk {});
        self.await_end();
    }

    /// Sends what is queued, and gives the peer a moment to close its side.
    fn finish(&mut self) {
        self.leave();
        self.connection.finish();
        self.await_end();
    }

    /// The peer has only so long for what it has yet to do.
    fn await_end(&self) {
        let watch = &self.listening.router.watch;
        watch.closing(self.watch, self.endpoint.options.closing_timeout);
    }

    /// Nothing more is read, and the client is in no vhost.
    fn leave(&mut self) {
        if let Stage::Open(open) = mem::replace(&mut self.stage, Stage::Over) {
            open.leave(&self.endpoint.broker);
        }
    }

    fn append(&self, octets: &[u8]) {
        // A new connection has room; one that is gone already shows so to its reader.
        let _ = self.connection.append(|out| {
            out.extend_from_slice(octets);
            Ok::<(), ()>(())
        });
    }
}

impl Protocol for Conversation {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        counters().count(Counter::Reads);
        counters().add(Counter::ReceivedBytes, input.len() as u64);
        let mut opening = 0;
        if let Stage::Header = self.stage {
            match self.open(input) {
                Some(consumed) => opening = consumed,
                None => {
                    let wanted = PROTOCOL_HEADER.len();
                    return Outcome::Continue {
                        consumed: 0,
                        wanted,
                    };
                }
            }
        }
        match self.handle_other(&input[opening..]) {
            Outcome::Continue { consumed, wanted } => Outcome::Continue {
                consumed: opening + consumed,
                wanted,
            },
            other => other,
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // Also when the task is dropped with its runtime, or a panic unwinds it.
        self.leave();
        self.listening.router.watch.remove(self.watch);
        if std::thread::panicking() {
            self.connection.close();
        }
    }
}
