//! Gives back the memory of collections that were long once.

use std::collections::VecDeque;

/// Halves the capacity when three quarters of it are empty, so that a line that grows and shrinks is not reallocated
/// all the time.
// Nearly every message calls it, and mostly there is no memory to give back.
#[inline(always)]
pub(crate) fn shrink<T>(deque: &mut VecDeque<T>) {
    let capacity = deque.capacity();
    if capacity > ROOM_MIN && deque.len() < capacity / 4 {
        halve(deque);
    }
}

#[cold]
fn halve<T>(deque: &mut VecDeque<T>) {
    deque.shrink_to(deque.capacity() / 2);
}

/// A capacity up to this is not worth a reallocation.
const ROOM_MIN: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_follows_the_length() {
        let mut deque: VecDeque<u32> = (0..100_000).collect();
        while let Some(number) = deque.pop_front() {
            shrink(&mut deque);
            let next = deque.front().copied();
            assert!(next.is_none_or(|next| next == number + 1));
            assert!(deque.capacity() <= ROOM_MIN.max(deque.len() * 4 + 4));
        }
        assert!(deque.capacity() <= ROOM_MIN);
    }
}
