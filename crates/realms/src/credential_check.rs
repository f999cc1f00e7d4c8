//! The time at which credentials are checked: at once, or in turn after others' wrong attempts.

use std::mem;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crosstie_auth::Guesses;
use crosstie_auth::wamp::{Cause, Refusal};
use crosstie_routing::error;

use crate::elsewhere::{Outcome, Slot};
use crate::pending_handshake::{Look, Pending, Waits};
use crate::session::Session;

/// Interval at which a handshake asks for its turn.
const PLACE_INTERVAL: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_millis(Guesses::PLACE_WAIT_MAX_MS);

impl Session {
    /// Checks a client's credentials, now or when it is their turn.
    pub(super) fn look(&mut self, pending: Box<Pending>, look: Look) -> ControlFlow<()> {
        let last = Instant::now() + LONGEST;
        self.look_until(pending, last, look)
    }

    /// Asks for the turn of a waiting handshake.
    pub(super) fn look_again(&mut self, mut pending: Box<Pending>) -> ControlFlow<()> {
        match mem::replace(&mut pending.waits, Waits::Authenticate) {
            Waits::Place { last, look, .. } => self.look_until(pending, last, look),
            _ => self.wait(pending),
        }
    }

    /// The credentials were right.
    pub(super) fn note_right(&self, pending: &Pending) {
        let authid = pending.handshake.authid().unwrap_or_default();
        let door = &self.entrance.realms.door;
        door.note_right(door.guess(&self.peer.connection, authid, None));
    }

    fn look_until(
        &mut self,
        mut pending: Box<Pending>,
        last: Instant,
        look: Look,
    ) -> ControlFlow<()> {
        let left = last.saturating_duration_since(Instant::now());
        pending.waited = LONGEST.saturating_sub(left);
        let door = &self.entrance.realms.door;
        let authid = pending.handshake.authid().unwrap_or_default();
        let mut guess = door.guess(&self.peer.connection, authid, None);
        guess.credentials = pending.credentials;
        if door.may_look(guess) {
            let step = match look {
                Look::Hello(step) => Some(*step),
                Look::Authenticate { signature, extra } => {
                    pending.handshake.handle_authenticate(&signature, &extra)
                }
            };
            return match step {
                Some(step) => self.take_step(pending, step),
                None => {
                    self.end_pending(&pending);
                    self.abort(error::PROTOCOL_VIOLATION, "AUTHENTICATE was not due")
                }
            };
        }
        if left.is_zero() {
            return self.turn_away(pending, too_many());
        }
        let slot = Slot::new(&self.peer.connection);
        door.fill_after(left.min(PLACE_INTERVAL), &slot, Outcome::Elapsed);
        pending.waits = Waits::Place { slot, last, look };
        self.wait(pending)
    }
}

fn too_many() -> Refusal {
    let text = "too many attempts with wrong credentials wait for their answers: try again later";
    let reason = "crosstie.error.too_many_failures";
    Refusal::new(reason, text.to_owned(), Cause::TooManyFailures)
}
