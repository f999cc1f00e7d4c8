//! Which WebSocket, if any, a request opens: path, origin, subprotocol.

use crosstie_config::WebSocket;
use crosstie_wamp::Serializer;
use crosstie_wamp::framing::websocket::{self, Request};

/// An upgrade that was granted.
pub(crate) struct Upgraded<'a> {
    pub(crate) options: &'a WebSocket,
    pub(crate) serializer: Serializer,
    pub(crate) batched: bool,
    /// The octets that say so.
    pub(crate) response: Vec<u8>,
}

/// An upgrade that was not granted.
pub(crate) struct NotUpgraded {
    pub(crate) reason: String,
    pub(crate) response: Vec<u8>,
}

/// A WebSocket endpoint and the path it is found at; `None` is every path.
pub(crate) type Endpoint = (Option<String>, WebSocket);

/// Judges a request (RFC 6455 section 4.2, WAMP "WebSocket Transport").
pub(crate) fn upgrade<'a>(
    request: &Request<'_>,
    endpoints: &'a [Endpoint],
) -> Result<Upgraded<'a>, NotUpgraded> {
    let path = request.path();
    let Some((_, options)) = endpoints
        .iter()
        .find(|(at, _)| at.as_deref().is_none_or(|at| at == path))
    else {
        return Err(refuse(404, format!("no WebSocket at {path}")));
    };
    let asked = request
        .upgrade()
        .map_err(|e| refuse(e.status(), e.to_string()))?;
    if !origin_may_enter(asked.origin, options) {
        let origin = asked.origin.unwrap_or("null");
        return Err(refuse(403, format!("origin {origin} is not allowed")));
    }
    let chosen = asked.protocols.iter().find_map(|name| {
        let (serializer, batched) = websocket::from_subprotocol(name)?;
        options
            .serializers
            .contains(&serializer)
            .then_some((serializer, batched))
    });
    let (serializer, batched, named) = match chosen {
        Some((serializer, batched)) => (serializer, batched, true),
        None if asked.protocols.is_empty() && !options.options.require_websocket_subprotocol => {
            (Serializer::Json, false, false)
        }
        None => {
            let known = options
                .serializers
                .iter()
                .map(|s| websocket::subprotocol(*s, false));
            let known = known.collect::<Vec<_>>().join(", ");
            let asked = asked.protocols.join(", ");
            let reason = format!("expected one of the subprotocols {known}; got: {asked}");
            return Err(refuse(400, reason));
        }
    };
    let name = websocket::subprotocol(serializer, batched);
    let server = [("Server", concat!("Crosstie/", env!("CARGO_PKG_VERSION")))];
    let headers = if options.options.show_server_version {
        &server[..]
    } else {
        &[]
    };
    let response = websocket::accept_response(asked.key, named.then_some(name), None, headers);
    Ok(Upgraded {
        options,
        serializer,
        batched,
        response,
    })
}

fn refuse(status: u16, reason: String) -> NotUpgraded {
    let response = websocket::reject_response(status, &reason, &[]);
    NotUpgraded { reason, response }
}

/// Browsers name the page's origin; other clients name none, and are not what this guards
/// against.
fn origin_may_enter(origin: Option<&str>, options: &WebSocket) -> bool {
    let options = &options.options;
    match origin {
        None => true,
        Some("null") => options.allow_null_origin,
        Some(origin) => {
            options.allowed_origins.is_empty()
                || options
                    .allowed_origins
                    .iter()
                    .any(|pattern| matches_star(pattern, origin))
        }
    }
}

/// Whether `text` matches `pattern`, in which `*` stands for any run of characters.
fn matches_star(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::matches_star;

    #[test]
    fn stars_match_any_run() {
        for (pattern, text, expected) in [
            ("*", "http://a", true),
            ("http://a", "http://a", true),
            ("http://a", "http://ab", false),
            ("http://*.example.org", "http://x.example.org", true),
            ("http://*.example.org", "http://example.org", false),
            ("*://*:80", "http://a:80", true),
            ("*://*:80", "http://a:8080", false),
            ("", "", true),
        ] {
            assert_eq!(matches_star(pattern, text), expected, "{pattern} {text}");
        }
    }
}
