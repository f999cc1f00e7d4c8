//! Attempts to log in that failed, by where they came from: each makes the next one wait.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use crate::recent::Recent;

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
    failures: Recent<Origin>,
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

impl Attempts {
    /// `delay_max_ms`: how long an attempt waits at most; 0: nobody waits.
    pub fn new(delay_max_ms: u64) -> Self {
        Self {
            delay_max_ms,
            failures: Recent::new(),
            waiting: HashMap::new(),
        }
    }

    /// Somebody wants to log in.
    pub fn begin(&mut self, now_ms: u64, origin: Origin) -> Admission {
        self.failures.forget(now_ms);
        let delay_ms = delay_ms(self.failures.find(origin), origin, self.delay_max_ms);
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
        self.failures.count(now_ms, origin);
    }

    /// Origins that are remembered.
    pub fn origins(&self) -> usize {
        self.failures.len()
    }
}

/// How long somebody of that origin waits for so many failures.
pub(crate) fn delay_ms(failures: u32, origin: Origin, delay_max_ms: u64) -> u64 {
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
