//! A ledger that owns, or claims: records in, appends and commits out.
//!
//! One append is under way at a time. With two, a deposed owner's second one could find the log just as long as
//! it expects: the first one was lost, and the entry of who deposed it is in its place. An append that is refused, or not acknowledged in time, is not known to be
//! in the log or not; so its end is read, and what is found there decides: what is ours was appended, what is
//! not there is sent again, with the same octets and the same expectation, so that it can be there only once.

use std::sync::Arc;

use crosstie_queues::{Position, Record, Time, find_lasting};

use crate::body;
use crate::broken::Broken;
use crate::entry::{Head, Kind, Owner};
use crate::ledger::{Effect, Ledger, Role, Sequence};
use crate::pending::Pending;

/// Appends that may be under way; see above before it is made more.
const WINDOW: usize = 1;

impl Ledger {
    /// Takes records that happened, up to and with `position`, in the journal's order. What is submitted at
    /// once is written in one batch.
    pub fn submit(&mut self, now: Time, records: Vec<Record>, position: Position) {
        if !matches!(self.role, Role::Owning | Role::Recovering) {
            return;
        }
        self.waiting.push_back((records, position));
        self.proceed(now);
    }

    /// An entry is in the log, and with it all before it.
    pub fn handle_appended(&mut self, now: Time, sequence: Sequence) {
        self.acknowledge(now, sequence);
        self.proceed(now);
    }

    fn acknowledge(&mut self, now: Time, Sequence(sequence): Sequence) {
        let mut is_told = false;
        while let Some(first) = self.pending.front()
            && first.sequence <= sequence
        {
            let Pending {
                sequence,
                position,
                kind,
                ..
            } = *first;
            self.pending.pop_front();
            self.sent = self.sent.saturating_sub(1);
            self.acknowledged = sequence;
            is_told = true;
            if kind == Kind::Owned && self.role == Role::Claiming {
                self.role = Role::Owning;
                self.effects.push_back(Effect::Owning);
            }
            if kind == Kind::Handed && self.pending.is_empty() {
                self.role = Role::Deposed;
                self.effects.push_back(Effect::Handed);
            }
            if let Some(position) = position {
                self.effects.push_back(Effect::Committed(position));
            }
        }
        if is_told {
            self.sent_at = (self.sent > 0).then_some(now);
        }
        if self.keeping.is_some_and(|kept| kept <= self.acknowledged) {
            self.keeping = None;
        }
    }

    /// An append was refused: the log does not end where it was expected to.
    pub fn handle_refused(&mut self, now: Time, after: Sequence) {
        let is_under_way = after.0 >= self.acknowledged && after.0 < self.next_unsent();
        if is_under_way {
            self.read_end(now);
        }
    }

    /// The log's end, from behind the entry `after` that [`Effect::Read`] named on, and the number of its last entry,
    /// which may have been purged.
    pub fn handle_end<'e>(
        &mut self,
        now: Time,
        (after, last): (Sequence, Sequence),
        entries: impl IntoIterator<Item = (Sequence, &'e [u8])>,
    ) {
        if self.reading_since.take().is_none() || self.role == Role::Deposed {
            return;
        }
        // It had been acknowledged when it was asked.
        if last < after {
            return self.end(Effect::Broken(last, Broken::Shorter));
        }
        for (sequence, entry) in entries {
            let known = sequence.0 <= self.acknowledged;
            let first = self.pending.front();
            let is_own =
                first.is_some_and(|first| first.sequence == sequence.0 && *first.entry == *entry);
            match (known, is_own) {
                (true, _) => {}
                (false, true) => self.acknowledge(now, sequence),
                (false, false) => return self.meet(sequence, entry),
            }
        }
        // What is not there is sent again.
        self.sent = 0;
        self.sent_at = None;
        self.proceed(now);
    }

    /// The end could not be read; it is tried again.
    pub fn handle_unread(&mut self, now: Time) {
        if self.reading_since.is_some() {
            self.reading_since = Some(now);
        }
    }

    /// Another node says that it owns the vhost, in that epoch: if that may be so, the log knows.
    pub fn handle_rival(&mut self, now: Time, epoch: u64) {
        if epoch > self.history.end.epoch && self.role != Role::Following {
            self.read_end(now);
        }
    }

    pub fn handle_timeout(&mut self, now: Time) {
        let is_due = self.next_timeout().is_some_and(|due| due <= now);
        if is_due {
            self.reading_since = None;
            self.read_end(now);
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Time> {
        let read = self
            .reading_since
            .map(|since| Time(since.0 + self.config.retry_ms));
        let sent = || {
            let since = self.sent_at?;
            Some(Time(since.0 + self.config.acknowledgement_ms))
        };
        read.or_else(sent)
    }

    /// The next thing that is to be done.
    pub fn next_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Sends what may be sent, and makes batches of what waits while nothing is kept back.
    pub(crate) fn proceed(&mut self, now: Time) {
        loop {
            if self.reading_since.is_some() || self.role == Role::Deposed {
                return;
            }
            while self.sent < WINDOW
                && let Some(next) = self.pending.get(self.sent)
            {
                self.effects.push_back(Effect::Append {
                    after: Sequence(next.sequence - 1),
                    entry: Arc::clone(&next.entry),
                });
                self.sent += 1;
                self.sent_at.get_or_insert(now);
            }
            let writes = matches!(self.role, Role::Owning | Role::Recovering);
            if self.sent == WINDOW || !writes {
                return;
            }
            if !self.batch_waiting() {
                if self.role == Role::Recovering {
                    return;
                }
                let before = self.pending.len();
                self.clean();
                if self.pending.len() == before {
                    return;
                }
            }
        }
    }

    pub(crate) fn append_owned(&mut self, now: Time, owner: &Owner) {
        let body = owner.encode();
        self.history.owner = Some(owner.clone());
        self.acknowledged = self.history.end.sequence;
        self.append(Kind::Owned, &body, None);
        self.proceed(now);
    }

    /// Makes a batch of records, which count from now on.
    pub(crate) fn append_batch(
        &mut self,
        kind: Kind,
        records: Vec<Record>,
        position: Option<Position>,
    ) {
        let live = &mut self.history.live;
        let body = body::encode(records.iter(), &|id| live.queue_name(id));
        let batch = self.history.end.batch + 1;
        live.begin(batch);
        for record in &records {
            live.take(batch, record, None);
        }
        self.append(kind, &body, position);
    }

    /// Makes a batch of what waits; whether anything did.
    pub(crate) fn batch_waiting(&mut self) -> bool {
        let mut bytes = 0;
        let mut records = Vec::new();
        let mut reached = None;
        while bytes < self.config.batch_bytes_max
            && let Some((some, position)) = self.waiting.pop_front()
        {
            bytes += some.iter().map(record_bytes).sum::<usize>();
            records.extend(some);
            reached = Some(position);
        }
        let Some(position) = reached else {
            return false;
        };
        let is_departure = records.iter().any(Record::is_departure);
        if is_departure {
            let lasting = find_lasting(records.iter().map(|record| ((), record)));
            let mut lasting = lasting.iter();
            // As many marks as records.
            records.retain(|_| *lasting.next().unwrap_or(&true));
        }
        match (records.is_empty(), self.pending.back_mut()) {
            (false, _) => {
                let kind = match self.role {
                    Role::Recovering => Kind::Kept,
                    _ => Kind::Fresh,
                };
                self.append_batch(kind, records, Some(position));
            }
            // Nothing is left to be written; it is told in its turn all the same.
            (true, Some(last)) => last.position = Some(position),
            (true, None) => self.effects.push_back(Effect::Committed(position)),
        }
        true
    }

    /// Puts a batch's entries behind all that are there.
    pub(crate) fn append(&mut self, kind: Kind, body: &[u8], position: Option<Position>) {
        let part_bytes_max = self.config.part_bytes_max;
        let parts = body.len().div_ceil(part_bytes_max).max(1);
        let mut bytes = self.history.partial_end();
        let end = &mut self.history.end;
        for part in 0..parts {
            let from = part * part_bytes_max;
            let to = body.len().min(from + part_bytes_max);
            let is_last = part + 1 == parts;
            let head = Head {
                kind,
                is_last,
                log: end.log,
                epoch: end.epoch,
                batch: end.batch + 1,
                part: part as u32,
                before: end.checksum,
                checksum: 0,
            };
            let (entry, checksum) = head.seal(&body[from..to]);
            end.sequence += 1;
            end.checksum = checksum;
            bytes += entry.len() as u64;
            self.pending.push_back(Pending {
                sequence: end.sequence,
                entry,
                position: position.filter(|_| is_last),
                kind,
            });
        }
        end.batch += 1;
        let (batch, last) = (end.batch, end.sequence);
        self.history.live.end(batch, last, bytes);
    }

    /// Somebody else's entry is where ours was to be.
    fn meet(&mut self, sequence: Sequence, entry: &[u8]) {
        let effect = match Head::open(entry) {
            // An operator has had the log recovered meanwhile.
            Ok((head, _)) if head.kind == Kind::Recovered => Effect::Deposed,
            Ok((head, _))
                if head.log != self.history.end.log
                    && self.claimed_at > 0
                    && self.role != Role::Recovering =>
            {
                Effect::Broken(sequence, Broken::Foreign)
            }
            // Of whoever deposed us, or won the race; or what was under way of the one before.
            Ok(_) => Effect::Deposed,
            Err(broken) => Effect::Broken(sequence, broken),
        };
        self.end(effect);
    }

    /// Nothing is appended or committed any more.
    fn end(&mut self, effect: Effect) {
        self.role = Role::Deposed;
        self.waiting.clear();
        self.pending.clear();
        self.sent = 0;
        self.sent_at = None;
        self.effects.clear();
        self.effects.push_back(effect);
    }

    fn read_end(&mut self, now: Time) {
        if self.role == Role::Deposed || self.reading_since.is_some() {
            return;
        }
        self.resynchronizations += 1;
        self.reading_since = Some(now);
        let after = Sequence(self.acknowledged);
        self.effects.push_back(Effect::Read { after });
    }

    /// The number of the first entry that is not under way.
    fn next_unsent(&self) -> u64 {
        self.acknowledged + 1 + self.sent as u64
    }
}

/// What a record costs in a batch, roughly.
fn record_bytes(record: &Record) -> usize {
    match record {
        Record::Enqueued { message, .. } => 64 + message.content.memory_bytes(),
        _ => 64,
    }
}
