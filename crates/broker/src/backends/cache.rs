//! Answers that are kept for a while: in the order in which they came, which is that of their ends.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_transport::{Account, Kept};

/// Maximum size of the answers of one kind. It fits 100,000 usual ones, and 50,000 with names of the maximum length.
const BYTES_MAX: usize = 32 << 20;

/// The size of an entry beside its question and its answer.
const ENTRY_BYTES: usize = 160;

/// Answers by question, on the account of all peers. At a maximum the oldest one goes, and all of them while the account
/// is full: no peer is closed for what is only known to save requests.
pub(super) struct Cache<Q, A> {
    ttl: Duration,
    entries_max: usize,
    answers: HashMap<Arc<Q>, (A, Instant)>,
    order: VecDeque<Entry<Q>>,
    bytes: usize,
    kept: Kept,
}

#[derive(Debug)]
struct Entry<Q> {
    question: Arc<Q>,
    until: Instant,
    bytes: usize,
}

impl<Q: Eq + Hash, A: Clone> Cache<Q, A> {
    /// With a time of zero nothing is kept.
    pub(super) fn new(ttl: Duration, entries_max: usize, account: &Arc<Account>) -> Self {
        Self {
            ttl,
            entries_max,
            answers: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            kept: Kept::new(account),
        }
    }

    /// The answer, and the end of its time.
    pub(super) fn find(&self, question: &Q, now: Instant) -> Option<(A, Instant)> {
        let found = self.answers.get(question)?;
        (found.1 > now).then(|| found.clone())
    }

    /// Keeps an answer; `bytes` is its size with that of its question.
    pub(super) fn keep(&mut self, question: Q, answer: A, bytes: usize, now: Instant) {
        let bytes = bytes + ENTRY_BYTES;
        if self.ttl.is_zero() || bytes > BYTES_MAX {
            return;
        }
        while let Some(first) = self.order.front()
            && (first.until <= now
                || self.order.len() >= self.entries_max
                || self.bytes + bytes > BYTES_MAX
                || self.kept.is_account_full())
        {
            self.forget_first();
            self.kept.set(self.bytes);
        }
        if self.kept.is_account_full() {
            return;
        }
        let (question, until) = (Arc::new(question), now + self.ttl);
        self.answers.insert(Arc::clone(&question), (answer, until));
        self.order.push_back(Entry {
            question,
            until,
            bytes,
        });
        self.bytes += bytes;
        self.kept.set(self.bytes);
    }

    fn forget_first(&mut self) {
        let Some(first) = self.order.pop_front() else {
            return;
        };
        let Entry {
            question,
            until,
            bytes,
        } = first;
        self.bytes -= bytes;
        // A later answer to the same question stays.
        if let Some((_, later)) = self.answers.get(&question)
            && *later == until
        {
            self.answers.remove(&question);
        }
    }
}

impl<Q, A> fmt::Debug for Cache<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache of {} entries", self.order.len())
    }
}

#[cfg(test)]
mod tests {
    use crosstie_transport::Kind;

    use super::*;

    fn account(bytes_max: usize) -> Arc<Account> {
        Arc::new(Account::new(bytes_max))
    }

    #[test]
    fn answers_end_with_their_time_and_the_oldest_goes_first() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut cache = Cache::new(2 * second, 2, &account(1 << 30));
        let found = |cache: &Cache<&'static str, i32>, question, at| {
            cache.find(&question, at).map(|(answer, _)| answer)
        };
        cache.keep("a", 1, 1, start);
        cache.keep("b", 2, 1, start + second);
        assert_eq!(found(&cache, "a", start + second), Some(1));
        assert_eq!(found(&cache, "a", start + 2 * second), None);
        assert_eq!(found(&cache, "c", start), None);
        // At the maximum.
        cache.keep("c", 3, 1, start + second);
        assert_eq!(found(&cache, "a", start + second), None);
        assert_eq!(found(&cache, "b", start + second), Some(2));
        // The same question again does not go with its first answer.
        cache.keep("b", 4, 1, start + 2 * second);
        cache.keep("d", 5, 1, start + 3 * second);
        assert_eq!(found(&cache, "b", start + 3 * second), Some(4));
        for number in 0..1_000 {
            cache.keep("e", number, 1, start + 9 * second);
        }
        assert!(
            cache.order.len() <= 2 && cache.answers.len() <= 2,
            "{cache:?}"
        );
        let mut none = Cache::new(Duration::ZERO, 2, &account(1 << 30));
        none.keep("a", 1, 1, start);
        assert_eq!(found(&none, "a", start), None);
    }

    /// A client that names ever longer queues makes the cache hold no more.
    #[test]
    fn answers_are_on_the_account_and_bounded_in_bytes() {
        let (now, hour) = (Instant::now(), Duration::from_secs(3_600));
        let shared = account(1 << 30);
        let mut cache = Cache::new(hour, 1_000_000, &shared);
        for number in 0..100_000 {
            cache.keep(number, (), 1_000, now);
        }
        let held = shared.bytes(Kind::Kept);
        assert!(held <= BYTES_MAX && held > BYTES_MAX / 2, "{held}");
        assert_eq!(held, cache.order.len() * (1_000 + ENTRY_BYTES));
        assert_eq!(cache.answers.len(), cache.order.len());
        cache.keep(7, (), BYTES_MAX, now);
        assert_eq!(shared.bytes(Kind::Kept), held);
        drop(cache);
        assert_eq!(shared.total_bytes(), 0);
    }

    #[test]
    fn answers_leave_a_full_account_to_the_peers() {
        let (now, hour) = (Instant::now(), Duration::from_secs(3_600));
        let shared = account(100_000);
        let mut cache = Cache::new(hour, 1_000_000, &shared);
        for number in 0..50 {
            cache.keep(number, (), 1_000, now);
        }
        let peers = Kept::new(&shared);
        peers.set(60_000);
        cache.keep(50, (), 1_000, now);
        assert!(shared.total_bytes() <= 100_000 + 1_000 + ENTRY_BYTES);
        peers.set(200_000);
        cache.keep(51, (), 1_000, now);
        assert_eq!((cache.order.len(), shared.total_bytes()), (0, 200_000));
    }
}
