//! A client of another protocol in a vhost: its methods are calls, and the vhost's are frames in a mailbox.
//!
//! ```text
//! admit ─▶ Guest::enter ─▶ handle, publish (again after `Waits`, once reading is resumed) ─▶ leave
//!                                  │
//!                                  └─▶ frames on channel 1 of the mailbox
//! ```
//!
//! To the vhost it is a connection like any other, with one channel in confirm mode: permissions, limits, flow control and
//! an operator's `close` apply. Unlike an AMQP client's, its channel outlives a refused method.

mod admit;

use std::sync::Arc;
use std::time::Instant;

use crosstie_amqp::method::{BasicAck, BasicPublish, BasicQos, ConfirmSelect};
use crosstie_amqp::{Method, Properties as MessageProperties, Table, Version};
use crosstie_front::cause::Facts;
use crosstie_front::end_reason::EndReason;
use crosstie_front::report;
use crosstie_front::watch::WatchKey;
use crosstie_queues::{ChannelKey, Fault, MessageContent, RetainedMax, Time, Vhost};
use crosstie_transport::{Connection, ConnectionLimits};

pub use self::admit::{Admission, Admitted, NotAdmitted, Proof, admit};
use super::backends::Rights;
use super::broker::Broker;
use super::client::{About, Capabilities, Client, Properties};
use super::client_rights::{client_id, of_client};
use super::flow::Published;
use super::let_in::LetIn;
use super::open::Open;
use super::outbox::VhostOutbox;
use super::peer::Peer;
use super::resident::{limits, speaking};
use super::spans;

/// A client of another protocol in its vhost.
pub struct Guest {
    open: Open,
    channel: ChannelKey,
    broker: Arc<Broker>,
    /// No method is handled again after [`Answered::Waits`].
    is_leaving: bool,
}

/// The client, as operators see it.
pub struct Described<'a> {
    /// The mailbox that receives frames.
    pub mailbox: &'a Arc<Connection>,
    pub transport: u32,
    /// The place of the client's own connection.
    pub watch: WatchKey,
    /// The protocol's name, as RabbitMQ lists it.
    pub protocol: &'static str,
    pub properties: Table<'a>,
    /// Seconds.
    pub keep_alive: u16,
    /// Maximum number of unacknowledged deliveries of each consumer.
    pub prefetch: u16,
}

/// The outcome of a method.
#[derive(Debug)]
pub enum Answered {
    Done,
    /// The same method is to be handled again once reading from the mailbox is resumed.
    Waits,
    /// The method had no effect.
    Refused(Fault),
    /// The connection is being closed.
    Over,
}

/// The number of a guest's channel.
const CHANNEL: u16 = 1;

/// The bounds of a guest's mailbox: deliveries wait in their queues, and answers have room behind the largest message.
pub fn mailbox_limits(broker: &Broker) -> Arc<ConnectionLimits> {
    Arc::new(limits(&broker.home.bounds.limits, broker))
}

impl Guest {
    /// Lets a client into its vhost, or returns why it may have no channel.
    pub fn enter(
        broker: &Arc<Broker>,
        admitted: Admitted,
        client: &Described<'_>,
    ) -> Result<Self, String> {
        let mut about = About {
            user: Arc::clone(&admitted.user.name),
            protocol: client.protocol,
            mechanism: "",
            channels_max: 1,
            heartbeat_s: client.keep_alive,
            ..About::default()
        };
        about.properties = Properties::of(client.properties);
        let permissions = of_client(
            &admitted.permissions,
            &about,
            &broker.shared.client_patterns,
        );
        if let Some(Rights::Http(rights)) = &admitted.rights
            && let Some(client_id) = client_id(&about)
        {
            rights.set_client_id(client_id);
        }
        let is_impersonator = admitted.user.tags.iter().any(|tag| tag == "impersonator");
        let entered = LetIn {
            client: Client {
                user: None,
                about,
                capabilities: Capabilities::of_guest(),
                version: Version::default(),
                frame_bytes_max: 0,
                channels_max: 1,
                heartbeat_s: client.keep_alive,
            },
            vhost: admitted.vhost,
            permissions,
            rights: admitted.rights,
            is_impersonator,
            seat: admitted.seat,
        };
        let options = speaking();
        let speaking = (client.transport, &options);
        let open = Open::enter(entered, client.mailbox, speaking, client.watch, broker);
        broker.add_peer(open.peer());
        open.peer().report_opened();
        let channel = open_channel(broker, open.peer());
        match channel {
            Ok(channel) => {
                let mut guest = Self {
                    open,
                    channel,
                    broker: Arc::clone(broker),
                    is_leaving: false,
                };
                guest.handle(&ConfirmSelect { no_wait: true }.into());
                guest.handle(&BasicQos::of_each(client.prefetch).into());
                Ok(guest)
            }
            Err(why) => {
                open.leave(broker);
                Err(why)
            }
        }
    }

    /// Handles any method of a channel but `basic.publish`.
    pub fn handle(&mut self, method: &Method<'_>) -> Answered {
        self.act(false, |vhost, now, channel, outbox| {
            vhost.handle(now, channel, method, outbox)
        })
    }

    /// Acknowledges deliveries, which needs no right.
    pub fn settle(&mut self, ack: &BasicAck) {
        let peer = self.open.peer();
        let mut turn = peer.vhost.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        // A tag that is unknown was requeued meanwhile.
        let _ = vhost.handle(now, self.channel, &(*ack).into(), outbox);
        turn.spend();
        turn.finish();
    }

    /// Publishes a message, and retains it for its routing key if there are bounds for that: without a body, it removes the
    /// retained one. The confirm, which waits for both, comes as a frame. The second value is false if there was no room.
    pub fn publish(
        &mut self,
        publish: &BasicPublish<'_>,
        (properties, body): (MessageProperties<'_>, &[u8]),
        retained: Option<RetainedMax>,
    ) -> (Answered, bool) {
        let names = (publish.exchange, publish.routing_key);
        let vhost = self.open.peer().vhost.name();
        let span = spans::begin_published(vhost, names, properties, body.len());
        let mut has_room = true;
        let answered = self.act(true, |vhost, now, channel, outbox| {
            let Some(max) = retained else {
                return vhost.publish(now, channel, publish, properties, body, outbox);
            };
            let content = (properties, body);
            has_room = vhost.publish_retained(now, channel, publish, content, max, outbox)?;
            Ok(())
        });
        match &answered {
            Answered::Done => spans::end_published(span, Ok(())),
            Answered::Refused(fault) => spans::end_published(span, Err(fault)),
            Answered::Waits | Answered::Over => {}
        }
        (answered, has_room)
    }

    /// The message that a routing key retains.
    pub fn retained(&self, routing_key: &str) -> Option<Arc<MessageContent>> {
        let mut turn = self.open.peer().vhost.turn(Instant::now());
        let (vhost, now, _) = turn.enter();
        let found = vhost.retained(now, routing_key).map(Arc::clone);
        turn.finish();
        found
    }

    /// Whether the client may publish there: for what the vhost publishes later in its name.
    pub fn may_publish(&mut self, exchange: &str, routing_key: &str) -> Answered {
        self.act(false, |vhost, _, channel, _| {
            vhost.check_publish(channel, exchange, routing_key)
        })
    }

    /// Whether an exchange has a binding to a queue with that key, and without arguments.
    pub fn has_binding(&self, exchange: &str, queue: &str, routing_key: &str) -> bool {
        let vhost = self.open.peer().vhost.lock();
        vhost.has_binding(exchange, queue, routing_key)
    }

    /// Whether the vhost has a queue of that name.
    pub fn has_queue(&self, name: &str) -> bool {
        self.open.peer().vhost.lock().has_queue(name)
    }

    /// Gives up the method that waits for a right: further ones are handled by the rights that are known.
    pub fn stop_waiting(&mut self) {
        self.is_leaving = true;
    }

    /// Takes the client out of its vhost.
    pub fn leave(self, seen: EndReason, is_stop: bool) {
        let peer = self.open.peer();
        let facts = Facts::of(&peer.connection, is_stop, seen);
        report::connection_closed(&peer.connection, &peer.about.user, &facts);
        peer.connection.close();
        self.open.leave(&self.broker);
    }

    fn act(
        &self,
        is_content: bool,
        act: impl FnOnce(&mut Vhost<Arc<Peer>>, Time, ChannelKey, &mut VhostOutbox) -> Result<(), Fault>,
    ) -> Answered {
        let peer = self.open.peer();
        if peer.is_told_to_close() || peer.connection.is_closed() {
            return Answered::Over;
        }
        if !self.is_leaving && peer.keeps_asking().is_some() {
            return Answered::Waits;
        }
        // A pause is over.
        peer.has_resumed();
        let mut turn = peer.vhost.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        let result = act(vhost, now, self.channel, outbox);
        if is_content {
            turn.share();
        }
        turn.spend();
        let journaled = turn.finish();
        let waits = result.is_err() && peer.awaits_right(&self.broker);
        peer.note_handled();
        let published = Published {
            content: is_content,
            journaled,
        };
        peer.vhost.judge(peer, published);
        match result {
            _ if waits => Answered::Waits,
            Ok(()) => Answered::Done,
            Err(fault) => Answered::Refused(fault),
        }
    }
}

fn open_channel(broker: &Arc<Broker>, peer: &Arc<Peer>) -> Result<ChannelKey, String> {
    broker.count_channel(peer)?;
    let Some(key) = peer.key.get() else {
        return Err("the vhost has no such connection".to_owned());
    };
    let mut turn = peer.vhost.turn(Instant::now());
    let (vhost, ..) = turn.enter();
    let opened = vhost.open_channel(*key, CHANNEL);
    turn.finish();
    opened.map_err(|fault| fault.text)
}
