//! Attempts to log in that failed, by where they came from: each makes the next one wait.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Where an attempt comes from, as far as that tells people apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// This machine: a loopback address, or a Unix socket.
    Local,
    /// A machine; of IPv6 the network of 64 bits, all of which mostly is one machine's.
    Remote(IpAddr),
}

impl Origin {
    /// Whose address that is.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Local,
            IpAddr::V6(address) => {
                let network = u128::from(address) >> 64 << 64;
                Self::Remote(Ipv6Addr::from(network).into())
            }
            address @ IpAddr::V4(_) => Self::Remote(address),
        }
    }
}

/// Who has failed to log in lately, and who waits for that.
///
/// Before an attempt is looked at, [`Self::begin`] says how long it has to wait;
/// [`Self::end_waiting`] that it does so no more, whatever came of it. [`Self::note_failure`]
/// makes those wait that come from the same origin. Nobody else is affected: a guesser shuts
/// nobody out who comes from elsewhere.
///
/// Time is in milliseconds of any clock that does not go back.
#[derive(Debug)]
pub struct Attempts {
    delay_max_ms: u64,
    /// Those that failed since `turned_at_ms`, and those that failed in the time before: whoever
    /// is in neither is forgotten.
    young: HashMap<Origin, u32>,
    old: HashMap<Origin, u32>,
    turned_at_ms: u64,
    waiting: HashMap<Origin, u32>,
}

/// Whether an attempt may be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Now,
    /// When so many milliseconds have passed; the attempt is one of those that wait.
    After(u64),
    /// As many of its origin wait as may.
    Refused,
}

/// Failures without a consequence: people mistype.
const FREE_MAX: u32 = 3;
/// The first delay; each failure more doubles it.
const DELAY_MIN_MS: u64 = 100;
/// The longest delay of who is on this machine, where everybody has the same address.
const LOCAL_DELAY_MAX_MS: u64 = 250;
/// Attempts of one other machine that may wait at a time.
const WAITING_MAX: u32 = 8;
/// What has not failed for so long is forgotten; at the latest after twice as long.
const REMEMBERED_MS: u64 = 60_000;
/// Origins in each of the two tables: beyond, the older is forgotten.
const ORIGINS_MAX: usize = 10_000;

impl Attempts {
    /// `delay_max_ms`: how long an attempt waits at most; 0: nobody waits.
    pub fn new(delay_max_ms: u64) -> Self {
        Self {
            delay_max_ms,
            young: HashMap::new(),
            old: HashMap::new(),
            turned_at_ms: 0,
            waiting: HashMap::new(),
        }
    }

    /// Somebody wants to log in.
    pub fn begin(&mut self, now_ms: u64, origin: Origin) -> Admission {
        self.forget(now_ms);
        let delay_ms = self.delay_ms(origin);
        if delay_ms == 0 {
            return Admission::Now;
        }
        let waiting = self.waiting.entry(origin).or_default();
        // On this machine it would be others whom that keeps out.
        if *waiting >= WAITING_MAX && origin != Origin::Local {
            return Admission::Refused;
        }
        *waiting += 1;
        Admission::After(delay_ms)
    }

    /// One that was told to wait has waited, or is gone.
    pub fn end_waiting(&mut self, origin: Origin) {
        if let Some(waiting) = self.waiting.get_mut(&origin) {
            *waiting -= 1;
            if *waiting == 0 {
                self.waiting.remove(&origin);
            }
        }
    }

    /// Somebody was not let in.
    pub fn note_failure(&mut self, now_ms: u64, origin: Origin) {
        self.forget(now_ms);
        let before = self.failures(origin);
        if self.young.len() >= ORIGINS_MAX && !self.young.contains_key(&origin) {
            self.turn(now_ms);
        }
        self.young.insert(origin, before.saturating_add(1));
    }

    /// Origins that are remembered.
    pub fn origins(&self) -> usize {
        self.young.len() + self.old.len()
    }

    fn failures(&self, origin: Origin) -> u32 {
        let failures = self.young.get(&origin).or_else(|| self.old.get(&origin));
        failures.copied().unwrap_or(0)
    }

    fn delay_ms(&self, origin: Origin) -> u64 {
        let failures = self.failures(origin);
        if failures < FREE_MAX {
            return 0;
        }
        let doublings = (failures - FREE_MAX).min(32);
        let max_ms = match origin {
            Origin::Local => self.delay_max_ms.min(LOCAL_DELAY_MAX_MS),
            Origin::Remote(_) => self.delay_max_ms,
        };
        (DELAY_MIN_MS << doublings).min(max_ms)
    }

    fn forget(&mut self, now_ms: u64) {
        let age_ms = now_ms.saturating_sub(self.turned_at_ms);
        if age_ms >= 2 * REMEMBERED_MS {
            self.young.clear();
        }
        if age_ms >= REMEMBERED_MS {
            self.turn(now_ms);
        }
    }

    fn turn(&mut self, now_ms: u64) {
        self.old = std::mem::take(&mut self.young);
        self.turned_at_ms = now_ms;
    }
}
