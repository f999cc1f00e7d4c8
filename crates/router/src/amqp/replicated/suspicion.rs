//! Whether an owner whose beats do not come has ended, as the servers of NATS know it.
//!
//! An owner that is killed has no connection to NATS any more: who asks it is told at once that nobody is there. So is, for a
//! moment, who asks one that is between two connections, or whose server and one's own have lost each other. A mistaken
//! claim loses nothing, but sends the owner's clients away. Therefore it is asked twice, and nothing is concluded where the
//! owner was not heard by this connection, or where the server has told since then that servers have come or gone: what is
//! left is to wait for [`super::others::SILENCE_MAX`].

use std::time::{Duration, Instant};

/// What is known of the owner that was heard last.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    /// What the server had told of its cluster when the owner was heard, by this connection; `None`: it cannot be asked.
    heard_with: Option<u64>,
    asked: Option<Instant>,
    /// How often it was asked, and nobody was there.
    nobody: u32,
}

/// One beat has not come, and some more.
const ASK_AFTER: Duration = Duration::from_millis(600);

/// An owner that has lost its server has another one sooner.
const ASK_AGAIN: Duration = Duration::from_millis(400);

const NOBODY_MAX: u32 = 2;

impl Suspicion {
    /// The owner is there, and says whether it can be asked.
    pub(super) fn hear(&mut self, answers: bool, tidings: u64) {
        *self = Self {
            heard_with: answers.then_some(tidings),
            ..Self::default()
        };
    }

    /// What it was asked until now does not count.
    pub(super) fn begin_anew(&mut self) {
        (self.asked, self.nobody) = (None, 0);
    }

    /// Whether it is to be asked now, after so long a silence; it is being asked then.
    pub(super) fn ask(&mut self, now: Instant, silence: Duration, tidings: u64) -> bool {
        let is_due = self.asked.is_none_or(|at| now - at >= ASK_AGAIN);
        let is_silent = silence >= ASK_AFTER;
        let is_asked = self.heard_with == Some(tidings) && is_silent && is_due;
        if is_asked {
            self.asked = Some(now);
        }
        is_asked
    }

    /// Nobody is there.
    pub(super) fn handle_nobody(&mut self) {
        self.nobody += 1;
    }

    pub(super) fn has_ended(&self, tidings: u64) -> bool {
        self.nobody >= NOBODY_MAX && self.heard_with == Some(tidings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words at milliseconds: `beat`, `mute` (a beat of one that cannot be asked), `nobody`, `tidings`, `anew`, and what is
    /// expected: `ask`, `wait`, `ended`, `there`.
    #[track_caller]
    fn check(script: &str) {
        let start = Instant::now();
        let mut suspicion = Suspicion::default();
        let (mut tidings, mut heard) = (0, 0);
        for step in script.split(", ") {
            let (ms, word) = step.split_once(' ').expect("a time and a word");
            let ms: u64 = ms.parse().expect("a time");
            let now = start + Duration::from_millis(ms);
            let silence = Duration::from_millis(ms - heard);
            match word {
                "beat" | "mute" => {
                    heard = ms;
                    suspicion.hear(word == "beat", tidings);
                }
                "nobody" => suspicion.handle_nobody(),
                "tidings" => tidings += 1,
                "anew" => suspicion.begin_anew(),
                "ask" => assert!(suspicion.ask(now, silence, tidings), "{step}: {script}"),
                "wait" => assert!(!suspicion.ask(now, silence, tidings), "{step}: {script}"),
                "ended" => assert!(suspicion.has_ended(tidings), "{step}: {script}"),
                "there" => assert!(!suspicion.has_ended(tidings), "{step}: {script}"),
                other => panic!("{other}: no such word"),
            }
        }
    }

    #[test]
    fn an_owner_that_is_asked_twice_in_vain_has_ended() {
        check(
            "0 beat, 500 wait, 600 ask, 610 nobody, 610 there, 900 wait, 1000 ask, 1010 nobody, 1010 ended",
        );
        // It answers with a beat.
        check("0 beat, 600 ask, 610 beat, 700 wait, 1210 ask, 1220 nobody, 1220 there");
        check("0 beat, 600 ask, 610 nobody, 900 beat, 1500 ask, 1510 nobody, 1510 there");
        // Nothing is said of one that sleeps, and of one that is not subscribed.
        check("0 beat, 600 ask, 1000 ask, 1400 ask, 2900 there");
        check("0 mute, 600 wait, 1000 wait, 1000 there");
        check("0 wait, 700 wait, 5000 there");
    }

    #[test]
    fn where_servers_come_and_go_nothing_is_concluded() {
        check("0 beat, 600 ask, 610 nobody, 700 tidings, 1000 wait, 1000 there");
        check("0 beat, 100 tidings, 600 wait, 1000 there, 1100 beat, 1700 ask");
        check(
            "0 beat, 600 ask, 610 nobody, 1000 ask, 1010 nobody, 1010 ended, 1020 tidings, 1020 there",
        );
    }

    #[test]
    fn after_a_claim_in_vain_it_is_asked_anew() {
        check(
            "0 beat, 600 ask, 601 nobody, 1000 ask, 1001 nobody, 1001 ended, 1300 anew, 1300 there, 1900 ask, 1901 nobody, 1901 there",
        );
    }
}
