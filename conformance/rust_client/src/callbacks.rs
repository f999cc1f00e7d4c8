//! Messages that the broker sends by itself, as lines.

use amqprs::callbacks::{ChannelCallback, ConnectionCallback};
use amqprs::channel::Channel;
use amqprs::connection::Connection;
use amqprs::error::Error;
use amqprs::{Ack, BasicProperties, Cancel, Close, CloseChannel, Nack, Return};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::values;

type Lines = UnboundedSender<Value>;

/// Print one event of a channel. A failure means that the reader has gone.
pub fn tell(lines: &Lines, channel: u16, kind: &str, arguments: Value) {
    let _ = lines.send(json!({ "event": kind, "channel": channel, "arguments": arguments }));
}

/// Of a connection.
pub struct ConnectionEvents {
    pub lines: Lines,
}

#[async_trait]
impl ConnectionCallback for ConnectionEvents {
    async fn close(&mut self, _: &Connection, close: Close) -> Result<(), Error> {
        let arguments = json!({ "code": close.reply_code(), "text": close.reply_text() });
        tell(&self.lines, 0, "connection closed", arguments);
        Ok(())
    }

    async fn blocked(&mut self, _: &Connection, reason: String) {
        tell(&self.lines, 0, "blocked", json!({ "reason": reason }));
    }

    async fn unblocked(&mut self, _: &Connection) {
        tell(&self.lines, 0, "unblocked", json!({}));
    }

    async fn secret_updated(&mut self, _: &Connection) {}
}

/// Of a channel.
pub struct ChannelEvents {
    pub number: u16,
    pub lines: Lines,
}

#[async_trait]
impl ChannelCallback for ChannelEvents {
    async fn close(&mut self, _: &Channel, close: CloseChannel) -> Result<(), Error> {
        let arguments = json!({ "code": close.reply_code(), "text": close.reply_text() });
        tell(&self.lines, self.number, "channel closed", arguments);
        Ok(())
    }

    async fn cancel(&mut self, _: &Channel, cancel: Cancel) -> Result<(), Error> {
        let arguments = json!({ "tag": cancel.consumer_tag() });
        tell(&self.lines, self.number, "cancel", arguments);
        Ok(())
    }

    async fn flow(&mut self, _: &Channel, active: bool) -> Result<bool, Error> {
        tell(
            &self.lines,
            self.number,
            "flow",
            json!({ "active": active }),
        );
        Ok(active)
    }

    async fn publish_ack(&mut self, _: &Channel, ack: Ack) {
        let arguments = json!({ "delivery": ack.delivery_tag(), "multiple": ack.mutiple() });
        tell(&self.lines, self.number, "ack", arguments);
    }

    async fn publish_nack(&mut self, _: &Channel, nack: Nack) {
        let arguments = json!({ "delivery": nack.delivery_tag(), "multiple": nack.multiple() });
        tell(&self.lines, self.number, "nack", arguments);
    }

    async fn publish_return(
        &mut self,
        _: &Channel,
        returned: Return,
        properties: BasicProperties,
        content: Vec<u8>,
    ) {
        let _ = self.lines.send(json!({
            "event": "return",
            "channel": self.number,
            "arguments": {
                "code": returned.reply_code(),
                "text": returned.reply_text(),
                "exchange": returned.exchange(),
                "routing_key": returned.routing_key(),
            },
            "properties": values::properties_told(&properties),
            "body": values::hex(&content),
        }));
    }
}
