//! Options of RawSocket and WebSocket on listeners.

use std::time::Duration;

use super::form::{
    Key, Kind, OFF, ON, Rule, integer, integer_or_zero, list_not_empty, object, text,
};
use super::table::tables;
use crate::model::{Allowed, Ping};
use crate::plain;

tables! {
    pub(super) static RAWSOCKET_OPTIONS("rawsocket.options", "RawSocket options") {
        "max_message_size" = integer(512, 16 << 20)
            .otherwise("16,777,216, or `limits.queue_bytes_max` if that is less"),
            "Maximum size of a received message, in bytes. Clients receive the next lower power of two in the \
             handshake.";
        // Off by default: Autobahn|Python treats a RawSocket ping as a fault and closes. TCP keepalive finds dead
        // peers.
        ..ping_interval(0).own(), ping_timeout().own();
    }

    /// Options of the WebSocket protocol on a listener.
    #[derive(Clone, Debug, PartialEq)]
    pub struct WebSocketOptions = pub(crate) static WEBSOCKET_OPTIONS("websocket.options", "WebSocket options") {
        "allowed_origins" = list_not_empty(&text(Rule::NotEmpty))
            .otherwise(
                "pages of this machine (`localhost`, `*.localhost`, 127.0.0.0/8, `::1`, any port) at a loopback \
                 address; else every origin"
            ),
            "Web origins whose pages may connect: scheme, host and port, of which the scheme's default port may be \
             left out. `*` matches anything. Clients other than browsers send no origin and are always accepted.";
        "allow_null_origin" = Kind::Boolean.otherwise("`true`, unless only pages of this machine may connect"),
            "Accepts pages without an origin of their own (files, sandboxed frames).";
        "max_message_size" = integer(1, 64 << 20)
            .otherwise("16,777,216, or `limits.queue_bytes_max` if that is less"),
            "Maximum size of a received message after decompression, in bytes.";
        ..MAX_FRAME_SIZE => frame_bytes_max: Option<usize> as plain::positive;
        open_handshake_timeout: Option<Duration> = MILLISECONDS.or(0),
            "Maximum time until a client's first message, in milliseconds. 0 applies `limits.handshake_timeout_ms`.";
        close_handshake_timeout: Duration = MILLISECONDS.or(1_000),
            "Maximum time for a client to answer a close frame, in milliseconds. 0 does not wait.";
        ..ping_interval(30_000), ping_timeout();
        "auto_ping_size" = integer(1, 125).or(12),
            "Size of a ping's payload, in bytes. Fewer than 12 count as 12, with a warning.";
        "auto_ping_restart_on_any_traffic" = ON, "Accepts any data from the client as the answer to a ping.";
        ..COMPRESSION_KEY;
        ..TCP_NODELAY => tcp_nodelay: bool;
        require_websocket_subprotocol: bool = ON,
            "Rejects clients that offer no WAMP subprotocol. With `false` they are taken to speak JSON.";
        ..SHOW_SERVER_VERSION => show_server_version: bool;
        ..ECHO_CLOSE_CODEREASON => echo_close_codereason: bool;
        ..FAIL_BY_DROP => fail_by_drop: bool;
        ..AUTO_FRAGMENT_SIZE, VALIDATE_UTF8, MASK_SERVER_FRAMES, REQUIRE_MASKED_CLIENT_FRAMES, APPLY_MASK;
        ..ENABLE_RFC6455, ENABLE_FLASH_POLICY, ENABLE_HYBI10, ENABLE_HIXIE76;
        enable_webstatus => shows_status: bool = ON,
            "Answers a GET of the path without an upgrade with status 200 and a line of text, as probes of load \
             balancers expect. With `false` the answer is 426.";
        ..EXTERNAL_PORT;
        let allowed_origins: Allowed = Allowed::All;
        let allow_null_origin: bool = false;
        let message_bytes_max: usize = 0;
        let ping: Ping = Ping::NONE;
        let compression: Option<Deflate> = None;
    }

    pub(super) const MAX_FRAME_SIZE = "max_frame_size": integer_or_zero(1, 64 << 20).or(0),
        "Maximum size of a received frame, in bytes. 0 bounds only the message.";
    pub(super) const COMPRESSION_KEY = "compression": object(&COMPRESSION).optional(),
        "Compression offered to clients.";
    pub(super) const TCP_NODELAY = "tcp_nodelay": ON, "Sends small writes at once (`TCP_NODELAY`).";
    pub(super) const SHOW_SERVER_VERSION = "show_server_version": ON, "Sends Crosstie's version in HTTP answers.";
    pub(super) const ECHO_CLOSE_CODEREASON = "echo_close_codereason": OFF,
        "Answers a client's close frame with the same code and reason.";
    pub(super) const FAIL_BY_DROP = "fail_by_drop": OFF,
        "Drops a client that violates the protocol, without a close frame.";
    pub(super) const AUTO_FRAGMENT_SIZE = "auto_fragment_size": integer(0, i64::MAX)
        .inert("messages are sent in one frame");
    pub(super) const VALIDATE_UTF8 = "validate_utf8": Kind::Always(
        true,
        "text that is not UTF-8 is never passed on",
    ).or_yes(),
        "Requires text messages to be UTF-8.";
    pub(super) const MASK_SERVER_FRAMES = "mask_server_frames": Kind::Always(
        false,
        "RFC 6455 section 5.1 forbids it",
    ).or_no(),
        "Masks the frames that the router sends.";
    pub(super) const REQUIRE_MASKED_CLIENT_FRAMES = "require_masked_client_frames": Kind::Always(
        true,
        "RFC 6455 section 5.1 demands it",
    ).or_yes(),
        "Requires clients to mask their frames.";
    pub(super) const APPLY_MASK = "apply_mask": Kind::Always(true, "RFC 6455 section 5.3 demands it").or_yes(),
        "Applies the masks of received frames.";
    pub(super) const ENABLE_RFC6455 = "enable_rfc6455": Kind::Always(true, "it is the only version there is").or_yes(),
        "Accepts the protocol version of RFC 6455.";
    pub(super) const ENABLE_FLASH_POLICY = "enable_flash_policy": Kind::Always(
        false,
        "browsers have no Flash any more",
    ).or_no(),
        "Serves Flash's policy requests on the port.";
    pub(super) const ENABLE_HIXIE76 = "enable_hixie76": Kind::Boolean
        .inert("the drafts before RFC 6455 are not spoken");
    pub(super) const ENABLE_HYBI10 = "enable_hybi10": Kind::Boolean.inert("the drafts before RFC 6455 are not spoken");
    pub(super) const EXTERNAL_PORT = "external_port": integer(1, 65_535)
        .inert("the Host header is not compared with the port");
}

pub(super) const MILLISECONDS: Kind = integer_or_zero(1_000, 86_400_000);

pub(super) const fn ping_interval(default_ms: i64) -> Key {
    Key {
        name: "auto_ping_interval",
        about: "Silence after which a connection is pinged, in milliseconds. 0 disables pings.",
        ..MILLISECONDS.or(default_ms)
    }
}

const fn ping_timeout() -> Key {
    Key {
        name: "auto_ping_timeout",
        about: "Maximum time for the answer to a ping, in milliseconds. After it the connection is closed. 0 \
         waits forever.",
        ..MILLISECONDS.or(10_000)
    }
}

tables! {
    pub(super) static COMPRESSION("websocket.options.compression", "WebSocket compression") {
        "deflate" = object(&DEFLATE).otherwise("not offered"), "permessage-deflate (RFC 7692).";
    }
}

const WINDOW_BITS: Kind = integer_or_zero(9, 15);

tables! {
    /// Options of permessage-deflate (RFC 7692).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Deflate = pub(super) static DEFLATE("websocket.options.compression.deflate", "deflate options") {
        request_no_context_takeover: bool = OFF,
            "Asks the client to compress each message on its own. Otherwise a message of the client may refer to \
             earlier ones, and each session holds their last bytes: as many as the client's window has.";
        request_max_window_bits: Option<u8> as plain::positive = WINDOW_BITS.or(12),
            "Maximum window requested from the client, as a power of two in bytes. 0 sets no bound. Only a client that \
             offers `client_max_window_bits` can be asked; any other has 15. The default holds at most 4 KiB per \
             session, not 32. JSON of 1 KB compresses as well with it; that of 100 KB becomes at most a tenth longer.";
        no_context_takeover: bool = OFF,
            "Compresses each message on its own. Otherwise a message may refer to earlier ones, and each session holds \
             up to 4 KiB of them. This state is dropped after 60 seconds without a compressed message, and first \
             if `queue_bytes_total_max` is reached. In both cases an event is compressed once for all subscribers \
             that have the same window and the same earlier messages, not once for each.";
        max_window_bits: Option<u8> as plain::positive = WINDOW_BITS.or(0),
            "Maximum window of the router's compressor, as a power of two in bytes. 0 sets no bound. The window lies \
             within a message; of earlier messages at most 4 KiB are used. Compressors belong to threads, not to \
             sessions.";
        memory_level: Option<u8> as plain::positive = integer_or_zero(1, 9).or(0),
            "Memory level of the router's compressor, from 1 to 9. 0 is the compressor's default.";
    }
}
