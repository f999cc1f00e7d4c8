//! What a testee counts, and the block in which it says so.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crosstie_transport::Meter;

/// Counters of one testee, shared by its connections.
#[derive(Debug, Default)]
pub struct Statistics {
    handshakes: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
    connected: AtomicU64,
    pub(crate) wire: Arc<Meter>,
}

impl Statistics {
    /// A connection was opened: after its opening handshake, if it has one.
    pub(crate) fn count_in(&self) {
        self.handshakes.fetch_add(1, Ordering::Relaxed);
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_out(&self) {
        self.connected.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn add_echoed(&self, messages: u64, bytes: u64) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Connections that are open now.
    pub fn connected(&self) -> u64 {
        self.connected.load(Ordering::Relaxed)
    }

    /// Everything that was counted so far.
    pub fn totals(&self) -> Totals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            handshakes: read(&self.handshakes),
            messages: read(&self.messages),
            bytes: read(&self.bytes),
            wire_in: self.wire.received_bytes(),
            wire_out: self.wire.sent_bytes(),
        }
    }
}

/// Counts up to some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub handshakes: u64,
    pub messages: u64,
    /// Bytes of the messages themselves.
    pub bytes: u64,
    /// Bytes read from the sockets.
    pub wire_in: u64,
    /// Bytes written to the sockets.
    pub wire_out: u64,
}

impl Totals {
    /// The lines of a block, in their order, with their units.
    fn lines(&self) -> [(&'static str, u64, char); 5] {
        [
            ("Handshakes", self.handshakes, '#'),
            ("Echo'ed msgs", self.messages, '#'),
            ("Echo'ed octets", self.bytes, 'B'),
            ("Wire octets in", self.wire_in, 'B'),
            ("Wire octets out", self.wire_out, 'B'),
        ]
    }
}

/// The periods that a worker tells about, one block each, in the form of the source document.
#[derive(Debug, Default)]
pub struct Periods {
    number: u64,
    before: Totals,
}

const RULE: &str =
    "--------------------------------------------------------------------------------";

impl Periods {
    /// The block of a period that lasted so long and ends now.
    pub fn block(&mut self, process: u32, connected: u64, now: Totals, lasted: Duration) -> String {
        self.number += 1;
        let before = std::mem::replace(&mut self.before, now);
        let lasted_s = lasted.as_secs_f64();
        let mut block = format!(
            "{RULE}\n\
             Worker Statistics (PID {process})\n\
             \n\
             Period No.        : {}\n\
             Period duration   : {lasted_s:.3} s\n\
             Connected clients : {connected}\n\
             \n\
             Period\n",
            self.number,
        );
        // Writing to a string cannot fail.
        for ((name, now, unit), (_, before, _)) in now.lines().into_iter().zip(before.lines()) {
            let count = now - before;
            let rate = count as f64 / lasted_s;
            let _ = writeln!(
                block,
                "  {name:<15} : {count:>20} {unit} {rate:>20.0} {unit}/s"
            );
        }
        block.push_str("\nTotal\n");
        for (name, total, unit) in now.lines() {
            let _ = writeln!(block, "  {name:<15} : {total:>20} {unit}");
        }
        block.push_str(RULE);
        block.push_str("\n\n");
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The block as the source document has it.
    const BLOCK: &str = "\
--------------------------------------------------------------------------------
Worker Statistics (PID 2271)

Period No.        : 2
Period duration   : 5.001 s
Connected clients : 63

Period
  Handshakes      :                16710 #                 3341 #/s
  Echo'ed msgs    :                    0 #                    0 #/s
  Echo'ed octets  :                    0 B                    0 B/s
  Wire octets in  :              3341409 B               668149 B/s
  Wire octets out :              2736933 B               547278 B/s

Total
  Handshakes      :               619492 #
  Echo'ed msgs    :                    0 #
  Echo'ed octets  :                    0 B
  Wire octets in  :            123266371 B
  Wire octets out :            100966927 B
--------------------------------------------------------------------------------

";

    #[test]
    fn a_block_has_the_documents_form() {
        let mut periods = Periods::default();
        let before = Totals {
            handshakes: 619_492 - 16_710,
            wire_in: 123_266_371 - 3_341_409,
            wire_out: 100_966_927 - 2_736_933,
            ..Totals::default()
        };
        let now = Totals {
            handshakes: 619_492,
            wire_in: 123_266_371,
            wire_out: 100_966_927,
            ..Totals::default()
        };
        periods.block(2271, 0, before, Duration::from_secs(5));
        let block = periods.block(2271, 63, now, Duration::from_nanos(5_000_993_000));
        assert_eq!(block, BLOCK);
    }
}
