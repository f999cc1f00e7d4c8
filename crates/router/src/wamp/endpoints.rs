//! The endpoints of a listener for WAMP clients: RawSocket, and WebSockets at their paths.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crosstie_config::{RawSocket, WebSocket};

use crate::wamp::cookies::Jar;
use crate::wamp::live_methods::LiveMethods;
use crate::wamp::supervision::Supervision;

/// RawSocket on a listener.
pub(crate) struct RawSocketEndpoint {
    pub(crate) options: RawSocket,
    pub(crate) auth: Arc<LiveMethods>,
    pub(crate) supervision: Arc<Supervision>,
}

/// WebSocket on a listener, at one path or, without one, at every path.
pub(crate) struct WebSocketEndpoint {
    pub(crate) path: Option<String>,
    /// It is a web service.
    pub(crate) is_service: bool,
    pub(crate) options: WebSocket,
    pub(crate) auth: Arc<LiveMethods>,
    pub(crate) cookies: Option<Arc<Jar>>,
    pub(crate) supervision: Arc<Supervision>,
}

impl RawSocketEndpoint {
    pub(crate) fn new(options: &RawSocket, auth: Arc<LiveMethods>) -> Self {
        Self {
            auth,
            supervision: Arc::new(options.into()),
            options: options.clone(),
        }
    }
}

impl WebSocketEndpoint {
    /// Whether a request for that path is for it: among web services what is below its own is too.
    pub(crate) fn is_at(&self, path: &str) -> bool {
        self.path.as_deref().is_none_or(|at| {
            let below = path.strip_prefix(at);
            let is_below = |rest: &str| self.is_service && rest.starts_with('/');
            below.is_some_and(|rest| rest.is_empty() || is_below(rest))
        })
    }

    /// Whether such a request, which opens no WebSocket, is shown that one is here.
    pub(crate) fn shows_status(&self, method: &str) -> bool {
        self.options.options.shows_status && matches!(method, "GET" | "HEAD")
    }

    pub(crate) fn new(
        path: Option<&String>,
        options: &WebSocket,
        auth: Arc<LiveMethods>,
        directory: &Path,
    ) -> io::Result<Self> {
        let cookies = options.cookie.as_ref();
        let cookies = cookies.map(|cookie| Jar::open(cookie, directory));
        Ok(Self {
            path: path.cloned(),
            is_service: false,
            auth,
            cookies: cookies.transpose()?.map(Arc::new),
            supervision: Arc::new((&options.options).into()),
            options: options.clone(),
        })
    }
}
