//! Answers that are kept for a while: in the order in which they came, which is that of their ends.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Answers by question. At the maximum the oldest one goes.
#[derive(Debug)]
pub(super) struct Cache<Q, A> {
    ttl: Duration,
    entries_max: usize,
    answers: HashMap<Arc<Q>, (A, Instant)>,
    order: VecDeque<(Arc<Q>, Instant)>,
}

impl<Q: Eq + Hash, A: Clone> Cache<Q, A> {
    /// With a time of zero nothing is kept.
    pub(super) fn new(ttl: Duration, entries_max: usize) -> Self {
        Self {
            ttl,
            entries_max,
            answers: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// The answer, and the end of its time.
    pub(super) fn find(&self, question: &Q, now: Instant) -> Option<(A, Instant)> {
        let found = self.answers.get(question)?;
        (found.1 > now).then(|| found.clone())
    }

    pub(super) fn keep(&mut self, question: Q, answer: A, now: Instant) {
        if self.ttl.is_zero() {
            return;
        }
        while let Some((_, until)) = self.order.front()
            && (*until <= now || self.order.len() >= self.entries_max)
        {
            self.forget_first();
        }
        let (question, until) = (Arc::new(question), now + self.ttl);
        self.answers.insert(Arc::clone(&question), (answer, until));
        self.order.push_back((question, until));
    }

    fn forget_first(&mut self) {
        let Some((question, until)) = self.order.pop_front() else {
            return;
        };
        // A later answer to the same question stays.
        if let Some((_, later)) = self.answers.get(&question)
            && *later == until
        {
            self.answers.remove(&question);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_end_with_their_time_and_the_oldest_goes_first() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut cache = Cache::new(2 * second, 2);
        let found = |cache: &Cache<&'static str, i32>, question, at| {
            cache.find(&question, at).map(|(answer, _)| answer)
        };
        cache.keep("a", 1, start);
        cache.keep("b", 2, start + second);
        assert_eq!(found(&cache, "a", start + second), Some(1));
        assert_eq!(found(&cache, "a", start + 2 * second), None);
        assert_eq!(found(&cache, "c", start), None);
        // At the maximum.
        cache.keep("c", 3, start + second);
        assert_eq!(found(&cache, "a", start + second), None);
        assert_eq!(found(&cache, "b", start + second), Some(2));
        // The same question again does not go with its first answer.
        cache.keep("b", 4, start + 2 * second);
        cache.keep("d", 5, start + 3 * second);
        assert_eq!(found(&cache, "b", start + 3 * second), Some(4));
        for number in 0..1_000 {
            cache.keep("e", number, start + 9 * second);
        }
        assert!(
            cache.order.len() <= 2 && cache.answers.len() <= 2,
            "{cache:?}"
        );
        let mut none = Cache::new(Duration::ZERO, 2);
        none.keep("a", 1, start);
        assert_eq!(found(&none, "a", start), None);
    }
}
