//! Selects the WebSocket endpoint for a request: path, origin, subprotocol.

use crosstie_config::{Allowed, Deflate as Compression};
use crosstie_front::origins::{host_may_enter, may_use_cookies, origin_may_connect};
use crosstie_wamp::Serializer;
use crosstie_wamp::framing::websocket::{self, Deflate, DeflateConfig, Request};

use crate::cookies::Given;
use crate::endpoints::WebSocketEndpoint;
use crate::mqtt::SUBPROTOCOLS;

/// A granted upgrade.
pub(crate) struct Upgraded<'a> {
    pub(crate) endpoint: &'a WebSocketEndpoint,
    pub(crate) spoken: Spoken,
    /// The negotiated compression, if any.
    pub(crate) deflate: Option<Deflate>,
    /// The client's cookie, if the endpoint has cookies.
    pub(crate) cookie: Option<Given>,
    /// The bytes of the response.
    pub(crate) response: Vec<u8>,
}

/// The protocol of the messages.
#[derive(Clone, Copy)]
pub(crate) enum Spoken {
    Wamp {
        serializer: Serializer,
        batched: bool,
    },
    Mqtt,
}

/// A refused upgrade.
pub(crate) struct NotUpgraded {
    /// The HTTP status of the response.
    pub(crate) status: u16,
    pub(crate) reason: String,
}

/// Judges a request (RFC 6455 section 4.2, WAMP "WebSocket Transport").
pub(crate) fn upgrade<'a>(
    request: &Request<'_>,
    endpoints: &'a [WebSocketEndpoint],
    allowed_hosts: &Allowed,
) -> Result<Upgraded<'a>, NotUpgraded> {
    let path = request.path();
    let endpoint = endpoints.iter().find(|endpoint| endpoint.is_at(path));
    let Some(endpoint) = endpoint else {
        return Err(refuse(404, format!("no WebSocket at {path}")));
    };
    let options = &endpoint.options;
    let asked = request
        .upgrade()
        .map_err(|e| refuse(e.status(), e.to_string()))?;
    // The origin comes first: a list that contains it also admits its host.
    origin_may_connect(asked.origin, asked.host, &options.options)
        .map_err(|reason| refuse(403, reason))?;
    host_may_enter(Some(asked.host), allowed_hosts).map_err(|reason| refuse(403, reason))?;
    let mut protocols = asked.protocols.iter();
    let chosen = protocols.find_map(|name| known_protocol(endpoint, name));
    let (spoken, protocol) = match chosen {
        Some((spoken, name)) => (spoken, Some(name)),
        None if asked.protocols.is_empty() && !options.options.require_websocket_subprotocol => {
            let spoken = Spoken::Wamp {
                serializer: Serializer::Json,
                batched: false,
            };
            (spoken, None)
        }
        None => {
            let known = options
                .serializers
                .iter()
                .map(|s| websocket::subprotocol(*s, false));
            let mqtt = endpoint.mqtt.iter().flat_map(|_| SUBPROTOCOLS);
            let known = known.chain(mqtt).collect::<Vec<_>>().join(", ");
            let asked = asked.protocols.join(", ");
            let reason = format!("expected one of the subprotocols {known}; got: {asked}");
            return Err(refuse(400, reason));
        }
    };
    let server = [("Server", concat!("Crosstie/", env!("CARGO_PKG_VERSION")))];
    let (cookie, set_cookie) = cookie(request, endpoint, asked.origin, asked.host).unzip();
    let set_cookie = set_cookie.flatten();
    let mut headers: Vec<(&str, &str)> = Vec::new();
    if options.options.show_server_version {
        headers.extend(server);
    }
    headers.extend(set_cookie.as_deref().map(|text| ("Set-Cookie", text)));
    let agreed = match &options.options.compression {
        // MQTT clients offer none.
        _ if matches!(spoken, Spoken::Mqtt) => None,
        Some(compression) => deflate_config(compression)
            .accept(&asked.extensions)
            .map_err(|e| refuse(e.status(), e.to_string()))?,
        None => None,
    };
    let (deflate, extensions) = agreed.unzip();
    let response = websocket::accept_response(asked.key, protocol, extensions.as_deref(), &headers);
    Ok(Upgraded {
        endpoint,
        spoken,
        deflate,
        cookie,
        response,
    })
}

/// The protocol of that name, if the endpoint speaks it.
fn known_protocol(endpoint: &WebSocketEndpoint, name: &str) -> Option<(Spoken, &'static str)> {
    if endpoint.mqtt.is_some()
        && let Some(name) = SUBPROTOCOLS.into_iter().find(|known| *known == name)
    {
        return Some((Spoken::Mqtt, name));
    }
    let (serializer, batched) = websocket::from_subprotocol(name)?;
    let spoken = Spoken::Wamp {
        serializer,
        batched,
    };
    let name = websocket::subprotocol(serializer, batched);
    let is_spoken = endpoint.options.serializers.contains(&serializer);
    is_spoken.then_some((spoken, name))
}

/// The client's cookie, and its part of the response.
fn cookie(
    request: &Request<'_>,
    endpoint: &WebSocketEndpoint,
    origin: Option<&str>,
    host: &str,
) -> Option<(Given, Option<String>)> {
    let jar = endpoint.cookies.as_ref()?;
    let allowed = &endpoint.options.options.allowed_origins;
    if !may_use_cookies(origin, host, allowed) {
        return None;
    }
    let given = jar.give(request.header("Cookie"))?;
    let header = jar.header(&given);
    Some((given, header))
}

pub fn deflate_config(compression: &Compression) -> DeflateConfig {
    let default = DeflateConfig::default();
    DeflateConfig {
        no_context_takeover: compression.no_context_takeover,
        window_bits_max: compression
            .max_window_bits
            .unwrap_or(default.window_bits_max),
        peer_no_context_takeover: compression.request_no_context_takeover,
        peer_window_bits_max: compression
            .request_max_window_bits
            .unwrap_or(default.peer_window_bits_max),
        memory_level: compression.memory_level.unwrap_or(default.memory_level),
        ..default
    }
}

fn refuse(status: u16, reason: String) -> NotUpgraded {
    NotUpgraded { status, reason }
}
