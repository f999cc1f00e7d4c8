//! Credentials that were wrong, by where they came from and whose they were meant to be.
//!
//! Whoever is right is never kept waiting: it is the answer to a wrong guess that comes late, and so many of
//! one origin may wait for such an answer at a time. That bounds what can be guessed, because a guess whose
//! sender does not stay for the answer counts as waiting all the same.

use std::collections::{BTreeMap, HashMap};

use sha2::{Digest as _, Sha256};

use crate::Origin;
use crate::attempts::delay_ms;
use crate::recent::Recent;

/// Wrong guesses of late.
///
/// Before credentials are looked at, [`Self::may_guess`] says whether they may be; [`Self::note_wrong`] says
/// how long the answer to wrong ones waits. Time is in milliseconds of any clock that does not go back.
#[derive(Debug)]
pub struct Guesses {
    delay_max_ms: u64,
    by_origin: Recent<Origin>,
    by_authid: Recent<Authid>,
    /// Those whose answers wait, and when they do no more.
    waiting: BTreeMap<(u64, u64), (Origin, Authid)>,
    number_last: u64,
    of_origin: HashMap<Origin, u32>,
    of_both: HashMap<(Origin, Authid), u32>,
    of_authid: HashMap<Authid, u32>,
}

/// Somebody's attempt.
#[derive(Clone, Copy, Debug)]
pub struct Guess<'g> {
    pub origin: Origin,
    pub authid: &'g str,
}

/// A part of a hash stands for an authid, which may be long.
type Authid = [u8; 8];

/// Of one other machine for one authid.
const OF_BOTH_MAX: u32 = 8;
/// Of one other machine.
const OF_ORIGIN_MAX: u32 = 64;
/// For one authid, of origins that have failed before: whoever comes from elsewhere is not kept out.
const OF_AUTHID_MAX: u32 = 64;
/// Of all: beyond, the answer comes at once.
const WAITING_MAX: usize = 100_000;

impl Guesses {
    /// `delay_max_ms`: how long an answer waits at most; 0: none waits.
    pub fn new(delay_max_ms: u64) -> Self {
        Self {
            delay_max_ms,
            by_origin: Recent::new(),
            by_authid: Recent::new(),
            waiting: BTreeMap::new(),
            number_last: 0,
            of_origin: HashMap::new(),
            of_both: HashMap::new(),
            of_authid: HashMap::new(),
        }
    }

    /// Whether credentials may be looked at: not if too many that were wrong wait for their answers.
    pub fn may_guess(&mut self, now_ms: u64, guess: Guess<'_>) -> bool {
        self.end_waiting(now_ms);
        self.by_origin.forget(now_ms);
        let (origin, authid) = (guess.origin, hash(guess.authid));
        // On this machine it would be others whom that keeps out.
        if origin == Origin::Local {
            return true;
        }
        let is_below = |count: Option<&u32>, max: u32| count.is_none_or(|count| *count < max);
        is_below(self.of_both.get(&(origin, authid)), OF_BOTH_MAX)
            && is_below(self.of_origin.get(&origin), OF_ORIGIN_MAX)
            && (self.by_origin.find(origin) == 0
                || is_below(self.of_authid.get(&authid), OF_AUTHID_MAX))
    }

    /// Credentials were wrong; for how long the answer is to wait.
    pub fn note_wrong(&mut self, now_ms: u64, guess: Guess<'_>) -> u64 {
        self.end_waiting(now_ms);
        let (origin, authid) = (guess.origin, hash(guess.authid));
        let failures = self.by_origin.find(origin).max(self.by_authid.find(authid));
        self.by_origin.count(now_ms, origin);
        self.by_authid.count(now_ms, authid);
        let delay_ms = delay_ms(failures, origin, self.delay_max_ms);
        if delay_ms == 0 || self.waiting.len() >= WAITING_MAX {
            return 0;
        }
        self.number_last += 1;
        let until = (now_ms.saturating_add(delay_ms), self.number_last);
        self.waiting.insert(until, (origin, authid));
        *self.of_origin.entry(origin).or_default() += 1;
        *self.of_both.entry((origin, authid)).or_default() += 1;
        *self.of_authid.entry(authid).or_default() += 1;
        delay_ms
    }

    /// Guesses whose answers wait, as far as was known when this was last asked anything.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn end_waiting(&mut self, now_ms: u64) {
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= now_ms
        {
            let (origin, authid) = first.remove();
            take_off(&mut self.of_origin, origin);
            take_off(&mut self.of_both, (origin, authid));
            take_off(&mut self.of_authid, authid);
        }
    }
}

fn hash(authid: &str) -> Authid {
    let hash: [u8; 32] = Sha256::digest(authid).into();
    let [a, b, c, d, e, f, g, h, ..] = hash;
    [a, b, c, d, e, f, g, h]
}

fn take_off<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, u32>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}
