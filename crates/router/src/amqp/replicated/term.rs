//! A term: from when the node owns the vhost until it does no more.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crosstie_jetstream::{Append, Failed};
use crosstie_ledger::{Ledger, Sequence};
use crosstie_queues::Position;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::copy::Copy;
use super::journal::Journal;
use super::log::End;

/// What a node has while it owns the vhost.
pub(super) struct Term {
    pub(super) journal: Arc<Journal>,
    pub(super) copy: Option<Copy>,
    /// Bytes of what was handed to the ledger, up to each position.
    pub(super) handed: VecDeque<(Position, usize)>,
    /// When the log acknowledged something last, or nothing waited.
    pub(super) progress: Instant,
    /// When the last connection ended, while there is none.
    pub(super) link_lost: Option<Instant>,
    /// What the log said last, where it takes nothing.
    pub(super) refusal: Option<String>,
    /// Publishers are held back: the vhost is about to be another node's.
    pub(super) is_held: bool,
    /// The log has its last entry, which says so.
    pub(super) is_handed: bool,
    /// Other nodes can ask whether it is there.
    pub(super) answers: bool,
    pub(super) done: mpsc::UnboundedReceiver<Done>,
    pub(super) doing: mpsc::UnboundedSender<Done>,
}

/// The vhost being opened, with its ledger and copy.
pub(super) type Opened = JoinHandle<(Ledger, Option<Copy>)>;

/// Something that the log was asked for has come to its end.
pub(super) enum Done {
    Append {
        after: Sequence,
        taken_us: u64,
        result: Result<Append, Failed>,
    },
    End {
        after: Sequence,
        result: Result<End, Failed>,
    },
    Purge {
        to: Sequence,
        result: Result<(), Failed>,
    },
}

impl Term {
    pub(super) fn new(journal: Arc<Journal>, copy: Option<Copy>) -> Self {
        let (doing, done) = mpsc::unbounded_channel();
        Self {
            journal,
            copy,
            handed: VecDeque::new(),
            progress: Instant::now(),
            link_lost: None,
            refusal: None,
            is_held: false,
            is_handed: false,
            answers: false,
            done,
            doing,
        }
    }

    /// Everything up to there is in the log: bytes that wait no more.
    pub(super) fn settle(&mut self, position: Position) {
        let mut settled = 0;
        while let Some((reached, bytes)) = self.handed.front()
            && *reached <= position
        {
            settled += bytes;
            self.handed.pop_front();
        }
        self.journal.settle(settled);
    }
}
