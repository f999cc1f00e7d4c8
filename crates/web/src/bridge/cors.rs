//! The headers of every answer: any page may read it (CORS), and it must not be cached.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, CACHE_CONTROL,
    CONTENT_TYPE, ORIGIN,
};
use http::{HeaderMap, HeaderValue};

const METHODS: HeaderValue = HeaderValue::from_static("POST,PUT,OPTIONS");

/// The headers of an answer to a request with these.
pub fn headers(request: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    let origin = request.get(ORIGIN).filter(|origin| *origin != "null");
    let origin = origin.cloned().unwrap_or(HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let yes = HeaderValue::from_static("true");
    headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
    let nobody = HeaderValue::from_static("no-store,no-cache,must-revalidate,max-age=0");
    headers.insert(CACHE_CONTROL, nobody);
    let json = HeaderValue::from_static("application/json; charset=UTF-8");
    headers.insert(CONTENT_TYPE, json);
    if let Some(asked) = request.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    headers
}

/// Adds the headers of an answer to OPTIONS.
pub fn add_methods(headers: &mut HeaderMap) {
    headers.insert(ALLOW, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins() {
        for (origin, expected) in [
            (None, "*"),
            (Some("null"), "*"),
            (Some("http://a.example"), "http://a.example"),
        ] {
            let mut request = HeaderMap::new();
            if let Some(origin) = origin {
                request.insert(ORIGIN, origin.parse().expect("a header"));
            }
            let headers = headers(&request);
            assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], expected);
            assert!(!headers.contains_key(ACCESS_CONTROL_ALLOW_HEADERS));
        }
        let mut request = HeaderMap::new();
        let asked = HeaderValue::from_static("x-a, content-type");
        request.insert(ACCESS_CONTROL_REQUEST_HEADERS, asked);
        let mut headers = headers(&request);
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_HEADERS], "x-a, content-type");
        add_methods(&mut headers);
        assert_eq!(headers[ALLOW], headers[ACCESS_CONTROL_ALLOW_METHODS]);
    }
}
