//! Rates, from the figures of earlier answers.
//!
//! Nothing runs while no client asks. An answer with an object's figures keeps them as the object's sample. A later one
//! has the change per second since then, and replaces the sample once that is old enough. So the first answer has 0.0,
//! as RabbitMQ's first one has. Samples that no client asks for are forgotten, and their number has a bound.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;

/// RabbitMQ's interval of samples.
const INTERVAL: Duration = Duration::from_secs(5);
/// The first rate of an object comes earlier.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
/// A sample that no client asked for during this time is forgotten: it would be an average that surprises.
const KEPT: Duration = Duration::from_secs(300);
/// The same while there are as many as there may be.
const KEPT_IF_MANY: Duration = Duration::from_secs(30);
/// Maximum number of sampled objects of each kind; others have the rate 0.0. A hash table of 16,384 places holds as many.
const OBJECTS_MAX: usize = 14_336;

/// The samples of all kinds of objects: at most 12 MiB.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    hasher: RandomState,
    pub(crate) queues: Samples<8, 2>,
    pub(crate) channels: Samples<11, 0>,
    pub(crate) exchanges: Samples<2, 0>,
    pub(crate) connections: Samples<2, 0>,
    /// Vhosts, and the sums of what a user sees.
    pub(crate) totals: Samples<13, 2>,
    /// The node.
    pub(crate) nodes: Samples<7, 5>,
    pub(crate) churn: Samples<7, 0>,
    is_sweeping: AtomicBool,
}

/// The samples of objects with so many counters and gauges, by a hash of their names.
#[derive(Debug)]
pub(crate) struct Samples<const C: usize, const G: usize>(Mutex<Table<C, G>>);

#[derive(Debug)]
struct Table<const C: usize, const G: usize> {
    samples: HashMap<u64, Sample<C, G>>,
    /// The time of the last search for samples that are not asked for.
    searched_at: Option<Instant>,
}

#[derive(Debug)]
struct Sample<const C: usize, const G: usize> {
    taken_at: Instant,
    asked_at: Instant,
    is_first: bool,
    figures: Figures<C, G>,
    counter_rates: [f32; C],
    gauge_rates: [f32; G],
}

/// The figures of an object at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures<const C: usize, const G: usize> {
    pub(crate) counters: [u64; C],
    pub(crate) gauges: [u64; G],
}

/// Their changes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates<const C: usize, const G: usize> {
    pub(crate) counters: [f64; C],
    pub(crate) gauges: [f64; G],
}

impl Sampler {
    /// The key of an object by its name, of whatever parts that has.
    pub(crate) fn key(&self, name: impl Hash) -> u64 {
        self.hasher.hash_one(name)
    }

    /// Forgets all samples.
    pub(crate) fn forget(&self) {
        self.queues.forget();
        self.channels.forget();
        self.exchanges.forget();
        self.connections.forget();
        self.totals.forget();
        self.nodes.forget();
        self.churn.forget();
    }

    /// Forgets samples that no client asks for, now and then, until there are none.
    pub(crate) fn sweep_later(self: &Arc<Self>, context: &Handle) {
        if !self.is_sweeping.swap(true, Ordering::SeqCst) {
            context.spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Returns whether any are left.
    fn sweep(&self, now: Instant) -> bool {
        let left = [
            self.queues.sweep(now),
            self.channels.sweep(now),
            self.exchanges.sweep(now),
            self.connections.sweep(now),
            self.totals.sweep(now),
            self.nodes.sweep(now),
            self.churn.sweep(now),
        ];
        left.contains(&true)
    }
}

async fn sweep(sampler: Weak<Sampler>) {
    loop {
        tokio::time::sleep(KEPT / 4).await;
        let Some(sampler) = sampler.upgrade() else {
            return;
        };
        if !sampler.sweep(Instant::now()) {
            let is_sweeping = &sampler.is_sweeping;
            is_sweeping.store(false, Ordering::SeqCst);
            // A sample may have come meanwhile, for which this was on.
            if !sampler.sweep(Instant::now()) || is_sweeping.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }
}

impl<const C: usize, const G: usize> Default for Samples<C, G> {
    fn default() -> Self {
        Self(Mutex::new(Table {
            samples: HashMap::new(),
            searched_at: None,
        }))
    }
}

impl<const C: usize, const G: usize> Samples<C, G> {
    /// The rates of an object with these figures, which may become its next sample.
    pub(crate) fn rates(&self, now: Instant, key: u64, figures: Figures<C, G>) -> Rates<C, G> {
        let mut table = self.0.lock();
        if let Some(sample) = table.samples.get_mut(&key) {
            sample.asked_at = now;
            sample.renew(now, figures);
            return sample.rates();
        }
        table.make_room(now);
        if table.samples.len() < OBJECTS_MAX {
            table.samples.insert(key, Sample::new(now, figures));
        }
        Rates::NONE
    }

    fn forget(&self) {
        let samples = std::mem::take(&mut self.0.lock().samples);
        // Others do not wait for this.
        drop(samples);
    }

    fn sweep(&self, now: Instant) -> bool {
        let samples = &mut self.0.lock().samples;
        samples.retain(|_, sample| now.saturating_duration_since(sample.asked_at) < KEPT);
        samples.shrink_to_fit();
        !samples.is_empty()
    }
}

impl<const C: usize, const G: usize> Table<C, G> {
    /// Forgets samples that no client has asked for lately, if there are many; at most once a second.
    fn make_room(&mut self, now: Instant) {
        let is_recent = |at: Instant| now.saturating_duration_since(at) < FIRST_INTERVAL;
        if self.samples.len() < OBJECTS_MAX || self.searched_at.is_some_and(is_recent) {
            return;
        }
        self.searched_at = Some(now);
        let age = |sample: &Sample<C, G>| now.saturating_duration_since(sample.asked_at);
        self.samples.retain(|_, sample| age(sample) < KEPT_IF_MANY);
    }
}

impl<const C: usize, const G: usize> Sample<C, G> {
    fn new(now: Instant, figures: Figures<C, G>) -> Self {
        Self {
            taken_at: now,
            asked_at: now,
            is_first: true,
            figures,
            counter_rates: [0.0; C],
            gauge_rates: [0.0; G],
        }
    }

    fn renew(&mut self, now: Instant, figures: Figures<C, G>) {
        let age = now.saturating_duration_since(self.taken_at);
        let due = if self.is_first {
            FIRST_INTERVAL
        } else {
            INTERVAL
        };
        if age < due {
            return;
        }
        let seconds = age.as_secs_f64();
        let before = std::mem::replace(&mut self.figures, figures);
        for place in 0..C {
            // A counter that fell belongs to another object of the same name.
            let change = figures.counters[place].saturating_sub(before.counters[place]);
            self.counter_rates[place] = (change as f64 / seconds) as f32;
        }
        for place in 0..G {
            let change = figures.gauges[place] as f64 - before.gauges[place] as f64;
            self.gauge_rates[place] = (change / seconds) as f32;
        }
        self.taken_at = now;
        self.is_first = false;
    }

    fn rates(&self) -> Rates<C, G> {
        Rates {
            counters: self.counter_rates.map(f64::from),
            gauges: self.gauge_rates.map(f64::from),
        }
    }
}

impl<const C: usize, const G: usize> Rates<C, G> {
    const NONE: Self = Self {
        counters: [0.0; C],
        gauges: [0.0; G],
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(counter: u64, gauge: u64) -> Figures<1, 1> {
        Figures {
            counters: [counter],
            gauges: [gauge],
        }
    }

    #[test]
    fn rates_are_changes_between_answers() {
        let (samples, start) = (Samples::<1, 1>::default(), Instant::now());
        for (at_ms, counter, gauge, expected) in [
            (0, 10, 5, [0.0, 0.0]),
            // Too early.
            (900, 100, 5, [0.0, 0.0]),
            (2_000, 30, 1, [10.0, -2.0]),
            // Another client, within the interval.
            (4_000, 300, 1, [10.0, -2.0]),
            (7_000, 130, 11, [20.0, 2.0]),
            // A new object of that name.
            (12_000, 5, 11, [0.0, 0.0]),
        ] {
            let now = start + Duration::from_millis(at_ms);
            let rates = samples.rates(now, 1, figures(counter, gauge));
            assert_eq!([rates.counters[0], rates.gauges[0]], expected, "{at_ms}");
        }
    }

    #[test]
    fn samples_have_a_bound_and_an_end() {
        let (samples, start) = (Samples::<1, 1>::default(), Instant::now());
        for key in 0..2 * OBJECTS_MAX as u64 {
            samples.rates(start, key, figures(0, 0));
        }
        assert_eq!(samples.0.lock().samples.len(), OBJECTS_MAX);
        let later = start + INTERVAL;
        let (kept, beyond) = (0, 2 * OBJECTS_MAX as u64 - 1);
        assert_eq!(samples.rates(later, kept, figures(5, 0)).counters, [1.0]);
        assert_eq!(samples.rates(later, beyond, figures(5, 0)).counters, [0.0]);
        // Objects that are gone make room.
        let late = start + KEPT_IF_MANY;
        samples.rates(late, beyond, figures(5, 0));
        let rates = samples.rates(late + INTERVAL, beyond, figures(10, 0));
        assert_eq!(rates.counters, [1.0]);
        assert_eq!(samples.0.lock().samples.len(), 2);
        assert!(samples.sweep(later + KEPT));
        assert_eq!(samples.0.lock().samples.len(), 1);
        assert!(!samples.sweep(late + INTERVAL + KEPT));
        assert_eq!(samples.0.lock().samples.capacity(), 0);
    }

    #[test]
    fn all_samples_together_take_a_few_megabytes() {
        const PLACES: usize = 16_384;
        let bytes = |sample: usize| PLACES * (sample + size_of::<u64>() + 1);
        let of_queues = bytes(size_of::<Sample<8, 2>>());
        assert!(of_queues < 3 << 20, "{of_queues}");
        let all = of_queues
            + bytes(size_of::<Sample<11, 0>>())
            + 2 * bytes(size_of::<Sample<2, 0>>())
            + bytes(size_of::<Sample<13, 2>>());
        assert!(all < 12 << 20, "{all}");
    }
}
