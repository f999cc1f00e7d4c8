//! A planned move, at the owner: the target catches up while this node serves; then this node closes its clients, writes
//! its last entry, and the target takes over at once.
//!
//! No step waits: [`Driver::advance`] takes the steps that are due. So a move outlives the connection to a NATS server.

use std::time::{Duration, Instant};

use crosstie_jetstream::Stream;
use crosstie_ledger::Release;
use crosstie_queues::{Position, QueueId};

use super::beat::{Beat, HANDED_MAX};
use super::driver::{Driver, Saying};
use super::handing::Handing;
use super::orders::{Move, Moved, Order, Reply};

/// A move that has begun.
pub(super) struct Handover {
    to: String,
    is_named: bool,
    asked: Instant,
    /// The deadline for the target to catch up.
    within: Duration,
    step: Step,
    reply: Reply<Moved>,
}

enum Step {
    /// The target builds the vhost and reads the log along. This node serves.
    Preparing,
    /// Publishers are paused until the records up to that position are in the log.
    Holding {
        since: Instant,
        reaches: Option<Position>,
    },
    /// The clients are closed. The last records are being written.
    Resting { since: Instant, rested: Rested },
    /// The last entry is being written.
    Releasing { since: Instant },
}

/// For each queue the position from which on messages were never delivered.
pub(super) type Rested = Vec<(QueueId, i64)>;

/// Whether the target can take over.
#[derive(Debug, PartialEq, Eq)]
enum Readiness {
    Ready,
    NotYet,
    /// The target does not stand by any more.
    Gone,
}

/// Timeout for records in flight when publishers are paused. Without an answer the node goes on serving.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// Maximum time for a prepared target to write its claim. Then this node takes the vhost back.
const TAKE_MAX: Duration = Duration::from_secs(2);

/// Maximum number of entries that the target has yet to read when the owner stops serving.
const LAG_MAX: u64 = 64;

impl Handover {
    pub(super) fn to(&self) -> &str {
        &self.to
    }

    /// Answers the operator: the move has failed.
    pub(super) fn refuse(self, why: &str) {
        self.reply.answer(Err(why.to_owned()));
    }
}

impl Readiness {
    /// Judges by the target's last heartbeat, towards an owner of that epoch whose log has so many entries.
    fn of(beat: Option<&Beat>, epoch: u64, sequence: u64) -> Self {
        match beat {
            // A target that reads a long log sends no heartbeats meanwhile.
            None => Self::NotYet,
            Some(beat) if !beat.is_ready => Self::Gone,
            // An older version: it reads and builds when the vhost is handed over.
            Some(beat) if !beat.prepares => Self::Ready,
            Some(beat) if beat.prepared == epoch && beat.sequence + LAG_MAX >= sequence => {
                Self::Ready
            }
            Some(_) => Self::NotYet,
        }
    }
}

impl Driver {
    /// Obeys an operator's order as owner.
    pub(super) fn obey_as_owner(&mut self, stream: &Stream, order: Order) {
        match order {
            Order::Move(order) => self.begin_move(stream, order),
            Order::Recover(order) => {
                let why = "this node owns it: its log is whole, and in use".to_owned();
                order.reply.answer(Err(why));
            }
        }
    }

    fn begin_move(&mut self, stream: &Stream, order: Move) {
        let Move { to, within, reply } = order;
        let found = match self.target(to.as_deref()) {
            Ok(found) => found,
            Err(why) => return reply.answer(Err(why)),
        };
        self.handover = Some(Handover {
            to: found,
            is_named: to.is_some(),
            asked: Instant::now(),
            within: within.min(HANDED_MAX),
            step: Step::Preparing,
            reply,
        });
        // The target begins to prepare.
        self.beat(stream, Saying::Owning);
    }

    fn target(&self, to: Option<&str>) -> Result<String, String> {
        if let Some(handover) = &self.handover {
            return Err(format!("it is being moved to node {} already", handover.to));
        }
        let own = self.task.node.as_str();
        let is_own = |to: &str| to == own || own.split('/').next() == Some(to);
        if to.is_some_and(is_own) {
            return Err(format!("node {own} owns it already"));
        }
        self.others.standing_by(to).map(|beat| beat.node.clone())
    }

    /// Takes the next step of a move, if it is due. Returns whether it was; an error means the end of the term.
    pub(super) fn advance(&mut self, stream: &Stream) -> Result<bool, String> {
        let Some(mut handover) = self.handover.take() else {
            return Ok(false);
        };
        let status = self.ledger.status();
        let next = match &mut handover.step {
            Step::Preparing => {
                let beat = self.others.beat_of(&handover.to);
                match Readiness::of(beat, status.epoch, status.sequence.0) {
                    Readiness::Ready => Some(self.begin_to_hold()),
                    Readiness::NotYet if handover.asked.elapsed() < handover.within => None,
                    Readiness::NotYet => {
                        let s = handover.within.as_secs_f64();
                        let to = &handover.to;
                        let why =
                            format!("node {to} has not caught up within {s} s: it stays here");
                        handover.refuse(&why);
                        return Ok(true);
                    }
                    Readiness::Gone => {
                        let to = &handover.to;
                        let why = format!(
                            "node {to} does not stand by any more: its own /health says why"
                        );
                        handover.refuse(&why);
                        return Ok(true);
                    }
                }
            }
            Step::Holding { since, reaches } => {
                let since = *since;
                if self.has_written(*reaches) {
                    let rested = self.stop_serving(&handover.to);
                    Some(Step::Resting { since, rested })
                } else if since.elapsed() >= FLUSH_MAX {
                    self.hold(false);
                    handover.refuse("its log acknowledges nothing: it stays here");
                    return Ok(true);
                } else {
                    None
                }
            }
            Step::Resting { since, rested } if self.ledger.is_settled() => {
                let since = *since;
                let release = Release {
                    to: handover.to.as_str().into(),
                    rested: Some(std::mem::take(rested)),
                };
                let now = self.now();
                let is_begun = self.ledger.release(now, &release);
                is_begun.then_some(Step::Releasing { since })
            }
            Step::Releasing { since } if self.term.as_ref().is_some_and(|t| t.is_handed) => {
                let since = *since;
                return Err(self.hand(stream, handover, since));
            }
            Step::Resting { .. } | Step::Releasing { .. } => None,
        };
        let is_due = next.is_some();
        if let Some(next) = next {
            handover.step = next;
            // The target reads up to here meanwhile.
            self.handover = Some(handover);
            self.beat(stream, Saying::Owning);
        } else {
            self.handover = Some(handover);
        }
        Ok(is_due)
    }

    /// Pauses publishers.
    fn begin_to_hold(&mut self) -> Step {
        self.hold(true);
        self.hand_over();
        let term = self.term.as_ref();
        let last = term.and_then(|term| term.handed.back());
        Step::Holding {
            since: Instant::now(),
            reaches: last.map(|(position, _)| *position),
        }
    }

    /// Whether the records up to that position are in the log.
    fn has_written(&self, reaches: Option<Position>) -> bool {
        let term = self.term.as_ref();
        let first = term.and_then(|term| term.handed.front());
        first.is_none_or(|(position, _)| Some(*position) > reaches)
    }

    /// Closes the clients, and passes all remaining records to the ledger.
    fn stop_serving(&mut self, to: &str) -> Rested {
        let rested = self.task.holder.rest(&format!("it is handed to node {to}"));
        if let Some(term) = &self.term {
            term.journal.seal();
        }
        self.hand_over();
        rested
    }

    /// The log has the last entry: announces the successor. Returns the reason for the end of the term.
    fn hand(&mut self, stream: &Stream, handover: Handover, since: Instant) -> String {
        let beat = self.others.beat_of(&handover.to);
        let is_prepared = beat.is_none_or(|beat| beat.prepares);
        let within = match is_prepared {
            true => TAKE_MAX,
            false => handover.within,
        };
        let Handover {
            to,
            is_named,
            asked,
            reply,
            ..
        } = handover;
        let why = format!("it is handed to node {to}");
        self.handing = Some(Handing {
            to,
            is_named,
            epoch: self.ledger.status().epoch,
            asked,
            paused: since,
            handed: Instant::now(),
            within,
            failed: None,
            reply,
        });
        self.beat(stream, self.leaving());
        why
    }

    /// Stops the vhost in order because the node stops, and writes all pending records. Any node may own it next, or the
    /// target of a move that has begun.
    pub(super) async fn write_rest(&mut self, stream: &Stream) {
        let (to, rested) = match self.handover.take() {
            Some(Handover {
                to,
                step: Step::Resting { rested, .. },
                ..
            }) => (to, rested),
            // The ledger refuses another last entry.
            Some(Handover {
                step: Step::Releasing { .. },
                ..
            }) => (String::new(), Vec::new()),
            Some(_) | None => {
                let rested = self.task.holder.rest("the node is being stopped");
                (String::new(), rested)
            }
        };
        if let Some(term) = &self.term {
            term.journal.seal();
        }
        self.flush(stream).await;
        let handed = Release {
            to: to.as_str().into(),
            rested: Some(rested),
        };
        let now = self.now();
        if self.ledger.release(now, &handed) {
            self.flush(stream).await;
        }
    }

    fn hold(&mut self, is_held: bool) {
        let Some(term) = &mut self.term else {
            return;
        };
        term.is_held = is_held;
        match is_held {
            true => self.task.holder.hold(),
            false => self.task.holder.go_on(),
        }
    }
}
