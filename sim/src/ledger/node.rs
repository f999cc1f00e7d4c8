//! One node: a vhost, its ledger, and a client that publishes and consumes there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_amqp::method::{
    BasicAck, BasicGet, BasicReject, ConfirmSelect, ExchangeDeclare, ExchangeDelete, QueueBind,
    QueueDeclare, QueueDelete, QueuePurge,
};
use crosstie_amqp::{BasicProperties, Method, Properties, TableBuf, Value};
use crosstie_auth::Permissions;
use crosstie_ledger::{Broken, Config, Excerpt, Ledger, Sequence};
use crosstie_queues::{
    ChannelKey, Client, Fault, Outbox, Page, Paged, Paging, Position, Refused, Time, Vhost,
    VhostConfig, Want,
};

use super::checks::{Ledgers, Setting};
use super::log::Log;

/// Messages to the client.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Publications, by their number on the channel.
    pub confirmed: Vec<(u64, bool)>,
    /// A message, by `basic.get`, and its tag.
    pub got: Option<(u64, u64)>,
}

pub(super) struct Node {
    /// Another one after each crash.
    pub incarnation: u64,
    pub config: Config,
    pub ledger: Ledger,
    pub vhost: Vhost<u32>,
    pub seen: Seen,
    pub channel: Option<ChannelKey>,
    /// Publications that are not confirmed, by their number on the channel.
    pub unconfirmed: BTreeMap<u64, u64>,
    pub published: u64,
    /// Settings that are not committed, with their positions.
    pub settings: Vec<(Position, Setting)>,
    settings_put: u64,
    /// The log's contents at the node's start are restored.
    pub is_shadow: bool,
    /// The log alone had some of its messages since then.
    was_deep: bool,
    /// Pages that its vhost has requested, and where they are.
    pages: Vec<(Want, Excerpt)>,
    /// It writes the log anew, behind that entry.
    pub recovers_from: Option<Sequence>,
}

pub(super) const QUEUES: [&str; 3] = ["q0", "q1", "q2"];

const EXCHANGE: &str = "x";

impl Node {
    pub(super) fn new(incarnation: u64, config: Config) -> Self {
        let mut ledger = Ledger::new(config);
        ledger.write_clearances(incarnation.is_multiple_of(2));
        Self {
            incarnation,
            config,
            ledger,
            vhost: vhost(incarnation, config),
            seen: Seen::default(),
            channel: None,
            unconfirmed: BTreeMap::new(),
            published: 0,
            settings: Vec::new(),
            settings_put: 0,
            is_shadow: false,
            was_deep: false,
            pages: Vec::new(),
            recovers_from: None,
        }
    }

    /// Notes whether the log alone has some of the messages: then a vhost cannot follow it.
    pub(super) fn judge_shadow(&mut self) {
        self.was_deep |= self.ledger.is_deep();
    }

    /// The node owns the vhost. If the log alone had some of its messages, the vhost is built from what the ledger has;
    /// returns whether it is.
    pub(super) fn rebuild(&mut self, now: Time) -> bool {
        if !self.was_deep {
            return false;
        }
        self.vhost = vhost(self.incarnation, self.config);
        for record in self.ledger.records() {
            self.vhost.restore(now, record);
        }
        true
    }

    /// Reads the requested pages; returns whether there were any.
    pub(super) fn read_pages(&mut self, now: Time, log: &Log) -> Result<bool, String> {
        while let Some(want) = self.vhost.take_want() {
            let excerpt = self.excerpt(&want);
            self.pages.push((want, excerpt));
        }
        let mut is_any = false;
        for (want, excerpt) in std::mem::take(&mut self.pages) {
            match log.read(excerpt) {
                Ok((messages, upto)) => {
                    is_any = true;
                    let messages = messages.into_iter().map(|(place, message)| Paged {
                        place,
                        message,
                        is_spilled: false,
                    });
                    let messages = messages.collect();
                    let page = Page { messages, upto };
                    let missing = self.vhost.handle_page(now, &want, page, &mut self.seen);
                    if missing > 0 {
                        return Err(format!("the log lacks {missing} messages: {want:?}"));
                    }
                }
                // Written again meanwhile, or not acknowledged yet.
                Err(Broken::Missing) => {
                    let excerpt = self.excerpt(&want);
                    self.pages.push((want, excerpt));
                }
                Err(broken) => return Err(format!("{want:?}: {broken}")),
            }
        }
        Ok(is_any)
    }

    fn excerpt(&self, want: &Want) -> Excerpt {
        let queue = want.stored.unwrap_or_default();
        self.ledger.excerpt(queue, (want.from, want.to), 120)
    }

    /// Reads entries again for the ledger.
    pub(super) fn fetch(
        &mut self,
        now: Time,
        log: &Log,
        (first, last): (Sequence, Sequence),
    ) -> Result<(), String> {
        let entries = log.entries.range(first.0..=last.0);
        let entries: Vec<_> = entries
            .map(|(at, entry)| (Sequence(*at), &**entry))
            .collect();
        // Without those that were purged at the front.
        let found = entries.first().map_or(last.0 + 1, |(at, _)| at.0);
        if entries.is_empty() || entries.len() as u64 != last.0 + 1 - found {
            self.ledger.handle_not_fetched(now);
            return Ok(());
        }
        let fetched = self.ledger.handle_fetched(now, entries);
        fetched.map_err(|broken| format!("entries from {first:?} to {last:?}: {broken}"))
    }

    /// The log was read to its end for the first time.
    pub(super) fn begin_shadow(&mut self, now: Time) {
        self.is_shadow = true;
        self.judge_shadow();
        for record in self.ledger.records() {
            self.vhost.restore(now, record);
        }
    }

    /// The node owns the vhost: its client comes.
    pub(super) fn open(&mut self, now: Time) -> Result<(), String> {
        self.vhost.restored(now, &mut self.seen);
        let client = Client {
            user: "simulated".into(),
            permissions: Arc::new(Permissions::all()),
            consumer_cancel_notify: true,
            is_impersonator: false,
        };
        let connection = self.vhost.open_connection(1, client);
        let channel = self.vhost.open_channel(connection, 1);
        self.channel = Some(channel.map_err(|fault| fault.text)?);
        self.say(now, &ConfirmSelect { no_wait: false }.into())
    }

    /// Declares a queue; the last of them counts deliveries. With a limit its messages keep their order.
    pub(super) fn declare(&mut self, now: Time, queue: &str) -> Result<(), String> {
        let arguments = match queue == QUEUES[2] {
            true => TableBuf::new()
                .with("x-queue-type", Value::LongString(b"quorum"))
                .with("x-delivery-limit", Value::I32(1_000_000)),
            false => TableBuf::new(),
        };
        let method = QueueDeclare {
            queue,
            durable: true,
            arguments: arguments.as_table(),
            ..QueueDeclare::default()
        };
        self.say(now, &method.into())
    }

    /// Binds a queue to an exchange, which is declared.
    pub(super) fn bind(&mut self, now: Time, queue: &str, routing_key: &str) -> Result<(), String> {
        let declare = ExchangeDeclare {
            exchange: EXCHANGE,
            kind: "direct",
            durable: true,
            ..ExchangeDeclare::default()
        };
        self.say(now, &declare.into())?;
        let bind = QueueBind::of(queue).to(EXCHANGE, routing_key);
        self.say(now, &bind.into())
    }

    /// Deletes the exchange, with its bindings.
    pub(super) fn delete_exchange(&mut self, now: Time) -> Result<(), String> {
        let delete = ExchangeDelete {
            exchange: EXCHANGE,
            ..ExchangeDelete::default()
        };
        self.say(now, &delete.into())
    }

    /// Sets a setting to a value that it never had, or removes it.
    pub(super) fn put_setting(&mut self, key: &str, is_set: bool) {
        self.settings_put += 1;
        let value = format!("{}.{}", self.incarnation, self.settings_put);
        let setting = (Arc::from(key), is_set.then(|| Arc::from(value)));
        let (key, value) = setting.clone();
        self.vhost.put_setting(key, value);
        let position = self.vhost.journal().position;
        self.settings.push((position, setting));
    }

    /// The log has everything up to that position. Of several values of a setting only the last one needs to be in it.
    pub(super) fn commit(&mut self, upto: Position, ledgers: &Ledgers) -> Result<(), String> {
        let committed = self
            .settings
            .extract_if(.., |(position, _)| *position <= upto);
        let last: BTreeMap<_, _> = committed.map(|(_, setting)| setting).collect();
        for setting in last {
            ledgers.confirm_setting(&setting)?;
        }
        self.vhost.handle_committed(upto, &mut self.seen);
        Ok(())
    }

    pub(super) fn delete(&mut self, now: Time, queue: &str) -> Result<(), String> {
        let method = QueueDelete {
            queue,
            if_unused: false,
            if_empty: false,
            no_wait: false,
        };
        self.say(now, &method.into())
    }

    /// Purges a queue while a client holds one of its messages.
    pub(super) fn purge(&mut self, now: Time, queue: &str) -> Result<(), String> {
        let held = self.get(now, queue)?;
        self.say(
            now,
            &QueuePurge {
                queue,
                no_wait: false,
            }
            .into(),
        )?;
        let Some((_, delivery_tag)) = held else {
            return Ok(());
        };
        let multiple = false;
        self.say(
            now,
            &BasicAck {
                delivery_tag,
                multiple,
            }
            .into(),
        )
    }

    /// A queue's first message, if it is in memory.
    fn get(&mut self, now: Time, queue: &str) -> Result<Option<(u64, u64)>, String> {
        let channel = self.channel;
        if channel.is_some_and(|channel| self.vhost.is_waiting_for_page(channel, queue)) {
            return Ok(None);
        }
        let no_ack = false;
        self.say(now, &BasicGet { queue, no_ack }.into())?;
        Ok(self.seen.got.take())
    }

    /// Takes a queue's first message, and acknowledges or requeues it; returns which.
    pub(super) fn take(
        &mut self,
        now: Time,
        queue: &str,
        is_kept: bool,
    ) -> Result<Option<u64>, String> {
        let Some((message, delivery_tag)) = self.get(now, queue)? else {
            return Ok(None);
        };
        let requeue = true;
        match is_kept {
            true => self.say(
                now,
                &BasicReject {
                    delivery_tag,
                    requeue,
                }
                .into(),
            )?,
            false => {
                let multiple = false;
                self.say(
                    now,
                    &BasicAck {
                        delivery_tag,
                        multiple,
                    }
                    .into(),
                )?;
            }
        }
        Ok((!is_kept).then_some(message))
    }

    /// Publishes a message, unless the client is held back.
    pub(super) fn publish(&mut self, now: Time, queue: &str, message: u64, bytes: usize) {
        let Some(channel) = self.channel else { return };
        let mut properties = Vec::new();
        let persistent = BasicProperties {
            delivery_mode: Some(2),
            ..BasicProperties::default()
        };
        persistent.write(&mut properties);
        let mut body = message.to_string().into_bytes();
        body.resize(bytes.max(body.len()), b' ');
        self.published += 1;
        self.unconfirmed.insert(self.published, message);
        let properties = Properties::from_checked_bytes(&properties);
        // A missing queue is no fault: the message is dropped, and confirmed.
        let publication = crosstie_amqp::method::BasicPublish::to("", queue);
        let _ = self.vhost.publish(
            now,
            channel,
            &publication,
            properties,
            &body,
            &mut self.seen,
        );
    }

    fn say(&mut self, now: Time, method: &Method<'_>) -> Result<(), String> {
        let Some(channel) = self.channel else {
            return Ok(());
        };
        self.vhost
            .handle(now, channel, method, &mut self.seen)
            .map_err(|fault| fault.text)
    }
}

fn vhost(seed: u64, ledger: Config) -> Vhost<u32> {
    let mut config = VhostConfig::named("/");
    if ledger.long_messages < usize::MAX {
        config.paging = Paging {
            memory_bytes: ledger.resident_bytes_max as usize,
            messages: ledger.long_messages,
            body_bytes: ledger.long_body_bytes,
            crowded_messages: 2,
            crowded_body_bytes: u64::MAX,
            spills: false,
        };
    }
    Vhost::new(config, seed)
}

/// Which message it is.
pub(super) fn number(body: &[u8]) -> u64 {
    let text = str::from_utf8(body).unwrap_or_default();
    text.trim_end().parse().unwrap_or_default()
}

impl Outbox<u32> for Seen {
    fn send(&mut self, _: &u32, _: u16, method: &Method<'_>) {
        match method {
            Method::BasicAck(ack) => self.confirmed.push((ack.delivery_tag, ack.multiple)),
            Method::BasicGetEmpty(_) => self.got = None,
            _ => {}
        }
    }

    fn send_content(
        &mut self,
        to: &u32,
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        self.send_owed(to, channel, method, properties, body)
    }

    fn send_owed(
        &mut self,
        _: &u32,
        _: u16,
        method: &Method<'_>,
        _: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        if let Method::BasicGetOk(ok) = method {
            self.got = Some((number(body), ok.delivery_tag));
        }
        Ok(())
    }

    fn close_channel(&mut self, _: &u32, _: u16, _: &Fault) {}
}
