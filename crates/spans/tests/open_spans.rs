//! The spans of open calls: none stays behind. A test of its own process, as ended spans go to the process's queue.

use crosstie_spans::{Context, OpenSpans, Span, Taker, counts};

const CONTEXT: Context = Context {
    trace: 1,
    parent: 2,
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
    spans.end(9, 3, Some("why"));
    spans.end_all(9, "left");
    assert_eq!(taker.take().len(), 3);
    assert!(spans.has_some());
    spans.end_all(8, "left");
    assert_eq!(taker.take().len(), 1);
    assert!(!spans.has_some());
    // There is a bound, beyond which they are dropped.
    (0..8_192 + 10).for_each(|request| spans.open(1, request, span()));
    assert_eq!(counts().dropped, 10);
    spans.end_all(1, "left");
    assert!(!spans.has_some());
}
