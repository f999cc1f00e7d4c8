//! Web services: what HTTP requests find on a listener, by path.

use std::fmt;
use std::time::Duration;

use super::{
    Cgi, HttpBridgeOptions, Json, RawSocket, ReverseProxy, WebArchive, WebFiles, WebJson,
    WebOptions, WebSocket, Webhook,
};

/// The web services of a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Web {
    pub paths: WebPaths,
    pub options: WebOptions,
}

impl Web {
    /// Every WebSocket with its path, by which it is found; what has no path has every other.
    pub fn websockets(&self) -> Vec<(Option<String>, &WebSocket)> {
        let mut found = Vec::new();
        websockets(&self.paths, "", &mut found);
        found.sort_by_key(|(path, _)| path.is_none());
        found
    }
}

fn websockets<'w>(
    paths: &'w WebPaths,
    base: &str,
    found: &mut Vec<(Option<String>, &'w WebSocket)>,
) {
    for (path, service) in paths {
        let here = match path.as_str() {
            "/" => base.to_owned(),
            path => format!("{base}/{path}"),
        };
        match service {
            WebService::WebSocket(websocket) => {
                let path = (!here.is_empty()).then_some(here);
                found.push((path, websocket));
            }
            WebService::Path(below) => websockets(below, &here, found),
            _ => {}
        }
    }
}

/// Services by the next component of a request's path; `/` has what no other has.
pub type WebPaths = Vec<(String, WebService)>;

/// What is found at a path.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WebService {
    /// Nothing, said so.
    None,
    /// Services below it.
    Path(WebPaths),
    Files(WebFiles),
    Archive(WebArchive),
    Redirect {
        url: String,
    },
    Json(WebJson),
    /// A page about the node.
    NodeInfo,
    WebSocket(Box<WebSocket>),
    LongPoll(Box<LongPoll>),
    Caller(Box<HttpBridge>),
    Publisher(Box<HttpBridge>),
    Webhook(Box<Webhook>),
    ReverseProxy(ReverseProxy),
    WebSocketReverseProxy(Box<WebSocketReverseProxy>),
    /// A program that is started for each request (RFC 3875).
    Cgi(Cgi),
    /// Python in a process beside the router.
    Python(Box<WebPython>),
}

/// Where files are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileSource {
    /// Relative to the node's directory.
    Directory(String),
    /// A folder inside a Python package.
    Package { package: String, resource: String },
}

/// WAMP in HTTP requests (WAMP, "HTTP Longpoll Transport").
#[derive(Clone, Debug, PartialEq)]
pub struct LongPoll {
    /// How messages are judged: as those of a stream are.
    pub session: RawSocket,
    /// How long a session lives of which nothing is heard.
    pub session_timeout: Duration,
    /// How long a request for messages waits for the first.
    pub request_timeout: Duration,
    /// What waits for a session between its requests.
    pub queue_bytes_max: usize,
    pub queue_messages_max: usize,
}

/// HTTP requests as calls or publications.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpBridge {
    pub realm: String,
    pub role: String,
    pub options: HttpBridgeOptions,
}

/// What requests are signed with.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestKey {
    pub key: String,
    pub secret: String,
}

impl fmt::Debug for RequestKey {
    /// Without the secret, which no log is to have.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RequestKey");
        shown.field("key", &self.key).finish_non_exhaustive()
    }
}

/// WebSocket connections passed on to another server.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSocketReverseProxy {
    /// As it listens.
    pub frontend: WebSocket,
    /// `ws://` or `wss://`.
    pub url: String,
    /// Files of certificates that are trusted beside those that the system trusts; relative to the node's directory.
    pub ca_certificates: Vec<String>,
    /// Whom its certificate must name; the URL's host where not said.
    pub server_name: Option<String>,
    pub connections_max: usize,
    /// How long the server may take to answer the handshake.
    pub timeout: Duration,
}

/// A WSGI application or a Twisted resource.
#[derive(Clone, Debug, PartialEq)]
pub struct WebPython {
    pub program: WebProgram,
    pub threads_min: usize,
    pub threads_max: usize,
    /// At a time; as many more wait.
    pub requests_max: usize,
    /// How long the program may say nothing.
    pub timeout: Duration,
    /// Of a request's body.
    pub body_bytes_max: u64,
}

/// What is run in Python.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WebProgram {
    Wsgi { module: String, object: String },
    Resource { class: String, extra: Json },
}
