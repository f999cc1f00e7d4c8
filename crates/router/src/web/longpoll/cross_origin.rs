//! What a browser is told about pages of other origins, as Crossbar.io tells it: any may ask, unless the listener is
//! for this machine's ([`crate::origins`]).
//!
//! Nobody is known by what a browser adds by itself: there are no cookies, and a certificate does not count for a page of
//! another origin. So a page of another origin can do no more than any other client.

use hyper::Request;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    CACHE_CONTROL, HeaderMap, HeaderValue, ORIGIN, VARY,
};

/// What a page says of itself in a request.
pub(super) struct CrossOrigin {
    origin: Option<HeaderValue>,
    /// Headers that it is going to send, in a question that comes before.
    headers: Option<HeaderValue>,
}

/// How long a browser need not ask before it asks.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

impl CrossOrigin {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        // Copied: a part of the buffer that a request came in would keep all of it while its answer is waited for.
        let header = |name| {
            let value = request.headers().get(name)?;
            HeaderValue::from_bytes(value.as_bytes()).ok()
        };
        Self {
            origin: header(ORIGIN).filter(|origin| origin != "null"),
            headers: header(ACCESS_CONTROL_REQUEST_HEADERS),
        }
    }

    /// Has a page read the answer, and nobody keep it.
    pub(super) fn permit(self, answer: &mut HeaderMap) {
        let any = HeaderValue::from_static("*");
        let origin = self.origin.unwrap_or(any);
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        answer.insert(
            ACCESS_CONTROL_ALLOW_CREDENTIALS,
            HeaderValue::from_static("true"),
        );
        let no_store = "no-store, no-cache, must-revalidate, max-age=0";
        answer.insert(CACHE_CONTROL, HeaderValue::from_static(no_store));
        answer.insert(VARY, HeaderValue::from_static("origin"));
        if let Some(headers) = self.headers {
            answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, headers);
            let post = HeaderValue::from_static("POST");
            answer.insert(ACCESS_CONTROL_ALLOW_METHODS, post);
            answer.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        }
    }
}
