//! Counters of messages, which become rates and metrics elsewhere. They are plain integers beside the state that a
//! message changes anyway.

/// Messages that leave queues, since the declaration of a queue or the opening of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// Sent to consumers.
    pub sent: u64,
    /// Sent to consumers that acknowledge; a part of [`Self::sent`].
    pub sent_to_ack: u64,
    /// Sent for `basic.get`, to be acknowledged.
    pub got: u64,
    /// Sent for `basic.get`, without acknowledgement.
    pub got_no_ack: u64,
    /// Answers to `basic.get` without a message.
    pub got_empty: u64,
    /// Sent again, to a consumer or for `basic.get`.
    pub redelivered: u64,
    pub acknowledged: u64,
}

/// Messages of a queue, since its declaration or the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTally {
    /// Arrived, from publishers and as dead letters.
    pub published: u64,
    pub out: Deliveries,
}

/// The same as a queue keeps it. Most queues are never asked with `basic.get`, and sent nothing again.
#[derive(Debug, Default)]
pub(crate) struct QueueCounters {
    pub(crate) published: u64,
    sent: u64,
    sent_to_ack: u64,
    acknowledged: u64,
    rare: Option<Box<Deliveries>>,
}

impl QueueCounters {
    pub(crate) fn tally(&self) -> QueueTally {
        let rare = self.rare.as_deref().copied().unwrap_or_default();
        QueueTally {
            published: self.published,
            out: Deliveries {
                sent: self.sent,
                sent_to_ack: self.sent_to_ack,
                acknowledged: self.acknowledged,
                ..rare
            },
        }
    }

    #[inline(always)]
    pub(crate) fn count_sent(&mut self, all: &mut Deliveries) {
        self.sent += 1;
        all.sent += 1;
    }

    #[inline(always)]
    pub(crate) fn count_sent_to_ack(&mut self, all: &mut Deliveries) {
        self.sent_to_ack += 1;
        all.sent_to_ack += 1;
    }

    #[inline(always)]
    pub(crate) fn count_acknowledged(&mut self, all: &mut Deliveries) {
        self.acknowledged += 1;
        all.acknowledged += 1;
    }

    /// A message that was counted as sent could not be sent.
    pub(crate) fn count_unsent(&mut self, all: &mut Deliveries) {
        self.sent -= 1;
        all.sent -= 1;
    }

    /// Counts anything else.
    #[cold]
    pub(crate) fn count_rare(&mut self, all: &mut Deliveries, count: impl Fn(&mut Deliveries)) {
        count(self.rare.get_or_insert_default());
        count(all);
    }
}

/// Messages that clients published to an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeTally {
    pub published: u64,
    /// Queues that they were routed to.
    pub routed: u64,
    /// Messages that reached no queue, delayed ones included.
    pub unroutable: u64,
}

impl ExchangeTally {
    #[inline(always)]
    pub(crate) fn count(&mut self, queues: usize) {
        self.published += 1;
        self.routed += queues as u64;
    }
}

/// Messages of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelTally {
    pub published: u64,
    pub confirmed: u64,
    /// Returned to the publisher: unroutable and mandatory.
    pub returned: u64,
    /// Unroutable and not mandatory.
    pub dropped: u64,
    pub out: Deliveries,
}

/// The sizes of publications' bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of all bodies.
    pub bytes: u64,
    /// Number of bodies beyond the first bound, by the first of the later bounds that is not below the size.
    beyond: [u64; SIZES.len()],
}

/// RabbitMQ's bounds of the classes of message sizes; the last class has no bound.
pub const SIZES: [u64; 8] = [
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
];

impl Sizes {
    #[inline(always)]
    pub(crate) fn count(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if bytes as u64 > SIZES[0] {
            self.count_beyond(bytes);
        }
    }

    #[inline(never)]
    fn count_beyond(&mut self, bytes: usize) {
        let later = &SIZES[1..];
        // Most are in the first of them.
        let class = later.iter().position(|max| bytes as u64 <= *max);
        self.beyond[class.unwrap_or(later.len())] += 1;
    }

    /// Of so many publications, the number of those that are not above each bound.
    pub fn cumulated(&self, publications: u64) -> [u64; SIZES.len()] {
        let mut count = publications.saturating_sub(self.beyond.iter().sum());
        let mut cumulated = [count; SIZES.len()];
        for (place, beyond) in self.beyond[..SIZES.len() - 1].iter().enumerate() {
            count += beyond;
            cumulated[place + 1] = count;
        }
        cumulated
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        for (own, other) in self.beyond.iter_mut().zip(other.beyond) {
            *own += other;
        }
    }
}

impl Deliveries {
    /// Sent to consumers that do not acknowledge.
    pub fn sent_no_ack(&self) -> u64 {
        self.sent.saturating_sub(self.sent_to_ack)
    }

    /// All that were sent.
    pub fn all(&self) -> u64 {
        self.sent + self.got + self.got_no_ack
    }

    pub(crate) fn count_got(&mut self, no_ack: bool, is_redelivered: bool) {
        match no_ack {
            true => self.got_no_ack += 1,
            false => self.got += 1,
        }
        self.redelivered += u64::from(is_redelivered);
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.sent_to_ack += other.sent_to_ack;
        self.got += other.got;
        self.got_no_ack += other.got_no_ack;
        self.got_empty += other.got_empty;
        self.redelivered += other.redelivered;
        self.acknowledged += other.acknowledged;
    }
}
