//! The block of a testee's worker with its counts.

use std::fmt::Write;
use std::time::Duration;

use crosstie_testee::Totals;

/// The lines of a block, in their order, with their units.
fn lines(totals: &Totals) -> [(&'static str, u64, char); 5] {
    [
        ("Handshakes", totals.handshakes, '#'),
        ("Echo'ed msgs", totals.messages, '#'),
        ("Echo'ed octets", totals.bytes, 'B'),
        ("Wire octets in", totals.wire_in, 'B'),
        ("Wire octets out", totals.wire_out, 'B'),
    ]
}

/// The periods of a worker's report, one block each, in the form of the source document.
#[derive(Debug, Default)]
pub(super) struct Periods {
    number: u64,
    before: Totals,
}

const RULE: &str =
    "--------------------------------------------------------------------------------";

impl Periods {
    /// The block of a period that lasted so long and ends now.
    pub(super) fn block(
        &mut self,
        process: u32,
        connected: u64,
        now: Totals,
        lasted: Duration,
    ) -> String {
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
        for ((name, now, unit), (_, before, _)) in lines(&now).into_iter().zip(lines(&before)) {
            let count = now - before;
            let rate = count as f64 / lasted_s;
            let _ = writeln!(
                block,
                "  {name:<15} : {count:>20} {unit} {rate:>20.0} {unit}/s"
            );
        }
        block.push_str("\nTotal\n");
        for (name, total, unit) in lines(&now) {
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

    /// The source document's block.
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
