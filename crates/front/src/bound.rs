//! Limits the log lines of a kind per second.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crosstie_transport::now_s;

/// Maximum number of lines of one kind per second; further ones are counted only.
const LINES_PER_SECOND_MAX: u32 = 20;

/// The number of lines of a kind in this second.
pub struct Bound {
    lines_max: u32,
    second: AtomicU32,
    lines: AtomicU32,
    suppressed: AtomicU64,
}

impl Bound {
    pub const fn usual() -> Self {
        Self::of(LINES_PER_SECOND_MAX)
    }

    pub const fn of(lines_max: u32) -> Self {
        Self {
            lines_max,
            second: AtomicU32::new(0),
            lines: AtomicU32::new(0),
            suppressed: AtomicU64::new(0),
        }
    }

    /// Whether another line may be logged. Logs the number of omitted lines first.
    pub fn may_log(&self) -> bool {
        let (may, suppressed) = self.count(now_s());
        if suppressed > 0 {
            tracing::warn!(suppressed, "further lines about peers were left out");
        }
        may
    }

    /// Whether another line may be logged, and the number of lines omitted before this second.
    pub fn count(&self, now_s: u32) -> (bool, u64) {
        let mut suppressed = 0;
        if self.second.swap(now_s, Ordering::Relaxed) != now_s {
            self.lines.store(0, Ordering::Relaxed);
            suppressed = self.suppressed.swap(0, Ordering::Relaxed);
        }
        let may = self.lines.fetch_add(1, Ordering::Relaxed) < self.lines_max;
        if !may {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
        }
        (may, suppressed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_per_second_are_limited() {
        let bound = Bound::usual();
        for (now_s, lines, expected, suppressed) in [(1, 50, 20, 0), (2, 5, 5, 30), (9, 21, 20, 0)]
        {
            let counted: Vec<_> = (0..lines).map(|_| bound.count(now_s)).collect();
            assert_eq!(counted.iter().filter(|(may, _)| *may).count(), expected);
            assert_eq!(counted.iter().map(|(_, n)| n).sum::<u64>(), suppressed);
        }
    }
}
