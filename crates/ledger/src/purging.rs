//! A purge of the log that waits for acknowledgements, or was requested.

/// A purge up to and including an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purging {
    pub to: u64,
    /// The number of entries that the log must acknowledge before it; `None` once it was requested.
    pub behind: Option<usize>,
}
