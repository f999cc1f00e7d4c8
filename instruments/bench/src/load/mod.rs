//! The common parts of all drivers, for any protocol: a socket, the loop that keeps operations in flight, their times,
//! and the order of messages.

pub(crate) mod body;
pub(crate) mod drive;
pub(crate) mod histogram;
pub(crate) mod paced;
pub(crate) mod sequence;
pub(crate) mod socket;
pub(crate) mod source;
pub(crate) mod windows;

pub(crate) use body::{Body, HEAD_BYTES};
pub(crate) use drive::{
    Answer, Driven, Exchange, Faults, Load, Traffic, Window, drive, monotonic_ns, within_time,
};
pub(crate) use histogram::{Latencies, Recorded, Rtt, Spread};
pub(crate) use paced::Paced;
pub(crate) use sequence::Sequence;
pub(crate) use socket::{Listener, Stream, free_address};
pub(crate) use source::{bind_source, reset_when_closed};
pub(crate) use windows::{Found, in_windows, of_all};
