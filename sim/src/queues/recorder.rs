//! An outbox that records all messages.

use std::collections::BTreeSet;

use crosstie_amqp::{Method, Properties};
use crosstie_queues::{Fault, Outbox, Refused};

use super::operation::Channel;

/// A message of a vhost to a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    Deliver {
        consumer: String,
        tag: u64,
        redelivered: bool,
        message: u64,
    },
    GetOk {
        tag: u64,
        redelivered: bool,
        message: u64,
        left: u32,
    },
    GetEmpty,
    Return {
        message: u64,
    },
    Confirm {
        tag: u64,
        multiple: bool,
        is_ack: bool,
    },
    /// Sent by the vhost, because the queue was deleted.
    Cancel {
        consumer: String,
    },
    /// Of a declare, a purge, a delete: messages, and consumers.
    Count {
        method: &'static str,
        messages: u32,
        consumers: u32,
    },
    /// Any other answer.
    Answer {
        method: &'static str,
    },
    /// By the vhost itself.
    Closed {
        code: u16,
    },
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub sent: Vec<(Channel, Sent)>,
    /// Connections that take no messages.
    pub refusing: BTreeSet<u32>,
    /// Names of methods and reply codes, over the whole run.
    pub kinds: BTreeSet<String>,
    pub complaint: Option<String>,
}

impl Recorder {
    fn note(&mut self, to: u32, number: u16, kind: &str, sent: Sent) {
        self.kinds.insert(kind.to_owned());
        let channel = Channel {
            connection: to,
            number,
        };
        self.sent.push((channel, sent));
    }
}

impl Outbox<u32> for Recorder {
    fn send(&mut self, to: &u32, channel: u16, method: &Method<'_>) {
        let count = |messages, consumers| Sent::Count {
            method: method.name(),
            messages,
            consumers,
        };
        let sent = match method {
            Method::BasicAck(ack) => Sent::Confirm {
                tag: ack.delivery_tag,
                multiple: ack.multiple,
                is_ack: true,
            },
            Method::BasicNack(nack) => Sent::Confirm {
                tag: nack.delivery_tag,
                multiple: nack.multiple,
                is_ack: false,
            },
            Method::BasicGetEmpty(_) => Sent::GetEmpty,
            Method::BasicCancel(cancel) => Sent::Cancel {
                consumer: cancel.consumer_tag.to_owned(),
            },
            Method::QueueDeclareOk(ok) => count(ok.message_count, ok.consumer_count),
            Method::QueuePurgeOk(ok) => count(ok.message_count, 0),
            Method::QueueDeleteOk(ok) => count(ok.message_count, 0),
            _ => Sent::Answer {
                method: method.name(),
            },
        };
        self.note(*to, channel, method.name(), sent);
    }

    fn send_content(
        &mut self,
        to: &u32,
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        if self.refusing.contains(to) {
            return Err(Refused::Full);
        }
        self.send_owed(to, channel, method, properties, body)
    }

    fn send_owed(
        &mut self,
        to: &u32,
        channel: u16,
        method: &Method<'_>,
        _properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        let number = str::from_utf8(body).ok().and_then(|text| text.parse().ok());
        let Some(message) = number else {
            self.complaint = Some(format!("a body that nobody published: {body:?}"));
            return Ok(());
        };
        let sent = match method {
            Method::BasicDeliver(deliver) => Sent::Deliver {
                consumer: deliver.consumer_tag.to_owned(),
                tag: deliver.delivery_tag,
                redelivered: deliver.redelivered,
                message,
            },
            Method::BasicGetOk(ok) => Sent::GetOk {
                tag: ok.delivery_tag,
                redelivered: ok.redelivered,
                message,
                left: ok.message_count,
            },
            _ => Sent::Return { message },
        };
        self.note(*to, channel, method.name(), sent);
        Ok(())
    }

    fn close_channel(&mut self, to: &u32, channel: u16, fault: &Fault) {
        let code = fault.code as u16;
        self.note(*to, channel, fault.code.name(), Sent::Closed { code });
    }
}
