//! A reader that wants few messages or none leaves others their turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_amqp::{TableBuf, Value};
use crosstie_disk::simulated::SimulatedDisk;
use crosstie_queues::{StreamFilter, StreamFrom, StreamLimits};

use super::{append, reopen};
use crate::read::Pages;
use crate::writer::Writer;

#[test]
fn what_is_read_at_a_time_is_bounded_whether_it_is_wanted_or_not() {
    const MESSAGES: u64 = 600;
    const BODY_BYTES: usize = 10_000;
    let disk = SimulatedDisk::new(1, u64::MAX);
    let limits = StreamLimits {
        segment_bytes_max: Some(2 << 20),
        ..StreamLimits::default()
    };
    let (log, _) = reopen(&disk, limits);
    let mut writer = Writer::new(Arc::new(disk.clone()));
    for offset in 0..MESSAGES {
        let message = append(offset, 1_000, &[b'.'; BODY_BYTES], limits);
        let staged = writer.stage(&log, &[message]).expect("is written");
        writer.sync(&staged).expect("is synced");
        writer.publish(staged);
    }
    let mut pages = Pages::new(Arc::new(disk));
    // By the wanted value: how many messages there are, and how many bytes of them a page may have.
    let cases = BTreeMap::from([("a", (200, 100_000)), ("c", (0, 1))]);
    for (value, (expected, bytes_max)) in cases {
        let arguments =
            TableBuf::new().with("x-stream-filter", Value::LongString(value.as_bytes()));
        let filter = StreamFilter::parse(arguments.as_table());
        let filter = filter.expect("is valid").expect("is one");
        let (mut from, mut damages) = (StreamFrom::Offset(0), Vec::new());
        let (mut before, mut found) = (0, 0);
        while before < MESSAGES {
            let page = pages.read_accepted(&log, (from, MESSAGES), &filter, 100_000, &mut damages);
            let page = page.expect("is read");
            let passed = page.after.offset - before;
            assert!(
                (1..150).contains(&passed),
                "{value}: {passed} from {before}"
            );
            assert!(page.bytes().len() <= bytes_max + 100_000, "{value}");
            found += page.len();
            before = page.after.offset;
            from = StreamFrom::Place(page.after);
        }
        assert_eq!((found, damages.len()), (expected, 0), "{value}");
    }
}
