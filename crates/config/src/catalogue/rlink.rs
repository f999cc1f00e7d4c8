//! Keys of links to other routers.

use std::time::Duration;

use super::connecting::CONNECTING_ENDPOINT;
use super::form::{ON, Rule, TYPE, integer, list, list_not_empty, object, one_of, tagged, text};
use super::options::{MILLISECONDS, ping_interval};
use super::table::tables;
use super::transport::{SERIALIZER, SERIALIZERS};
use crate::model::{RLinkAuth, RLinkTransport};

tables! {
    /// A link to a realm of another router.
    #[derive(Clone, PartialEq, Eq)]
    pub struct RLink = pub(crate) static RLINK("realms[].rlinks[]", "a link") {
        "id" = text(Rule::Name).otherwise("`rlink1`, `rlink2`, … by position"),
            "Id of the link, unique within the worker.";
        realm: String = text(Rule::RealmName).required(), "Realm of the remote router that the link joins.";
        "transport" = tagged(&RLINK_TRANSPORT).required(),
            "Transport to the remote router. The link retries until it connects, and again after a lost connection.";
        authid: Option<String> = text(Rule::NotEmpty)
            .otherwise("given by the remote router for the link's key; in its own realm, the link's id"),
            "Authid of the link, sent to the remote router and used in its own realm.";
        "auth" = object(&RLINK_AUTH).otherwise("cryptosign, with the node's key").own(),
            "Authentication method of the link at the remote router. Give exactly one.";
        role: String = text(Rule::NotEmpty).or_text("trusted").own(), "Role of the link in its own realm.";
        exclude_authid: Vec<String> = list(&text(Rule::NotEmpty)).optional(),
            "Authids in the remote realm that do not receive events from the link.";
        forward_local_events: bool = ON,
            "Subscribes at the remote router to topics subscribed to here, so that remote events reach this realm.";
        forward_remote_events: bool = ON,
            "Subscribes here to topics subscribed to at the remote router, so that local events reach the remote \
             realm.";
        forward_local_invocations: bool = ON,
            "Registers local procedures at the remote router, so that remote callers reach them.";
        forward_remote_invocations: bool = ON, "Registers remote procedures here, so that local callers reach them.";
        mirrors_max: usize = integer(1, 10_000_000).or(100_000).own(),
            "Maximum number of mirrored subscriptions per side, and likewise of registrations. Further ones are not \
             forwarded.";
        calls_max: usize = integer(1, 1_000_000).or(4_096).own(),
            "Maximum number of pending calls and unacknowledged publications per direction. A further call fails; a \
             further event is dropped.";
        queue_bytes_max: usize = integer(65_536, 1 << 40).or(16 << 20).own(),
            "Maximum data queued for the remote router, in bytes. At the limit the link stops reading from its own \
             realm. The realm then treats it as any slow client: see `limits.queue_bytes_max`.";
        forward_for_max: usize = integer(2, 1_024).or(16).own(),
            "Maximum number of entries in `forward_for` of a forwarded event or call. Each link adds two. A message \
             with more is not forwarded, which stops loops.";
        reconnect_delay_ms_max => reconnect_delay_max: Duration = integer(100, 3_600_000).or(30_000).own(),
            "Maximum delay between connection attempts, in milliseconds. The delay starts at 250 ms and grows.";
        let id: String = String::new();
        let transport: RLinkTransport = RLinkTransport::nowhere();
        let auth: RLinkAuth = RLinkAuth::NodeKey;
    }

    tagged RLINK_TRANSPORT("realms[].rlinks[].transport.type", "a link's transport") {
        "rawsocket" => RLINK_RAWSOCKET, "websocket" => RLINK_WEBSOCKET
    }

    const ID = "id": text(Rule::Id).inert("a link has one transport");
    const ENDPOINT = "endpoint": tagged(&CONNECTING_ENDPOINT).optional(), "Address to connect to.";

    static RLINK_RAWSOCKET("realms[].rlinks[].transport[rawsocket]", "a link's RawSocket transport") {
        ..TYPE, ID, ENDPOINT.required();
        "url" = text(Rule::Any).inert("the endpoint says where it connects to");
        "serializer" = one_of(&SERIALIZERS).or_text("cbor"), "Serializer of the connection.";
        "options" = object(&RLINK_RAWSOCKET_OPTIONS).otherwise("the defaults"), "Options of the RawSocket protocol.";
    }

    static RLINK_RAWSOCKET_OPTIONS("realms[].rlinks[].transport[rawsocket].options", "RawSocket options of a link") {
        ..MESSAGE_BYTES, ping_interval(20_000).own();
    }

    const MESSAGE_BYTES = "max_message_size": integer(512, 16 << 20).or(16 << 20),
        "Maximum size of a received message, in bytes.";

    static RLINK_WEBSOCKET("realms[].rlinks[].transport[websocket]", "a link's WebSocket transport") {
        ..TYPE, ID, ENDPOINT.otherwise("made from the URL");
        "url" = text(Rule::WebSocketUrl).required().environment(), "URL of the WebSocket.";
        "serializers" = list_not_empty(&SERIALIZER).otherwise("CBOR, MessagePack, JSON"),
            "Offered serializers, in order.";
        "options" = object(&RLINK_WEBSOCKET_OPTIONS).otherwise("the defaults"), "Options of the WebSocket protocol.";
    }

    static RLINK_WEBSOCKET_OPTIONS("realms[].rlinks[].transport[websocket].options", "WebSocket options of a link") {
        ..MESSAGE_BYTES, ping_interval(20_000);
        "auto_ping_timeout" = MILLISECONDS
            .inert("a router that is silent for a whole `auto_ping_interval` is given up");
        "auto_ping_size" = integer(1, 125).inert("pings of a link are empty");
        "open_handshake_timeout" = MILLISECONDS.inert("the endpoint's `timeout` holds until the session is there");
        "close_handshake_timeout" = MILLISECONDS.inert("a link closes its connection within a second");
    }

    static RLINK_AUTH("realms[].rlinks[].auth", "a link's auth") {
        "anonymous" = object(&RLINK_ANONYMOUS).otherwise("another method").own(), "Joins without credentials.";
        "ticket" = object(&RLINK_TICKET).otherwise("another method").own(), "Authenticates by ticket.";
        "wampcra" = object(&RLINK_WAMPCRA).otherwise("another method").own(),
            "Authenticates by a shared secret (WAMP-CRA).";
        "scram" = object(&RLINK_SCRAM).otherwise("another method").own(), "Authenticates by password (SCRAM).";
        "cryptosign" = object(&RLINK_CRYPTOSIGN).otherwise("another method").own(),
            "Authenticates by private key (WAMP-cryptosign).";
    }

    static RLINK_ANONYMOUS("realms[].rlinks[].auth.anonymous", "a link's anonymous auth") {}

    static RLINK_TICKET("realms[].rlinks[].auth.ticket", "a link's ticket") {
        "ticket" = text(Rule::NotEmpty).required().environment().own(), "Ticket to send.";
    }

    static RLINK_WAMPCRA("realms[].rlinks[].auth.wampcra", "a link's WAMP-CRA") {
        "secret" = text(Rule::NotEmpty).required().environment().own(), "Secret that signs the challenge.";
    }

    static RLINK_SCRAM("realms[].rlinks[].auth.scram", "a link's SCRAM") {
        "password" = text(Rule::NotEmpty).required().environment().own(), "SCRAM password.";
    }

    static RLINK_CRYPTOSIGN("realms[].rlinks[].auth.cryptosign", "a link's cryptosign") {
        "privkey" = text(Rule::Hexadecimal64).required().environment().own(), "Private key: 64 hexadecimal digits.";
    }
}
