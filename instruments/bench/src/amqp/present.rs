//! The lines of `bench amqp` below its tables: the requirements of a case, and the subjects that do not meet them.

use super::AmqpOptions;
use super::case::Case;
use super::worker::kept_max;
use crate::frame::Section;
use crate::report::table::{spread, thousands};

pub(super) fn below(options: &AmqpOptions, section: &Section<Case>) -> Vec<String> {
    let AmqpOptions {
        window, prefetch, ..
    } = options;
    let case = section.case;
    let mut lines = match case {
        Case::Paced => confirms(section),
        _ => Vec::new(),
    };
    lines.push(match case {
        Case::Transient => "  floor: a broker that knows who consumes what, and no more\n  no \
            confirms, automatic acknowledgements; arrived in the window counts, each message checked \
            by its number"
            .to_owned(),
        Case::Priorities => format!(
            "  a queue with {} priorities, messages of all of them in turn; no confirms, prefetch \
             {prefetch}, one acknowledgement for what a read brought\n  checked: before the round, \
             that what waits comes by its priority; in it, each message by its number, the order \
             within each priority\n  no floor: it knows no priorities",
            case.levels(),
        ),
        Case::Durable => format!(
            "  persistent messages in a durable queue, confirms waited for after each {window}; \
             prefetch {prefetch}, one acknowledgement for what a read brought\n  a message that is \
             acknowledged before its commit never reaches the disk: durable-kept writes every \
             one\n{NO_FLOOR}",
        ),
        Case::Transactions => format!(
            "  persistent messages in a durable queue, one transaction for each {window}, its commit \
             waited for; prefetch {prefetch}, one acknowledgement (of no transaction) for what a read \
             brought\n{NO_FLOOR}",
        ),
        Case::Paced => format!(
            "  persistent messages in a durable queue, {} a second, each published when it is due; \
             consumed and acknowledged at once\n{NO_FLOOR}",
            options.rate
        ),
        Case::DurableKept => format!(
            "  persistent messages in a durable queue without a consumer, confirms waited for after \
             each {window}; what is confirmed in the window counts\n  every message is written before \
             its confirm; at {} the queue is purged, which takes its time of the window; what purges \
             remove is what was published\n{NO_FLOOR}",
            thousands(kept_max(options.payload_bytes) as f64),
        ),
    });
    lines
}

const NO_FLOOR: &str = "  no floor: it keeps nothing on a disk";

fn confirms(section: &Section<Case>) -> Vec<String> {
    let lines = section.series.iter().map(|series| {
        let of = |name| spread(series.spread(name), thousands).replace('\n', " ");
        let (p50, p99) = (of("confirm_p50_us"), of("confirm_p99_us"));
        format!(
            "  confirm of {}: p50 {p50} µs, p99 {p99} µs",
            series.subject
        )
    });
    lines.collect()
}
