//! Wrong credentials, counted by origin and by the authid that they were for.
//!
//! The answer to a wrong guess is delayed; the answer to right credentials is not. A wrong guess occupies a place until
//! its answer is due, whether its sender waits for the answer or not. Places are few, so they bound the rate of
//! guesses, and a client that hangs up early gains nothing:
//!
//! ```text
//!   attempt ─► may_look ─ no place ─► wait, 2 s at most ─► may_look ─ … ─► "try again later"
//!                 │ place, or none needed
//!                 ▼
//!         check the credentials ─ right ─► note_right, answer now
//!                 └──── wrong ─► note_wrong ─► occupy a place, answer after the delay
//! ```
//!
//! Two kinds of attempt do not compete for the places that others can fill. Wrong credentials that come again from the
//! same origin tell a guesser nothing new: a client with an old password is not a guesser, however often it tries. An
//! authid that recently logged in from an origin competes there only with guesses at that same authid.

use std::collections::{BTreeMap, HashMap};

use sha2::{Digest as _, Sha256};

use crate::Origin;
use crate::recent::Recent;

/// Recent wrong guesses.
///
/// [`Self::may_look`] decides whether credentials may be checked now; [`Self::note_wrong`] gives the delay of the
/// answer to wrong ones. Time is in milliseconds of any monotonic clock.
#[derive(Debug)]
pub struct Guesses {
    delay_max_ms: u64,
    by_origin: Recent<Origin>,
    by_authid: Recent<Authid>,
    /// Hashes of wrong credentials.
    known: Recent<u64>,
    /// Successful logins.
    right: Recent<(Origin, Authid)>,
    /// Guesses whose answers are delayed, by the time that the delay ends.
    waiting: BTreeMap<(u64, u64), (Origin, Authid)>,
    number_last: u64,
    of_origin: HashMap<Origin, u32>,
    of_both: HashMap<(Origin, Authid), u32>,
    of_authid: HashMap<Authid, u32>,
}

/// An attempt to log in.
#[derive(Clone, Copy, Debug)]
pub struct Guess<'g> {
    pub origin: Origin,
    pub authid: &'g str,
    /// A keyed hash of origin, authid and secret, for methods in which a client sends the same octets for the same
    /// secret.
    pub credentials: Option<u64>,
}

/// A part of a hash stands for an authid, which may be long.
type Authid = [u8; 8];

/// Failures without a delay: people mistype.
const FREE_MAX: u32 = 3;
/// The first delay; each further failure doubles it.
const DELAY_MIN_MS: u64 = 100;
/// The longest delay of clients on this machine, which all share one address.
const LOCAL_DELAY_MAX_MS: u64 = 250;

/// Places for one remote machine and one authid.
const OF_BOTH_MAX: u32 = 8;
/// Places for one remote machine.
const OF_ORIGIN_MAX: u32 = 24;
/// Places for one authid, shared by origins that have failed before; other origins do not need one of these.
const OF_AUTHID_MAX: u32 = 24;
/// Places in total. Beyond them a wrong guess is answered at once.
const WAITING_MAX: usize = 100_000;

impl Guesses {
    /// The longest wait for a place: clients give up after 3 or 4 s.
    pub const PLACE_WAIT_MAX_MS: u64 = 2_000;

    /// `delay_max_ms`: the longest delay of an answer; 0 delays none.
    pub fn new(delay_max_ms: u64) -> Self {
        Self {
            delay_max_ms,
            by_origin: Recent::new(),
            by_authid: Recent::new(),
            known: Recent::new(),
            right: Recent::new(),
            waiting: BTreeMap::new(),
            number_last: 0,
            of_origin: HashMap::new(),
            of_both: HashMap::new(),
            of_authid: HashMap::new(),
        }
    }

    /// Whether credentials may be checked now: not while too many wrong ones of this origin or authid have delayed
    /// answers.
    pub fn may_look(&mut self, now_ms: u64, guess: Guess<'_>) -> bool {
        self.forget(now_ms);
        let (origin, authid) = (guess.origin, hash(guess.authid));
        // A bound for this machine would lock out its other clients.
        if origin == Origin::Local || self.is_known(guess) {
            return true;
        }
        let is_below = |count: Option<&u32>, max: u32| count.is_none_or(|count| *count < max);
        if !is_below(self.of_both.get(&(origin, authid)), OF_BOTH_MAX) {
            return false;
        }
        self.right.find((origin, authid)) > 0
            || is_below(self.of_origin.get(&origin), OF_ORIGIN_MAX)
                && (self.by_origin.find(origin) == 0
                    || is_below(self.of_authid.get(&authid), OF_AUTHID_MAX))
    }

    /// Records a successful login.
    pub fn note_right(&mut self, now_ms: u64, guess: Guess<'_>) {
        // Attempts from this machine are always checked, so a record would have no use.
        if guess.origin != Origin::Local {
            self.right.count(now_ms, (guess.origin, hash(guess.authid)));
        }
    }

    /// Records a wrong guess and returns the delay of its answer.
    pub fn note_wrong(&mut self, now_ms: u64, guess: Guess<'_>) -> u64 {
        self.forget(now_ms);
        let (origin, authid) = (guess.origin, hash(guess.authid));
        let failures = self.by_origin.find(origin).max(self.by_authid.find(authid));
        let is_known = self.is_known(guess);
        self.by_origin.count(now_ms, origin);
        self.by_authid.count(now_ms, authid);
        if let Some(credentials) = guess.credentials {
            self.known.count(now_ms, credentials);
        }
        let delay_ms = delay_ms(failures, origin, self.delay_max_ms);
        if delay_ms == 0 || self.waiting.len() >= WAITING_MAX {
            return 0;
        }
        if !is_known {
            self.take_place(now_ms.saturating_add(delay_ms), origin, authid);
        }
        delay_ms
    }

    /// Occupied places, as of the last attempt.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Number of remembered keys: origins, authids, credentials and logins.
    pub fn remembered(&self) -> usize {
        self.by_origin.len() + self.by_authid.len() + self.known.len() + self.right.len()
    }

    fn is_known(&self, guess: Guess<'_>) -> bool {
        let is_known = |credentials| self.known.find(credentials) > 0;
        guess.credentials.is_some_and(is_known)
    }

    fn take_place(&mut self, until_ms: u64, origin: Origin, authid: Authid) {
        self.number_last += 1;
        let until = (until_ms, self.number_last);
        self.waiting.insert(until, (origin, authid));
        *self.of_origin.entry(origin).or_default() += 1;
        *self.of_both.entry((origin, authid)).or_default() += 1;
        *self.of_authid.entry(authid).or_default() += 1;
    }

    fn forget(&mut self, now_ms: u64) {
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= now_ms
        {
            let (origin, authid) = first.remove();
            take_off(&mut self.of_origin, origin);
            take_off(&mut self.of_both, (origin, authid));
            take_off(&mut self.of_authid, authid);
        }
        self.by_origin.forget(now_ms);
        self.by_authid.forget(now_ms);
        self.known.forget(now_ms);
        self.right.forget(now_ms);
    }
}

/// The delay of an answer to `origin` after that many failures.
fn delay_ms(failures: u32, origin: Origin, delay_max_ms: u64) -> u64 {
    if failures < FREE_MAX {
        return 0;
    }
    let doublings = (failures - FREE_MAX).min(32);
    let max_ms = match origin {
        Origin::Local => delay_max_ms.min(LOCAL_DELAY_MAX_MS),
        Origin::Remote(_) => delay_max_ms,
    };
    (DELAY_MIN_MS << doublings).min(max_ms)
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
