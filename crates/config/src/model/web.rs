//! Web services: what HTTP requests find on a listener, by path.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use super::{Json, RawSocket, WebSocket};

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

/// How HTTP is spoken.
#[derive(Clone, Debug, PartialEq)]
pub struct WebOptions {
    /// Each request is a line of the log.
    pub access_log: bool,
    /// `Strict-Transport-Security` with that age, over TLS alone (RFC 6797).
    pub hsts_max_age: Option<Duration>,
    /// How long a connection may ask for nothing.
    pub client_timeout: Option<Duration>,
    /// What waits behind a client's full socket, here and once more in the system.
    pub unsent_bytes_max: usize,
}

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

/// Files below a directory, or of a Python package.
#[derive(Clone, Debug, PartialEq)]
pub struct WebFiles {
    pub source: FileSource,
    pub lists_directories: bool,
    /// Media types by the end of a file's name, with its dot.
    pub mime_types: Vec<(String, String)>,
    /// How long a client may keep what it was sent; it is told nothing of that where not said.
    pub cache_timeout: Option<Duration>,
    /// Served in place of what is not there, relative to the directory.
    pub default_file: Option<String>,
    /// Texts are compressed for those who take that.
    pub compresses: bool,
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

/// Members of a zip file.
#[derive(Clone, Debug, PartialEq)]
pub struct WebArchive {
    /// Relative to the node's directory.
    pub archive: String,
    /// Where it is fetched from when it is not there.
    pub origin: Option<String>,
    /// Whether it is fetched at all.
    pub download: bool,
    /// Whether members are kept in memory.
    pub cache: bool,
    pub default_object: Option<String>,
    pub object_prefix: Option<String>,
    pub mime_types: Vec<(String, String)>,
    /// SHA-256 of the whole file, one of which must be its own.
    pub hashes: Vec<String>,
    /// Of a file that is fetched.
    pub archive_bytes_max: usize,
    /// A longer member is not served.
    pub member_bytes_max: u64,
    /// Of all members that are kept in memory.
    pub cache_bytes_max: usize,
    /// Served in place of what is not there.
    pub default_file: Option<String>,
}

/// A value that is always the same.
#[derive(Clone, Debug, PartialEq)]
pub struct WebJson {
    pub value: Json,
    pub is_pretty: bool,
    pub allow_cross_origin: bool,
    pub discourage_caching: bool,
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
#[derive(Clone, Debug, PartialEq)]
pub struct HttpBridge {
    pub realm: String,
    pub role: String,
    pub options: HttpBridgeOptions,
}

/// Which requests a bridge takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpBridgeOptions {
    /// Requests must be signed with this key and its secret.
    pub signature: Option<RequestKey>,
    pub require_tls: bool,
    /// Networks that requests may come from: an address, and how many bits of it count; any where empty.
    pub require_ip: Vec<(IpAddr, u8)>,
    pub body_bytes_max: usize,
    /// How far a signed request's time may be from ours; any where not said.
    pub timestamp_delta_max: Option<Duration>,
    /// A signed request is taken once.
    pub refuse_replay: bool,
    /// So many are remembered; beyond, none is taken.
    pub replays_max: usize,
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

/// HTTP requests as events of one topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    pub bridge: HttpBridge,
    pub topic: String,
    pub success_response: String,
    pub error_response: String,
    /// What GitHub signs with.
    pub github_secret: Option<String>,
}

/// Requests passed on to another HTTP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReverseProxy {
    pub host: String,
    pub port: u16,
    /// What takes the place of the service's own path.
    pub path: String,
    pub forwarded_port: u16,
    pub forwarded_proto: String,
    /// Answers lead to the service's own path where they would lead to the server's.
    pub rewrites_answers: bool,
    /// At a time; as many more wait.
    pub requests_max: usize,
    /// How long the server may say nothing.
    pub timeout: Duration,
}

/// Programs that are started for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgi {
    /// Relative to the node's directory.
    pub directory: String,
    pub processor: String,
    /// At a time; as many more requests wait.
    pub processes_max: usize,
    /// How long one may say nothing.
    pub timeout: Duration,
    /// How long one may run.
    pub run_timeout: Duration,
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
