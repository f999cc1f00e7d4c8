//! A vhost with exchanges that delay, its store, and one client.

use std::collections::VecDeque;

use crosstie_amqp::method::{
    BasicGet, BasicPublish, ConfirmSelect, ExchangeDeclare, ExchangeDelete, QueueBind, QueueDeclare,
};
use crosstie_amqp::{BasicProperties, Method, Properties, TableBuf, Value};
use crosstie_queues::{ChannelKey, Paging, Position, QueueId, Record, Time, Vhost, VhostConfig};

use crate::Chance;
use crate::queues::disk::Disk;
use crate::queues::recorder::{Recorder, Sent};
use crate::queues::run::client;

pub(super) const QUEUE: &str = "q";

/// The features of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    /// Nearly all messages are on the disk alone.
    pub(super) is_deep: bool,
    pub(super) input_steps_max: u32,
}

pub(super) struct Node {
    vhost: Vhost<u32>,
    channel: ChannelKey,
    pub(super) disk: Disk,
    /// Records that the store has been handed, and their position, for each input.
    pub(super) pending: VecDeque<(Position, Vec<Record>)>,
    pub(super) out: Recorder,
    pub(super) now_ms: u64,
}

impl Node {
    /// A vhost that is restored from a disk at that time, with the queue and a client that has confirms.
    pub(super) fn start(
        disk: Disk,
        now_ms: u64,
        habits: Habits,
        chance: &mut Chance,
    ) -> Result<Self, String> {
        let mut config = VhostConfig {
            input_steps_max: habits.input_steps_max,
            ..VhostConfig::named("/")
        };
        if habits.is_deep {
            config.paging = Paging {
                memory_bytes: 2_000,
                messages: 2,
                body_bytes: 0,
                crowded_messages: 2,
                crowded_body_bytes: u64::MAX,
                spills: true,
            };
        }
        let mut vhost = Vhost::new(config, chance.number());
        let mut out = Recorder::default();
        let now = Time(now_ms);
        for record in disk.records() {
            vhost.restore(now, record);
        }
        vhost.restored(now, &mut out);
        let connection = vhost.open_connection(1, client());
        let channel = vhost.open_channel(connection, 1);
        let channel = channel.map_err(|fault| fault.text)?;
        let mut node = Self {
            vhost,
            channel,
            disk,
            pending: VecDeque::new(),
            out,
            now_ms,
        };
        let declare = QueueDeclare {
            queue: QUEUE,
            durable: true,
            ..QueueDeclare::default()
        };
        node.ask(declare.into())?;
        node.ask(ConfirmSelect { no_wait: false }.into())?;
        node.settle(chance)?;
        Ok(node)
    }

    fn ask(&mut self, method: Method<'_>) -> Result<(), String> {
        let now = Time(self.now_ms);
        let done = self.vhost.handle(now, self.channel, &method, &mut self.out);
        done.map_err(|fault| fault.text)
    }

    pub(super) fn declare(&mut self, exchange: &str) -> Result<(), String> {
        let kind = TableBuf::new().with("x-delayed-type", Value::LongString(b"fanout"));
        let declare = ExchangeDeclare {
            exchange,
            kind: "x-delayed-message",
            durable: true,
            arguments: kind.as_table(),
            ..ExchangeDeclare::default()
        };
        self.ask(declare.into())?;
        let bind = QueueBind::of(QUEUE).to(exchange, "");
        self.ask(bind.into())
    }

    pub(super) fn delete(&mut self, exchange: &str) -> Result<(), String> {
        let delete = ExchangeDelete {
            exchange,
            ..ExchangeDelete::default()
        };
        self.ask(delete.into())
    }

    pub(super) fn publish(
        &mut self,
        exchange: &str,
        message: u64,
        delay_ms: u32,
    ) -> Result<(), String> {
        let headers = TableBuf::new().with("x-delay", Value::I64(delay_ms.into()));
        let mut properties = Vec::new();
        BasicProperties {
            delivery_mode: Some(2),
            headers: Some(headers.as_table()),
            ..BasicProperties::default()
        }
        .write(&mut properties);
        let publish = BasicPublish::to(exchange, "");
        let done = self.vhost.publish(
            Time(self.now_ms),
            self.channel,
            &publish,
            Properties::from_bytes(&properties).unwrap_or(Properties::EMPTY),
            message.to_string().as_bytes(),
            &mut self.out,
        );
        done.map_err(|fault| fault.text)
    }

    /// Takes the first message of the queue, if it has any.
    pub(super) fn get(&mut self, chance: &mut Chance) -> Result<Option<u64>, String> {
        let get = BasicGet {
            queue: QUEUE,
            no_ack: true,
        };
        self.ask(get.into())?;
        let sent = self.out.sent.extract_if(.., |(_, sent)| {
            matches!(sent, Sent::GetOk { .. } | Sent::GetEmpty)
        });
        let message = sent.last().and_then(|(_, sent)| match sent {
            Sent::GetOk { message, .. } => Some(message),
            _ => None,
        });
        self.settle(chance)?;
        Ok(message)
    }

    /// Does what is due and what was postponed, in parts of any size, and hands the records to the store.
    pub(super) fn settle(&mut self, chance: &mut Chance) -> Result<(), String> {
        let now = Time(self.now_ms);
        loop {
            while self.vhost.has_backlog() {
                let steps_max = chance.below(30) as u32;
                self.vhost.work(now, steps_max, &mut self.out);
            }
            if let Some(want) = self.vhost.take_want() {
                let page = self.disk.read(&want, 1 + chance.below(5));
                let missing = self.vhost.handle_page(now, &want, page, &mut self.out);
                if missing > 0 {
                    return Err(format!("{missing} messages of a page are not on the disk"));
                }
            } else if self.vhost.next_timeout().is_some_and(|due| due <= now) {
                self.vhost.handle_timeout(now, &mut self.out);
            } else {
                break;
            }
        }
        let journal = self.vhost.journal();
        let records = std::mem::take(&mut journal.records);
        if !records.is_empty() {
            self.pending.push_back((journal.position, records));
        }
        self.vhost.flush_confirms(&mut self.out);
        self.out.complaint.take().map_or(Ok(()), Err)
    }

    /// The store writes the records of the oldest input.
    pub(super) fn commit(&mut self, chance: &mut Chance) -> Result<(), String> {
        let Some((position, records)) = self.pending.pop_front() else {
            return Ok(());
        };
        for record in records {
            // A deep queue also has a number for messages that are not stored, here none.
            let is_end = record.is_departure() && !matches!(record, Record::Dequeued { .. });
            match self.disk.write(record) {
                Err(complaint) if !is_end => return Err(complaint),
                _ => {}
            }
        }
        self.vhost.handle_committed(position, &mut self.out);
        self.settle(chance)
    }

    /// The store fails with all of them, and keeps them as one.
    pub(super) fn fail(&mut self, chance: &mut Chance) -> Result<(), String> {
        let Some((position, _)) = self.pending.back() else {
            return Ok(());
        };
        let position = *position;
        let records = self.pending.iter().flat_map(|(_, records)| records);
        let places: Vec<(QueueId, i64)> = records.filter_map(place).collect();
        self.vhost.withdraw(&places);
        self.vhost
            .handle_not_committed(Time(self.now_ms), position, &mut self.out);
        self.settle(chance)?;
        let mut merged = Vec::new();
        let mut end = position;
        for (position, records) in self.pending.drain(..) {
            merged.extend(records);
            end = position;
        }
        self.pending.push_back((end, merged));
        Ok(())
    }

    /// Messages that are held back, and those in the queue.
    pub(super) fn counts(&self) -> (usize, usize) {
        let mut queues = self.vhost.queues();
        let ready = queues.find(|queue| &*queue.name == QUEUE);
        let ready = ready.map_or(0, |queue| queue.messages_ready);
        (self.vhost.counts().messages_delayed, ready)
    }
}

fn place(record: &Record) -> Option<(QueueId, i64)> {
    match record {
        Record::Enqueued { queue, place, .. } => Some((*queue, *place)),
        _ => None,
    }
}
