//! A coarse clock, so that noting when something was received costs one load.

use std::sync::atomic::{AtomicU32, Ordering};

static NOW_S: AtomicU32 = AtomicU32::new(0);

/// Whole seconds since the workers started, at most one second late.
pub fn now_s() -> u32 {
    NOW_S.load(Ordering::Relaxed)
}

/// Keeps the clock going; one task in the process runs this.
pub(crate) async fn tick() {
    let start = tokio::time::Instant::now();
    let mut interval = tokio::time::interval(std::time::Duration::from_secs(1));
    loop {
        interval.tick().await;
        NOW_S.store(
            u32::try_from(start.elapsed().as_secs()).unwrap_or(u32::MAX),
            Ordering::Relaxed,
        );
    }
}
