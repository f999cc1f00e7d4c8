//! The scheduler's times of one thread. The file stays open: opening it takes 8 of 10 µs, and a spinning thread reads it
//! every 10 ms.

use std::fs::File;
use std::os::unix::fs::FileExt;

#[derive(Debug)]
pub(crate) struct Schedstat(File);

/// Nanoseconds since the thread's start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) ran_ns: u64,
    /// It was ready, and another thread ran.
    pub(crate) delayed_ns: u64,
}

impl Schedstat {
    /// The file of the calling thread.
    pub(crate) fn of_this_thread() -> Option<Self> {
        File::open("/proc/thread-self/schedstat").ok().map(Self)
    }

    /// The file of a thread of this process, by the system's thread id.
    pub(crate) fn of_thread(id: i32) -> Option<Self> {
        let path = format!("/proc/self/task/{id}/schedstat");
        File::open(path).ok().map(Self)
    }

    pub(crate) fn read(&self) -> Option<Times> {
        let mut text = [0; 64];
        let len = self.0.read_at(&mut text, 0).ok()?;
        let text = str::from_utf8(&text[..len]).ok()?;
        let mut numbers = text.split_ascii_whitespace();
        let mut next = || numbers.next()?.parse().ok();
        Some(Times {
            ran_ns: next()?,
            delayed_ns: next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_is_seen_at_each_reading() {
        let file = Schedstat::of_this_thread().expect("Linux");
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        let by_id = Schedstat::of_thread(id).expect("Linux");
        let first = file.read().expect("two numbers");
        let mut last = first;
        while last.ran_ns == first.ran_ns {
            last = by_id.read().expect("two numbers");
        }
        assert!(last.ran_ns > first.ran_ns);
        assert!(last.delayed_ns >= first.delayed_ns);
    }
}
