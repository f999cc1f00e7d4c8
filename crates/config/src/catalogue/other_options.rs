//! Options of WebSocket for testees and components.

use super::form::{Kind, ON, Rule, integer, list, text};
use super::options::{
    APPLY_MASK, AUTO_FRAGMENT_SIZE, COMPRESSION_KEY, ECHO_CLOSE_CODEREASON, ENABLE_FLASH_POLICY,
    ENABLE_HYBI10, ENABLE_RFC6455, EXTERNAL_PORT, FAIL_BY_DROP, MASK_SERVER_FRAMES, MAX_FRAME_SIZE,
    MILLISECONDS, REQUIRE_MASKED_CLIENT_FRAMES, SHOW_SERVER_VERSION, TCP_NODELAY, VALIDATE_UTF8,
    ping_interval,
};
use super::table::tables;
use crate::model::Deflate;
use crate::plain;

tables! {
    /// Options of the WebSocket protocol on a testee.
    #[derive(Clone, Debug, PartialEq)]
    pub struct WebSocketTestee = pub(super) static WEBSOCKET_TESTEE_OPTIONS(
        "transports[websocket.testee].options", "WebSocket testee options"
    ) {
        max_message_size => message_bytes_max: usize = integer(1, 64 << 20).or(16 << 20),
            "Maximum size of a received message after decompression, in bytes.";
        ..MAX_FRAME_SIZE => frame_bytes_max: Option<usize> as plain::positive;
        ..COMPRESSION_KEY;
        ..TCP_NODELAY => tcp_nodelay: bool;
        ..SHOW_SERVER_VERSION => show_server_version: bool;
        ..ECHO_CLOSE_CODEREASON => echo_close_codereason: bool;
        ..FAIL_BY_DROP => fail_by_drop: bool;
        ..AUTO_FRAGMENT_SIZE, VALIDATE_UTF8, MASK_SERVER_FRAMES, REQUIRE_MASKED_CLIENT_FRAMES, APPLY_MASK;
        ..ENABLE_RFC6455, ENABLE_FLASH_POLICY, ENABLE_HYBI10, EXTERNAL_PORT;
        "enable_webstatus" = Kind::Boolean.inert("a testee has no pages");
        "require_websocket_subprotocol" = Kind::Boolean.inert("a testee speaks no subprotocol and asks for none");
        "open_handshake_timeout" = MILLISECONDS.inert(NO_TIMERS);
        "close_handshake_timeout" = MILLISECONDS.inert(NO_TIMERS);
        "auto_ping_interval" = MILLISECONDS.inert(NO_PINGS);
        "auto_ping_timeout" = MILLISECONDS.inert(NO_PINGS);
        "auto_ping_size" = integer(1, 125).inert(NO_PINGS);
        "auto_ping_restart_on_any_traffic" = Kind::Boolean.inert(NO_PINGS);
        let url: Option<String> = None;
        let compression: Option<Deflate> = None;
    }

    /// The options of a router's listener, for a component that connects.
    pub(super) static WEBSOCKET_CLIENT_OPTIONS(
        "components[].transport[websocket].options", "WebSocket options of a component"
    ) {
        "max_message_size" = integer(1, 64 << 20).otherwise("Autobahn's own"),
            "Maximum size of a received message after decompression, in bytes.";
        ..MAX_FRAME_SIZE;
        "auto_fragment_size" = integer(0, i64::MAX).or(0),
            "Size of the frames that a longer message is split into, in bytes. 0 sends each message in one frame.";
        "open_handshake_timeout" = MILLISECONDS.or(10_000),
            "Maximum time for the router to answer the handshake, in milliseconds. 0 waits forever.";
        "close_handshake_timeout" = MILLISECONDS.or(10_000),
            "Maximum time for the router to answer a close frame, in milliseconds. 0 waits forever.";
        ..ping_interval(0);
        "auto_ping_timeout" = MILLISECONDS.or(0),
            "Maximum time for the answer to a ping, in milliseconds. After it the connection is closed. 0 waits \
             forever.";
        "auto_ping_size" = integer(12, 125).or(12), "Size of a ping's payload, in bytes.";
        "auto_ping_restart_on_any_traffic" = ON, "Accepts any data from the router as the answer to a ping.";
        ..TCP_NODELAY;
        ..ECHO_CLOSE_CODEREASON.about("Answers the router's close frame with the same code and reason.");
        ..FAIL_BY_DROP.about("Drops a router that violates the protocol, without a close frame."), VALIDATE_UTF8;
        ..MASK_SERVER_FRAMES, REQUIRE_MASKED_CLIENT_FRAMES, APPLY_MASK, ENABLE_RFC6455, ENABLE_FLASH_POLICY;
        ..ENABLE_HYBI10;
        ..COMPRESSION_KEY.about("Compression offered to the router."), EXTERNAL_PORT.inert(FOR_ROUTERS);
        ..SHOW_SERVER_VERSION.inert(FOR_ROUTERS);
        "allowed_origins" = list(&text(Rule::NotEmpty)).inert(FOR_ROUTERS);
        "allow_null_origin" = Kind::Boolean.inert(FOR_ROUTERS);
        "enable_webstatus" = Kind::Boolean.inert(FOR_ROUTERS);
        "require_websocket_subprotocol" = Kind::Boolean.inert(FOR_ROUTERS);
    }
}

const FOR_ROUTERS: &str = "it is for those that listen, and a component connects";

const NO_TIMERS: &str = "a testee waits for its clients as long as they take";
const NO_PINGS: &str = "a testee sends nothing but its answers";
