//! A coarse clock, so that noting when something was received costs one load, and the moments at which periodic work is
//! done.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::allocator;

static NOW_S: AtomicU32 = AtomicU32::new(0);

/// One start for the whole process: several sets of workers update the same clock.
static START: OnceLock<Instant> = OnceLock::new();

const SECOND: Duration = Duration::from_secs(1);

/// Whole seconds since the process's first workers started, at most one second late.
pub fn now_s() -> u32 {
    NOW_S.load(Ordering::Relaxed)
}

/// Waits for the next whole second of the process's clock. All periodic work waits for the same moments, so that an idle
/// thread wakes once a second for all of it: each wake-up takes some 50 µs of processor time, mostly of the kernel.
pub async fn next_second() {
    next(SECOND).await;
}

/// Waits for the next multiple of a part of a second.
pub(crate) async fn next(period: Duration) {
    let start = *START.get_or_init(Instant::now);
    let next = next_multiple(start.elapsed(), period);
    // A moment, not a length: timers that differ by a microsecond may be a wake-up each.
    tokio::time::sleep_until((start + next).into()).await;
}

/// The first multiple of the period behind `elapsed`.
fn next_multiple(elapsed: Duration, period: Duration) -> Duration {
    let over_ns = elapsed.as_nanos() % period.as_nanos().max(1);
    elapsed + period - Duration::from_nanos(over_ns as u64)
}

/// Updates the clock; a task of each set of workers runs this.
pub(crate) async fn tick() {
    let start = *START.get_or_init(Instant::now);
    loop {
        let now_s = u32::try_from(start.elapsed().as_secs()).unwrap_or(u32::MAX);
        NOW_S.fetch_max(now_s, Ordering::Relaxed);
        allocator::give_back_now_and_then(now_s);
        next_second().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periodic_work_of_all_kinds_is_due_at_the_same_moments() {
        let quarter = Duration::from_millis(250);
        for (elapsed_ms, period, next_ms) in [
            (0, SECOND, 1_000),
            (1, SECOND, 1_000),
            (10_999, SECOND, 11_000),
            (11_000, SECOND, 12_000),
            (10_700, quarter, 10_750),
            (10_750, quarter, 11_000),
        ] {
            let next = next_multiple(Duration::from_millis(elapsed_ms), period);
            assert_eq!(next, Duration::from_millis(next_ms), "{elapsed_ms} ms");
        }
    }
}
