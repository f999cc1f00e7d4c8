//! What seldom changes about a connection, in one byte: a connection has little room.

use std::sync::atomic::{AtomicU8, Ordering};

/// A property that most connections never have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Flag {
    /// The system dropped the connection while bytes waited for the peer.
    GivenUp = 1,
    /// The peer has sent something, under TLS if that is used.
    Spoken = 2,
    /// The bytes pass through a filter. The sweep asks without the lock of the output.
    Filtered = 4,
    Tapped = 8,
}

/// The properties of a connection.
#[derive(Debug, Default)]
pub(crate) struct Flags(AtomicU8);

impl Flags {
    pub(crate) fn set(&self, flag: Flag) {
        self.0.fetch_or(flag as u8, Ordering::Relaxed);
    }

    pub(crate) fn clear(&self, flag: Flag) {
        self.0.fetch_and(!(flag as u8), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.0.load(Ordering::Relaxed) & flag as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_apart() {
        let flags = Flags::default();
        let all = [Flag::GivenUp, Flag::Spoken, Flag::Filtered, Flag::Tapped];
        for flag in all {
            assert!(!flags.has(flag), "{flag:?}");
            flags.set(flag);
        }
        flags.clear(Flag::Filtered);
        let left = all.map(|flag| flags.has(flag));
        assert_eq!(left, [true, true, false, true]);
    }
}
