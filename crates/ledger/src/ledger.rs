//! The ledger of one vhost on one node.

use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_queues::{Position, Record, Time};

use crate::broken::Broken;
use crate::config::Config;
use crate::entry::Owner;
use crate::history::History;
use crate::in_flight::InFlight;
use crate::missing::Missing;
use crate::purging::Purging;
use crate::repeating::Repeating;

/// The number of an entry in its log, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sequence(pub u64);

/// A node's role for a vhost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads the entries of the owner.
    Following,
    /// Has asked to own the vhost.
    Claiming,
    Owning,
    /// Owned the vhost, and writes its last entry.
    Releasing,
    /// Writes the records that an operator has chosen.
    Recovering,
    /// Owned or claimed the vhost, and another node owns it now; a new ledger continues.
    Deposed,
}

/// An effect to carry out.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Append an entry, if the last one has the number `after`: [`Ledger::handle_appended`] or
    /// [`Ledger::handle_refused`] follow, or nothing.
    Append { after: Sequence, entry: Arc<[u8]> },
    /// Read all entries behind that one, up to the end that the log's leader knows: [`Ledger::handle_end`].
    Read { after: Sequence },
    /// Purge the log up to and including that entry: [`Ledger::handle_purged`], or nothing.
    Purge { to: Sequence },
    /// Read these entries, the first and the last included: [`Ledger::handle_fetched`] or
    /// [`Ledger::handle_not_fetched`].
    Fetch { first: Sequence, last: Sequence },
    /// This node owns the vhost: all records have been read.
    Owning,
    /// Everything submitted up to that position is in the log, for any later owner.
    Committed(Position),
    /// The owner's last entry is written: the node that it names may claim the vhost.
    Released,
    /// Another node owns the vhost. Nothing is appended or committed any more.
    Deposed,
    /// The entry breaks the log.
    Broken(Sequence, Broken),
}

/// A vhost's ledger.
///
/// Inputs while it follows: [`Self::handle_entry`], then [`Self::claim`]; while it owns: [`Self::submit`], and the
/// answers to its effects. After each input call [`Self::next_effect`] until there is none; call
/// [`Self::handle_timeout`] at [`Self::next_timeout`].
#[derive(Debug)]
pub struct Ledger {
    pub(crate) config: Config,
    pub(crate) role: Role,
    pub(crate) history: History,
    /// The end of the log when the node claimed the vhost.
    pub(crate) claimed_at: u64,
    /// Submitted, and in no batch yet.
    pub(crate) waiting: VecDeque<(Vec<Record>, Position)>,
    /// Entries that are not acknowledged, in the log's order; the first `sent` were sent.
    pub(crate) in_flight: VecDeque<InFlight>,
    pub(crate) sent: usize,
    /// When the oldest of these was sent.
    pub(crate) sent_at: Option<Time>,
    /// Since when the log's end is being read.
    pub(crate) reading_since: Option<Time>,
    /// The last acknowledged entry.
    pub(crate) acknowledged: u64,
    /// The number of appends that may be in flight.
    pub(crate) window: usize,
    /// Whether all readers of the log know clearances.
    pub(crate) writes_clearances: bool,
    /// Reads of the log's end since the last acknowledgement.
    pub(crate) fruitless: u32,
    pub(crate) purging: Option<Purging>,
    /// The extent whose live records are being read, to be written again; and when the next one may be.
    pub(crate) fetching: Option<u64>,
    pub(crate) fetches_at: Time,
    /// What was read of it and is still to be written again.
    pub(crate) repeating: Option<Repeating>,
    /// What a copy lacks that is being filled. Live records stay where they are in the log meanwhile.
    pub(crate) filling: Option<Missing>,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) resynchronizations: u64,
}

/// A ledger's state, for operators.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub role: Role,
    /// The log's name; 0: none yet.
    pub log: u64,
    pub epoch: u64,
    pub owner: Option<Owner>,
    /// The last entry that was read or written.
    pub sequence: Sequence,
    /// Its last batch.
    pub batch: u64,
    pub log_bytes: u64,
    pub live_bytes: u64,
    /// Bytes of the messages in memory.
    pub resident_bytes: u64,
    pub resynchronizations: u64,
}

impl Ledger {
    /// A ledger that has read nothing yet.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            role: Role::Following,
            history: History::new(config),
            claimed_at: 0,
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            sent: 0,
            sent_at: None,
            reading_since: None,
            acknowledged: 0,
            window: 1,
            writes_clearances: false,
            fruitless: 0,
            purging: None,
            fetching: None,
            fetches_at: Time(0),
            repeating: None,
            filling: None,
            effects: VecDeque::new(),
            resynchronizations: 0,
        }
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn status(&self) -> Status {
        let end = &self.history.end;
        Status {
            role: self.role,
            log: end.log,
            epoch: end.epoch,
            owner: self.history.owner.clone(),
            sequence: Sequence(end.sequence),
            batch: end.batch,
            log_bytes: self.history.live.extents.log_bytes(),
            live_bytes: self.history.live.bytes(),
            resident_bytes: self.resident_bytes(),
            resynchronizations: self.resynchronizations,
        }
    }

    /// The last entry that is known to be in the log.
    pub fn acknowledged(&self) -> Sequence {
        Sequence(self.acknowledged)
    }

    /// Bytes of the messages in memory.
    pub fn resident_bytes(&self) -> u64 {
        self.history.live.resident_bytes()
    }

    /// Bytes in memory beside the messages, and of messages that no queue needs any more.
    pub fn memory_bytes(&self) -> usize {
        let in_flight = self.in_flight.iter();
        let in_flight: usize = in_flight.map(|in_flight| in_flight.entry.len()).sum();
        let repeating = self.repeating.as_ref().map_or(0, Repeating::memory_bytes);
        self.history.memory_bytes() + in_flight + repeating
    }

    /// The epochs of the owners that have set the settings. Of one that was read only where it was written again, a later one.
    pub fn setting_epochs(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        self.history.live.setting_epochs()
    }

    /// Whether the messages of some queues are in the log alone.
    pub fn is_deep(&self) -> bool {
        self.history.live.is_deep()
    }

    /// Memory is nearly full, or is not any more: meanwhile the log alone has the messages of all queues but the shortest. To be
    /// called again and again: each call looks at some of the queues that were there before.
    pub fn set_crowded(&mut self, is_crowded: bool) {
        self.history.live.set_crowded(is_crowded);
    }

    /// Whether nothing waits for the log.
    pub fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_empty()
    }
}
