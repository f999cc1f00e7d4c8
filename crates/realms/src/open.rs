//! A connection whose handshakes are complete: reads frames, and handles messages in turns.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Instant;

use crosstie_front::counters::{Spoken, counters};
use crosstie_transport::Budget;
use crosstie_wamp::framing::Item;

use crate::frames::Frames;
use crate::session::{Session, Stage};
use crate::supervision::Supervision;

/// The state of an open connection.
pub(super) struct Open {
    pub(super) frames: Frames,
    pub session: Session,
    batched: bool,
    pub(super) supervision: Arc<Supervision>,
    /// Until the session has joined, messages are short and the handshake's time limit applies.
    pub(super) stage: Stage,
    /// The last turn added many bytes to the thread's line of fan-outs.
    fans_out: bool,
    /// Part of a message is kept, and charged to the connection's account.
    keeps: bool,
    /// Bytes of earlier messages that the connection is charged for.
    window_bytes: u32,
}

/// Work that precedes the rest of the input.
#[derive(Default)]
pub(super) struct Left {
    /// An unfinished batch, unmasked and decompressed: its frame must not be decoded twice.
    pub(super) batch: Vec<u8>,
    /// Handled bytes of the batch.
    pub(super) done: usize,
    /// Bytes of the batch on the connection's account.
    pub(super) held_bytes: usize,
    /// Bytes of the input that were offered before.
    pub(super) offered: usize,
}

/// One turn of a connection.
pub(super) struct Turn {
    /// One reading of the clock for all messages of an input saves 5 % of the time per call.
    now: Instant,
    budget: Budget,
    appended_before: usize,
}

/// The result of a step.
pub(super) struct Done {
    /// After a `Break`, the output queue is sent and the connection ends.
    pub(super) flow: ControlFlow<()>,
    /// Work that the step leaves to the next turn.
    pub(super) rest: Option<Left>,
    /// The turn is over, if more work remains.
    pub is_over: bool,
}

/// Maximum size of a first message: a client that has not joined must not occupy much memory.
pub const HELLO_BYTES_MAX: usize = 64 * 1024;

/// A connection that appends this much in one turn waits while the line of fan-outs is long.
const FAN_OUT_BYTES_MIN: usize = 64 * 1024;

impl Turn {
    pub(super) fn begin() -> Self {
        let now = Instant::now();
        Self {
            now,
            budget: Budget::begin(now),
            appended_before: crosstie_transport::appended_bytes(),
        }
    }
}

impl Done {
    pub(crate) fn of(flow: ControlFlow<()>) -> Self {
        Self {
            flow,
            rest: None,
            is_over: false,
        }
    }
}

impl Open {
    pub(crate) fn new(
        frames: Frames,
        session: Session,
        batched: bool,
        supervision: Arc<Supervision>,
    ) -> Self {
        let mut open = Self {
            frames,
            session,
            batched,
            supervision,
            stage: Stage::Opening,
            keeps: false,
            fans_out: false,
            window_bytes: 0,
        };
        open.limit_messages();
        open
    }

    pub(super) fn limit_messages(&mut self) {
        let of_endpoint = self.supervision.message_bytes_max;
        let of_session = self.session.message_bytes_max();
        let bytes_max = of_session.map_or(of_endpoint, |max| max.min(of_endpoint));
        let hello_max = if self.stage == Stage::Joined {
            bytes_max
        } else {
            HELLO_BYTES_MAX
        };
        self.frames.set_message_bytes_max(bytes_max.min(hello_max));
    }

    /// Handles more of an unfinished batch.
    #[cold]
    pub(super) fn handle_left(&mut self, mut left: Left, turn: &mut Turn) -> Done {
        let batch = &left.batch[left.done..];
        let drop_on_fault = self.supervision.fail_by_drop;
        let budget = &mut turn.budget;
        let (flow, unsplit) = self
            .session
            .handle_batch(batch, turn.now, budget, drop_on_fault);
        let unsplit = unsplit.len();
        if unsplit == 0 {
            let held_bytes = left.held_bytes as isize;
            self.session.peer.connection.hold(-held_bytes);
            return Done::of(flow);
        }
        left.done = left.batch.len() - unsplit;
        Done {
            rest: Some(left),
            ..Done::of(flow)
        }
    }

    /// Handles the item at the start of `input`. Returns its length, or the length that is needed.
    #[inline]
    pub(super) fn handle_next(
        &mut self,
        input: &mut [u8],
        turn: &mut Turn,
        on_pong: impl FnOnce(),
    ) -> Result<(Done, usize), usize> {
        let step = match self.frames.next(input) {
            Err(e) => {
                let flow = self.session.frame_fault(&e, self.supervision.fail_by_drop);
                return Ok((Done::of(flow), 0));
            }
            Ok(step) if step.consumed == 0 => return Err(step.wanted),
            Ok(step) => step,
        };
        let session = &mut self.session;
        let mut rest = None;
        let flow = match step.item {
            Some(Item::Message { bytes, .. }) if self.batched => {
                let drop_on_fault = self.supervision.fail_by_drop;
                let budget = &mut turn.budget;
                let (flow, unsplit) = session.handle_batch(bytes, turn.now, budget, drop_on_fault);
                rest = Left::of(unsplit);
                flow
            }
            Some(Item::Message { bytes, .. }) => session.handle_message(bytes, turn.now),
            Some(Item::Ping(payload)) => {
                crosstie_transport::expect_none(&session.peer.connection);
                session.pong(payload)
            }
            Some(Item::Pong(_)) => {
                crosstie_transport::expect_none(&session.peer.connection);
                on_pong();
                ControlFlow::Continue(())
            }
            Some(Item::Close(close)) => session.answer_close(close, self.supervision.echo_close),
            None => ControlFlow::Continue(()),
        };
        // Messages of a batch are charged one by one.
        let bytes = if self.batched { 0 } else { step.consumed };
        let done = Done {
            flow,
            rest,
            is_over: session.spend(&mut turn.budget, bytes),
        };
        Ok((done, step.consumed))
    }

    /// Handles an input that is exactly one message, at `place`.
    pub(super) fn handle_whole(
        &mut self,
        place: Range<usize>,
        mut input: Vec<u8>,
        turn: &mut Turn,
    ) -> Done {
        if let Err(e) = self.frames.next(&mut input) {
            return Done::of(self.session.frame_fault(&e, self.supervision.fail_by_drop));
        }
        if self.batched {
            let left = Left {
                batch: input,
                done: place.start,
                ..Left::default()
            };
            return self.handle_left(left, turn);
        }
        let input = self.session.peer.connection.share(input);
        let flow = self.session.handle_shared(&input, place, turn.now);
        self.session.spend(&mut turn.budget, 0);
        Done::of(flow)
    }

    /// Whether the thread must finish its fan-outs before this connection adds to them.
    pub(super) fn waits_for_line(&self) -> bool {
        self.fans_out && crosstie_transport::is_line_long()
    }

    /// Notes the bytes that a turn has appended, and charges the connection for a partial message.
    #[inline]
    pub(super) fn end_turn(&mut self, turn: &Turn) {
        if let Some(us) = counters().end_turn(Spoken::Wamp, &turn.budget) {
            self.session.peer.connection.note_busy(us);
        }
        let appended = crosstie_transport::appended_bytes();
        self.fans_out = appended.saturating_sub(turn.appended_before) >= FAN_OUT_BYTES_MIN;
        let kept = self.frames.kept_bytes();
        if kept > 0 || self.keeps {
            self.keeps = kept > 0;
            self.session.peer.connection.note_partial(kept);
        }
        let window_bytes = self.frames.window_bytes() as u32;
        if window_bytes != self.window_bytes {
            let growth = window_bytes as isize - self.window_bytes as isize;
            self.session.peer.connection.hold(growth);
            self.window_bytes = window_bytes;
        }
    }
}

impl Left {
    /// The rest of a batch, if any.
    fn of(batch: &[u8]) -> Option<Self> {
        (!batch.is_empty()).then(|| Self {
            batch: batch.to_vec(),
            ..Self::default()
        })
    }
}
