//! Bytes and system calls of connections.

use crosstie_transport::Meter;

/// Bytes and system calls of AMQP connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Octets {
    pub received_bytes: u64,
    pub sent_bytes: u64,
    pub reads: u64,
    pub writes: u64,
}

impl Octets {
    pub(super) fn of(meter: &Meter) -> Self {
        Self {
            received_bytes: meter.received_bytes(),
            sent_bytes: meter.sent_bytes(),
            reads: meter.reads(),
            writes: meter.writes(),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.reads += other.reads;
        self.writes += other.writes;
    }
}
