//! The allocator of static builds, and the return of freed memory to the system.
#![cfg_attr(
    any(target_env = "gnu", target_env = "musl"),
    expect(unsafe_code, reason = "allocators are asked by functions of C")
)]

use std::sync::atomic::{AtomicU32, Ordering};

/// The interval in seconds. Memory that was freed and not reused is returned within a minute.
const INTERVAL_S: u32 = 30;

/// The allocator of both programs if they are linked with musl, whose own takes a lock that all threads share.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

static GIVEN_AT_S: AtomicU32 = AtomicU32::new(0);

/// Makes the allocator return free memory, unless that was done just now. Needs a tokio context.
///
/// glibc's allocator returns only free memory at the end of a heap, and each thread has a heap. jemalloc returns an
/// arena's free memory only while threads use the arena. With glibc, after 350 MiB of subscriptions and 900 MiB of
/// incomplete messages were freed, 650 MiB stayed. The call runs on a thread of its own: it takes 0.3 ms with nothing to
/// return and 30 ms with 300 MiB. A thread that allocates from the heap being trimmed waits meanwhile.
pub(crate) fn give_back_now_and_then(now_s: u32) {
    let given_at_s = GIVEN_AT_S.load(Ordering::Relaxed);
    if now_s.saturating_sub(given_at_s) < INTERVAL_S {
        return;
    }
    // Each set of workers keeps the time; one of them makes the call.
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

#[cfg(target_env = "musl")]
fn give_back() {
    // The number stands for all arenas (MALLCTL_ARENAS_ALL).
    let name = c"arena.4096.purge";
    let none = std::ptr::null_mut;
    // SAFETY: `mallctl` may be called by any thread at any time. The name ends with a zero, this one reads and writes
    // no value, and it gives back pages that no allocation is in.
    unsafe { tikv_jemalloc_sys::mallctl(name.as_ptr(), none(), none().cast(), none(), 0) };
}

#[cfg(not(any(target_env = "gnu", target_env = "musl")))]
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

    #[cfg(any(target_env = "gnu", target_env = "musl"))]
    #[test]
    fn free_memory_between_used_memory_is_returned() {
        let mut buffers: Vec<Vec<u8>> = (0..64_000).map(|_| vec![1; 2000]).collect();
        let last = buffers.pop();
        let full = resident_bytes();
        drop(buffers);
        give_back();
        assert!(resident_bytes() + (64 << 20) < full);
        drop(last);
    }
}
