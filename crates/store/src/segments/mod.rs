//! Messages on disk: a log in segments of at most 16 MiB, each a file.
//!
//! ```text
//!  manifest     the segments that there are
//!  head         what was confirmed, in two slots
//!  0000000007.segment   head · record · record · …         records have a sequence over all segments
//!  0000000007.index     summary · offsets                  of a complete segment
//!  3.spare              zeros, for the next segment
//! ```
//!
//! A commit is one write and one sync at the end of the open segment. Its last record is marked, so that a commit
//! counts as a whole or not at all. An acknowledgement is a record that names the segment of the message. A segment is
//! removed once nothing lives in it; a half-empty one is copied to the end first ([`clean`]).
//!
//! Exchanges, queues and bindings are records too, in a queue of their own ([`record::ENTITIES`]): one sync covers
//! them and the messages of a commit, and their damage is found like any other.
//!
//! A start reads the summaries of complete segments and the records of the open one ([`recover`]). It knows what was
//! confirmed and is missing: sequences have no gap, the manifest names the segments, and `head` the last sequence.

pub(crate) mod bytes;
pub(crate) mod clean;
pub(crate) mod contents;
pub(crate) mod draft;
pub(crate) mod entity;
pub(crate) mod head;
pub(crate) mod index;
pub(crate) mod keeper;
pub(crate) mod log;
pub(crate) mod manifest;
pub(crate) mod message;
pub(crate) mod places;
pub(crate) mod record;
pub(crate) mod recover;
pub(crate) mod scan;
pub(crate) mod segment;
#[cfg(test)]
mod simulated;
pub(crate) mod state;
