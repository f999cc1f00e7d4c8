//! The trace context of a message (W3C Trace Context): headers in HTTP, options in WAMP.

use crosstie_wamp::{Dict, Value};
use http::{HeaderMap, HeaderValue};

const PARENT: (&str, &str) = ("traceparent", "_traceparent");
const STATE: (&str, &str) = ("tracestate", "_tracestate");

/// Adds the context, unless the request's own options have one. Headers that are not text are left out, and so is a state
/// without a parent.
pub fn add(headers: &HeaderMap, passthru: &mut Option<Box<Dict>>) {
    let is_own = |(name, _): &(String, Value)| [PARENT.1, STATE.1].contains(&name.as_str());
    if passthru
        .iter()
        .flat_map(|options| options.iter())
        .any(is_own)
    {
        return;
    }
    let Some(parent) = headers.get(PARENT.0).and_then(|value| value.to_str().ok()) else {
        return;
    };
    let options = passthru.get_or_insert_default();
    options.push((PARENT.1.to_owned(), Value::from(parent)));
    // Several headers are one list.
    let states = headers.get_all(STATE.0).iter();
    let states: Vec<&str> = states.filter_map(|value| value.to_str().ok()).collect();
    if !states.is_empty() {
        options.push((STATE.1.to_owned(), Value::from(states.join(",").as_str())));
    }
}

/// Sets the headers of a request that a call or an event causes, unless the call has said them itself. What no header can
/// hold is left out.
pub fn set(passthru: Option<&Dict>, headers: &mut HeaderMap) {
    if headers.contains_key(PARENT.0) {
        return;
    }
    for (header, option) in [PARENT, STATE] {
        let mut options = passthru.into_iter().flatten();
        let found = options.find(|(name, _)| name == option);
        let text = found.and_then(|(_, value)| value.as_str());
        match text.and_then(|text| HeaderValue::from_str(text).ok()) {
            Some(value) => headers.insert(header, value),
            None => return,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(headers: &[(&'static str, &'static [u8])], own: Option<Dict>) -> Option<Dict> {
        let value = |bytes| HeaderValue::from_bytes(bytes).expect("a header");
        let headers = headers.iter().map(|(name, bytes)| {
            let name = name.parse().expect("a name");
            (name, value(bytes))
        });
        let mut headers_of = HeaderMap::new();
        headers.for_each(|(name, value): (http::HeaderName, _)| {
            headers_of.append(name, value);
        });
        let mut options = own.map(Box::new);
        add(&headers_of, &mut options);
        options.map(|options| *options)
    }

    fn option(name: &str, text: &str) -> (String, Value) {
        (name.to_owned(), Value::from(text))
    }

    #[test]
    fn the_headers_become_options() {
        let headers: [(&str, &[u8]); 3] = [
            ("traceparent", b"00-a-b-01"),
            ("tracestate", b"a=1"),
            ("tracestate", b"b=2"),
        ];
        let expected = vec![
            option("_traceparent", "00-a-b-01"),
            option("_tracestate", "a=1,b=2"),
        ];
        assert_eq!(added(&headers, None), Some(expected));
    }

    #[test]
    fn options_of_the_body_count_before_headers() {
        let own = vec![option("_traceparent", "00-c-d-01")];
        let headers: [(&str, &[u8]); 2] = [("traceparent", b"00-a-b-01"), ("tracestate", b"a=1")];
        assert_eq!(added(&headers, Some(own.clone())), Some(own));
    }

    #[test]
    fn options_become_headers_unless_they_were_said() {
        let options = vec![
            option("_traceparent", "00-a-b-01"),
            option("_tracestate", "a=1"),
        ];
        let mut headers = HeaderMap::new();
        set(Some(&options), &mut headers);
        assert_eq!(headers["traceparent"], "00-a-b-01");
        assert_eq!(headers["tracestate"], "a=1");
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", HeaderValue::from_static("00-c-d-01"));
        set(Some(&options), &mut headers);
        assert_eq!(headers["traceparent"], "00-c-d-01");
        assert!(!headers.contains_key("tracestate"));
        let mut headers = HeaderMap::new();
        set(Some(&vec![option("_traceparent", "a\nb")]), &mut headers);
        set(None, &mut headers);
        assert!(headers.is_empty());
    }

    #[test]
    fn what_is_no_context_is_left_out() {
        assert_eq!(added(&[("tracestate", b"a=1")], None), None);
        assert_eq!(added(&[("traceparent", b"\xff")], None), None);
    }
}
