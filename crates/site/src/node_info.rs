//! A page about the node, like Crossbar.io's service of that name.

use std::fmt::Write as _;
use std::process;
use std::sync::Arc;

use hyper::header::{CACHE_CONTROL, HeaderValue};
use hyper::{Response, StatusCode};

use crate::answer::{escaped, typed};
use crate::overview::Overview;
use crate::{Answering, Asked, Body, Service, ready};

/// The service.
pub(super) struct NodeInfo {
    overview: Arc<Overview>,
}

impl NodeInfo {
    pub(super) fn new(overview: &Arc<Overview>) -> Self {
        Self {
            overview: Arc::clone(overview),
        }
    }
}

impl Service for NodeInfo {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        ready(
            asked
                .refused_method()
                .unwrap_or_else(|| page(&asked, &self.overview)),
        )
    }
}

fn page(asked: &Asked, overview: &Overview) -> Response<Body> {
    let realms = &asked.entrance.realms;
    let mut rows = String::new();
    let mut row = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = write!(rows, "<tr><th>{name}<td>{}", escaped(value));
    };
    row("node", &realms.node);
    row("router worker", &realms.worker);
    row("version", env!("CARGO_PKG_VERSION"));
    row("process", &process::id().to_string());
    row("up for", &format!("{} s", overview.uptime().as_secs()));
    if let Some(key) = &realms.key {
        row("public key", &key.public_hexadecimal());
    }
    for worker in overview.workers() {
        let text = format!("{}, {}", worker.kind, worker.status);
        row(&format!("worker {}", escaped(&worker.id)), &text);
    }
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Crosstie node</title>\
         <meta name=color-scheme content=\"light dark\"><h1>Crosstie</h1><table>{rows}</table></html>\n"
    );
    let mut response = typed(StatusCode::OK, "text/html; charset=utf-8", page);
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}
