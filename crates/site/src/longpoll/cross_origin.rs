//! CORS headers, as in Crossbar.io: any page may send requests, unless the listener serves this machine only
//! ([`crosstie_front::origins`]).
//!
//! Requests are not authenticated by anything that a browser adds by itself: cookies do not count, and neither does a
//! certificate for a page of another origin. Such a page can do no more than any other client.

use hyper::Request;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    CACHE_CONTROL, HeaderMap, HeaderValue, ORIGIN, VARY,
};

/// The CORS headers of a request.
pub(super) struct CrossOrigin {
    origin: Option<HeaderValue>,
    /// Headers announced in a preflight request.
    headers: Option<HeaderValue>,
}

/// Time for which a browser may skip further preflight requests.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

impl CrossOrigin {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        // Copied: a slice of the request's buffer would keep all of the buffer while the answer is pending.
        let header = |name| {
            let value = request.headers().get(name)?;
            HeaderValue::from_bytes(value.as_bytes()).ok()
        };
        Self {
            origin: header(ORIGIN).filter(|origin| origin != "null"),
            headers: header(ACCESS_CONTROL_REQUEST_HEADERS),
        }
    }

    /// Allows a page to read the answer, and forbids caching.
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
