//! Changes that must survive, in the order in which they happened.
//!
//! Only sessions that are kept after their connection and retained messages have records. A store may keep of all records
//! with one [`Subject`] the last, drop those of a session that has ended, and hand back the rest in any order. The records of
//! one input are committed together or not at all.

use std::sync::Arc;

use crosstie_mqtt::{Options, PacketId, QoS};

use crate::{Message, MessageNumber, SessionNumber, Time};

/// A position in the journal: everything up to a record, counted from the space's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// One change of the durable state.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A session is kept from now on, or has changed.
    Session {
        session: SessionNumber,
        client_id: Arc<str>,
        /// 0: the session has ended. Its will and its shared messages are on their way to others.
        expiry_s: u32,
        /// Without a connection. A restart ends all connections, and restores those sessions with their full expiry.
        ends_at: Option<Time>,
        /// The client may know the messages in front of this place, ...
        known_before: u64,
        /// ... and so many of the first ones.
        known_max: u32,
    },
    /// With everything of its own.
    SessionEnded {
        session: SessionNumber,
    },
    Subscribed {
        session: SessionNumber,
        filter: Arc<str>,
        options: Options,
        /// 0: none.
        identifier: u32,
        /// Retained messages are still to be sent.
        is_scanned: bool,
    },
    Unsubscribed {
        session: SessionNumber,
        filter: Arc<str>,
    },
    /// A message that waits for sessions: one record, however many they are. Entries in queues that have no such record
    /// are those of a publication that has not reached all receivers: a restart drops them.
    Message {
        message: MessageNumber,
        content: Arc<Message>,
    },
    /// No session has it any more.
    MessageGone {
        message: MessageNumber,
    },
    /// A message waits for a session. Its packet identifier follows from the place.
    Queued {
        session: SessionNumber,
        /// The order of a session's messages.
        place: u64,
        message: MessageNumber,
        qos: QoS,
        is_retained: bool,
        /// By a shared subscription.
        is_shared: bool,
        /// The receiver has sent PUBREC: the message is not sent again.
        is_forwarded: bool,
        identifiers: Vec<u32>,
    },
    Departed {
        session: SessionNumber,
        place: u64,
    },
    /// A message of QoS 2 has come from the client, and is not released.
    Received {
        session: SessionNumber,
        packet_id: PacketId,
    },
    Released {
        session: SessionNumber,
        packet_id: PacketId,
    },
    /// The will of a connection, to be published after its delay if the node ends.
    Will {
        session: SessionNumber,
        /// Without its expiry, which begins with the publication.
        content: Arc<Message>,
        expiry_s: Option<u32>,
        delay_s: u32,
    },
    WillGone {
        session: SessionNumber,
    },
    /// Replaces the topic's earlier one.
    Retained {
        content: Arc<Message>,
    },
    RetainedGone {
        topic: Arc<str>,
    },
}

/// The subject of a record: a later record about the same subject replaces an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    Session(SessionNumber),
    Subscription(SessionNumber, Arc<str>),
    Message(MessageNumber),
    /// A place in the queue of a session.
    Entry(SessionNumber, u64),
    Incoming(SessionNumber, PacketId),
    Will(SessionNumber),
    Retained(Arc<str>),
}

impl Record {
    pub fn subject(&self) -> Subject {
        match self {
            Self::Session { session, .. } | Self::SessionEnded { session } => {
                Subject::Session(*session)
            }
            Self::Subscribed {
                session, filter, ..
            }
            | Self::Unsubscribed { session, filter } => {
                Subject::Subscription(*session, Arc::clone(filter))
            }
            Self::Message { message, .. } | Self::MessageGone { message } => {
                Subject::Message(*message)
            }
            Self::Queued { session, place, .. } | Self::Departed { session, place } => {
                Subject::Entry(*session, *place)
            }
            Self::Received { session, packet_id } | Self::Released { session, packet_id } => {
                Subject::Incoming(*session, *packet_id)
            }
            Self::Will { session, .. } | Self::WillGone { session } => Subject::Will(*session),
            Self::Retained { content } => Subject::Retained(content.topic().into()),
            Self::RetainedGone { topic } => Subject::Retained(Arc::clone(topic)),
        }
    }

    /// Whether it says that its subject is gone: a store drops it together with the earlier ones.
    pub fn is_removal(&self) -> bool {
        matches!(
            self,
            Self::SessionEnded { .. }
                | Self::Unsubscribed { .. }
                | Self::MessageGone { .. }
                | Self::Departed { .. }
                | Self::Released { .. }
                | Self::WillGone { .. }
                | Self::RetainedGone { .. }
        )
    }
}

impl Subject {
    /// The session that it ends with.
    pub fn session(&self) -> Option<SessionNumber> {
        match self {
            Self::Session(session)
            | Self::Subscription(session, _)
            | Self::Entry(session, _)
            | Self::Incoming(session, _)
            | Self::Will(session) => Some(*session),
            Self::Message(_) | Self::Retained(_) => None,
        }
    }
}

/// Records that were not handed to a store yet.
#[derive(Debug, Default)]
pub struct Journal {
    pub records: Vec<Record>,
    /// Up to and including the last of them.
    pub position: Position,
}

impl Journal {
    pub(crate) fn record(&mut self, record: Record) {
        self.position.0 += 1;
        self.records.push(record);
    }
}
