//! Simple answers: a text, a page, a value.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as HttpBody, Frame};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

/// The body of an answer: bytes in memory, or a stream.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A body of bytes in memory.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// A body whose parts are made while it is sent. An empty part only lets others have a turn of the thread.
pub fn parts(parts: Box<dyn Iterator<Item = Vec<u8>> + Send>) -> Body {
    Parts(parts).boxed_unsync()
}

struct Parts(Box<dyn Iterator<Item = Vec<u8>> + Send>);

impl HttpBody for Parts {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let part = self.0.next();
        if part.as_ref().is_some_and(Vec::is_empty) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(part.map(|part| Ok(Frame::data(part.into()))))
    }
}

/// An answer of that media type.
pub(crate) fn typed(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// An answer without a body.
pub fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(full(""));
    *response.status_mut() = status;
    response
}

/// A line of text.
pub fn text(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    let line = text.into() + "\n";
    typed(status, "text/plain; charset=utf-8", line)
}

/// A page with a title and a text, for browsers.
pub fn page(status: StatusCode, title: &str, text: &str) -> Response<Body> {
    let (title, text) = (escaped(title), escaped(text));
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>\
         <meta name=color-scheme content=\"light dark\"><h1>{title}</h1><p>{text}</html>\n"
    );
    typed(status, "text/html; charset=utf-8", page)
}

/// The answer for paths without a service.
pub(crate) fn not_found() -> Response<Body> {
    let text = "Nothing is served at this address.";
    page(StatusCode::NOT_FOUND, "404 Not Found", text)
}

/// Escapes text for HTML, including attributes.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
