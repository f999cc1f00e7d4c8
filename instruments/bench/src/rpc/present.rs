//! The lines of `bench rpc` around its tables.

use super::goals::document_over;
use super::options::RpcOptions;
use crate::figures::Series;
use crate::frame::{Section, Site};
use crate::report::document;
use crate::report::table::{known, number};
use crate::subject::Case;

fn plural(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

pub(super) fn header(options: &RpcOptions, site: &Site) -> Vec<String> {
    let what = match options.payload_bytes {
        0 => "one number".to_owned(),
        bytes => format!("one number and {bytes} bytes of text"),
    };
    let (pairs, calls) = (
        plural(options.pairs, "pair"),
        plural(options.outstanding, "call"),
    );
    let rate = options
        .rate
        .map_or_else(String::new, |rate| format!(", {rate} a second"));
    let mut lines = vec![
        options
            .common
            .load(&format!("{pairs} of {what}, {calls} in flight each{rate}")),
        format!(
            "Router: {}; a round trip is timed from its write to its read",
            options.routers.describe(options.spin),
        ),
    ];
    if site.network.description().is_some() {
        lines.push("Caller and callee are both clients of the network".to_owned());
    }
    lines
}

pub(super) fn below(options: &RpcOptions, site: &Site, section: &Section<Case>) -> Vec<String> {
    let mut lines: Vec<String> = section.series.iter().map(drivers).collect();
    lines.extend(section.said.iter().cloned());
    let over = document_over(options, section).filter(|_| site.network.description().is_none());
    lines.push(match (document::rtt_us(&section.case), over) {
        (Some(document_us), Some(ratio)) => format!(
            "  document: {} µs ({}), {} × this p50",
            number(document_us),
            document::HARDWARE,
            number(ratio)
        ),
        (Some(document_us), None) => format!(
            "  document: {} µs, one call after the other ({})",
            number(document_us),
            document::HARDWARE
        ),
        (None, _) => "  document: not given".to_owned(),
    });
    lines
}

/// The drivers' cost and faults: without them a figure of the router means little.
fn drivers(series: &Series) -> String {
    let median = |figure| known(series.median(figure), number);
    format!(
        "  {}: {} cores busy, drivers' CPU/call {} µs; messages per read: caller {}, callee {}; the \
         rest of the machine: {} cores busy",
        series.subject,
        median("router_busy_cores"),
        median("driver_cpu_us_per_call"),
        median("caller_messages_per_read"),
        median("callee_messages_per_read"),
        median("foreign_busy_cores"),
    )
}
