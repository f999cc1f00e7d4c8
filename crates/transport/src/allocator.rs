//! Memory that was freed goes back to the system.
#![cfg_attr(
    target_env = "gnu",
    expect(
        unsafe_code,
        reason = "the C library's allocator is asked by a function of C"
    )
)]

use std::sync::atomic::{AtomicU32, Ordering};

/// How often, in seconds. What was freed and not used again goes back within a minute.
const INTERVAL_S: u32 = 30;

static GIVEN_AT_S: AtomicU32 = AtomicU32::new(0);

/// Has the allocator give back what is free, if that was not done just now. Needs a tokio context.
///
/// The C library's allocator gives back only what is free at the end of a heap, of which each thread
/// has one: after 350 MiB of subscriptions and 900 of unfinished messages were gone, 650 stayed. It
/// is called from a thread of its own: with nothing to give it takes 0.3 ms, with 300 MiB 30,
/// while the thread whose heap that is waits if it allocates.
pub(crate) fn give_back_now_and_then(now_s: u32) {
    let given_at_s = GIVEN_AT_S.load(Ordering::Relaxed);
    if now_s.saturating_sub(given_at_s) < INTERVAL_S {
        return;
    }
    // Each set of workers keeps the time, and one of them does this.
    let order = Ordering::Relaxed;
    let is_mine = GIVEN_AT_S.compare_exchange(given_at_s, now_s, order, order);
    if is_mine.is_ok() {
        tokio::task::spawn_blocking(give_back);
    }
}

#[cfg(target_env = "gnu")]
fn give_back() {
    // SAFETY: `malloc_trim` may be called by any thread at any time: it takes the allocator's own
    // locks, moves nothing, and gives back pages that no allocation is in.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resident bytes of this process.
    fn resident_bytes() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
        let pages = statm.split(' ').nth(1).expect("a second number");
        pages.parse::<usize>().expect("a number") * 4096
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn what_is_free_between_what_is_not_is_given_back() {
        let mut buffers: Vec<Vec<u8>> = (0..64_000).map(|_| vec![1; 2000]).collect();
        let last = buffers.pop();
        let full = resident_bytes();
        drop(buffers);
        give_back();
        assert!(resident_bytes() + (64 << 20) < full);
        drop(last);
    }
}
