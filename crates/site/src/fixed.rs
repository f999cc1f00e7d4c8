//! Services with a constant answer: a redirection, a JSON value.

use std::io;

use bytes::Bytes;
use crosstie_config::WebJson;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, LOCATION,
};
use hyper::{Response, StatusCode};

use crate::{Answering, Asked, Service, answer, ready};

/// Redirects to another address (RFC 9110 section 15.4.3). The address contains nothing of the request, so that no
/// client can choose it.
pub(crate) struct Redirect {
    location: HeaderValue,
}

impl Redirect {
    pub(super) fn new(url: &str) -> io::Result<Self> {
        let location = HeaderValue::from_str(url).map_err(io::Error::other)?;
        Ok(Self { location })
    }
}

impl Service for Redirect {
    fn answer(&self, _: Asked) -> Answering<'_> {
        let mut response = Response::new(answer::full(Bytes::new()));
        *response.status_mut() = StatusCode::FOUND;
        let headers = response.headers_mut();
        headers.insert(LOCATION, self.location.clone());
        ready(response)
    }
}

/// A value of the configuration.
pub(crate) struct JsonValue {
    text: Bytes,
    allow_cross_origin: bool,
    discourage_caching: bool,
}

impl JsonValue {
    pub(super) fn new(model: &WebJson) -> Self {
        let text = match model.is_pretty {
            true => format!("{:#}\n", model.value),
            false => model.value.to_string(),
        };
        Self {
            text: text.into(),
            allow_cross_origin: model.allow_cross_origin,
            discourage_caching: model.discourage_caching,
        }
    }
}

impl Service for JsonValue {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        if let Some(refused) = asked.refused_method() {
            return ready(refused);
        }
        let mut response = Response::new(answer::full(self.text.clone()));
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/json; charset=utf-8");
        headers.insert(CONTENT_TYPE, kind);
        if self.allow_cross_origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        }
        if self.discourage_caching {
            let never = HeaderValue::from_static("no-store, no-cache, must-revalidate, max-age=0");
            headers.insert(CACHE_CONTROL, never);
        }
        ready(response)
    }
}
