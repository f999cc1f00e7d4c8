//! How WebSocket is spoken by those that are no router: echoes and components. Long and flat.

use super::form::{Fallback, Kind, Rule, Table, YES, integer, key, list};
use super::options::{
    APPLY_MASK, AUTO_FRAGMENT_SIZE, COMPRESSION_KEY, ECHO_CLOSE_CODEREASON, ENABLE_FLASH_POLICY,
    ENABLE_HYBI10, ENABLE_RFC6455, EXTERNAL_PORT, FAIL_BY_DROP, MASK_SERVER_FRAMES, MAX_FRAME_SIZE,
    MILLISECONDS, REQUIRE_MASKED_CLIENT_FRAMES, SHOW_SERVER_VERSION, TCP_NODELAY, VALIDATE_UTF8,
    ping_interval,
};

/// As a router's, for an echo: no timers, no subprotocols.
pub(super) static WEBSOCKET_TESTEE_OPTIONS: Table = Table {
    path: "transports[websocket.testee].options",
    name: "WebSocket testee options",
    keys: &[
        key(
            "max_message_size",
            integer(1, 64 << 20),
            "Maximum size of a received message after decompression, in bytes.",
        )
        .fallback(Fallback::Integer(16 << 20)),
        MAX_FRAME_SIZE,
        COMPRESSION_KEY,
        TCP_NODELAY,
        SHOW_SERVER_VERSION,
        ECHO_CLOSE_CODEREASON,
        FAIL_BY_DROP,
        AUTO_FRAGMENT_SIZE,
        VALIDATE_UTF8,
        MASK_SERVER_FRAMES,
        REQUIRE_MASKED_CLIENT_FRAMES,
        APPLY_MASK,
        ENABLE_RFC6455,
        ENABLE_FLASH_POLICY,
        ENABLE_HYBI10,
        EXTERNAL_PORT,
        key("enable_webstatus", Kind::Boolean, "").inert("a testee has no pages"),
        key("require_websocket_subprotocol", Kind::Boolean, "")
            .inert("a testee speaks no subprotocol and asks for none"),
        key("open_handshake_timeout", MILLISECONDS, "").inert(NO_TIMERS),
        key("close_handshake_timeout", MILLISECONDS, "").inert(NO_TIMERS),
        key("auto_ping_interval", MILLISECONDS, "").inert(NO_PINGS),
        key("auto_ping_timeout", MILLISECONDS, "").inert(NO_PINGS),
        key("auto_ping_size", integer(1, 125), "").inert(NO_PINGS),
        key("auto_ping_restart_on_any_traffic", Kind::Boolean, "").inert(NO_PINGS),
    ],
};

/// As a router's, for a component that connects to a router.
pub(super) static WEBSOCKET_CLIENT_OPTIONS: Table = Table {
    path: "components[].transport[websocket].options",
    name: "WebSocket options of a component",
    keys: &[
        key(
            "max_message_size",
            integer(1, 64 << 20),
            "Maximum size of a received message after decompression, in bytes.",
        )
        .otherwise("Autobahn's own"),
        MAX_FRAME_SIZE,
        key(
            "auto_fragment_size",
            integer(0, i64::MAX),
            "Size of the frames that a longer message is split into, in bytes. 0 sends each message in one frame.",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "open_handshake_timeout",
            MILLISECONDS,
            "Maximum time for the router to answer the handshake, in milliseconds. 0 waits forever.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "close_handshake_timeout",
            MILLISECONDS,
            "Maximum time for the router to answer a close frame, in milliseconds. 0 waits forever.",
        )
        .fallback(Fallback::Integer(10_000)),
        ping_interval(0),
        key(
            "auto_ping_timeout",
            MILLISECONDS,
            "Maximum time for the answer to a ping, in milliseconds. After it the connection is closed. 0 waits \
             forever.",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "auto_ping_size",
            integer(12, 125),
            "Size of a ping's payload, in bytes.",
        )
        .fallback(Fallback::Integer(12)),
        key(
            "auto_ping_restart_on_any_traffic",
            Kind::Boolean,
            "Accepts any data from the router as the answer to a ping.",
        )
        .fallback(YES),
        TCP_NODELAY,
        ECHO_CLOSE_CODEREASON
            .about("Answers the router's close frame with the same code and reason."),
        FAIL_BY_DROP
            .about("Drops a router that violates the protocol, without a close frame."),
        VALIDATE_UTF8,
        MASK_SERVER_FRAMES,
        REQUIRE_MASKED_CLIENT_FRAMES,
        APPLY_MASK,
        ENABLE_RFC6455,
        ENABLE_FLASH_POLICY,
        ENABLE_HYBI10,
        COMPRESSION_KEY.about("Compression offered to the router."),
        EXTERNAL_PORT.inert(FOR_ROUTERS),
        SHOW_SERVER_VERSION.inert(FOR_ROUTERS),
        key("allowed_origins", list(&Kind::Text(Rule::NotEmpty)), "").inert(FOR_ROUTERS),
        key("allow_null_origin", Kind::Boolean, "").inert(FOR_ROUTERS),
        key("enable_webstatus", Kind::Boolean, "").inert(FOR_ROUTERS),
        key("require_websocket_subprotocol", Kind::Boolean, "").inert(FOR_ROUTERS),
    ],
};

const FOR_ROUTERS: &str = "it is for those that listen, and a component connects";

const NO_TIMERS: &str = "a testee waits for its clients as long as they take";
const NO_PINGS: &str = "a testee sends nothing but its answers";
