//! Answers: a status, headers, and a body in one piece or in parts.

use std::fmt;

use serde_json::{Value as Json, json};

/// An answer of the API.
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Body,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({})", self.status)
    }
}

/// The body of an answer.
pub enum Body {
    Whole(Vec<u8>),
    /// Made while it is sent: each part when the one before has left.
    Parts(Box<dyn Iterator<Item = Vec<u8>> + Send>),
}

/// What clients that read the header `WWW-Authenticate` send their password for.
const REALM: &str = "Basic realm=\"RabbitMQ Management\"";

impl Answer {
    /// JSON.
    pub(crate) fn json(value: &Json) -> Self {
        Self::of_bytes(value.to_string().into_bytes())
    }

    /// JSON that is written already.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Self {
        Self::with(200, Body::Whole(bytes)).header("content-type", "application/json")
    }

    pub(crate) fn of_parts(parts: impl Iterator<Item = Vec<u8>> + Send + 'static) -> Self {
        Self::with(200, Body::Parts(Box::new(parts))).header("content-type", "application/json")
    }

    /// No body.
    pub(crate) fn empty(status: u16) -> Self {
        Self::with(status, Body::Whole(Vec::new()))
    }

    /// The object was made, or was there already.
    pub(crate) fn put(is_new: bool) -> Self {
        Self::empty(if is_new { 201 } else { 204 })
    }

    pub(crate) fn no_content() -> Self {
        Self::empty(204)
    }

    /// Neither a path nor an object.
    pub(crate) fn not_found() -> Self {
        Self::error(404, "Object Not Found", "Not Found")
    }

    /// An object that a request names is absent.
    pub(crate) fn missing(reason: &str) -> Self {
        Self::error(404, "not_found", reason)
    }

    pub(crate) fn bad_request(reason: &str) -> Self {
        Self::error(400, "bad_request", reason)
    }

    /// A body beyond the bound.
    pub fn body_too_long() -> Self {
        Self::bad_request("Exceeded HTTP request body size limit")
    }

    /// The user may not do this.
    pub(crate) fn not_authorised(reason: &str) -> Self {
        Self::error(401, "not_authorised", reason)
    }

    /// No credentials.
    pub(crate) fn login_wanted() -> Self {
        Self::empty(401).header("www-authenticate", REALM)
    }

    /// Wrong credentials.
    pub(crate) fn login_failed() -> Self {
        Self::error(401, "not_authorized", "Login failed").header("www-authenticate", REALM)
    }

    pub(crate) fn method_not_allowed(allowed: &str) -> Self {
        Self::empty(405).header("allow", allowed)
    }

    pub(crate) fn error(status: u16, error: &str, reason: &str) -> Self {
        let body = json!({"error": error, "reason": reason});
        Self {
            status,
            ..Self::json(&body)
        }
    }

    pub(crate) fn with_content_type(mut self, kind: &str) -> Self {
        self.headers.retain(|(name, _)| *name != "content-type");
        self.header("content-type", kind)
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    fn with(status: u16, body: Body) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
        }
    }
}
