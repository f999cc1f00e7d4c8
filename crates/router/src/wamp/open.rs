//! A connection whose handshakes are over: messages come in frames, and are handled in turns.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Instant;

use crosstie_transport::Budget;
use crosstie_wamp::framing::Item;

use crate::wamp::frames::Frames;
use crate::wamp::session::{Session, Stage};
use crate::wamp::supervision::Supervision;

/// What an open connection has.
pub(super) struct Open {
    pub(super) frames: Frames,
    pub(super) session: Session,
    batched: bool,
    pub(super) supervision: Arc<Supervision>,
    /// Until the session has joined, messages are short and the handshake's time limit is on.
    pub(super) stage: Stage,
    /// Its last turn put much into the line of the thread's fan-outs.
    fans_out: bool,
    /// A part of a message is kept, and on the connection's account.
    keeps: bool,
}

/// What comes before the rest of the input.
#[derive(Default)]
pub(super) struct Left {
    /// A batch of which there is more to handle, unmasked and decompressed: its frame is not to be seen
    /// twice.
    pub(super) batch: Vec<u8>,
    /// So much of that is done.
    pub(super) done: usize,
    /// So much of it is on the connection's account.
    pub(super) held_bytes: usize,
    /// Bytes of the input that were offered already.
    pub(super) offered: usize,
}

/// One turn of a connection.
pub(super) struct Turn {
    /// Reading the clock once for all messages of an input saves 5 % of the time per call.
    now: Instant,
    budget: Budget,
    appended_before: usize,
}

/// What came of a step.
pub(super) struct Done {
    /// After a `Break` what is queued is sent, then the connection ends.
    pub(super) flow: ControlFlow<()>,
    /// What the step has left to the next turn.
    pub(super) rest: Option<Left>,
    /// The turn is over, if there is more to do.
    pub(super) is_over: bool,
}

/// The longest first message: whoever has not joined yet must not make the router hold much.
pub(crate) const HELLO_BYTES_MAX: usize = 64 * 1024;

/// Whoever appends so much in one turn waits where the line of fan-outs is long.
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
    pub(super) fn of(flow: ControlFlow<()>) -> Self {
        Self {
            flow,
            rest: None,
            is_over: false,
        }
    }
}

impl Open {
    pub(super) fn new(
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

    /// Handles more of the batch that a turn has left.
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

    /// Handles the item at the start of `input`, and says how long it is; or how much of one is wanted.
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
            Some(Item::Ping(payload)) => session.pong(payload),
            Some(Item::Pong(_)) => {
                on_pong();
                ControlFlow::Continue(())
            }
            Some(Item::Close(close)) => session.answer_close(close, self.supervision.echo_close),
            None => ControlFlow::Continue(()),
        };
        // The messages of a batch have been charged one by one.
        let bytes = if self.batched { 0 } else { step.consumed };
        let done = Done {
            flow,
            rest,
            is_over: session.spend(&mut turn.budget, bytes),
        };
        Ok((done, step.consumed))
    }

    /// Handles an input that is one message, at `place` of it.
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

    /// Whether the thread's fan-outs are to be done before this connection adds to them.
    pub(super) fn waits_for_line(&self) -> bool {
        self.fans_out && crosstie_transport::is_line_long()
    }

    /// Remembers how much a turn has appended, and has the connection's debt say what is kept of a message
    /// until the next one.
    #[inline]
    pub(super) fn end_turn(&mut self, turn: &Turn) {
        let appended = crosstie_transport::appended_bytes();
        self.fans_out = appended.saturating_sub(turn.appended_before) >= FAN_OUT_BYTES_MIN;
        let kept = self.frames.kept_bytes();
        if kept > 0 || self.keeps {
            self.keeps = kept > 0;
            self.session.peer.connection.note_partial(kept);
        }
    }
}

impl Left {
    /// The rest of a batch, if there is one.
    fn of(batch: &[u8]) -> Option<Self> {
        (!batch.is_empty()).then(|| Self {
            batch: batch.to_vec(),
            ..Self::default()
        })
    }
}
