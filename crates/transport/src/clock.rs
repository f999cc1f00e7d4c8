//! A coarse clock, so that noting when something was received costs one load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::allocator;

static NOW_S: AtomicU32 = AtomicU32::new(0);

/// One start for the whole process: several sets of workers update the same clock.
static START: OnceLock<Instant> = OnceLock::new();

/// Whole seconds since the process's first workers started, at most one second late.
pub fn now_s() -> u32 {
    NOW_S.load(Ordering::Relaxed)
}

/// Updates the clock; a task of each set of workers runs this.
pub(crate) async fn tick() {
    let start = START.get_or_init(Instant::now);
    let mut interval = tokio::time::interval(Duration::from_secs(1));
    loop {
        interval.tick().await;
        let now_s = u32::try_from(start.elapsed().as_secs()).unwrap_or(u32::MAX);
        NOW_S.fetch_max(now_s, Ordering::Relaxed);
        allocator::give_back_now_and_then(now_s);
    }
}
