//! One direction of a line, shared by all connections: the transit time of bytes, and the rate. A number in, a number
//! out; the clock is the caller's.

use std::time::Duration;

/// Connections affect each other only here: behind a rate, and in the pool of buffers.
#[derive(Debug)]
pub(crate) struct Line {
    delay_ns: u64,
    jitter_ns: u64,
    /// Bytes per second.
    rate: Option<u64>,
    /// When the last accepted byte has left the near end.
    free_ns: u64,
    random: u64,
}

/// How much may wait at the near end of a line with a rate. A faster sender waits in its own socket, so a long queue is
/// not mistaken for a long line.
const BACKLOG_NS: u64 = 5_000_000;

/// The assumed rate of a line without one, for the bound on its buffers: ten gigabits.
const RATE_ASSUMED: u64 = 1_250_000_000;

/// One read of a line without a rate.
pub(crate) const READ_BYTES_MAX: usize = 64 * 1024;
/// About one packet: the grain in which connections share a rate.
const READ_BYTES_MIN: usize = 1_500;

impl Line {
    pub(crate) fn new(delay: Duration, jitter: Duration, rate: Option<u64>, seed: u64) -> Self {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            delay_ns: nanoseconds(delay),
            jitter_ns: nanoseconds(jitter),
            rate,
            free_ns: 0,
            random: seed,
        }
    }

    /// Accepts bytes at the near end; returns when the last of them arrives at the far one. Each connection's queue,
    /// not this, keeps its order.
    pub(crate) fn send(&mut self, bytes: usize, now_ns: u64) -> u64 {
        let left_ns = match self.rate {
            None => now_ns,
            Some(rate) => {
                let taking_ns = u128::from(bytes as u64) * 1_000_000_000 / u128::from(rate);
                self.free_ns = self.free_ns.max(now_ns) + taking_ns as u64;
                self.free_ns
            }
        };
        left_ns + self.latency_ns()
    }

    /// The transit time of zero bytes, sent now.
    pub(crate) fn latency_ns(&mut self) -> u64 {
        if self.jitter_ns == 0 {
            return self.delay_ns;
        }
        let spread = 2 * u128::from(self.jitter_ns) + 1;
        let random = (u128::from(self.next_random()) * spread) >> 64;
        self.delay_ns - self.jitter_ns + random as u64
    }

    /// The time from which on it accepts bytes again.
    pub(crate) fn accepts_ns(&self) -> u64 {
        self.free_ns.saturating_sub(BACKLOG_NS)
    }

    /// Maximum size of one read.
    pub(crate) fn read_bytes_max(&self) -> usize {
        match self.rate {
            None => READ_BYTES_MAX,
            // A millisecond's worth, in packets' bounds.
            Some(rate) => {
                (rate / 1_000).clamp(READ_BYTES_MIN as u64, READ_BYTES_MAX as u64) as usize
            }
        }
    }

    /// Bandwidth times delay: the bytes that one connection may have in transit.
    pub(crate) fn product_bytes(&self) -> u64 {
        let seconds = (self.delay_ns + self.jitter_ns + BACKLOG_NS) as f64 / 1e9;
        (self.rate.unwrap_or(RATE_ASSUMED) as f64 * seconds) as u64
    }

    /// SplitMix64: nothing here needs more, and a seed determines the whole sequence.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The bytes that all queues of a line may hold together.
///
/// A queue may take half of the rest, so a stalled one leaves room for the others, and each may hold a little even when
/// nothing is left.
#[derive(Debug)]
pub(crate) struct Pool {
    used: usize,
    pool_bytes_max: usize,
    queue_bytes_max: usize,
}

/// The minimum that each queue may hold.
const QUEUE_BYTES_MIN: usize = READ_BYTES_MAX;
/// The maximum of any queue, for any line: 50 ms of ten gigabits.
const QUEUE_BYTES_MAX: usize = 64 << 20;

impl Pool {
    /// For queues on lines with at most this product of bandwidth and delay.
    pub(crate) fn new(product_bytes: u64) -> Self {
        let queue_bytes_max = usize::try_from(product_bytes)
            .unwrap_or(usize::MAX)
            .clamp(QUEUE_BYTES_MIN, QUEUE_BYTES_MAX);
        Self {
            used: 0,
            pool_bytes_max: 2 * queue_bytes_max,
            queue_bytes_max,
        }
    }

    /// How much more a queue of that size may take.
    pub(crate) fn room(&self, held: usize) -> usize {
        let left = self.pool_bytes_max.saturating_sub(self.used);
        let room = (QUEUE_BYTES_MIN + left / 2)
            .min(self.queue_bytes_max)
            .saturating_sub(held);
        // Waiting for more room is better than tiny reads.
        if room < READ_BYTES_MIN { 0 } else { room }
    }

    /// Changes a queue's size.
    pub(crate) fn change(&mut self, before: usize, after: usize) {
        self.used = (self.used + after).saturating_sub(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn line(delay_ms: u64, jitter_ms: u64, rate: Option<u64>) -> Line {
        let ms = Duration::from_millis;
        Line::new(ms(delay_ms), ms(jitter_ms), rate, 7)
    }

    #[test]
    fn bytes_take_their_time() {
        /// Each of these bytes at that millisecond arrives at this one.
        #[track_caller]
        fn check(delay_ms: u64, rate: Option<u64>, sent: &[(u64, usize, u64)]) {
            let mut line = line(delay_ms, 0, rate);
            for (now_ms, bytes, expected_ms) in sent {
                assert_eq!(line.send(*bytes, now_ms * MS), expected_ms * MS);
            }
        }
        check(0, None, &[(5, 10, 5), (6, 1_000_000, 6)]);
        check(50, None, &[(5, 10, 55), (5, 10, 55), (6, 0, 56)]);
        // A thousand bytes a second: one each millisecond.
        check(
            50,
            Some(1_000),
            &[(0, 10, 60), (0, 10, 70), (10, 10, 80), (100, 1, 151)],
        );
        check(0, Some(1_000), &[(0, 1_000, 1_000), (2_000, 0, 2_000)]);
    }

    #[test]
    fn jitter_stays_within_its_bounds_and_uses_them() {
        let mut line = line(10, 2, None);
        let found: Vec<u64> = (0..10_000).map(|_| line.send(1, 0)).collect();
        let (min, max) = (found.iter().min().unwrap(), found.iter().max().unwrap());
        assert!(*min >= 8 * MS && *min < 8 * MS + MS / 10, "{min}");
        assert!(*max <= 12 * MS && *max > 12 * MS - MS / 10, "{max}");
        let mean = found.iter().sum::<u64>() / 10_000;
        assert!(mean.abs_diff(10 * MS) < MS / 10, "{mean}");
    }

    #[test]
    fn a_full_line_accepts_nothing_for_a_while() {
        let mut line = line(50, 0, Some(1_000_000));
        assert_eq!(line.accepts_ns(), 0);
        line.send(20_000, 0);
        // 20 ms of bytes, of which 5 ms may wait.
        assert_eq!(line.accepts_ns(), 15 * MS);
        assert_eq!(line.read_bytes_max(), 1_500);
        assert_eq!(line.product_bytes(), 55_000);
    }

    #[test]
    fn stalled_queues_leave_room_for_others() {
        let mut pool = Pool::new(u64::MAX);
        let mut held = Vec::new();
        for _ in 0..1_000 {
            let mut queue = 0;
            while pool.room(queue) > 0 {
                let more = pool.room(queue).min(READ_BYTES_MAX);
                pool.change(queue, queue + more);
                queue += more;
            }
            held.push(queue);
        }
        assert!(
            held.iter()
                .all(|queue| *queue > QUEUE_BYTES_MIN - READ_BYTES_MIN)
        );
        assert!(held[0] > QUEUE_BYTES_MAX / 2);
        let bound = 2 * QUEUE_BYTES_MAX + held.len() * QUEUE_BYTES_MIN;
        assert!(held.iter().sum::<usize>() <= bound);
        held.iter().for_each(|queue| pool.change(*queue, 0));
        assert_eq!(pool.used, 0);
    }
}
