//! Recovery of a log: taken as it is, or rewritten from its readable part.

use crosstie_ledger::{Ledger, Recovery, Remains, Salvage, Sequence};
use crosstie_queues::{Position, Record, Time};

use super::log::Log;
use super::node::Node;

/// Records that are submitted at once.
const PART: usize = 7;

/// Has a node that has read the log begin with it; returns the entries to be written.
pub(super) fn begin(
    node: &mut Node,
    now: Time,
    log: &Log,
    (name, is_whole): (u64, bool),
) -> Result<(), String> {
    let mut salvage = Salvage::default();
    for (sequence, entry) in &log.entries {
        salvage.take(Sequence(*sequence), entry);
    }
    let (found, records) = salvage.finish();
    if found.unreadable > 0 || found.is_of_later {
        return Err(format!("not all of the log could be read: {found:?}"));
    }
    let recovery = Recovery {
        by: format!("n{}", node.incarnation).into(),
        from: "the log".into(),
        replaced: found.logs.clone(),
    };
    let last = Sequence(log.last);
    let is_read = node.ledger.check_end(last, None).is_ok();
    if is_read && sorted(&records) != sorted(&log.contents(&node.ledger)?) {
        return Err("what can be read of the log is not what is in it".to_owned());
    }
    if is_whole && is_read {
        node.ledger.recover_whole(now, recovery, name);
        return Ok(());
    }
    let remains = Remains {
        last,
        epoch: found.epoch,
    };
    node.ledger = Ledger::recover_anew(node.config, now, recovery, name, remains);
    node.recovers_from = Some(last);
    for part in records.chunks(PART) {
        node.ledger.submit(now, part.to_vec(), Position(1));
    }
    node.ledger.recover_end(now);
    Ok(())
}

fn sorted(records: &[Record]) -> Vec<String> {
    let mut lines: Vec<_> = records.iter().map(|record| format!("{record:?}")).collect();
    lines.sort();
    lines
}
