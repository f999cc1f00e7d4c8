//! The files of streams: segments of records, an index for each, and a head that says what was confirmed.
//!
//! ```text
//! Directory::open ─▶ extents, for Vhost::restore_stream
//!      │
//!      ▼
//! Keeper::start ◀─ submit(vhost, changes, records, position) ─▶ on_written, on_unwritten   from the writer's thread
//!              ◀─ read(vhost, want)                          ─▶ on_read                    from the reader's thread
//! ```
//!
//! A stream has a directory once it has a message:
//!
//! | File | Contents |
//! |---|---|
//! | `OFFSET.segment` | records from that offset on, only appended to |
//! | `OFFSET.index` | places in it, one for each 64 KiB; made again by reading if it is lost |
//! | `head` | what was synced when it was confirmed last; written in place, not synced |
//!
//! The writer takes what waits for all streams, writes and syncs each file once, and reports. What cannot be written is
//! taken back, so that a refused message is not delivered later. What nobody can refuse, as a dead letter, is tried again
//! each second, and the vhost's records wait behind it. A torn end is cut at a start. A damaged record is
//! named, and what is before it and behind it is served.
//!
//! Never: a queue's messages, a client, the order of confirms.

mod bytes;
mod directory;
mod files;
mod group;
mod head;
mod index;
mod keeper;
mod log;
mod open;
mod orders;
mod read;
mod reading;
mod record;
#[cfg(test)]
mod simulated;
mod window;
mod writer;
mod writing;

pub use directory::{Directory, Found};
pub use group::Unwritten;
pub use keeper::Keeper;
pub use orders::{ReadPages, Written};
pub use record::{decode_page, encode_record};
