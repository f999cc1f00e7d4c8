//! The console: the pages of the node for a browser.
//!
//! The files are in the program. Each is compressed once, when it is first requested, and has a tag, so that a browser
//! that has it is answered without it. Scripts and styles come from these files alone, and the pages connect to this
//! host alone: a name that is markup stays text, and a page of another site cannot put the console in a frame.

use std::io::Write as _;
use std::sync::OnceLock;

use bytes::Bytes;
use crosstie_web::coding;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Response, StatusCode};
use ring::digest;

use crate::answer::{self, full};
use crate::{Answering, Asked, Body, Service, ready};

/// One file.
struct File {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
    made: OnceLock<Made>,
}

/// What is made of a file once.
struct Made {
    gzip: Bytes,
    tag: HeaderValue,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($path:literal $kind:ident $name:literal)*) => {
        [$(File {
            path: $path,
            kind: $kind,
            text: include_str!(concat!("../../../console/", $name)),
            made: OnceLock::new(),
        }),*]
    };
}

static FILES: [File; FILES_COUNT] = files! {
    "" HTML "index.html"
    "console.css" CSS "console.css"
    "main.js" SCRIPT "main.js"
    "dom.js" SCRIPT "dom.js"
    "wamp.js" SCRIPT "wamp.js"
    "node.js" SCRIPT "node.js"
    "parts.js" SCRIPT "parts.js"
    "list.js" SCRIPT "list.js"
    "overview.js" SCRIPT "overview.js"
    "sessions.js" SCRIPT "sessions.js"
    "queues.js" SCRIPT "queues.js"
    "exchanges.js" SCRIPT "exchanges.js"
    "connections.js" SCRIPT "connections.js"
    "users.js" SCRIPT "users.js"
    "attempt.js" SCRIPT "attempt.js"
    "trouble.js" SCRIPT "trouble.js"
    "machine.js" SCRIPT "machine.js"
    "log.js" SCRIPT "log.js"
    "live.js" SCRIPT "live.js"
};
const FILES_COUNT: usize = 19;

/// The service.
pub(super) struct Console;

impl Service for Console {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        if let Some(refused) = asked.refused_method() {
            return ready(refused);
        }
        let path = asked.rest.join("/");
        let Some(file) = FILES.iter().find(|file| file.path == path) else {
            return ready(match path.as_str() {
                // Browsers request it beside every page.
                "favicon.ico" => answer::empty(StatusCode::NO_CONTENT),
                _ => answer::not_found(),
            });
        };
        let headers = asked.request.headers();
        let mut response = body(file, headers, asked.request.method());
        let policy = policy(asked.server().0);
        protect(response.headers_mut(), policy);
        ready(response)
    }
}

fn body(file: &File, headers: &HeaderMap, method: &Method) -> Response<Body> {
    let made = file.made();
    let text = |name: HeaderName| {
        let value = headers.get(name);
        value.and_then(|value| value.to_str().ok())
    };
    let has_it =
        text(IF_NONE_MATCH).is_some_and(|tags| tags.split(',').any(|tag| tag.trim() == made.tag));
    let takes_gzip = text(ACCEPT_ENCODING).is_some_and(coding::takes_gzip);
    let mut response = match (has_it, method == Method::HEAD, takes_gzip) {
        (true, ..) => answer::empty(StatusCode::NOT_MODIFIED),
        (_, true, _) => answer::empty(StatusCode::OK),
        (_, _, true) => Response::new(full(made.gzip.clone())),
        (_, _, false) => Response::new(full(file.text)),
    };
    let headers = response.headers_mut();
    if takes_gzip && !has_it {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.kind));
    headers.insert(ETAG, made.tag.clone());
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    // The tag decides: after an upgrade of the node nobody has a mixture of two versions.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// Headers that keep other sites, and markup in names, away from the pages.
fn protect(headers: &mut HeaderMap, policy: HeaderValue) {
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        let name = HeaderName::from_static(name);
        headers.insert(name, HeaderValue::from_static("same-origin"));
    }
}

/// Everything comes from this listener. WebSockets lead to any port of the same host, where its clients connect. A policy
/// cannot name an IPv6 address.
fn policy(host: &str) -> HeaderValue {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let sockets = match !host.is_empty() && host.chars().all(is_plain) {
        true => format!(" ws://{host}:* wss://{host}:*"),
        false => String::new(),
    };
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'{sockets}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    // The characters of the host are plain.
    HeaderValue::try_from(policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
}

impl File {
    fn made(&self) -> &Made {
        self.made.get_or_init(|| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            // A vector takes everything.
            let coded = encoder.write_all(self.text.as_bytes());
            let coded = coded.and_then(|()| encoder.finish());
            let sum = digest::digest(&digest::SHA256, self.text.as_bytes());
            let digits = sum.as_ref().iter().take(12);
            let digits: String = digits.map(|byte| format!("{byte:02x}")).collect();
            let tag = HeaderValue::try_from(format!("\"{digits}\""));
            Made {
                gzip: coded.unwrap_or_default().into(),
                tag: tag.unwrap_or_else(|_| HeaderValue::from_static("\"\"")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of all files in gzip, in bytes.
    const BYTES_MAX: usize = 64 * 1024;

    #[test]
    fn all_files_together_are_small() {
        let bytes: usize = FILES.iter().map(|file| file.made().gzip.len()).sum();
        assert!(
            bytes <= BYTES_MAX,
            "{bytes} bytes in gzip; expected at most {BYTES_MAX}"
        );
    }

    /// A page of a strict policy has neither, and a name in such a place would be markup.
    #[test]
    fn no_file_makes_markup_of_text() {
        for file in &FILES {
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "DOMParser",
                "onclick=",
                "style=",
                "<script>",
                "javascript:",
            ] {
                assert!(!file.text.contains(word), "{}: {word}", file.path);
            }
        }
    }

    /// No request leaves the host.
    #[test]
    fn no_file_names_another_host() {
        for file in &FILES {
            let mut rest = file.text;
            while let Some(at) = rest.find("://") {
                let after = &rest[at + 3..];
                let is_own = [
                    "${",
                    "guest:guest@${",
                    "127.0.0.1",
                    "localhost",
                    "www.w3.org/2000/svg",
                ]
                .iter()
                .any(|own| after.starts_with(own));
                let line = after.lines().next().unwrap_or_default();
                assert!(is_own, "{}: ://{line}", file.path);
                rest = after;
            }
        }
    }

    /// Every file that a page or a script names exists, and every file is named.
    #[test]
    fn files_name_one_another() {
        let names = |file: &File| -> Vec<String> {
            let pieces = file.text.split(['"', '\'']);
            let local = pieces.filter_map(|piece| piece.strip_prefix("./"));
            local.map(str::to_owned).collect()
        };
        let named: Vec<_> = FILES.iter().flat_map(names).collect();
        for name in &named {
            assert!(FILES.iter().any(|file| file.path == name), "no file {name}");
        }
        for file in FILES.iter().filter(|file| !file.path.is_empty()) {
            assert!(
                named.iter().any(|name| name == file.path),
                "{} is unused",
                file.path
            );
        }
    }

    #[test]
    fn the_policy_names_the_host_alone() {
        for (host, expected) in [
            (
                "127.0.0.1",
                "connect-src 'self' ws://127.0.0.1:* wss://127.0.0.1:*;",
            ),
            ("[::1]", "connect-src 'self';"),
            ("a; script-src *", "connect-src 'self';"),
            ("", "connect-src 'self';"),
        ] {
            let policy = policy(host);
            let text = policy.to_str().expect("text");
            assert!(text.contains(expected), "{host}: {text}");
        }
    }
}
