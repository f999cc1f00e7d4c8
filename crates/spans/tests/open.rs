//! Open spans at their bounds. The counts are the process's, so this is one test in a process of its own.

use crosstie_spans::{Context, OpenSpans, Span, counts};

/// Those of a realm, and of one caller.
const OPEN_MAX: u64 = 8_192;
const CALLER_MAX: u64 = 1_024;

fn open(spans: &OpenSpans, caller: usize, request: u64) {
    let context = Context {
        trace: 1,
        parent: 2,
    };
    let span = Span::begin(context, "call", "p").expect("room");
    spans.open(caller, request, span);
}

#[test]
fn a_caller_has_a_share() {
    let spans = OpenSpans::default();
    for caller in 0..(OPEN_MAX / CALLER_MAX) as usize {
        for request in 0..CALLER_MAX {
            open(&spans, caller, request);
        }
        // A request that is open keeps its span.
        open(&spans, caller, 0);
        assert_eq!(counts().dropped, caller as u64);
        open(&spans, caller, CALLER_MAX);
        assert_eq!(counts().dropped, caller as u64 + 1);
    }
    let dropped = counts().dropped;
    open(&spans, 99, 0);
    assert_eq!(counts().dropped, dropped + 1);
    spans.forget(0, 0);
    open(&spans, 99, 0);
    assert_eq!(counts().dropped, dropped + 1);
}
