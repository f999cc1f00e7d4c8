//! Whether the NATS servers know that a silent owner has ended.
//!
//! A killed owner has no connection to NATS, so that a probe gets "no responders" at once. The same answer comes,
//! briefly, while an owner reconnects or while two servers have lost each other. A mistaken claim loses no messages,
//! but closes the owner's clients. Therefore two probes are needed. They prove nothing if this connection has not heard
//! the owner, or if the server has announced cluster changes since. Then only the wait of
//! [`super::peers::OWNER_SILENCE_MAX`] remains.

use std::time::{Duration, Instant};

/// The state of the last heard owner.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    /// The number of announced cluster changes when this connection heard the owner; `None` if it cannot be probed.
    heard_with: Option<u64>,
    asked: Option<Instant>,
    /// Number of probes without a responder.
    nobody: u32,
}

/// Silence before the first probe: more than one heartbeat interval.
const ASK_AFTER: Duration = Duration::from_millis(600);

/// Interval of probes; an owner that lost its server reconnects sooner.
const ASK_AGAIN: Duration = Duration::from_millis(400);

const NOBODY_MAX: u32 = 2;

impl Suspicion {
    /// The owner was heard; `answers` tells whether it can be probed.
    pub(super) fn hear(&mut self, answers: bool, tidings: u64) {
        *self = Self {
            heard_with: answers.then_some(tidings),
            ..Self::default()
        };
    }

    /// The owner was heard over another connection, which proves nothing about this one. `is_known` tells whether it is
    /// the owner that this connection heard last.
    pub(super) fn hear_elsewhere(&mut self, is_known: bool) {
        self.begin_anew();
        self.heard_with = self.heard_with.filter(|_| is_known);
    }

    /// Discards the probes so far.
    pub(super) fn begin_anew(&mut self) {
        (self.asked, self.nobody) = (None, 0);
    }

    /// Whether to send a probe now, after that silence. If so, it counts as sent.
    pub(super) fn ask(&mut self, now: Instant, silence: Duration, tidings: u64) -> bool {
        let is_due = self.asked.is_none_or(|at| now - at >= ASK_AGAIN);
        let is_silent = silence >= ASK_AFTER;
        let is_asked = self.heard_with == Some(tidings) && is_silent && is_due;
        if is_asked {
            self.asked = Some(now);
        }
        is_asked
    }

    /// A probe got "no responders".
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

    /// Each step has a time in milliseconds and a word: `beat`, `mute` (a heartbeat of an owner that cannot be probed),
    /// `elsewhere` and `successor` (one of this owner, and of another one, over the second connection), `nobody`, `tidings`, `anew`, and the expectations `ask`, `wait`, `ended`, `there`.
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
                "elsewhere" | "successor" => {
                    heard = ms;
                    suspicion.hear_elsewhere(word == "elsewhere");
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
    fn an_owner_has_ended_after_two_probes_without_responder() {
        check(
            "0 beat, 500 wait, 600 ask, 610 nobody, 610 there, 900 wait, 1000 ask, 1010 nobody, 1010 ended",
        );
        // It answers with a heartbeat.
        check("0 beat, 600 ask, 610 beat, 700 wait, 1210 ask, 1220 nobody, 1220 there");
        check("0 beat, 600 ask, 610 nobody, 900 beat, 1500 ask, 1510 nobody, 1510 there");
        // Nor has it if its heartbeats come over another connection.
        check(
            "0 beat, 600 ask, 610 nobody, 620 elsewhere, 1000 wait, 1220 ask, 1230 nobody, 1230 there",
        );
        check("0 beat, 500 successor, 1100 wait, 1500 wait, 1500 there");
        // Probes prove nothing for a suspended owner, or one that is not subscribed.
        check("0 beat, 600 ask, 1000 ask, 1400 ask, 2900 there");
        check("0 mute, 600 wait, 1000 wait, 1000 there");
        check("0 wait, 700 wait, 5000 there");
    }

    #[test]
    fn cluster_changes_make_probes_inconclusive() {
        check("0 beat, 600 ask, 610 nobody, 700 tidings, 1000 wait, 1000 there");
        check("0 beat, 100 tidings, 600 wait, 1000 there, 1100 beat, 1700 ask");
        check(
            "0 beat, 600 ask, 610 nobody, 1000 ask, 1010 nobody, 1010 ended, 1020 tidings, 1020 there",
        );
    }

    #[test]
    fn probes_restart_after_a_failed_claim() {
        check(
            "0 beat, 600 ask, 601 nobody, 1000 ask, 1001 nobody, 1001 ended, 1300 anew, 1300 there, 1900 ask, 1901 nobody, 1901 there",
        );
    }
}
