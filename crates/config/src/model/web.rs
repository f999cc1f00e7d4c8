//! Web services of a listener, by path.

use std::time::Duration;

use super::{
    Cgi, HttpBridge, Json, RawSocket, ReverseProxy, WebArchive, WebFiles, WebJson, WebOptions,
    WebSocket, Webhook,
};

/// The web services of a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Web {
    pub paths: WebPaths,
    pub options: WebOptions,
}

impl Web {
    /// Every WebSocket with its path; a WebSocket without a path has all other paths.
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

/// Services by the next component of a request's path; `/` has all other paths.
pub type WebPaths = Vec<(String, WebService)>;

/// The service at a path.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WebService {
    /// No service.
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
    /// The pages of the console; no configuration names them.
    Console,
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

/// WAMP in HTTP requests (WAMP, "HTTP Longpoll Transport").
#[derive(Clone, Debug, PartialEq)]
pub struct LongPoll {
    /// Options of the session, as for a stream.
    pub session: RawSocket,
    /// Lifetime of a session without requests.
    pub session_timeout: Duration,
    /// Maximum time that a request waits for a message.
    pub request_timeout: Duration,
    /// Maximum data queued for a session between requests.
    pub queue_bytes_max: usize,
    pub queue_messages_max: usize,
}

/// Forwarding of WebSocket connections to another server.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSocketReverseProxy {
    /// The listening side.
    pub frontend: WebSocket,
    /// `ws://` or `wss://`.
    pub url: String,
    /// Files of certificate authorities beside the system's, relative to the node's directory.
    pub ca_certificates: Vec<String>,
    /// The name in the server's certificate; by default the URL's host.
    pub server_name: Option<String>,
    pub connections_max: usize,
    /// Maximum time for the server to answer the handshake.
    pub timeout: Duration,
}

/// A WSGI application or a Twisted resource.
#[derive(Clone, Debug, PartialEq)]
pub struct WebPython {
    pub program: WebProgram,
    pub threads_min: usize,
    pub threads_max: usize,
    /// Maximum number of concurrent requests; as many more wait.
    pub requests_max: usize,
    /// Maximum time without output of the program.
    pub timeout: Duration,
    /// Maximum size of a request body.
    pub body_bytes_max: u64,
}

/// The Python program.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WebProgram {
    Wsgi { module: String, object: String },
    Resource { class: String, extra: Json },
}
