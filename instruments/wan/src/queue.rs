//! Bytes in transit in one direction of one connection, each with its time of arrival. Pure: the clock is an argument,
//! the sockets are the caller's.
//!
//! In: [`Queue::push`] and [`Queue::mark`], with times that may go back because of jitter; the queue prevents
//! overtaking. Out: [`Queue::next`] returns arrived bytes, and [`Queue::take`] or [`Queue::take_mark`] removes them.

use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(crate) struct Queue {
    bytes: VecDeque<u8>,
    entries: VecDeque<Entry>,
    last_due_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    due_ns: u64,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Bytes(usize),
    Mark(Mark),
}

/// A mark that travels among the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The client's SYN: connect to the server.
    Connect,
    /// The sender's FIN.
    End,
}

/// The next item for the far end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    Bytes(&'a [u8]),
    Mark(Mark),
    /// Something, at that time.
    Later(u64),
    Nothing,
}

/// Overhead of an entry besides its bytes, so that single bytes are bounded too.
const ENTRY_BYTES: usize = size_of::<Entry>();

/// An empty queue returns its memory beyond this.
const KEPT_BYTES_MAX: usize = 4 * 1024;

impl Queue {
    /// Adds bytes that arrive at `due_ns`, or together with earlier ones that arrive later.
    pub(crate) fn push(&mut self, bytes: &[u8], due_ns: u64) {
        debug_assert!(
            !bytes.is_empty(),
            "an entry of nothing would never be taken"
        );
        let due_ns = self.in_order(due_ns);
        self.bytes.extend(bytes);
        if let Some(Entry {
            due_ns: last_due_ns,
            what: What::Bytes(length),
        }) = self.entries.back_mut()
            && *last_due_ns == due_ns
        {
            *length += bytes.len();
        } else {
            let what = What::Bytes(bytes.len());
            self.entries.push_back(Entry { due_ns, what });
        }
    }

    pub(crate) fn mark(&mut self, mark: Mark, due_ns: u64) {
        let due_ns = self.in_order(due_ns);
        let what = What::Mark(mark);
        self.entries.push_back(Entry { due_ns, what });
    }

    /// The time, or a later one that was given before.
    pub(crate) fn in_order(&mut self, due_ns: u64) -> u64 {
        self.last_due_ns = self.last_due_ns.max(due_ns);
        self.last_due_ns
    }

    /// Removes bytes that [`Self::next`] returned; `arrived` gets the time of each completed entry.
    pub(crate) fn take(&mut self, mut length: usize, mut arrived: impl FnMut(u64)) {
        self.bytes.drain(..length);
        while let Some(entry) = self.entries.front_mut()
            && let What::Bytes(waiting) = &mut entry.what
        {
            if *waiting > length {
                *waiting -= length;
                break;
            }
            length -= *waiting;
            arrived(entry.due_ns);
            self.entries.pop_front();
        }
        self.give_back();
    }

    pub(crate) fn take_mark(&mut self) {
        if let Some(What::Mark(_)) = self.entries.front().map(|entry| entry.what) {
            self.entries.pop_front();
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            last_due_ns: self.last_due_ns,
            ..Self::default()
        };
    }

    /// The arrived item, at most `bytes_max` of bytes at once.
    pub(crate) fn next(&self, now_ns: u64, bytes_max: usize) -> Next<'_> {
        let Some(front) = self.entries.front() else {
            return Next::Nothing;
        };
        if front.due_ns > now_ns {
            return Next::Later(front.due_ns);
        }
        if let What::Mark(mark) = front.what {
            return Next::Mark(mark);
        }
        let (contiguous, _) = self.bytes.as_slices();
        let most = contiguous.len().min(bytes_max);
        let mut length = 0;
        for entry in &self.entries {
            let What::Bytes(more) = entry.what else {
                break;
            };
            if entry.due_ns > now_ns || length >= most {
                break;
            }
            length += more;
        }
        Next::Bytes(&contiguous[..length.min(most)])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The memory that counts against the bounds.
    pub(crate) fn held(&self) -> usize {
        self.bytes.len() + self.entries.len() * ENTRY_BYTES
    }

    /// An idle connection holds little.
    fn give_back(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = VecDeque::new();
        }
        if self.entries.is_empty() && self.entries.capacity() > KEPT_BYTES_MAX / ENTRY_BYTES {
            self.entries = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_when_they_are_due() {
        /// Pushes these, queries at each time and takes the arrived bytes.
        #[track_caller]
        fn check(pushed: &[(&str, u64)], asked: &[(u64, &str)]) {
            let mut queue = Queue::default();
            for (text, due_ns) in pushed {
                match *text {
                    "|" => queue.mark(Mark::End, *due_ns),
                    _ => queue.push(text.as_bytes(), *due_ns),
                }
            }
            for (now_ns, expected) in asked {
                let (found, length) = match queue.next(*now_ns, usize::MAX) {
                    Next::Bytes(bytes) => (String::from_utf8_lossy(bytes).into(), bytes.len()),
                    other => (format!("{other:?}"), 0),
                };
                assert_eq!(found, *expected, "at {now_ns}");
                queue.take(length, |_| {});
                if found.starts_with("Mark") {
                    queue.take_mark();
                }
            }
        }
        check(&[], &[(0, "Nothing")]);
        check(
            &[("ab", 10), ("c", 20)],
            &[
                (9, "Later(10)"),
                (10, "ab"),
                (10, "Later(20)"),
                (25, "c"),
                (25, "Nothing"),
            ],
        );
        check(&[("ab", 10), ("c", 20)], &[(20, "abc")]);
        // Jitter would let the second overtake.
        check(
            &[("ab", 20), ("c", 10), ("|", 5)],
            &[(10, "Later(20)"), (20, "abc"), (20, "Mark(End)")],
        );
        check(
            &[("ab", 10), ("|", 12)],
            &[
                (11, "ab"),
                (11, "Later(12)"),
                (12, "Mark(End)"),
                (12, "Nothing"),
            ],
        );
    }

    #[test]
    fn parts_can_be_taken() {
        let mut queue = Queue::default();
        queue.push(b"abc", 1);
        queue.push(b"de", 2);
        assert_eq!(queue.next(5, 4), Next::Bytes(b"abcd"));
        let mut arrived = Vec::new();
        queue.take(4, |due_ns| arrived.push(due_ns));
        assert_eq!(arrived, [1]);
        assert_eq!(queue.next(5, 4), Next::Bytes(b"e"));
        queue.take(1, |due_ns| arrived.push(due_ns));
        assert_eq!(arrived, [1, 2]);
        assert_eq!(queue.held(), 0);
    }

    /// With any times, sizes and partial writes: all bytes arrive, in order, none early.
    #[test]
    fn nothing_is_lost_reordered_or_early() {
        for seed in 1..=300_u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut next_random = |below: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % below
            };
            let mut queue = Queue::default();
            let (mut now_ns, mut sent, mut received) = (0, 0_u64, 0_u64);
            let mut dues = VecDeque::new();
            while received < 2_000 {
                now_ns += next_random(20);
                if sent < 2_000 && next_random(3) > 0 {
                    let length = (1 + next_random(40)).min(2_000 - sent);
                    let bytes: Vec<u8> = (sent..sent + length).map(|n| n as u8).collect();
                    let due_ns = now_ns + next_random(100);
                    queue.push(&bytes, due_ns);
                    dues.extend((0..length).map(|_| due_ns));
                    sent += length;
                }
                let bytes_max = 1 + next_random(64) as usize;
                let Next::Bytes(bytes) = queue.next(now_ns, bytes_max) else {
                    continue;
                };
                let taken = next_random(bytes.len() as u64 + 1) as usize;
                for byte in &bytes[..taken] {
                    assert_eq!(*byte, received as u8, "seed {seed}");
                    assert!(dues.pop_front().unwrap() <= now_ns, "seed {seed}");
                    received += 1;
                }
                queue.take(taken, |due_ns| assert!(due_ns <= now_ns, "seed {seed}"));
            }
            assert_eq!(queue.bytes.len(), 0, "seed {seed}");
        }
    }
}
