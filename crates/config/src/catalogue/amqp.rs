//! AMQP: users, vhosts, bounds, and how listeners speak. Every key that is taken. Long and flat.

use super::endpoint::ENDPOINT;
use super::form::{
    Fallback, Key, Kind, Rule, TYPE, Table, Words, integer, integer_or_zero, key, list,
    list_not_empty,
};
use super::replicated::REPLICATED;
use super::transport::{MAX_CONNECTIONS, TRANSPORT_ID};

/// A router worker's `amqp`.
pub(crate) static AMQP: Table = Table {
    path: "workers[router].amqp",
    name: "a router worker's AMQP",
    keys: &[
        key(
            "users",
            list_not_empty(&Kind::Object(&USER)),
            "Users that may connect.",
        )
        .otherwise("`guest` with the password `guest`, from this machine only; none beside those of `definitions`"),
        key(
            "vhosts",
            list_not_empty(&Kind::Object(&VHOST)),
            "Virtual hosts, each with its own exchanges and queues.",
        )
        .otherwise("`/` with all permissions for every user; none beside those of `definitions`"),
        key(
            "definitions",
            Kind::Text(Rule::Path),
            "Definitions file written by `rabbitmqctl export_definitions` (JSON). When the worker starts, the broker \
             declares its users, vhosts, permissions, exchanges, queues and bindings that do not exist yet. A user \
             or permission that the configuration also names is taken from the configuration. The log and `crosstie \
             check` list the parts that are not imported. A relative path starts at the node's directory.",
        )
        .environment(),
        key(
            "store",
            Kind::Text(Rule::Path),
            "SQLite file of durable exchanges, queues and persistent messages, created at the first write. A \
             relative path starts at the node's directory; no two workers share a file.",
        )
        .fallback(Fallback::Text("amqp.store"))
        .environment(),
        key(
            "limits",
            Kind::Object(&AMQP_LIMITS),
            "Limits on the broker's memory, connections and declarations.",
        )
        .otherwise("the defaults"),
        key(
            "identity",
            Kind::Object(&IDENTITY),
            "Product, version and cluster name in `server_properties`. Clients choose features by them.",
        )
        .otherwise("RabbitMQ, whose behaviour the broker follows"),
    ],
};

static IDENTITY: Table = Table {
    path: "workers[router].amqp.identity",
    name: "the identity of an AMQP broker",
    keys: &[
        key(
            "product",
            Kind::Text(Rule::ShortText),
            "Value of the property `product`. With another name than RabbitMQ, kombu (and so Celery) sets prefetch \
             in a way that does not reach running consumers. `platform` and `information` always name Crosstie.",
        )
        .fallback(Fallback::Text("RabbitMQ")),
        key(
            "version",
            Kind::Text(Rule::ShortText),
            "Value of the property `version`: the RabbitMQ version whose behaviour the broker follows.",
        )
        .fallback(Fallback::Text("3.13.7")),
        key(
            "cluster_name",
            Kind::Text(Rule::ShortText),
            "Value of the property `cluster_name`.",
        )
        .otherwise("`crosstie@` and the machine's name"),
    ],
};

static USER: Table = Table {
    path: "workers[router].amqp.users[]",
    name: "an AMQP user",
    keys: &[
        key("name", Kind::Text(Rule::ShortText), "Name of the user.").required(),
        key(
            "password",
            Kind::Text(Rule::NotEmpty),
            "Password of the user. Only a hash of it is kept in memory.",
        )
        .otherwise("none; the user logs in by certificate")
        .environment(),
        key(
            "password_hash",
            Kind::Text(Rule::NotEmpty),
            "Salted hash in place of the password, as RabbitMQ exports it.",
        )
        .otherwise("made from the password")
        .environment(),
        key(
            "hashing_algorithm",
            Kind::OneOf(&HASHING_ALGORITHMS),
            "Hash algorithm of `password_hash`.",
        )
        .fallback(Fallback::Text("rabbit_password_hashing_sha256")),
        key(
            "tags",
            list(&Kind::Text(Rule::NotEmpty)),
            "Tags of the user, as in RabbitMQ. `impersonator` lets the user publish with another user's name in the \
             property `user-id`; no other tag has an effect.",
        )
        .otherwise("none"),
        key(
            "loopback_only",
            Kind::Boolean,
            "Restricts the user to connections from this machine.",
        )
        .otherwise("`true` for `guest`, else `false`"),
    ],
};

static HASHING_ALGORITHMS: Words = Words {
    path: "",
    words: &[
        "rabbit_password_hashing_sha256",
        "rabbit_password_hashing_sha512",
        "rabbit_password_hashing_md5",
    ],
};

static VHOST: Table = Table {
    path: "workers[router].amqp.vhosts[]",
    name: "an AMQP vhost",
    keys: &[
        key("name", Kind::Text(Rule::ShortText), "Name of the vhost.").required(),
        key(
            "permissions",
            list(&Kind::Object(&PERMISSION)),
            "Users that may open the vhost, with their permissions in it.",
        )
        .otherwise("none"),
        key(
            "replicated",
            Kind::Object(&REPLICATED),
            "Replication of the vhost: NATS servers keep its journal, and another node takes over if the owner \
             fails.",
        )
        .otherwise("the vhost exists on this worker only, in its store")
        .own(),
    ],
};

const fn pattern(name: &'static str, about: &'static str) -> Key {
    key(name, Kind::Text(Rule::Any), about).fallback(Fallback::Text(""))
}

static PERMISSION: Table = Table {
    path: "workers[router].amqp.vhosts[].permissions[]",
    name: "an AMQP permission",
    keys: &[
        key("user", Kind::Text(Rule::ShortText), "Name of the user.").required(),
        pattern(
            "configure",
            "Regular expression for names of exchanges and queues that the user may declare and delete. An empty \
             expression allows none.",
        ),
        pattern(
            "write",
            "Regular expression for names of exchanges and queues that the user may publish to, or bind as the destination. \
             An empty expression allows none.",
        ),
        pattern(
            "read",
            "Regular expression for names of exchanges and queues that the user may consume from, or bind as the source. \
             An empty expression allows none.",
        ),
    ],
};

static AMQP_LIMITS: Table = Table {
    path: "workers[router].amqp.limits",
    name: "the limits of AMQP",
    keys: &[
        key(
            "memory_bytes_max",
            integer(1 << 20, 1 << 44),
            "Maximum memory for messages, with the journals of replicated vhosts, in bytes per broker. At the limit \
             publishing connections receive `connection.blocked` and are not read until memory is free.",
        )
        .fallback(Fallback::Integer(1 << 30)),
        key(
            "message_bytes_max",
            integer(1_024, 1 << 31),
            "Maximum size of a message body, in bytes. A larger one closes the channel with 406 PRECONDITION_FAILED.",
        )
        .fallback(Fallback::Integer(128 << 20)),
        key(
            "commit_bytes_max",
            integer(1 << 16, 1 << 40),
            "Maximum data waiting to be written to the store, in bytes. At the limit connections that publish, \
             declare or acknowledge durable data receive `connection.blocked`.",
        )
        .fallback(Fallback::Integer(256 << 20)),
        key(
            "disk_free_bytes_min",
            integer_or_zero(1 << 20, 1 << 40),
            "Minimum free space on the store's file system, in bytes; free pages within the store count. It is \
             RabbitMQ's `disk_free_limit`. Below it, connections that publish, declare or bind durable data receive \
             `connection.blocked` (low on disk); consumers continue and so free space. Publishers resume at a tenth \
             more free space. On a small file system the limit is an eighth of it, if that is less. 0 blocks nothing \
             until the disk is full. The file `…-reserve` beside the store holds 16 MiB, or a twelfth of a small \
             file system. The broker gives them up to delete messages on a full disk.",
        )
        .fallback(Fallback::Integer(128 << 20)),
        key(
            "queues_max",
            integer(1, 100_000_000),
            "Maximum number of queues per vhost. Declaring another closes the channel with 406 PRECONDITION_FAILED.",
        )
        .fallback(Fallback::Integer(100_000)),
        key(
            "connection_queues_max",
            integer(1, 100_000_000),
            "Maximum number of exclusive queues per connection. Declaring another closes the channel with 406 \
             PRECONDITION_FAILED. `permissions` decide on other queues.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "exchanges_max",
            integer(8, 100_000_000),
            "Maximum number of exchanges per vhost, predeclared ones included. Declaring another closes the channel \
             with 406 PRECONDITION_FAILED.",
        )
        .fallback(Fallback::Integer(100_000)),
        key(
            "bindings_max",
            integer(1, 100_000_000),
            "Maximum number of bindings per vhost. Another one closes the channel with 406 PRECONDITION_FAILED.",
        )
        .fallback(Fallback::Integer(1_000_000)),
        key(
            "definition_bytes_max",
            integer(1 << 16, 1 << 40),
            "Maximum size of the names, keys and arguments of all queues, exchanges and bindings, in bytes per \
             vhost. A declaration beyond it closes the channel with 406 PRECONDITION_FAILED.",
        )
        .fallback(Fallback::Integer(64 << 20)),
        key(
            "exchange_steps_max",
            integer(100, 1 << 40),
            "Maximum worst-case cost of matching a message against the bindings of a topic or headers exchange, in \
             steps of about 50 ns. A binding beyond it closes the channel with 406 PRECONDITION_FAILED. The limit \
             also applies to the sum over all exchanges reached from other exchanges (by binding or as alternate), \
             with 16 steps free for each. A message whose `CC` and `BCC` keys cost more than twice the limit closes \
             the channel with 406. A word costs one step, and another if `*` can match the same key. The words \
             behind a `#` in the middle of a pattern cost 256 times as much.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "pattern_nodes_max",
            integer(100, 1 << 40),
            "Maximum number of pattern nodes of all exchanges of a vhost: words of topic patterns with wildcards, \
             common beginnings counted once, and fields of headers bindings. A binding beyond it closes the channel \
             with 406 PRECONDITION_FAILED.",
        )
        .fallback(Fallback::Integer(1_000_000)),
        key(
            "consumers_max",
            integer(1, 100_000_000),
            "Maximum number of consumers per channel. Another one closes the channel with 406 PRECONDITION_FAILED.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "connection_consumers_max",
            integer(1, 100_000_000),
            "Maximum number of consumers on all channels of a connection. Another one closes its channel with 406 \
             PRECONDITION_FAILED.",
        )
        .fallback(Fallback::Integer(100_000)),
        key(
            "copy_keys_max",
            integer(0, 1_000_000),
            "Maximum number of routing keys in the headers `CC` and `BCC` of a message, each of which is routed. \
             Another one closes the channel with 406 PRECONDITION_FAILED.",
        )
        .fallback(Fallback::Integer(128)),
        key(
            "transaction_messages_max",
            integer(1, 1_000_000),
            "Maximum number of publications and acknowledgements per transaction (`tx.select`). Another one closes \
             the channel with 406 PRECONDITION_FAILED. A commit delays the whole vhost by about 3 µs for each, and \
             for each queue that a message reaches.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "transaction_bytes_max",
            integer(1_024, 1 << 40),
            "Maximum size of uncommitted publications on all channels of a connection, in bytes. More close the \
             channel with 406 PRECONDITION_FAILED. Together with partly received messages, a connection may hold a \
             quarter of `memory_bytes_max`, or one message of the largest size; more close the channel with 311 \
             CONTENT_TOO_LARGE. All connections together may hold `memory_bytes_max`; beyond it the broker closes \
             the connection that holds most.",
        )
        .fallback(Fallback::Integer(128 << 20)),
        key(
            "consumer_timeout_ms",
            integer_or_zero(1_000, 31_536_000_000),
            "Maximum time for a consumer to acknowledge a delivery, in milliseconds. A slower one has its channel \
             closed with 406 PRECONDITION_FAILED. 0 waits forever. The default is RabbitMQ's.",
        )
        .fallback(Fallback::Integer(1_800_000)),
        key(
            "incomplete_timeout_ms",
            integer_or_zero(1_000, 86_400_000),
            "Maximum time for a partly received message to complete, in milliseconds, extended by the same time for \
             each further 64 KiB received. If the rest arrives too slowly, the channel is closed with 406 \
             PRECONDITION_FAILED. If nothing arrives, the connection is closed with 320 CONNECTION_FORCED after \
             twice that time. 0 waits forever. The time stands still while the connection is blocked.",
        )
        .fallback(Fallback::Integer(60_000)),
        key(
            "login_delay_max_ms",
            integer_or_zero(1, 60_000),
            "Maximum delay of the answer to a wrong password, in milliseconds. From the fourth failure of an address \
             or for a user within one to two minutes, each failure doubles the delay, starting at 100 ms. Clients on \
             this machine wait at most 250 ms. The right password is not delayed. If 8 wrong passwords of an address \
             for one user, or 24 for any user, await their answers, another attempt waits its turn, at most 2 s. 0 \
             disables the delay.",
        )
        .fallback(Fallback::Integer(2_000)),
    ],
};

pub(super) static AMQP_TRANSPORT: Table = Table {
    path: "transports[amqp]",
    name: "an AMQP transport",
    keys: &[
        TYPE,
        TRANSPORT_ID,
        key("endpoint", Kind::Tagged(&ENDPOINT), "Address that the listener binds.").required(),
        MAX_CONNECTIONS,
        key(
            "mechanisms",
            list_not_empty(&Kind::OneOf(&MECHANISMS)),
            "SASL mechanisms offered to clients. `EXTERNAL` needs `ca_certificates`: the common name in the client's \
             certificate is the user.",
        )
        .otherwise("`PLAIN` and `AMQPLAIN`, and with `ca_certificates` also `EXTERNAL`"),
        key(
            "options",
            Kind::Object(&AMQP_OPTIONS),
            "Options of the AMQP protocol.",
        )
        .otherwise("the defaults"),
    ],
};

static MECHANISMS: Words = Words {
    path: "",
    words: &["PLAIN", "AMQPLAIN", "EXTERNAL"],
};

static AMQP_OPTIONS: Table = Table {
    path: "transports[amqp].options",
    name: "AMQP options",
    keys: &[
        key(
            "frame_bytes_max",
            integer(4_096, 16 << 20),
            "Maximum frame size offered in `connection.tune`, in bytes. A larger frame closes its connection with \
             501 FRAME_ERROR. The default is RabbitMQ's.",
        )
        .fallback(Fallback::Integer(131_072)),
        key(
            "channels_max",
            integer(1, 65_535),
            "Maximum number of channels per connection. Opening another closes the connection with 530 NOT_ALLOWED. \
             The default is RabbitMQ's.",
        )
        .fallback(Fallback::Integer(2_047)),
        key(
            "heartbeat_seconds",
            integer(0, 3_600),
            "Heartbeat interval requested from clients, in seconds. A connection that sends nothing for twice as \
             long is closed. 0 requests no heartbeat.",
        )
        .fallback(Fallback::Integer(60)),
        key(
            "handshake_timeout_ms",
            integer(100, 3_600_000),
            "Maximum time from accepting a connection until the client has opened a vhost, in milliseconds. A slower \
             connection is closed.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "closing_timeout_ms",
            integer(1_000, 3_600_000),
            "Maximum time for a client to answer `connection.close`, and to close its socket after \
             `connection.close-ok`, in milliseconds. After that the broker closes the socket. For the same time \
             after a client's `channel.close`, the broker ignores frames on that channel: the client may have sent \
             them before it read `channel.close-ok`.",
        )
        .fallback(Fallback::Integer(10_000)),
    ],
};
