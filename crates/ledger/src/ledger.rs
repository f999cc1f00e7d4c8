//! The ledger of one vhost on one node.

use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_queues::{Position, Record, Time};

use crate::broken::Broken;
use crate::entry::Owner;
use crate::history::History;
use crate::pending::Pending;

/// The number of an entry in its log, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sequence(pub u64);

/// What a node is to a vhost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It reads what another one writes.
    Following,
    /// It has asked to own it.
    Claiming,
    Owning,
    /// It has owned it, and writes its last.
    Handing,
    /// It writes what an operator has wanted to be there.
    Recovering,
    /// It has owned or claimed it, and another one owns it; a new ledger follows on.
    Deposed,
}

/// Sizes and times.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Of a batch's part.
    pub part_bytes_max: usize,
    /// About so much is written in one batch.
    pub batch_bytes_max: usize,
    /// A log is not cleaned before it is as long, and twice as long as what counts in it.
    pub log_bytes_min: u64,
    /// So much is purged at a time.
    pub purge_bytes_min: u64,
    /// How long an acknowledgement is waited for before the log's end is read.
    pub acknowledgement_ms: u64,
    /// And after that.
    pub retry_ms: u64,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Append an entry, if the last one has the number `after`: [`Ledger::handle_appended`] or
    /// [`Ledger::handle_refused`] follow, or nothing.
    Append { after: Sequence, entry: Arc<[u8]> },
    /// Read all entries behind that one, up to the end that the log's leader knows:
    /// [`Ledger::handle_end`].
    Read { after: Sequence },
    /// Purge the log up to and with that entry: [`Ledger::handle_purged`], or nothing.
    Purge { to: Sequence },
    /// This node owns the vhost: what there is has been read.
    Owning,
    /// Everything that was submitted up to there will be found by whoever owns the vhost next.
    Committed(Position),
    /// It has written its last: whoever it named may claim the vhost.
    Handed,
    /// Another node owns it. Nothing is appended or committed any more.
    Deposed,
    /// What is in the log cannot be.
    Broken(Sequence, Broken),
}

/// A vhost's ledger.
///
/// Inputs while it follows: [`Self::handle_entry`], then [`Self::claim`]; while it owns [`Self::submit`], and the answers to
/// its effects. After each input [`Self::next_effect`] until there is none; [`Self::handle_timeout`] at
/// [`Self::next_timeout`].
#[derive(Debug)]
pub struct Ledger {
    pub(crate) config: Config,
    pub(crate) role: Role,
    pub(crate) history: History,
    /// Where the log ended when the node claimed the vhost.
    pub(crate) claimed_at: u64,
    /// Submitted and in no batch yet.
    pub(crate) waiting: VecDeque<(Vec<Record>, Position)>,
    /// Entries that are not acknowledged, in the log's order; the first `sent` are under way.
    pub(crate) pending: VecDeque<Pending>,
    pub(crate) sent: usize,
    /// When the oldest one under way was sent.
    pub(crate) sent_at: Option<Time>,
    /// The log's end is being read, since then.
    pub(crate) reading_since: Option<Time>,
    /// The last entry that is acknowledged.
    pub(crate) acknowledged: u64,
    /// Records are being written again, up to that batch's entry.
    pub(crate) keeping: Option<u64>,
    pub(crate) purging: Option<u64>,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) resynchronizations: u64,
}

/// For whoever wants to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub role: Role,
    /// Which log it is; 0: none yet.
    pub log: u64,
    pub epoch: u64,
    pub owner: Option<Owner>,
    /// The last entry that was read, or written.
    pub sequence: Sequence,
    /// The last batch of it.
    pub batch: u64,
    pub log_bytes: u64,
    pub live_bytes: u64,
    pub resynchronizations: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            part_bytes_max: 512 << 10,
            batch_bytes_max: 1 << 20,
            log_bytes_min: 64 << 20,
            purge_bytes_min: 32 << 20,
            acknowledgement_ms: 2000,
            retry_ms: 1000,
        }
    }
}

impl Ledger {
    /// One that has read nothing yet.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            role: Role::Following,
            history: History::default(),
            claimed_at: 0,
            waiting: VecDeque::new(),
            pending: VecDeque::new(),
            sent: 0,
            sent_at: None,
            reading_since: None,
            acknowledged: 0,
            keeping: None,
            purging: None,
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
            log_bytes: self.history.live.log_bytes(),
            live_bytes: self.history.live.bytes(),
            resynchronizations: self.resynchronizations,
        }
    }

    /// Bytes in memory beside the messages.
    pub fn memory_bytes(&self) -> usize {
        let pending = self.pending.iter();
        let pending: usize = pending.map(|pending| pending.entry.len()).sum();
        self.history.live.memory_bytes() + pending
    }

    /// Nothing waits for the log.
    pub fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.pending.is_empty()
    }
}
