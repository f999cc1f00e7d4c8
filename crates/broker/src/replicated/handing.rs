//! A vhost that this node has handed to another one, which has not taken over yet. If it does not, this node takes the
//! vhost back: the log decides which of them owns it.

use std::time::{Duration, Instant};

use super::beat::Beat;
use super::driver::{Driver, Saying};
use super::orders::{Moved, Reply};

/// A handover that no node has confirmed yet.
pub(super) struct Handing {
    /// The chosen successor.
    pub(super) to: String,
    pub(super) is_named: bool,
    /// The epoch of the term that ended with the handover.
    pub(super) epoch: u64,
    pub(super) asked: Instant,
    /// Since when publishers are paused.
    pub(super) paused: Instant,
    /// Since when the log names the successor.
    pub(super) handed: Instant,
    /// The successor's deadline.
    pub(super) within: Duration,
    /// Why this node claims the vhost, too: the successor is late, or unable.
    pub(super) failed: Option<String>,
    pub(super) reply: Reply<Moved>,
}

/// Maximum time until the operator gets an answer, if no node can write to the log.
const ANSWER_MAX: Duration = Duration::from_secs(30);

impl Handing {
    /// Why the successor does not take over any more, given its last heartbeat.
    fn failure(&self, beat: Option<&Beat>) -> Option<String> {
        let (to, s) = (&self.to, self.within.as_secs_f64());
        if beat.is_some_and(|beat| !beat.is_ready && !beat.is_owner) {
            return Some(format!(
                "node {to} cannot take it: its own /health says why"
            ));
        }
        let is_late = self.handed.elapsed() >= self.within;
        is_late.then(|| format!("node {to} has not taken it within {s} s"))
    }
}

impl Driver {
    /// The heartbeat of a node that has handed the vhost over, repeated until the successor has taken over; of any other
    /// standby that it stands by.
    pub(super) fn leaving(&self) -> Saying {
        match &self.handing {
            Some(handing) if handing.failed.is_none() => {
                let left = handing.within.saturating_sub(handing.handed.elapsed());
                Saying::Leaving(Some((handing.to.clone(), left)))
            }
            _ => Saying::StandingBy,
        }
    }

    /// Whether another node's time to take over runs.
    pub(super) fn is_handing(&self) -> bool {
        let handing = self.handing.as_ref();
        handing.is_some_and(|handing| handing.failed.is_none())
    }

    /// Reports that another node has taken over; after the deadline this node may resume ownership.
    pub(super) fn judge_handing(&mut self) {
        let Some(handing) = &mut self.handing else {
            return;
        };
        let taker = self.others.owner();
        let taker = taker.filter(|owner| owner.epoch > handing.epoch);
        let taker = taker.map(|owner| owner.node.clone());
        // The log may name the new owner before its first heartbeat.
        let status = self.ledger.status();
        let logged = status.owner.filter(|_| status.epoch > handing.epoch);
        let taker = taker.or_else(|| logged.map(|owner| owner.node.to_string()));
        if let Some(taker) = taker {
            return self.confirm_handing(taker);
        }
        if handing.failed.is_none() {
            handing.failed = handing.failure(self.others.beat_of(&handing.to));
            if let Some(why) = &handing.failed {
                let vhost = &self.task.vhost;
                tracing::warn!("vhost '{vhost}': {why}: this node takes it back");
                self.others.take_back();
            }
        }
        if handing.handed.elapsed() >= handing.within + ANSWER_MAX {
            self.end_handing("no node owns it yet");
        }
    }

    fn confirm_handing(&mut self, taker: String) {
        let Some(handing) = self.handing.take() else {
            return;
        };
        let Handing { to, is_named, .. } = &handing;
        let answer = match taker != *to && *is_named {
            true => Err(format!(
                "node {to} has not taken it: node {taker} has it now"
            )),
            false => Ok(Moved {
                from: self.task.node.clone(),
                to: taker,
                taken: handing.asked.elapsed(),
                paused: handing.paused.elapsed(),
            }),
        };
        handing.reply.answer(answer);
    }

    /// Answers that the successor has not taken over, and the outcome.
    pub(super) fn end_handing(&mut self, outcome: &str) {
        if let Some(Handing { failed, reply, .. }) = self.handing.take() {
            let why = failed.unwrap_or_else(|| "it was handed over".to_owned());
            reply.answer(Err(format!("{why}: {outcome}")));
        }
    }
}
