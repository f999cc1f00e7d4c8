//! How RawSocket and WebSocket are spoken: every key that is taken. Long and flat.

use super::form::{
    Fallback, Key, Kind, NO, Rule, Table, YES, integer, integer_or_zero, key, list_not_empty,
};

pub(super) static RAWSOCKET_OPTIONS: Table = Table {
    path: "rawsocket.options",
    name: "RawSocket options",
    keys: &[
        key(
            "max_message_size",
            integer(512, 16 << 20),
            "Maximum size of a received message, in bytes. Clients receive the next lower power of two in the \
             handshake.",
        )
        .otherwise("16,777,216, or `limits.queue_bytes_max` if that is less"),
        // Off, because Autobahn|Python takes a RawSocket ping for a fault and closes: TCP's own
        // keepalive finds dead peers without asking them.
        ping_interval(0).own(),
        ping_timeout().own(),
    ],
};

pub(super) static WEBSOCKET_OPTIONS: Table = Table {
    path: "websocket.options",
    name: "WebSocket options",
    keys: &[
        key(
            "allowed_origins",
            list_not_empty(&Kind::Text(Rule::NotEmpty)),
            "Web origins whose pages may connect: scheme, host and port, of which the scheme's default port may be \
             left out. `*` matches anything. Clients other than browsers send no origin and are always accepted.",
        )
        .otherwise(
            "pages of this machine (`localhost`, `*.localhost`, 127.0.0.0/8, `::1`, any port) at a loopback address; \
             else every origin",
        ),
        key(
            "allow_null_origin",
            Kind::Boolean,
            "Accepts pages without an origin of their own (files, sandboxed frames).",
        )
        .otherwise("`true`, unless only pages of this machine may connect"),
        key(
            "max_message_size",
            integer(1, 64 << 20),
            "Maximum size of a received message after decompression, in bytes.",
        )
        .otherwise("16,777,216, or `limits.queue_bytes_max` if that is less"),
        MAX_FRAME_SIZE,
        key(
            "open_handshake_timeout",
            MILLISECONDS,
            "Maximum time until a client's first message, in milliseconds. 0 applies `limits.handshake_timeout_ms`.",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "close_handshake_timeout",
            MILLISECONDS,
            "Maximum time for a client to answer a close frame, in milliseconds. 0 does not wait.",
        )
        .fallback(Fallback::Integer(1_000)),
        ping_interval(30_000),
        ping_timeout(),
        key(
            "auto_ping_size",
            integer(1, 125),
            "Size of a ping's payload, in bytes. Fewer than 12 count as 12, with a warning.",
        )
        .fallback(Fallback::Integer(12)),
        key(
            "auto_ping_restart_on_any_traffic",
            Kind::Boolean,
            "Accepts any data from the client as the answer to a ping.",
        )
        .fallback(YES),
        COMPRESSION_KEY,
        TCP_NODELAY,
        key(
            "require_websocket_subprotocol",
            Kind::Boolean,
            "Rejects clients that offer no WAMP subprotocol. With `false` they are taken to speak JSON.",
        )
        .fallback(YES),
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
        ENABLE_HIXIE76,
        key(
            "enable_webstatus",
            Kind::Boolean,
            "Answers a GET of the path without an upgrade with status 200 and a line of text, as probes of load \
             balancers expect. With `false` the answer is 426.",
        )
        .fallback(YES),
        EXTERNAL_PORT,
    ],
};

pub(super) const MAX_FRAME_SIZE: Key = key(
    "max_frame_size",
    integer_or_zero(1, 64 << 20),
    "Maximum size of a received frame, in bytes. 0 bounds only the message.",
)
.fallback(Fallback::Integer(0));

pub(super) const COMPRESSION_KEY: Key = key(
    "compression",
    Kind::Object(&COMPRESSION),
    "Compression offered to clients.",
)
.otherwise("none");

pub(super) const TCP_NODELAY: Key = key(
    "tcp_nodelay",
    Kind::Boolean,
    "Sends small writes at once (`TCP_NODELAY`).",
)
.fallback(YES);

pub(super) const SHOW_SERVER_VERSION: Key = key(
    "show_server_version",
    Kind::Boolean,
    "Sends Crosstie's version in HTTP answers.",
)
.fallback(YES);

pub(super) const ECHO_CLOSE_CODEREASON: Key = key(
    "echo_close_codereason",
    Kind::Boolean,
    "Answers a client's close frame with the same code and reason.",
)
.fallback(NO);

pub(super) const FAIL_BY_DROP: Key = key(
    "fail_by_drop",
    Kind::Boolean,
    "Drops a client that violates the protocol, without a close frame.",
)
.fallback(NO);

pub(super) const AUTO_FRAGMENT_SIZE: Key =
    key("auto_fragment_size", integer(0, i64::MAX), "").inert("messages are sent in one frame");

pub(super) const VALIDATE_UTF8: Key = key(
    "validate_utf8",
    Kind::Always(true, "text that is not UTF-8 is never passed on"),
    "Requires text messages to be UTF-8.",
)
.fallback(YES);

pub(super) const MASK_SERVER_FRAMES: Key = key(
    "mask_server_frames",
    Kind::Always(false, "RFC 6455 section 5.1 forbids it"),
    "Masks the frames that the router sends.",
)
.fallback(NO);

pub(super) const REQUIRE_MASKED_CLIENT_FRAMES: Key = key(
    "require_masked_client_frames",
    Kind::Always(true, "RFC 6455 section 5.1 demands it"),
    "Requires clients to mask their frames.",
)
.fallback(YES);

pub(super) const APPLY_MASK: Key = key(
    "apply_mask",
    Kind::Always(true, "RFC 6455 section 5.3 demands it"),
    "Applies the masks of received frames.",
)
.fallback(YES);

pub(super) const ENABLE_RFC6455: Key = key(
    "enable_rfc6455",
    Kind::Always(true, "it is the only version there is"),
    "Accepts the protocol version of RFC 6455.",
)
.fallback(YES);

pub(super) const ENABLE_FLASH_POLICY: Key = key(
    "enable_flash_policy",
    Kind::Always(false, "browsers have no Flash any more"),
    "Serves Flash's policy requests on the port.",
)
.fallback(NO);

pub(super) const ENABLE_HIXIE76: Key =
    key("enable_hixie76", Kind::Boolean, "").inert("the drafts before RFC 6455 are not spoken");

pub(super) const ENABLE_HYBI10: Key =
    key("enable_hybi10", Kind::Boolean, "").inert("the drafts before RFC 6455 are not spoken");

pub(super) const EXTERNAL_PORT: Key = key("external_port", integer(1, 65_535), "")
    .inert("the Host header is not compared with the port");

pub(super) const MILLISECONDS: Kind = integer_or_zero(1_000, 86_400_000);

pub(super) const fn ping_interval(default_ms: i64) -> Key {
    key(
        "auto_ping_interval",
        MILLISECONDS,
        "Silence after which a connection is pinged, in milliseconds. 0 disables pings.",
    )
    .fallback(Fallback::Integer(default_ms))
}

const fn ping_timeout() -> Key {
    key(
        "auto_ping_timeout",
        MILLISECONDS,
        "Maximum time for the answer to a ping, in milliseconds. After it the connection is closed. 0 waits forever.",
    )
    .fallback(Fallback::Integer(10_000))
}

pub(super) static COMPRESSION: Table = Table {
    path: "websocket.options.compression",
    name: "WebSocket compression",
    keys: &[key(
        "deflate",
        Kind::Object(&DEFLATE),
        "permessage-deflate (RFC 7692).",
    )
    .otherwise("not offered")],
};

const WINDOW_BITS: Kind = integer_or_zero(9, 15);

pub(super) static DEFLATE: Table = Table {
    path: "websocket.options.compression.deflate",
    name: "deflate options",
    keys: &[
        key(
            "request_no_context_takeover",
            Kind::Boolean,
            "Asks the client to compress each message on its own.",
        )
        .fallback(NO),
        key(
            "request_max_window_bits",
            WINDOW_BITS,
            "Maximum window requested from the client, as a power of two in bytes. 0 sets no bound.",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "no_context_takeover",
            Kind::Boolean,
            "Compresses each message on its own, without a window between messages. Otherwise each session holds \
             about 330 KiB for the router's window and 46 KiB for the client's, for its whole life. Both count \
             towards `queue_bytes_total_max`.",
        )
        .fallback(NO),
        key(
            "max_window_bits",
            WINDOW_BITS,
            "Maximum window of the router's compressor, as a power of two in bytes. 0 sets no bound.",
        )
        .fallback(Fallback::Integer(0)),
        key(
            "memory_level",
            integer_or_zero(1, 9),
            "Memory level of the router's compressor, from 1 to 9. 0 is the compressor's default.",
        )
        .fallback(Fallback::Integer(0)),
    ],
};
