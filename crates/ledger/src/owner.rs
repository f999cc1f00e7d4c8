//! A ledger that owns or claims: takes records, returns appends and commits.
//!
//! Up to [`WINDOW`] appends are in flight, each of which expects the one before it. The log takes a number for that
//! expectation, not an entry. So if another node's claim takes the place of a deposed owner's first append, the log
//! accepts its second one behind the claim:
//!
//! ```text
//! … │ claim of epoch 8 │ second append of epoch 7: passed over │ the first entry of epoch 8 │ …
//! ```
//!
//! Its owner does not confirm it, because an acknowledgement counts only if the entries before it have theirs. Readers
//! pass over it. At most one such entry exists, and directly behind the claim: the next place is no longer the one that
//! it expects. The new owner's first entry is therefore alone in flight, until that place is decided.
//!
//! An append that is refused, or not acknowledged in time, may or may not be in the log. So the log's end is read, and
//! decides: an own entry found there was appended; one that is missing is sent again, with the same octets and the same
//! expectation, so that the log can hold it only once. Each place is tried with one entry only. An entry whose place
//! another one has taken can never be accepted there.

use std::sync::Arc;

use crosstie_queues::{Position, Record, Time, find_lasting};

use crate::body;
use crate::broken::{Broken, FORMAT, FORMAT_OF_SETTINGS};
use crate::entry::{Head, Kind, Owner};
use crate::in_flight::InFlight;
use crate::ledger::{Effect, Ledger, Role, Sequence};
use crate::sizes::{RECORD_BYTES, record_bytes};

/// Maximum number of appends in flight; see above before raising it.
const WINDOW: usize = 2;

/// Number of reads without a new entry after which a refused append is not decided at once: its first copy may be in a
/// server's hands, without a majority. Another read is tried at the usual interval.
const FRUITLESS_MAX: u32 = 2;

impl Ledger {
    /// Takes new records, up to and including `position`, in the journal's order. Records submitted together are
    /// written in one batch.
    pub fn submit(&mut self, now: Time, records: Vec<Record>, position: Position) {
        if !matches!(self.role, Role::Owning | Role::Recovering) {
            return;
        }
        self.waiting.push_back((records, position));
        self.proceed(now);
    }

    /// Handles an acknowledgement: this entry is in the log. It is committed once all before it are acknowledged.
    pub fn handle_appended(&mut self, now: Time, Sequence(sequence): Sequence) {
        let at = sequence.checked_sub(self.acknowledged + 1);
        let at = at.and_then(|at| usize::try_from(at).ok());
        let Some(answered) = at.and_then(|at| self.in_flight.get_mut(at)) else {
            return;
        };
        answered.is_answered = true;
        self.acknowledge_answered(now);
        self.proceed(now);
    }

    fn acknowledge_answered(&mut self, now: Time) {
        while let Some(first) = self.in_flight.pop_front_if(|first| first.is_answered) {
            self.acknowledge(now, &first);
        }
    }

    /// Records that the first entry in flight is in the log.
    fn acknowledge(&mut self, now: Time, first: &InFlight) {
        self.sent = self.sent.saturating_sub(1);
        self.acknowledged += 1;
        self.fruitless = 0;
        self.sent_at = (self.sent > 0).then_some(now);
        self.history.arrive(self.acknowledged, first);
        match first.kind {
            Kind::Owned if self.role == Role::Claiming => {
                self.role = Role::Owning;
                self.effects.push_back(Effect::Owning);
            }
            Kind::Released if self.in_flight.is_empty() => {
                self.role = Role::Deposed;
                self.effects.push_back(Effect::Released);
            }
            _ => {}
        }
        if let Some(position) = first.position {
            self.effects.push_back(Effect::Committed(position));
        }
        self.note_for_purge();
    }

    /// Handles a refused append: the log does not end at the expected entry.
    pub fn handle_refused(&mut self, now: Time, after: Sequence) {
        let is_under_way = after.0 >= self.acknowledged && after.0 < self.next_unsent();
        match () {
            () if !is_under_way || self.reading_since.is_some() => {}
            () if self.fruitless < FRUITLESS_MAX => self.read_end(now),
            () => self.reading_since = Some(now),
        }
    }

    /// Handles the log's end: the entries behind `after`, as [`Effect::Read`] requested, and the number of the last
    /// entry, which may have been purged.
    pub fn handle_end<'e>(
        &mut self,
        now: Time,
        (after, last): (Sequence, Sequence),
        entries: impl IntoIterator<Item = (Sequence, &'e [u8])>,
    ) {
        if self.reading_since.take().is_none() || self.role == Role::Deposed {
            return;
        }
        // `after` had been acknowledged before the request.
        if last < after {
            return self.end(Effect::Broken(last, Broken::Shorter));
        }
        self.fruitless += u32::from(!self.in_flight.is_empty());
        for (sequence, entry) in entries {
            if sequence.0 <= self.acknowledged {
                continue;
            }
            let first = self.in_flight.pop_front_if(|first| *first.entry == *entry);
            match first {
                Some(first) if sequence.0 == self.acknowledged + 1 => {
                    self.acknowledge(now, &first);
                }
                None if self.is_passed_over(sequence, entry) => {
                    self.acknowledged += 1;
                    self.history.pass_over(sequence.0, entry.len());
                }
                _ => return self.meet(sequence, entry),
            }
        }
        self.acknowledge_answered(now);
        // Missing entries are sent again.
        self.sent = 0;
        self.sent_at = None;
        self.proceed(now);
    }

    /// Handles a failed read of the end; it is retried.
    pub fn handle_unread(&mut self, now: Time) {
        if self.reading_since.is_some() {
            self.reading_since = Some(now);
        }
    }

    /// Handles a new connection: requests over the former one get no answer any more, so the log's end is read now. An
    /// append that is still on its way appears there later, and refuses its repetition.
    pub fn handle_connected(&mut self, now: Time) {
        if self.sent_at.is_some() || self.reading_since.is_some() {
            self.reading_since = None;
            self.read_end(now);
        }
    }

    /// Handles another node's statement that it owns the vhost in that epoch: if that is possible, the log decides.
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

    /// Sets the maximum number of appends in flight, which is 1 until then. More than one requires that every reader of
    /// the log passes over late entries.
    pub fn limit_appends(&mut self, appends: usize) {
        self.window = appends.clamp(1, WINDOW);
    }

    /// Whether a clearance is written as one record, which requires that every reader of the log knows such records. Until
    /// then it is written as the departures of its messages.
    pub fn write_clearances(&mut self, are_known: bool) {
        self.writes_clearances = are_known;
    }

    /// The next effect to carry out.
    pub fn next_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Sends entries that may be sent, and makes batches of waiting records and of those that cleaning repeats.
    pub(crate) fn proceed(&mut self, now: Time) {
        loop {
            if self.reading_since.is_some() || self.role == Role::Deposed {
                return;
            }
            let window = self.window();
            while self.sent < window
                && let Some(next) = self.in_flight.get(self.sent)
            {
                self.effects.push_back(Effect::Append {
                    after: Sequence(self.acknowledged + self.sent as u64),
                    entry: Arc::clone(&next.entry),
                });
                self.sent += 1;
                self.sent_at.get_or_insert(now);
            }
            if self.sent >= window {
                return;
            }
            let before = self.in_flight.len();
            match self.role {
                Role::Owning => self.clean(now),
                Role::Recovering => {}
                _ => return,
            }
            let is_cleaning = self.in_flight.len() > before;
            if !is_cleaning && !self.batch_waiting() {
                return;
            }
        }
    }

    /// The number of appends that may be in flight.
    fn window(&self) -> usize {
        // Until then a former owner's second append may take the place behind the claim.
        let is_behind = self.acknowledged > self.history.changed_at;
        match self.role {
            Role::Owning if is_behind => self.window,
            _ => 1,
        }
    }

    pub(crate) fn append_owned(&mut self, now: Time, owner: &Owner) {
        let body = owner.encode();
        self.history.owner = Some(owner.clone());
        self.begin_writing();
        self.append(Kind::Owned, &body, None);
        self.proceed(now);
    }

    /// The next entry is the first one of this writer.
    pub(crate) fn begin_writing(&mut self) {
        self.acknowledged = self.history.end.sequence;
        self.claimed_at = self.acknowledged;
        self.history.changed_at = self.acknowledged + 1;
    }

    /// Makes a batch of records, which are live from now on.
    pub(crate) fn append_batch(
        &mut self,
        kind: Kind,
        records: Vec<Record>,
        position: Option<Position>,
    ) {
        let live = &mut self.history.live;
        let body = body::encode(records.iter(), &|id| live.queue_name(id));
        let batch = self.history.end.batch + 1;
        live.extents.begin(batch);
        live.note_writer(self.history.end.epoch, kind == Kind::Fresh);
        for record in &records {
            live.take(record, None);
        }
        let is_setting = |record: &Record| matches!(record, Record::Setting { .. });
        let format = match records.iter().any(is_setting) {
            true => FORMAT_OF_SETTINGS,
            false => FORMAT,
        };
        self.append_in(format, kind, &body, position);
    }

    /// Makes a batch of waiting records; returns whether there were any.
    pub(crate) fn batch_waiting(&mut self) -> bool {
        let mut bytes = 0;
        let mut records = Vec::new();
        let mut reached = None;
        let mut is_any = false;
        while bytes < self.config.batch_bytes_max
            && let Some((some, position)) = self.waiting.pop_front()
        {
            is_any = true;
            let (some, rest) = self.split_at_clearance(some, records.is_empty());
            bytes += some.iter().map(record_bytes).sum::<usize>();
            records.extend(some);
            match rest.is_empty() {
                true => reached = Some(position),
                false => {
                    self.waiting.push_front((rest, position));
                    break;
                }
            }
        }
        if !is_any {
            return false;
        }
        let is_departure = records.iter().any(Record::is_departure);
        if is_departure {
            let lasting = find_lasting(records.iter().map(|record| ((), record)));
            let mut lasting = lasting.iter();
            // As many marks as records.
            records.retain(|_| *lasting.next().unwrap_or(&true));
        }
        match (records.is_empty(), self.in_flight.back_mut(), reached) {
            (false, ..) => {
                let kind = match self.role {
                    Role::Recovering => Kind::Kept,
                    _ => Kind::Fresh,
                };
                self.append_batch(kind, records, reached);
            }
            (true, _, None) => {}
            // No record is left to write; the position is committed in its turn all the same.
            (true, Some(last), Some(position)) => last.position = Some(position),
            (true, None, Some(position)) => self.effects.push_back(Effect::Committed(position)),
        }
        true
    }

    /// Splits records before the first clearance, so that the records before it are live when it is carried out. A
    /// clearance at the front becomes the departures of single messages, as many as a batch has, unless all readers know
    /// clearances.
    fn split_at_clearance(
        &self,
        mut records: Vec<Record>,
        is_first: bool,
    ) -> (Vec<Record>, Vec<Record>) {
        if self.writes_clearances {
            return (records, Vec::new());
        }
        let clearance = |record: &Record| matches!(record, Record::Cleared { .. });
        let Some(at) = records.iter().position(clearance) else {
            return (records, Vec::new());
        };
        let mut rest = records.split_off(at);
        if !records.is_empty() || !is_first {
            return (records, rest);
        }
        if let Some(Record::Cleared { queue, from, to }) = rest.first_mut() {
            let count_max = (self.config.batch_bytes_max / RECORD_BYTES).max(1);
            let queue = *queue;
            let places = self.history.live.places(queue, (*from, *to), count_max);
            match places.last() {
                Some(last) if places.len() == count_max && last < to => *from = last + 1,
                _ => drop(rest.remove(0)),
            }
            let dequeued = places
                .into_iter()
                .map(|place| Record::Dequeued { queue, place });
            return (dequeued.collect(), rest);
        }
        (records, rest)
    }

    /// Queues a batch's entries behind all others.
    pub(crate) fn append(&mut self, kind: Kind, body: &[u8], position: Option<Position>) {
        self.append_in(FORMAT, kind, body, position);
    }

    /// The same in another format.
    fn append_in(&mut self, format: u8, kind: Kind, body: &[u8], position: Option<Position>) {
        let part_bytes_max = self.config.part_bytes_max;
        let parts = body.len().div_ceil(part_bytes_max).max(1);
        self.history.partial_end();
        let end = &mut self.history.end;
        end.batch += 1;
        for part in 0..parts {
            let from = part * part_bytes_max;
            let to = body.len().min(from + part_bytes_max);
            let is_last = part + 1 == parts;
            let head = Head {
                format,
                kind,
                is_last,
                log: end.log,
                epoch: end.epoch,
                batch: end.batch,
                part: part as u32,
                before: end.checksum,
                checksum: 0,
            };
            let (entry, checksum) = head.seal(&body[from..to]);
            end.sequence += 1;
            end.checksum = checksum;
            self.in_flight.push_back(InFlight {
                entry,
                position: position.filter(|_| is_last),
                kind,
                batch: end.batch,
                part: part as u32,
                is_last,
                is_answered: false,
            });
        }
        self.history.live.extents.begin(end.batch);
    }

    /// Whether a foreign entry is one of a former owner, behind this node's claim.
    fn is_passed_over(&self, Sequence(sequence): Sequence, entry: &[u8]) -> bool {
        let is_next = sequence == self.acknowledged + 1;
        let head = Head::open(entry);
        is_next && head.is_ok_and(|(head, _)| self.history.is_late(sequence, &head))
    }

    /// Handles a foreign entry at the place of an own one.
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
            // Of a node that deposed this one or won the race; or of the previous owner, in front of the claim.
            Ok(_) => Effect::Deposed,
            Err(broken) => Effect::Broken(sequence, broken),
        };
        self.end(effect);
    }

    /// Ends the ledger: nothing is appended or committed any more.
    fn end(&mut self, effect: Effect) {
        self.role = Role::Deposed;
        self.waiting.clear();
        self.in_flight.clear();
        self.sent = 0;
        self.sent_at = None;
        self.fetching = None;
        self.repeating = None;
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

    /// The number of the first entry that was not sent.
    fn next_unsent(&self) -> u64 {
        self.acknowledged + 1 + self.sent as u64
    }
}
