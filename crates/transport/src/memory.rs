//! `memcpy`, `memmove` and `memcmp` of static builds. musl's copy with `rep movsq` and compare byte by byte: a call then
//! costs a third more processor time than with glibc.
#![expect(
    unsafe_code,
    reason = "functions of C that move and compare octets by their addresses"
)]

use std::arch::asm;
use std::arch::x86_64::{
    __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_storeu_si128,
};
use std::cmp::Ordering;

/// Octets of a vector register, which every processor of this architecture has.
const WIDE: usize = 16;
/// Up to so many octets are loaded as a whole before the first is stored, so that overlaps do not matter.
const AT_ONCE: usize = 8 * WIDE;
/// Octets that a turn of a loop moves.
const TURN: usize = 4 * WIDE;

/// What C's programs call. A build without optimization has calls of these functions in the functions themselves.
#[cfg(all(target_env = "musl", not(debug_assertions)))]
mod exported {
    use std::ffi::c_int;

    /// # Safety
    /// As in C: `from` and `to` have `len` octets, which do not overlap.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
        // SAFETY: it is the caller's promise.
        unsafe { super::move_octets(to, from, len) };
        to
    }

    /// # Safety
    /// As in C: `from` and `to` have `len` octets.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
        // SAFETY: it is the caller's promise.
        unsafe { super::move_octets(to, from, len) };
        to
    }

    /// # Safety
    /// As in C: both have `len` octets.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, len: usize) -> c_int {
        // SAFETY: it is the caller's promise.
        unsafe { super::compare(left, right, len) as c_int }
    }

    /// # Safety
    /// As in C: both have `len` octets.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, len: usize) -> c_int {
        // SAFETY: it is the caller's promise.
        unsafe { super::compare(left, right, len) as c_int }
    }
}

/// Keeps the compiler from making a call of `memmove` of a loop that moves octets.
#[inline(always)]
fn barrier() {
    // SAFETY: no instruction is in it.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}

/// Moves octets, also if the places overlap.
///
/// # Safety
/// `from` may be read and `to` written for `len` octets.
#[inline(always)]
unsafe fn move_octets(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: every load and store lies within `len` octets of its place, as the branches compare.
    unsafe {
        if len <= AT_ONCE {
            move_at_once(to, from, len);
        } else if to.addr().wrapping_sub(from.addr()) >= len {
            move_forwards(to, from, len);
        } else {
            move_backwards(to, from, len);
        }
    }
}

/// # Safety
/// As of [`move_octets`], with at most [`AT_ONCE`] octets.
#[inline(always)]
unsafe fn move_at_once(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: a pair of loads begins at the start and ends at the end, and its size is at most `len`.
    unsafe {
        if len > 4 * WIDE {
            let (head, tail) = (four(from), four(from.add(len - TURN)));
            store_four(to, head);
            store_four(to.add(len - TURN), tail);
        } else if len > 2 * WIDE {
            let head = (load(from), load(from.add(WIDE)));
            let end = from.add(len - 2 * WIDE);
            let tail = (load(end), load(end.add(WIDE)));
            store(to, head.0);
            store(to.add(WIDE), head.1);
            store(to.add(len - 2 * WIDE), tail.0);
            store(to.add(len - WIDE), tail.1);
        } else if len >= WIDE {
            let (head, tail) = (load(from), load(from.add(len - WIDE)));
            store(to, head);
            store(to.add(len - WIDE), tail);
        } else if len >= 8 {
            move_ends::<u64>(to, from, len);
        } else if len >= 4 {
            move_ends::<u32>(to, from, len);
        } else if len >= 2 {
            move_ends::<u16>(to, from, len);
        } else if len == 1 {
            *to = *from;
        }
    }
}

/// # Safety
/// As of [`move_octets`]; `len` is the size of the number, or up to twice that.
#[inline(always)]
unsafe fn move_ends<Number>(to: *mut u8, from: *const u8, len: usize) {
    let end = len - size_of::<Number>();
    // SAFETY: both numbers lie within `len` octets.
    unsafe {
        let head: Number = from.cast::<Number>().read_unaligned();
        let tail: Number = from.add(end).cast::<Number>().read_unaligned();
        to.cast::<Number>().write_unaligned(head);
        to.add(end).cast::<Number>().write_unaligned(tail);
    }
}

/// # Safety
/// As of [`move_octets`], with more than [`TURN`] octets, and `to` is before `from` or behind its end.
#[inline(always)]
unsafe fn move_forwards(mut to: *mut u8, mut from: *const u8, len: usize) {
    // SAFETY: a turn begins before the last `TURN` octets. These were loaded before a store could change them.
    unsafe {
        let tail = four(from.add(len - TURN));
        let end = to.add(len - TURN);
        while to < end {
            store_four(to, four(from));
            to = to.add(TURN);
            from = from.add(TURN);
            barrier();
        }
        store_four(end, tail);
    }
}

/// # Safety
/// As of [`move_octets`], with more than [`TURN`] octets, and `to` is behind `from`.
#[inline(always)]
unsafe fn move_backwards(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: a turn ends behind the first `TURN` octets. These were loaded before a store could change them.
    unsafe {
        let head = four(from);
        let mut left = len;
        while left > TURN {
            left -= TURN;
            store_four(to.add(left), four(from.add(left)));
            barrier();
        }
        store_four(to, head);
    }
}

/// Compares octets; the first that differ decide.
///
/// # Safety
/// Both may be read for `len` octets.
#[inline(always)]
unsafe fn compare(mut left: *const u8, mut right: *const u8, mut len: usize) -> Ordering {
    // SAFETY: `len` counts the octets that are left of both.
    unsafe {
        while len >= WIDE {
            let equal = _mm_movemask_epi8(_mm_cmpeq_epi8(load(left), load(right)));
            if equal != 0xffff {
                let at = (!equal).trailing_zeros() as usize;
                return (*left.add(at)).cmp(&*right.add(at));
            }
            left = left.add(WIDE);
            right = right.add(WIDE);
            len -= WIDE;
        }
        if len >= 8 {
            let number = |at: *const u8| u64::from_be(at.cast::<u64>().read_unaligned());
            let end = len - 8;
            let head = number(left).cmp(&number(right));
            return head.then_with(|| number(left.add(end)).cmp(&number(right.add(end))));
        }
        if len >= 4 {
            let number = |at: *const u8| u32::from_be(at.cast::<u32>().read_unaligned());
            let end = len - 4;
            let head = number(left).cmp(&number(right));
            return head.then_with(|| number(left.add(end)).cmp(&number(right.add(end))));
        }
        if len == 0 {
            return Ordering::Equal;
        }
        // The first, the middle and the last of three octets; of fewer, one of them twice.
        let three = |at: *const u8| [*at, *at.add(len / 2), *at.add(len - 1)].map(u32::from);
        let number = |at| three(at).iter().fold(0, |sum, octet| sum << 8 | octet);
        number(left).cmp(&number(right))
    }
}

#[inline(always)]
unsafe fn load(from: *const u8) -> __m128i {
    // SAFETY: the caller has so many octets.
    unsafe { _mm_loadu_si128(from.cast()) }
}

#[inline(always)]
unsafe fn store(to: *mut u8, octets: __m128i) {
    // SAFETY: the caller has so many octets.
    unsafe { _mm_storeu_si128(to.cast(), octets) }
}

#[inline(always)]
unsafe fn four(from: *const u8) -> [__m128i; 4] {
    // SAFETY: the caller has so many octets.
    unsafe {
        [
            load(from),
            load(from.add(WIDE)),
            load(from.add(2 * WIDE)),
            load(from.add(3 * WIDE)),
        ]
    }
}

#[inline(always)]
unsafe fn store_four(to: *mut u8, octets: [__m128i; 4]) {
    let [first, second, third, fourth] = octets;
    // SAFETY: the caller has so many octets.
    unsafe {
        store(to, first);
        store(to.add(WIDE), second);
        store(to.add(2 * WIDE), third);
        store(to.add(3 * WIDE), fourth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Octets that differ from their neighbours.
    fn octets(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 31 % 251) as u8).collect()
    }

    fn moves_as_a_slice_does(from: usize, to: usize, len: usize) {
        let mut moved = octets(from.max(to) + len + 1);
        let mut expected = moved.clone();
        expected.copy_within(from..from + len, to);
        let place = moved.as_mut_ptr();
        // SAFETY: both ranges lie within the vector.
        unsafe { move_octets(place.add(to), place.add(from), len) };
        assert!(moved == expected, "{len} octets from {from} to {to}");
    }

    fn compares_as_a_slice_does(left: &[u8], right: &[u8]) {
        // SAFETY: it is the length of both.
        let order = unsafe { compare(left.as_ptr(), right.as_ptr(), left.len()) };
        assert_eq!(order, left.cmp(right), "{left:?} {right:?}");
    }

    #[test]
    fn octets_of_every_short_length_move() {
        for len in 0..400 {
            for shift in [0, 1, 15, 16, 17, 63, 64, 65, 127, 129, 500] {
                moves_as_a_slice_does(3, 3 + shift, len);
                moves_as_a_slice_does(3 + shift, 3, len);
            }
        }
    }

    #[test]
    fn a_difference_at_every_place_decides() {
        for len in 0..100 {
            let left = octets(len);
            compares_as_a_slice_does(&left, &left);
            for at in 0..len {
                let mut right = left.clone();
                right[at] = 255 - right[at];
                // What comes later does not matter.
                right[at + 1..].fill(7);
                compares_as_a_slice_does(&left, &right);
                compares_as_a_slice_does(&right, &left);
            }
        }
    }

    proptest! {
        #[test]
        fn long_moves_that_overlap(from in 0..3000_usize, to in 0..3000_usize, len in 0..3000_usize) {
            moves_as_a_slice_does(from, to, len);
        }

        #[test]
        fn any_octets_are_compared(pair in (0..80_usize).prop_flat_map(|len| {
            let side = || proptest::collection::vec(0..3_u8, len);
            (side(), side())
        })) {
            compares_as_a_slice_does(&pair.0, &pair.1);
        }
    }
}
