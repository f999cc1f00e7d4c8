//! The decision of a thread that has nothing to do: for how long it looks for input before it blocks.
//!
//! A wake-up costs the next input 20 to 40 µs, and the processor some 6. Looking for input without blocking costs the
//! time until the input arrives, or the whole limit if none does. The controller keeps, for each connection, the lengths
//! of the waits that followed an input of that connection: after a CALL the callee's answer comes soon, after its result
//! the caller may be silent for long. The limit is the one that would have paid most for the recent waits; 0 is one of
//! them.
//!
//! Inputs, in this order for each wait: [`plan`](Controller::plan) when nothing is ready, then
//! [`note_conditions`](Controller::note_conditions) and `plan` again if it asks for them, then
//! [`note_spinning`](Controller::note_spinning) if the thread does spin, [`note_missed`](Controller::note_missed) if the
//! limit passes, and [`note_input`](Controller::note_input) at the first input. Times are nanoseconds on any clock that
//! does not run backwards.

use std::cmp::Reverse;

/// The value of a wake-up that did not happen, in processor time: the longest time that a single wait may spin.
const WORTH_NS: u64 = 80_000;
/// The upper bounds of the lengths that are told apart; any longer wait is one kind.
const LIMITS_NS: [u64; 5] = [5_000, 10_000, 20_000, 40_000, WORTH_NS];
/// The assumed part of a blocked wait that is the wake-up itself.
const WAKE_UP_NS: u64 = 20_000;

/// The window of the budget, and its parts: one more than fills it, as the current one has only begun.
pub(super) const WINDOW_NS: u64 = 100_000_000;
const SLOT_NS: u64 = 10_000_000;
const SLOTS: usize = 11;

/// A thread that works for more than this share of the time does not lack wake-ups: inputs that wait while it sleeps
/// share its next turn.
const WORK_PERCENT_MAX: u64 = 45;

/// Time within the window for which other threads kept this one from a core that it wanted. Beyond it the thread shares
/// its core, perhaps with the peer that it waits for. A burst of a few milliseconds is no such thread.
const DELAY_NS_MAX: u64 = WINDOW_NS / 10;
/// An input so soon after a spin had failed was probably held back by the spin: its sender had to wait for this core.
const HELD_BACK_NS: u64 = 12_000;
/// The weight of such an input beside a spin that succeeded, and the sum at which there are too many.
const HELD_BACK: u32 = 8;
const HELD_BACK_MAX: u32 = 3 * HELD_BACK;
/// An input that is found sooner than this was there before the spin.
const FOUND_NS: u64 = 2_000;

/// The first pause after a sign that a spin would not pay. It doubles while there are more of them.
const PAUSE_NS: u64 = WINDOW_NS;
const PAUSE_NS_MAX: u64 = 32 * PAUSE_NS;
/// The first one of a thread that works most of the time: it has spun for long enough to see that it did not pay.
const WORKING_PAUSE_NS: u64 = 8 * PAUSE_NS;

/// The conditions at one moment, as the system tells them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    /// A spinning thread would take the only core, or most of the quota.
    pub(super) is_alone: bool,
    /// Nanoseconds since the thread's start for which it was ready and another one had the core.
    pub(super) delay_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Block,
    /// Tell the conditions, and plan again.
    Look,
    /// Look for input for so many nanoseconds at most.
    Spin(u64),
}

#[derive(Debug)]
pub(super) struct Controller {
    budget_ns: u64,
    habits: [Habit; HABITS],
    wait: Option<Wait>,
    spun: Recent,
    worked: Recent,
    delayed: Recent,
    /// The end of the last wait.
    awake_since: Option<u64>,
    conditions: Option<(u64, Conditions)>,
    /// Weighed inputs that were held back.
    held_back: u32,
    paused_until: u64,
    pause_ns: u64,
}

const HABITS: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Wait {
    habit: usize,
    since: u64,
    is_spinning: bool,
    missed_at: Option<u64>,
}

impl Controller {
    /// `budget_percent` is the share of a core for spinning, over 100 ms.
    pub(super) fn new(budget_percent: u8) -> Self {
        Self {
            budget_ns: WINDOW_NS / 100 * u64::from(budget_percent.min(100)),
            habits: [Habit::default(); HABITS],
            wait: None,
            spun: Recent::default(),
            worked: Recent::default(),
            delayed: Recent::default(),
            awake_since: None,
            conditions: None,
            held_back: 0,
            paused_until: 0,
            pause_ns: PAUSE_NS,
        }
    }

    /// Begins a wait behind an input of the connection with this number.
    pub(super) fn plan(&mut self, now: u64, connection: usize) -> Plan {
        if let Some(since) = self.awake_since.take() {
            // A long turn may be one in which the machine was suspended.
            self.worked.add(now, now.saturating_sub(since).min(SLOT_NS));
        }
        let habit = connection % HABITS;
        self.wait = Some(Wait {
            habit,
            since: now,
            is_spinning: false,
            missed_at: None,
        });
        let limit = self.habits[habit].limit_ns;
        if limit == 0 || now < self.paused_until {
            return Plan::Block;
        }
        let is_recent = |at: u64| now.saturating_sub(at) < SLOT_NS;
        let Some((_, conditions)) = self.conditions.filter(|(at, _)| is_recent(*at)) else {
            return Plan::Look;
        };
        if self.worked.sum(now) > WINDOW_NS / 100 * WORK_PERCENT_MAX {
            self.pause(now, WORKING_PAUSE_NS);
            return Plan::Block;
        }
        let left = self.budget_ns.saturating_sub(self.spun.sum(now));
        match conditions.is_alone || left < limit {
            true => Plan::Block,
            false => Plan::Spin(limit),
        }
    }

    /// Records that the wait spins: the owner may have had a reason of its own not to.
    pub(super) fn note_spinning(&mut self) {
        if let Some(wait) = &mut self.wait {
            wait.is_spinning = true;
        }
    }

    /// Records that the limit has passed without an input: the thread blocks now. Returns the time spent.
    pub(super) fn note_missed(&mut self, now: u64) -> u64 {
        let Some(wait) = &mut self.wait else { return 0 };
        let spent = now.saturating_sub(wait.since);
        wait.missed_at = Some(now);
        wait.is_spinning = false;
        self.spun.add(now, spent);
        spent
    }

    /// Ends the wait; returns the time spent if it was spinning.
    pub(super) fn note_input(&mut self, now: u64) -> Option<u64> {
        self.awake_since = Some(now);
        let wait = self.wait.take()?;
        let waited = now.saturating_sub(wait.since);
        if wait.is_spinning {
            self.spun.add(now, waited);
            self.habits[wait.habit].note(waited);
            if waited >= FOUND_NS {
                self.held_back = self.held_back.saturating_sub(1);
            }
            return Some(waited);
        }
        if let Some(missed_at) = wait.missed_at {
            if now.saturating_sub(missed_at) < HELD_BACK_NS {
                self.note_held_back(now);
            }
            self.habits[wait.habit].note(waited);
        } else {
            self.habits[wait.habit].note(waited.saturating_sub(WAKE_UP_NS));
        }
        None
    }

    pub(super) fn note_conditions(&mut self, now: u64, conditions: Conditions) {
        let before = self.conditions.replace((now, conditions));
        let Some((at, before)) = before else { return };
        let passed = now.saturating_sub(at).max(1);
        let delay = conditions.delay_ns.saturating_sub(before.delay_ns);
        let within = u128::from(delay) * u128::from(WINDOW_NS.min(passed)) / u128::from(passed);
        self.delayed.add(now, within as u64);
        if self.delayed.sum(now) > DELAY_NS_MAX {
            self.pause(now, PAUSE_NS);
        }
    }

    fn note_held_back(&mut self, now: u64) {
        self.held_back += HELD_BACK;
        if self.held_back >= HELD_BACK_MAX {
            self.held_back = 0;
            self.pause(now, PAUSE_NS);
        }
    }

    /// Another thread wants the core, or this one works.
    fn pause(&mut self, now: u64, first: u64) {
        let is_again = now.saturating_sub(self.paused_until) < 2 * self.pause_ns;
        self.pause_ns = match is_again && self.paused_until > 0 {
            true => (2 * self.pause_ns).clamp(first, PAUSE_NS_MAX),
            false => first,
        };
        self.paused_until = now + self.pause_ns;
        // What comes later decides about the next pause.
        (self.worked, self.delayed) = Default::default();
    }

    /// Whether no wait before that time will spin.
    pub(super) fn is_pausing(&self, now: u64) -> bool {
        let is_alone = |(_, conditions): (u64, Conditions)| conditions.is_alone;
        now < self.paused_until || self.conditions.is_some_and(is_alone)
    }

    #[cfg(test)]
    pub(super) fn limit(&self, connection: usize) -> u64 {
        self.habits[connection % HABITS].limit_ns
    }
}

/// The lengths of the last waits behind one connection's inputs.
#[derive(Clone, Copy, Debug, Default)]
struct Habit {
    /// By length; the last ones are longer than any limit.
    counts: [u8; LIMITS_NS.len() + 1],
    limit_ns: u64,
}

/// A wait counts as two, so that a halved one is still one.
const WAIT: u8 = 2;
/// Counts are halved beyond this sum: the last dozen of waits decides.
const SUM_MAX: u32 = 32;
/// Nothing is known before so many waits.
const SUM_MIN: u32 = 4 * WAIT as u32;

impl Habit {
    fn note(&mut self, waited: u64) {
        let length = LIMITS_NS.partition_point(|limit| *limit < waited);
        self.counts[length] += WAIT;
        if self.sum() > SUM_MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
        let gain = |length: &usize| self.gain(*length);
        let best = (0..LIMITS_NS.len()).max_by_key(|length| (gain(length), Reverse(*length)));
        let is_known = self.sum() >= SUM_MIN;
        let paying = best.filter(|length| is_known && gain(length) > 0);
        // A limit in the midst of the usual lengths would fail often, so a little more is tried if it costs little.
        let ample = paying.map(|length| {
            let longer = (length + 1).min(LIMITS_NS.len() - 1);
            match gain(&longer) >= gain(&length) / 8 * 7 {
                true => longer,
                false => length,
            }
        });
        self.limit_ns = ample.map_or(0, |length| LIMITS_NS[length]);
    }

    fn sum(&self) -> u32 {
        self.counts.iter().copied().map(u32::from).sum()
    }

    /// The gain of one limit over blocking at once, for the recent waits.
    fn gain(&self, length: usize) -> i64 {
        let signed = |nanoseconds: u64| nanoseconds as i64;
        let gains = self.counts.iter().enumerate().map(|(of, count)| {
            let gain = match of <= length {
                true => signed(WORTH_NS) - signed(LIMITS_NS[of]) * 3 / 4,
                false => -signed(LIMITS_NS[length]),
            };
            i64::from(*count) * gain
        });
        gains.sum()
    }
}

/// A sum over the last 100 ms, and up to 10 ms more.
#[derive(Debug, Default)]
struct Recent {
    slots: [u64; SLOTS],
    sum: u64,
    /// The number of the current slot.
    slot: u64,
}

impl Recent {
    fn add(&mut self, now: u64, nanoseconds: u64) {
        self.advance(now);
        self.slots[(self.slot % SLOTS as u64) as usize] += nanoseconds;
        self.sum += nanoseconds;
    }

    fn sum(&mut self, now: u64) -> u64 {
        self.advance(now);
        self.sum
    }

    fn advance(&mut self, now: u64) {
        let slot = now / SLOT_NS;
        let passed = slot.saturating_sub(self.slot);
        for behind in 0..passed.min(SLOTS as u64) {
            let old = &mut self.slots[((slot - behind) % SLOTS as u64) as usize];
            self.sum -= *old;
            *old = 0;
        }
        self.slot = self.slot.max(slot);
    }
}
