//! Methods: one struct per method, and one enum of them all.
//!
//! The table below is the protocol's; a field's kind is the specification's domain. Arguments
//! that the protocol reserves (`ticket`) are read over, and written as zero.

use std::fmt;

use crate::reader::{ReadError, Reader};
use crate::table::Table;
use crate::writer::Writer;

/// The class whose methods carry content.
pub const BASIC_CLASS: u16 = 60;

/// The encoding of a method's arguments, which every method's struct has.
pub trait Arguments {
    const CLASS_ID: u16;
    const METHOD_ID: u16;
    /// Its name, as `basic.publish`.
    const NAME: &'static str;

    /// Appends a method frame's payload: class, method, arguments.
    fn write(&self, out: &mut Vec<u8>);
}

/// Why the payload of a method frame is none. The codes are those that RabbitMQ closes the
/// connection with; at an unknown method it closes the socket, and the code is the specification's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodError {
    /// It is too short to name a method: 501 `FRAME_ERROR`.
    NoMethod,
    /// There is no such method: 503 `COMMAND_INVALID`.
    Unknown { class_id: u16, method_id: u16 },
    /// Its arguments cannot be read: 501 `FRAME_ERROR`.
    Arguments {
        class_id: u16,
        method_id: u16,
        name: &'static str,
        error: ReadError,
    },
}

macro_rules! field_type {
    (octet) => { u8 };
    (short) => { u16 };
    (long) => { u32 };
    (longlong) => { u64 };
    (bit) => { bool };
    (shortstr) => { &'a str };
    (longstr) => { &'a [u8] };
    (table) => { Table<'a> };
}

macro_rules! read_field {
    ($reader:ident, table) => {
        Table::read(&mut $reader)
    };
    ($reader:ident, $kind:ident) => {
        $reader.$kind()
    };
}

/// An argument of a method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument<'a> {
    Number(u64),
    Bit(bool),
    Text(&'a str),
    Bytes(&'a [u8]),
    Table(Table<'a>),
}

macro_rules! argument {
    (octet, $value:expr) => {
        Argument::Number($value.into())
    };
    (short, $value:expr) => {
        Argument::Number($value.into())
    };
    (long, $value:expr) => {
        Argument::Number($value.into())
    };
    (longlong, $value:expr) => {
        Argument::Number($value)
    };
    (bit, $value:expr) => {
        Argument::Bit($value)
    };
    (shortstr, $value:expr) => {
        Argument::Text($value)
    };
    (longstr, $value:expr) => {
        Argument::Bytes($value)
    };
    (table, $value:expr) => {
        Argument::Table($value)
    };
}

macro_rules! methods {
    ($(
        $(#[$doc:meta])*
        $name:ident $(<$life:lifetime>)? = $class:literal, $method:literal, $text:literal
        $([$ticket:ident])? { $($field:ident: $kind:ident),* $(,)? }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq)]
            pub struct $name $(<$life>)? {
                $(pub $field: field_type!($kind),)*
            }

            impl $(<$life>)? Arguments for $name $(<$life>)? {
                const CLASS_ID: u16 = $class;
                const METHOD_ID: u16 = $method;
                const NAME: &'static str = $text;

                fn write(&self, out: &mut Vec<u8>) {
                    #[allow(unused_mut, reason = "some methods have no arguments")]
                    let mut writer = Writer::new(out);
                    writer.short($class);
                    writer.short($method);
                    $(methods!(@ticket writer $ticket);)?
                    $(writer.$kind(self.$field);)*
                }
            }

            impl<'a> From<$name $(<$life>)?> for Method<'a> {
                fn from(method: $name $(<$life>)?) -> Self {
                    Self::$name(method)
                }
            }
        )*

        /// Any method.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Method<'a> {
            $($name($name $(<$life>)?),)*
        }

        impl<'a> Method<'a> {
            /// Reads a method frame's payload.
            pub fn decode(payload: &'a [u8]) -> Result<Self, MethodError> {
                let mut reader = Reader::new(payload);
                let (Ok(class_id), Ok(method_id)) = (reader.short(), reader.short()) else {
                    return Err(MethodError::NoMethod);
                };
                Self::read(class_id, method_id, reader)
            }

            /// Reads a method's arguments.
            #[inline]
            pub(crate) fn read(
                class_id: u16,
                method_id: u16,
                mut reader: Reader<'a>,
            ) -> Result<Self, MethodError> {
                match (class_id, method_id) {
                    $(($class, $method) => {
                        #[allow(unused_mut, reason = "some methods have no arguments")]
                        let mut read = || {
                            $(let _: &str = stringify!($ticket); reader.short()?;)?
                            $(let $field = read_field!(reader, $kind)?;)*
                            reader.end()?;
                            Ok($name { $($field),* })
                        };
                        read().map(Self::$name).map_err(|error| MethodError::Arguments {
                            class_id,
                            method_id,
                            name: $text,
                            error,
                        })
                    })*
                    _ => Err(MethodError::Unknown { class_id, method_id }),
                }
            }

            /// Appends a method frame's payload.
            pub fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name(method) => method.write(out),)*
                }
            }

            /// Its class and its number there.
            pub fn ids(&self) -> (u16, u16) {
                match self {
                    $(Self::$name(_) => ($class, $method),)*
                }
            }

            /// Its arguments by name.
            pub fn arguments(&self) -> Vec<(&'static str, Argument<'a>)> {
                match self {
                    $(Self::$name(method) => {
                        let _ = method;
                        vec![$((stringify!($field), argument!($kind, method.$field)),)*]
                    })*
                }
            }

            /// Its name, as `basic.publish`.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $text,)*
                }
            }
        }
    };
    (@ticket $writer:ident ticket) => { $writer.short(0) };
}

methods! {
    ConnectionStart<'a> = 10, 10, "connection.start" {
        version_major: octet, version_minor: octet, server_properties: table,
        mechanisms: longstr, locales: longstr,
    }
    ConnectionStartOk<'a> = 10, 11, "connection.start-ok" {
        client_properties: table, mechanism: shortstr, response: longstr, locale: shortstr,
    }
    ConnectionSecure<'a> = 10, 20, "connection.secure" { challenge: longstr }
    ConnectionSecureOk<'a> = 10, 21, "connection.secure-ok" { response: longstr }
    ConnectionTune = 10, 30, "connection.tune" {
        channel_max: short, frame_max: long, heartbeat: short,
    }
    ConnectionTuneOk = 10, 31, "connection.tune-ok" {
        channel_max: short, frame_max: long, heartbeat: short,
    }
    ConnectionOpen<'a> = 10, 40, "connection.open" {
        virtual_host: shortstr, capabilities: shortstr, insist: bit,
    }
    ConnectionOpenOk<'a> = 10, 41, "connection.open-ok" { known_hosts: shortstr }
    ConnectionClose<'a> = 10, 50, "connection.close" {
        reply_code: short, reply_text: shortstr, class_id: short, method_id: short,
    }
    ConnectionCloseOk = 10, 51, "connection.close-ok" {}
    ConnectionBlocked<'a> = 10, 60, "connection.blocked" { reason: shortstr }
    ConnectionUnblocked = 10, 61, "connection.unblocked" {}
    ConnectionUpdateSecret<'a> = 10, 70, "connection.update-secret" {
        new_secret: longstr, reason: shortstr,
    }
    ConnectionUpdateSecretOk = 10, 71, "connection.update-secret-ok" {}

    ChannelOpen<'a> = 20, 10, "channel.open" { out_of_band: shortstr }
    ChannelOpenOk<'a> = 20, 11, "channel.open-ok" { channel_id: longstr }
    ChannelFlow = 20, 20, "channel.flow" { active: bit }
    ChannelFlowOk = 20, 21, "channel.flow-ok" { active: bit }
    ChannelClose<'a> = 20, 40, "channel.close" {
        reply_code: short, reply_text: shortstr, class_id: short, method_id: short,
    }
    ChannelCloseOk = 20, 41, "channel.close-ok" {}

    /// Of the protocol's version 0-8; old clients still say it.
    AccessRequest<'a> = 30, 10, "access.request" {
        realm: shortstr, exclusive: bit, passive: bit, active: bit, write: bit, read: bit,
    }
    AccessRequestOk = 30, 11, "access.request-ok" { ticket: short }

    ExchangeDeclare<'a> = 40, 10, "exchange.declare" [ticket] {
        exchange: shortstr, kind: shortstr, passive: bit, durable: bit, auto_delete: bit,
        internal: bit, no_wait: bit, arguments: table,
    }
    ExchangeDeclareOk = 40, 11, "exchange.declare-ok" {}
    ExchangeDelete<'a> = 40, 20, "exchange.delete" [ticket] {
        exchange: shortstr, if_unused: bit, no_wait: bit,
    }
    ExchangeDeleteOk = 40, 21, "exchange.delete-ok" {}
    ExchangeBind<'a> = 40, 30, "exchange.bind" [ticket] {
        destination: shortstr, source: shortstr, routing_key: shortstr, no_wait: bit,
        arguments: table,
    }
    ExchangeBindOk = 40, 31, "exchange.bind-ok" {}
    ExchangeUnbind<'a> = 40, 40, "exchange.unbind" [ticket] {
        destination: shortstr, source: shortstr, routing_key: shortstr, no_wait: bit,
        arguments: table,
    }
    ExchangeUnbindOk = 40, 51, "exchange.unbind-ok" {}

    QueueDeclare<'a> = 50, 10, "queue.declare" [ticket] {
        queue: shortstr, passive: bit, durable: bit, exclusive: bit, auto_delete: bit,
        no_wait: bit, arguments: table,
    }
    QueueDeclareOk<'a> = 50, 11, "queue.declare-ok" {
        queue: shortstr, message_count: long, consumer_count: long,
    }
    QueueBind<'a> = 50, 20, "queue.bind" [ticket] {
        queue: shortstr, exchange: shortstr, routing_key: shortstr, no_wait: bit,
        arguments: table,
    }
    QueueBindOk = 50, 21, "queue.bind-ok" {}
    QueuePurge<'a> = 50, 30, "queue.purge" [ticket] { queue: shortstr, no_wait: bit }
    QueuePurgeOk = 50, 31, "queue.purge-ok" { message_count: long }
    QueueDelete<'a> = 50, 40, "queue.delete" [ticket] {
        queue: shortstr, if_unused: bit, if_empty: bit, no_wait: bit,
    }
    QueueDeleteOk = 50, 41, "queue.delete-ok" { message_count: long }
    QueueUnbind<'a> = 50, 50, "queue.unbind" [ticket] {
        queue: shortstr, exchange: shortstr, routing_key: shortstr, arguments: table,
    }
    QueueUnbindOk = 50, 51, "queue.unbind-ok" {}

    BasicQos = 60, 10, "basic.qos" { prefetch_size: long, prefetch_count: short, global: bit }
    BasicQosOk = 60, 11, "basic.qos-ok" {}
    BasicConsume<'a> = 60, 20, "basic.consume" [ticket] {
        queue: shortstr, consumer_tag: shortstr, no_local: bit, no_ack: bit, exclusive: bit,
        no_wait: bit, arguments: table,
    }
    BasicConsumeOk<'a> = 60, 21, "basic.consume-ok" { consumer_tag: shortstr }
    BasicCancel<'a> = 60, 30, "basic.cancel" { consumer_tag: shortstr, no_wait: bit }
    BasicCancelOk<'a> = 60, 31, "basic.cancel-ok" { consumer_tag: shortstr }
    BasicPublish<'a> = 60, 40, "basic.publish" [ticket] {
        exchange: shortstr, routing_key: shortstr, mandatory: bit, immediate: bit,
    }
    BasicReturn<'a> = 60, 50, "basic.return" {
        reply_code: short, reply_text: shortstr, exchange: shortstr, routing_key: shortstr,
    }
    BasicDeliver<'a> = 60, 60, "basic.deliver" {
        consumer_tag: shortstr, delivery_tag: longlong, redelivered: bit, exchange: shortstr,
        routing_key: shortstr,
    }
    BasicGet<'a> = 60, 70, "basic.get" [ticket] { queue: shortstr, no_ack: bit }
    BasicGetOk<'a> = 60, 71, "basic.get-ok" {
        delivery_tag: longlong, redelivered: bit, exchange: shortstr, routing_key: shortstr,
        message_count: long,
    }
    BasicGetEmpty<'a> = 60, 72, "basic.get-empty" { cluster_id: shortstr }
    BasicAck = 60, 80, "basic.ack" { delivery_tag: longlong, multiple: bit }
    BasicReject = 60, 90, "basic.reject" { delivery_tag: longlong, requeue: bit }
    BasicRecoverAsync = 60, 100, "basic.recover-async" { requeue: bit }
    BasicRecover = 60, 110, "basic.recover" { requeue: bit }
    BasicRecoverOk = 60, 111, "basic.recover-ok" {}
    BasicNack = 60, 120, "basic.nack" { delivery_tag: longlong, multiple: bit, requeue: bit }

    ConfirmSelect = 85, 10, "confirm.select" { no_wait: bit }
    ConfirmSelectOk = 85, 11, "confirm.select-ok" {}

    TxSelect = 90, 10, "tx.select" {}
    TxSelectOk = 90, 11, "tx.select-ok" {}
    TxCommit = 90, 20, "tx.commit" {}
    TxCommitOk = 90, 21, "tx.commit-ok" {}
    TxRollback = 90, 30, "tx.rollback" {}
    TxRollbackOk = 90, 31, "tx.rollback-ok" {}
}

impl<'a> QueueDeclare<'a> {
    /// A declaration by name; all else is the default.
    pub fn named(queue: &'a str) -> Self {
        Self {
            queue,
            ..Self::default()
        }
    }
}

impl<'a> QueueBind<'a> {
    /// The queue of a binding.
    pub fn of(queue: &'a str) -> Self {
        Self {
            queue,
            ..Self::default()
        }
    }

    /// The source of the binding, and its key.
    pub fn to(self, exchange: &'a str, routing_key: &'a str) -> Self {
        Self {
            exchange,
            routing_key,
            ..self
        }
    }
}

impl<'a> BasicPublish<'a> {
    /// A publication that is neither mandatory nor immediate.
    pub fn to(exchange: &'a str, routing_key: &'a str) -> Self {
        Self {
            exchange,
            routing_key,
            ..Self::default()
        }
    }
}

impl BasicQos {
    /// A limit for each later consumer of the channel; 0 is none.
    pub fn of_each(prefetch_count: u16) -> Self {
        Self {
            prefetch_count,
            ..Self::default()
        }
    }

    /// A limit for all consumers of the channel together; 0 is none.
    pub fn of_all(prefetch_count: u16) -> Self {
        Self {
            global: true,
            ..Self::of_each(prefetch_count)
        }
    }
}

impl BasicAck {
    /// Acknowledges one delivery.
    pub fn one(delivery_tag: u64) -> Self {
        Self {
            delivery_tag,
            multiple: false,
        }
    }

    /// Acknowledges all deliveries up to that one; 0 means all.
    pub fn up_to(delivery_tag: u64) -> Self {
        Self {
            delivery_tag,
            multiple: true,
        }
    }
}

impl Method<'_> {
    /// Whether a content header and a body follow.
    pub fn has_content(&self) -> bool {
        matches!(
            self,
            Self::BasicPublish(_)
                | Self::BasicReturn(_)
                | Self::BasicDeliver(_)
                | Self::BasicGetOk(_)
        )
    }
}

impl MethodError {
    /// The method that it is about; zeros if there is none.
    pub fn ids(&self) -> (u16, u16) {
        match *self {
            Self::NoMethod => (0, 0),
            Self::Unknown {
                class_id,
                method_id,
            }
            | Self::Arguments {
                class_id,
                method_id,
                ..
            } => (class_id, method_id),
        }
    }
}

impl fmt::Display for MethodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMethod => f.write_str("a method frame that is too short to name a method"),
            Self::Unknown {
                class_id,
                method_id,
            } => write!(f, "there is no method {method_id} in class {class_id}"),
            Self::Arguments { name, error, .. } => write!(f, "in {name}: {error}"),
        }
    }
}

impl std::error::Error for MethodError {}
