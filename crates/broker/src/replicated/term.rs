//! A term: the time during which the node owns the vhost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crosstie_jetstream::{Append, Failed};
use crosstie_ledger::{Ledger, Sequence};
use crosstie_queues::Position;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::copy::Copy;
use super::filling::Filling;
use super::journal::Journal;
use super::log::End;
use super::pages::{Pages, Reading, Wanted};
use super::progress::Progress;
use super::unread::Unread;

/// The state of a node while it owns the vhost.
pub(super) struct Term {
    pub(super) journal: Arc<Journal>,
    pub(super) copy: Option<Copy>,
    /// The messages that only the log has are being copied.
    pub(super) filling: Option<Filling>,
    /// Pages that are to be read.
    pub(super) pages: Pages,
    /// Live messages that are to be written again, or copied, and cannot be read.
    pub(super) unread: Option<Unread>,
    /// Sizes of the records passed to the ledger, by position.
    pub(super) handed: VecDeque<(Position, usize)>,
    /// Of the log, with the submitted records.
    pub(super) progress: Progress,
    /// The end of the last connection, while none is open.
    pub(super) link_lost: Option<Instant>,
    /// The log's last error, while it accepts nothing.
    pub(super) refusal: Option<String>,
    /// Publishers are paused for a handover.
    pub(super) is_held: bool,
    /// The log has the handover entry.
    pub(super) is_handed: bool,
    /// Other nodes can probe this owner.
    pub(super) answers: bool,
    pub(super) done: mpsc::UnboundedReceiver<Done>,
    pub(super) doing: mpsc::UnboundedSender<Done>,
}

/// The vhost being opened, with its ledger and copy.
pub(super) type Opened = JoinHandle<(Ledger, Option<Copy>)>;

/// The outcome of a request to the log.
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
    /// Entries that the ledger reads again.
    Fetch { result: Result<Entries, String> },
    /// Pages were read.
    PagesRead(Reading),
    /// Pages are to be read again.
    PagesWanted(Vec<Wanted>),
    /// An extent's entries for the copy.
    Fill {
        extent: u64,
        result: Result<Entries, String>,
    },
    /// The copy may be filled further.
    FillOn,
}

/// Entries of the log with their numbers.
pub(super) type Entries = Vec<(u64, Vec<u8>)>;

impl Term {
    pub(crate) fn new(journal: Arc<Journal>, copy: Option<Copy>) -> Self {
        let (doing, done) = mpsc::unbounded_channel();
        Self {
            journal,
            copy,
            filling: None,
            pages: Pages::default(),
            unread: None,
            handed: VecDeque::new(),
            progress: Progress::begin(Instant::now()),
            link_lost: None,
            refusal: None,
            is_held: false,
            is_handed: false,
            answers: false,
            done,
            doing,
        }
    }

    /// Everything up to `position` is in the log: its bytes no longer wait.
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
