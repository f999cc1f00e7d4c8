//! Readers of a stream get each message once and in order from their places on, however its pages come.

mod filtered;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use crosstie_amqp::method::*;
use crosstie_amqp::{BasicProperties, Method, Properties, TableBuf, Value};

use super::Vhost;
use crate::random::Random;
use crate::{
    ChannelKey, Client, Fault, Outbox, QueueId, Refused, StreamChange, StreamExtent, StreamFilter,
    StreamFrom, StreamPage, StreamPlace, StreamWant, Time, VhostConfig,
};

const NOW: Time = Time(1_000_000);

/// By consumer tag: delivery tag and number of each message; and the confirmed publications.
#[derive(Default)]
struct Sent {
    deliveries: BTreeMap<String, Vec<(u64, u64)>>,
    confirmed: u64,
    is_full: bool,
}

impl Outbox<()> for Sent {
    fn send(&mut self, _to: &(), _channel: u16, method: &Method<'_>) {
        if let Method::BasicAck(ack) = method {
            self.confirmed = self.confirmed.max(ack.delivery_tag);
        }
    }

    fn send_content(
        &mut self,
        _to: &(),
        _channel: u16,
        method: &Method<'_>,
        _properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        if self.is_full {
            return Err(Refused::Full);
        }
        if let Method::BasicDeliver(deliver) = method {
            let number = u64::from_be_bytes(body.try_into().expect("a number"));
            let sent = self.deliveries.entry(deliver.consumer_tag.to_owned());
            sent.or_default().push((deliver.delivery_tag, number));
        }
        Ok(())
    }

    fn send_owed(
        &mut self,
        to: &(),
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        self.send_content(to, channel, method, properties, body)
    }

    fn close_channel(&mut self, _to: &(), _channel: u16, fault: &Fault) {
        panic!("{}", fault.text);
    }
}

/// A consumer as the test expects it.
struct Expected {
    channel: ChannelKey,
    prefetch: usize,
    /// The number that it is sent next, or one before that.
    next: u64,
    unacked: Vec<u64>,
    filter: Option<Wanted>,
}

/// The value that a consumer filters by, and whether it wants messages without a value.
#[derive(Clone, Copy)]
struct Wanted(&'static str, bool);

impl Expected {
    /// The first number from there on that it is sent.
    fn next_from(&self, number: u64) -> u64 {
        let is_wanted = |number: &u64| match (self.filter, value_of(*number)) {
            (None, _) => true,
            (Some(Wanted(_, is_unfiltered)), None) => is_unfiltered,
            (Some(Wanted(wanted, _)), Some(value)) => wanted == value,
        };
        (number..).find(is_wanted).expect("some are wanted")
    }
}

/// The value of a message, by which it is filtered.
fn value_of(number: u64) -> Option<&'static str> {
    [None, Some("a"), Some("b"), Some("a")][number as usize % 4]
}

fn properties_of(number: u64) -> Vec<u8> {
    let value = value_of(number).map(|value| Value::LongString(value.as_bytes()));
    let headers = value.map(|value| TableBuf::new().with("x-stream-filter-value", value));
    let named = BasicProperties {
        headers: headers.as_ref().map(TableBuf::as_table),
        ..BasicProperties::default()
    };
    let mut properties = Vec::new();
    named.write(&mut properties);
    properties
}

struct Rig {
    vhost: Vhost<()>,
    connection: crate::ConnectionKey,
    sent: Sent,
    random: Random,
    publisher: ChannelKey,
    /// Appended and not written: the changes of each input, with its position.
    unwritten: Vec<(Vec<StreamChange>, crate::Position)>,
    /// The written offsets, whose bodies are their numbers.
    first: u64,
    end: u64,
    /// All that the first offset has been.
    firsts: BTreeSet<u64>,
    wants: Vec<StreamWant>,
    readers: BTreeMap<String, Expected>,
    channels: u16,
    published: u64,
}

impl Rig {
    fn new(seed: u64) -> Self {
        let mut config = VhostConfig::named("/");
        config.has_streams = true;
        let mut vhost = Vhost::new(config, seed);
        let client = Client::unrestricted("guest");
        let connection = vhost.open_connection((), client);
        let publisher = vhost.open_channel(connection, 1).expect("a channel");
        let mut rig = Self {
            vhost,
            connection,
            sent: Sent::default(),
            random: Random::new(seed),
            publisher,
            unwritten: Vec::new(),
            first: 0,
            end: 0,
            firsts: BTreeSet::from([0]),
            wants: Vec::new(),
            readers: BTreeMap::new(),
            channels: 1,
            published: 0,
        };
        let arguments = TableBuf::new().with("x-queue-type", Value::LongString(b"stream"));
        rig.handle(
            publisher,
            QueueDeclare {
                queue: "s",
                durable: true,
                arguments: arguments.as_table(),
                ..QueueDeclare::default()
            },
        );
        rig.handle(publisher, ConfirmSelect { no_wait: false });
        rig.take();
        rig.unwritten.clear();
        rig
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.next() % end
    }

    fn handle<'m>(&mut self, channel: ChannelKey, method: impl Into<Method<'m>>) {
        let done = self
            .vhost
            .handle(NOW, channel, &method.into(), &mut self.sent);
        done.expect("is accepted");
        self.take();
    }

    /// Takes what the vhost's owner would take after an input.
    fn take(&mut self) {
        self.vhost.flush_confirms(&mut self.sent);
        let journal = self.vhost.journal();
        journal.records.clear();
        let changes = mem::take(&mut journal.streams);
        if !changes.is_empty() {
            self.unwritten.push((changes, journal.position));
        }
        while self.vhost.has_stream_wants() {
            self.wants.extend(self.vhost.take_stream_want());
        }
    }

    fn publish(&mut self) {
        let body = self.published.to_be_bytes();
        let properties = properties_of(self.published);
        let properties = Properties::from_bytes(&properties).expect("are properties");
        self.published += 1;
        let publish = BasicPublish::to("", "s");
        let (channel, sent) = (self.publisher, &mut self.sent);
        let done = self
            .vhost
            .publish(NOW, channel, &publish, properties, &body, sent);
        done.expect("is accepted");
        self.take();
    }

    /// The messages that are wanted, from one offset to another.
    fn page(&self, from: u64, to: u64, filter: Option<&StreamFilter>) -> Arc<StreamPage> {
        let place = |offset| StreamPlace {
            offset,
            segment: 0,
            position: offset,
        };
        let mut bytes = Vec::new();
        let mut found = Vec::new();
        for offset in from..to {
            let properties = properties_of(offset);
            let parsed = Properties::from_bytes(&properties).expect("are properties");
            if filter.is_none_or(|filter| filter.accepts(parsed)) {
                let start = bytes.len();
                bytes.extend_from_slice(&properties);
                bytes.extend_from_slice(&offset.to_be_bytes());
                found.push((offset, (start, bytes.len()), properties.len() as u32));
            }
        }
        let mut page = StreamPage::new(bytes, place(from));
        for (offset, within, properties_bytes) in found {
            assert!(page.push(offset, within, (0, 0, properties_bytes)));
        }
        page.after = place(to);
        Arc::new(page)
    }

    /// Writes what was appended in the oldest inputs.
    fn write(&mut self) {
        let count = 1 + self.below(4) as usize;
        let mut position = None;
        let before = self.end;
        for (changes, at) in self.unwritten.drain(..count.min(self.unwritten.len())) {
            for change in changes {
                match change {
                    StreamChange::Appended { append, .. } => {
                        assert_eq!(append.offset, self.end, "offsets are dense");
                        assert_eq!(append.content.body(), self.end.to_be_bytes());
                        self.end += 1;
                    }
                    other => panic!("nothing else changes: {other:?}"),
                }
            }
            position = Some(at);
        }
        let page = (self.below(3) > 0).then(|| self.page(before, self.end, None));
        let extent = StreamExtent {
            first: self.first,
            end: self.end,
            ..StreamExtent::default()
        };
        let id = QueueId(1);
        self.vhost
            .handle_written(NOW, id, &extent, page, &mut self.sent);
        if let Some(position) = position {
            self.vhost.handle_committed(position, &mut self.sent);
        }
        self.take();
    }

    /// Reads some wanted page.
    fn read(&mut self) {
        if self.wants.is_empty() {
            return;
        }
        let at = self.below(self.wants.len() as u64) as usize;
        let want = self.wants.swap_remove(at);
        let from = match want.from {
            StreamFrom::Offset(offset) => offset,
            StreamFrom::Place(place) => place.offset,
            StreamFrom::Since(_) => self.first,
        };
        let from = from.max(self.first).min(want.end);
        // A page may begin before the wanted message, and be empty.
        let begin = from - self.below(3).min(from - self.first.min(from));
        let to = (from + self.below(12)).min(want.end);
        let page = self.page(begin, to.max(begin), want.filter.as_deref());
        self.vhost
            .handle_stream_page(NOW, &want, page, &mut self.sent);
        self.take();
    }

    fn cancel(&mut self) {
        let Some((tag, reader)) = self.readers.pop_first() else {
            return;
        };
        let cancel = BasicCancel {
            consumer_tag: &tag,
            no_wait: false,
        };
        self.handle(reader.channel, cancel);
        self.sent.deliveries.remove(&tag);
        self.vhost
            .close_channel(NOW, reader.channel, &mut self.sent);
    }

    fn consume(&mut self, number: u64) {
        self.channels += 1;
        let channel = self.vhost.open_channel(self.connection, self.channels);
        let channel = channel.expect("a channel");
        let prefetch = 1 + self.below(20);
        self.handle(channel, BasicQos::of_each(prefetch as u16));
        let offset = self.below(self.end + 5);
        let (value, next) = match self.below(5) {
            0 => (Value::LongString(b"first"), self.first),
            1 if self.end > self.first => (Value::LongString(b"last"), self.end - 1),
            2 => (Value::LongString(b"next"), self.published),
            _ => (Value::I64(offset as i64), offset.max(self.first)),
        };
        let mut arguments = TableBuf::new().with("x-stream-offset", value);
        let choices = [None, Some(Wanted("a", false)), Some(Wanted("b", true))];
        let filter = choices[self.below(3) as usize];
        if let Some(Wanted(value, is_unfiltered)) = filter {
            arguments = arguments
                .with("x-stream-filter", Value::LongString(value.as_bytes()))
                .with("x-stream-match-unfiltered", Value::Bool(is_unfiltered));
        }
        let tag = format!("reader {number}");
        self.readers.insert(
            tag.clone(),
            Expected {
                channel,
                prefetch: prefetch as usize,
                next,
                unacked: Vec::new(),
                filter,
            },
        );
        self.handle(
            channel,
            BasicConsume {
                queue: "s",
                consumer_tag: &tag,
                arguments: arguments.as_table(),
                ..BasicConsume::default()
            },
        );
    }

    /// Checks what readers were sent, and acknowledges some of it.
    fn check(&mut self, all: bool) {
        let sent = mem::take(&mut self.sent.deliveries);
        for (tag, deliveries) in sent {
            let reader = self.readers.get_mut(&tag).expect("is a reader");
            for (delivery, number) in deliveries {
                // Retention may have taken those in between.
                let is_next = number == reader.next_from(reader.next);
                let mut firsts = self.firsts.range(reader.next..=number);
                let is_first = firsts.any(|first| number == reader.next_from(*first));
                assert!(is_next || is_first, "{tag}: {number} after {}", reader.next);
                assert!(number < self.end, "not before it is written");
                reader.next = number + 1;
                reader.unacked.push(delivery);
            }
            assert!(reader.unacked.len() <= reader.prefetch);
        }
        let tags: Vec<String> = self.readers.keys().cloned().collect();
        for tag in tags {
            let multiple = self.below(3) == 0;
            let is_due = all || self.below(2) == 0;
            let reader = self.readers.get_mut(&tag).expect("is a reader");
            let channel = reader.channel;
            if reader.unacked.is_empty() || !is_due {
                continue;
            }
            let tag = match multiple {
                true => {
                    let last = reader.unacked.pop().expect("has one");
                    reader.unacked.clear();
                    last
                }
                false => reader.unacked.remove(0),
            };
            self.handle(
                channel,
                BasicAck {
                    delivery_tag: tag,
                    multiple,
                },
            );
        }
    }
}

#[test]
fn readers_get_each_message_once_and_in_order() {
    for seed in 0..200 {
        let mut rig = Rig::new(seed);
        for turn in 0..400 {
            match rig.below(12) {
                0..=3 => rig.publish(),
                4 | 5 => rig.write(),
                6 | 7 => rig.read(),
                8 if rig.readers.len() < 6 => rig.consume(turn),
                9 => rig.cancel(),
                10 => {
                    rig.sent.is_full = !rig.sent.is_full;
                    if !rig.sent.is_full {
                        rig.vhost.resume(NOW, rig.connection, &mut rig.sent);
                        rig.take();
                    }
                }
                11 if rig.below(4) == 0 => {
                    // Retention; readers that are behind it go on at the first.
                    let kept = rig.below(8);
                    rig.first = rig.first.max(rig.end.saturating_sub(kept));
                    rig.firsts.insert(rig.first);
                    rig.write();
                }
                _ => rig.check(false),
            }
            while rig.vhost.has_backlog() {
                rig.vhost.work(NOW, 100, &mut rig.sent);
                rig.take();
            }
        }
        rig.sent.is_full = false;
        rig.vhost.resume(NOW, rig.connection, &mut rig.sent);
        for _ in 0..2_000 {
            rig.take();
            rig.write();
            rig.read();
            rig.check(true);
        }
        assert_eq!(rig.sent.confirmed, rig.published, "seed {seed}");
        for (tag, reader) in &rig.readers {
            assert!(
                reader.next_from(reader.next) >= rig.end,
                "seed {seed}: {tag} is at {}",
                reader.next
            );
        }
        rig.vhost
            .close_connection(NOW, rig.connection, &mut rig.sent);
        while rig.vhost.has_backlog() {
            rig.vhost.work(NOW, 100, &mut rig.sent);
        }
        assert_eq!(
            rig.vhost.memory_bytes(),
            0,
            "a stream at rest holds no message"
        );
    }
}
