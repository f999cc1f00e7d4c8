//! The messages that only the log has, for the owner's copy.
//!
//! A term's copy begins with what the ledger has in memory. The other live messages are read from the log afterwards, an
//! extent at a time and no faster than the copy is written. A message is copied only if it is live then, and no submitted
//! record removes it; the records that remove it later reach the copy after it.

use std::time::Duration;

use crosstie_jetstream::Stream;
use crosstie_ledger::{Absent, Sequence};

use super::driver::Driver;
use super::log;
use super::term::{Done, Entries};

/// A copy that is being filled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Filling {
    is_reading: bool,
}

/// Pause while the copy has no room, or the log does not answer.
const PAUSE: Duration = Duration::from_millis(50);

/// Bytes that wait for the copy's disk beyond which no more are read.
const WAITING_BYTES_MAX: usize = 4 << 20;

impl Driver {
    /// The term has begun: its copy lacks what only the log has.
    pub(super) fn begin_filling(&mut self) {
        if let Some(term) = &mut self.term
            && term.copy.is_some()
            && self.ledger.begin_filling()
        {
            term.filling = Some(Filling::default());
        }
    }

    /// Reads the next extent for the copy, if that has room.
    pub(super) fn fill_on(&mut self, stream: &Stream) {
        let Some(term) = &mut self.term else {
            return;
        };
        let Some(filling) = term.filling.as_mut().filter(|found| !found.is_reading) else {
            return;
        };
        let Some(copy) = term.copy.as_ref().filter(|copy| !copy.is_over()) else {
            term.filling = None;
            return self.ledger.end_filling();
        };
        let waiting_bytes = copy.waiting_bytes();
        let has_room = waiting_bytes.is_some_and(|bytes| bytes < self.task.waiting_bytes_max / 4)
            && waiting_bytes.is_some_and(|bytes| bytes < WAITING_BYTES_MAX);
        filling.is_reading = true;
        match self.ledger.next_absent() {
            None if waiting_bytes.is_some() => {
                copy.complete();
                term.filling = None;
                self.ledger.end_filling();
            }
            Some(Absent {
                extent,
                entries: Some(between),
            }) if has_room => {
                let (stream, doing) = (stream.clone(), term.doing.clone());
                tokio::spawn(async move {
                    let result = log::read_between(&stream, between).await;
                    let _ = doing.send(Done::Fill { extent, result });
                });
            }
            // A full disk must not hold up the log of all nodes.
            _ if self.ledger.is_held_up() && copy.failure().is_some() => {
                let vhost = &self.task.vhost;
                tracing::error!(
                    "abandoned the local copy of vhost '{vhost}': it cannot be written, and its log has to be cleaned"
                );
                copy.abandon();
                self.pause_filling();
            }
            _ => self.pause_filling(),
        }
    }

    /// The pause is over.
    pub(super) fn try_to_fill(&mut self, stream: &Stream) {
        if let Some(filling) = self.term.as_mut().and_then(|term| term.filling.as_mut()) {
            filling.is_reading = false;
        }
        self.fill_on(stream);
    }

    /// Copies the live messages of an extent.
    pub(super) fn fill(&mut self, stream: &Stream, extent: u64, result: Result<Entries, String>) {
        let entries = match result {
            Ok(entries) => entries,
            // The server does not answer, or lags behind.
            Err(why) => {
                self.note_read(Err(why));
                return self.pause_filling();
            }
        };
        let entries = entries.iter();
        let entries = entries.map(|(at, entry)| (Sequence(*at), &entry[..]));
        let read = self.ledger.absent_messages(extent, entries);
        self.note_read(Ok(()));
        let vhost = &self.task.vhost;
        match (read, self.term.as_ref().and_then(|term| term.copy.as_ref())) {
            (Ok(records), Some(copy)) => {
                if !copy.submit(records) {
                    tracing::error!(
                        "abandoned the local copy of vhost '{vhost}': its disk is too slow"
                    );
                }
            }
            (Err(broken), Some(copy)) => {
                tracing::error!(
                    "abandoned the local copy of vhost '{vhost}': live messages in its log: {broken}"
                );
                copy.abandon();
            }
            (_, None) => {}
        }
        self.try_to_fill(stream);
    }

    fn pause_filling(&self) {
        if let Some(term) = &self.term {
            let doing = term.doing.clone();
            tokio::spawn(async move {
                tokio::time::sleep(PAUSE).await;
                let _ = doing.send(Done::FillOn);
            });
        }
    }
}
