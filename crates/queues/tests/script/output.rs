//! What a vhost sends, as the scripts write it.

use std::sync::Arc;

use crosstie_amqp::{Method, Properties};
use crosstie_queues::{Fault, Outbox, Refused};
use crosstie_script::Stage;

#[derive(Default)]
pub(super) struct Recorder {
    /// By channel.
    pub(super) stage: Stage,
    /// Connections that take no message.
    pub(super) full: Vec<char>,
    /// Connections that take nothing, and are about to be closed for it; or are gone.
    pub(super) overrun: Vec<char>,
    pub(super) gone: Vec<char>,
}

impl Recorder {
    /// The positive answer to what was sent last.
    pub(super) fn take_answer(&mut self, who: &str) -> Result<(), String> {
        let first = self.stage.next(who)?;
        match first.split(' ').next() {
            Some(name) if name.ends_with("-ok") => Ok(()),
            _ => Err(format!("the answer was {first}")),
        }
    }

    fn push(&mut self, to: char, channel: u16, text: String) {
        let who = match channel {
            1 => to.to_string(),
            number => format!("{to}{number}"),
        };
        self.stage.push(who, text);
    }
}

impl Outbox<char> for Recorder {
    fn traced_name(&self, of: &char) -> Option<Arc<str>> {
        Some(of.to_string().into())
    }

    fn send(&mut self, to: &char, channel: u16, method: &Method<'_>) {
        let text = match *method {
            Method::QueueDeclareOk(ok) => format!(
                "queue.declare-ok {} {} {}",
                ok.queue, ok.message_count, ok.consumer_count
            ),
            Method::QueuePurgeOk(ok) => format!("queue.purge-ok {}", ok.message_count),
            Method::QueueDeleteOk(ok) => format!("queue.delete-ok {}", ok.message_count),
            Method::BasicConsumeOk(ok) => format!("basic.consume-ok {}", ok.consumer_tag),
            Method::BasicCancelOk(ok) => format!("basic.cancel-ok {}", ok.consumer_tag),
            Method::BasicCancel(cancel) => format!("cancel {}", cancel.consumer_tag),
            Method::BasicGetEmpty(_) => "get-empty".to_owned(),
            Method::BasicAck(ack) => format!("ack {}{}", ack.delivery_tag, flag(ack.multiple)),
            Method::BasicNack(nack) => {
                format!("nack {}{}", nack.delivery_tag, flag(nack.multiple))
            }
            ref other => other.name().to_owned(),
        };
        self.push(*to, channel, text);
    }

    fn send_content(
        &mut self,
        to: &char,
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        if self.full.contains(to) {
            return Err(Refused::Full);
        }
        self.send_owed(to, channel, method, properties, body)
    }

    fn send_owed(
        &mut self,
        to: &char,
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        if self.gone.contains(to) {
            return Err(Refused::Gone);
        }
        if self.overrun.contains(to) {
            return Err(Refused::Full);
        }
        let again = |redelivered: bool| if redelivered { " redelivered" } else { "" };
        let mut text = match *method {
            Method::BasicDeliver(deliver) => format!(
                "deliver {} {}{} {} {}",
                deliver.consumer_tag,
                deliver.delivery_tag,
                again(deliver.redelivered),
                name(deliver.exchange),
                name(deliver.routing_key)
            ),
            Method::BasicGetOk(ok) => format!(
                "get-ok {}{} {} {} {}",
                ok.delivery_tag,
                again(ok.redelivered),
                name(ok.exchange),
                name(ok.routing_key),
                ok.message_count
            ),
            Method::BasicReturn(returned) => format!(
                "return {} {} {} {}",
                returned.reply_code,
                returned.reply_text,
                name(returned.exchange),
                name(returned.routing_key)
            ),
            ref other => other.name().to_owned(),
        };
        text.push(' ');
        text.push_str(&String::from_utf8_lossy(body));
        text.push_str(&properties_text(properties));
        self.push(*to, channel, text);
        Ok(())
    }

    fn close_channel(&mut self, to: &char, channel: u16, fault: &Fault) {
        self.push(*to, channel, format!("closed {}", fault.text));
    }
}

fn name(name: &str) -> &str {
    match name {
        "" => "-",
        name => name,
    }
}

fn flag(multiple: bool) -> &'static str {
    match multiple {
        true => " multiple",
        false => "",
    }
}

fn properties_text(properties: Properties<'_>) -> String {
    let named = properties.parse();
    let mut text = String::new();
    if let Some(mode) = named.delivery_mode {
        text.push_str(&format!(" mode={mode}"));
    }
    if let Some(expiration) = named.expiration {
        text.push_str(&format!(" expiration={expiration}"));
    }
    if let Some(priority) = named.priority {
        text.push_str(&format!(" priority={priority}"));
    }
    if let Some(reply_to) = named.reply_to {
        text.push_str(&format!(" reply-to {reply_to}"));
    }
    if let Some(user_id) = named.user_id {
        text.push_str(&format!(" user-id={user_id}"));
    }
    if let Some(headers) = named.headers {
        let table = format!("{headers:?}");
        let table = table.replace(", ", ",").replace(": ", ":");
        text.push_str(&format!(" headers={table}"));
    }
    text
}
