//! The spans of open calls: none stays behind. A test of its own process, as ended spans go to the process's queue.

use crosstie_spans::{Context, Failure, OpenSpans, Span, Taker};

const CONTEXT: Context = Context {
    trace: 1,
    parent: 2,
};

const FAILURE: Failure<'_> = Failure {
    kind: "left",
    why: "the caller has left",
};

fn span() -> Span {
    Span::begin(CONTEXT, "call", "p").expect("room")
}

#[test]
fn spans_of_calls_end_once() {
    let taker = Taker::new();
    let spans = OpenSpans::default();
    for request in 1..=5 {
        spans.open(7, request, span());
    }
    spans.open(7, 1, span());
    spans.open(8, 1, span());
    spans.end(7, 1, None);
    spans.end(7, 1, None);
    spans.forget(7, 2);
    assert_eq!(taker.take().len(), 1);
    // The caller goes on as another one.
    spans.rename(7, 9);
    spans.end(7, 3, None);
    spans.end(9, 3, Some(FAILURE));
    spans.end_all(9, FAILURE);
    assert_eq!(taker.take().len(), 3);
    assert!(spans.has_some());
    spans.end_all(8, FAILURE);
    assert_eq!(taker.take().len(), 1);
    assert!(!spans.has_some());
}
