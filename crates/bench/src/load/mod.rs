//! What every driver has, whatever it speaks: a socket, the loop that keeps operations in flight,
//! their times, and the order in which messages came.

pub(crate) mod drive;
pub(crate) mod histogram;
pub(crate) mod sequence;
pub(crate) mod socket;
