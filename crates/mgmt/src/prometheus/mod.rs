//! Metrics under RabbitMQ's names, for Prometheus: `/metrics`, `/metrics/per-object`, `/metrics/detailed`.
//!
//! ```text
//! path, method, accept ─▶ Registry ─▶ Scrape: reads the objects, some at a time ─▶ parts of the text
//! ```
//!
//! A vhost is locked for one part of its queues at a time. The figures of all objects are read before they are written,
//! because the format has all samples of a family together.

mod node;
mod objects;
mod registry;
mod scrape;
mod table;
mod text;

use std::sync::Arc;

use crate::answer::Answer;
use crate::call::Api;
use crate::request::{Head, Query, segments};
use registry::Registry;

pub use scrape::Scrape;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// An answer to a request for metrics.
pub enum Scraped {
    /// Without a body.
    Refused(Answer),
    /// With the figures as text, which are read while it is sent.
    Text(Box<Scrape>),
}

impl Api {
    /// Answers a request for metrics. It needs no login, as in RabbitMQ.
    pub fn scrape(self: &Arc<Self>, head: &Head) -> Scraped {
        let path = segments(&head.path).unwrap_or_default();
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let registry = match names.as_slice() {
            ["metrics"] | ["metrics", "default"] => Registry::Aggregated,
            ["metrics", "per-object"] => Registry::PerObject,
            ["metrics", "detailed"] => Registry::Detailed {
                families: Query::all(&head.query, "family"),
                vhosts: Query::all(&head.query, "vhost"),
            },
            _ => return Scraped::Refused(Answer::empty(404)),
        };
        match head.method.as_str() {
            "GET" => {}
            "HEAD" => {
                let answer = Answer::empty(204).header("content-type", CONTENT_TYPE);
                return Scraped::Refused(answer);
            }
            _ => return Scraped::Refused(Answer::method_not_allowed("GET, HEAD")),
        }
        match &head.headers.accept {
            Some(accept) if !accepts_text(accept) => Scraped::Refused(Answer::empty(406)),
            _ => Scraped::Text(Box::new(Scrape::new(self, registry))),
        }
    }
}

impl Scrape {
    /// The answer whose body this is.
    pub fn answer(parts: impl Iterator<Item = Vec<u8>> + Send + 'static) -> Answer {
        Answer::of_parts(parts).with_content_type(CONTENT_TYPE)
    }
}

fn accepts_text(accept: &str) -> bool {
    accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let is_refused = parts.any(|parameter| matches!(parameter, "q=0" | "q=0.0"));
        let is_text = ["*/*", "text/*", "text/plain"]
            .iter()
            .any(|text| kind.eq_ignore_ascii_case(text));
        is_text && !is_refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_accept_text() {
        let of_prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,\
                             text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        for (accept, expected) in [
            (of_prometheus, true),
            ("*/*", true),
            ("text/plain", true),
            ("application/openmetrics-text", false),
            ("text/plain;q=0", false),
        ] {
            assert_eq!(accepts_text(accept), expected, "{accept}");
        }
    }
}
