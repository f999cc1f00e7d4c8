//! What a message says of its way: how many joints it has passed, and the trace that it belongs to (W3C Trace Context).
//!
//! ```text
//! AMQP headers   crosstie-hops    traceparent    tracestate
//! WAMP options   _crosstie_hops   _traceparent   _tracestate
//! ```

use crosstie_amqp::{Table, TableBuf, Value as Field};
use crosstie_joints::{HOPS_HEADER, HOPS_OPTION};
use crosstie_wamp::{Dict, Value};

/// A message's way so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Course {
    /// A negative number counts as one without end.
    hops: u32,
    /// The texts by their header's name.
    trace: Vec<(&'static str, Box<str>)>,
}

/// The headers of a trace; each option has an underscore before that name.
const TRACE: [&str; 2] = ["traceparent", "tracestate"];

/// A longer text does not pass. Tracers keep to 512 bytes.
const TRACE_BYTES_MAX: usize = 4096;

impl Course {
    /// The way of a WAMP message.
    pub(super) fn of_options(options: Option<&Dict>) -> Self {
        let find = |name: &str| {
            let mut options = options?.iter();
            options
                .find(|(known, _)| known == name)
                .map(|found| &found.1)
        };
        Self {
            hops: number(find(HOPS_OPTION).and_then(Value::as_u64)),
            trace: trace(|name| find(&option(name))?.as_str()),
        }
    }

    /// The way of an AMQP message.
    pub(super) fn of_headers(headers: Option<Table<'_>>) -> Self {
        let find = |name: &str| headers.and_then(|headers| headers.find(name));
        let hops = find(HOPS_HEADER).and_then(Field::as_i64);
        Self {
            hops: number(hops.map(|hops| u64::try_from(hops).unwrap_or(u64::MAX))),
            trace: trace(|name| find(name)?.as_str()),
        }
    }

    /// The way through one joint more; `None` above the maximum.
    pub(super) fn next(self, hops_max: u32) -> Option<Self> {
        let hops = self.hops.saturating_add(1);
        (hops <= hops_max).then_some(Self { hops, ..self })
    }

    /// The options that state it in WAMP.
    pub(super) fn options(&self) -> Option<Box<Dict>> {
        let hops = Value::from(u64::from(self.hops));
        let mut options = vec![(HOPS_OPTION.to_owned(), hops)];
        let trace = self.trace.iter();
        options.extend(trace.map(|(name, text)| (option(name), Value::from(&**text))));
        Some(Box::new(options))
    }

    /// The headers that state it in AMQP.
    pub(super) fn headers(&self) -> TableBuf {
        let hops = TableBuf::new().with(HOPS_HEADER, Field::I64(self.hops.into()));
        self.trace.iter().fold(hops, |headers, (name, text)| {
            headers.with(name, Field::LongString(text.as_bytes()))
        })
    }
}

fn number(hops: Option<u64>) -> u32 {
    hops.map_or(0, |hops| u32::try_from(hops).unwrap_or(u32::MAX))
}

fn option(name: &str) -> String {
    format!("_{name}")
}

fn trace<'t>(find: impl Fn(&str) -> Option<&'t str>) -> Vec<(&'static str, Box<str>)> {
    let found = TRACE.iter().map_while(|name| Some((*name, find(name)?)));
    let short = found.filter(|(_, text)| text.len() <= TRACE_BYTES_MAX);
    short.map(|(name, text)| (name, text.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_way_is_the_same_in_wamp_and_in_amqp() {
        let course = Course {
            hops: 3,
            trace: vec![("traceparent", PARENT.into()), ("tracestate", "a=1".into())],
        };
        let options = course.options();
        assert_eq!(Course::of_options(options.as_deref()), course);
        let headers = course.headers();
        assert_eq!(Course::of_headers(Some(headers.as_table())), course);
        assert_eq!(Course::of_options(None), Course::default());
        assert_eq!(Course::of_headers(None), Course::default());
    }

    #[test]
    fn hops_are_counted_up_to_the_maximum() {
        let course = Course::of_options(None).next(2).and_then(|one| one.next(2));
        assert_eq!(course.as_ref().map(|course| course.hops), Some(2));
        assert_eq!(course.and_then(|two| two.next(2)), None);
        let negative = TableBuf::new().with(HOPS_HEADER, Field::I64(-1));
        let negative = Course::of_headers(Some(negative.as_table()));
        assert_eq!(negative.next(u32::MAX - 1), None);
    }

    #[test]
    fn a_trace_that_is_no_text_or_too_long_does_not_pass() {
        let number = TableBuf::new().with("traceparent", Field::I64(1));
        assert_eq!(
            Course::of_headers(Some(number.as_table())),
            Course::default()
        );
        let long = "x".repeat(TRACE_BYTES_MAX + 1);
        let long = vec![("_traceparent".to_owned(), Value::from(long.as_str()))];
        assert_eq!(Course::of_options(Some(&long)), Course::default());
        // A state says nothing without a parent.
        let state = vec![("_tracestate".to_owned(), Value::from("a=1"))];
        assert_eq!(Course::of_options(Some(&state)), Course::default());
    }
}
