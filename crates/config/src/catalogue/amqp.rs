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
            "Who may connect.",
        )
        .otherwise("`guest` with the password `guest`, from this machine only; none beside those of `definitions`"),
        key(
            "vhosts",
            list_not_empty(&Kind::Object(&VHOST)),
            "The virtual hosts: each has exchanges and queues of its own.",
        )
        .otherwise("`/`, where every user may do everything; none beside those of `definitions`"),
        key(
            "definitions",
            Kind::Text(Rule::Path),
            "A file that `rabbitmqctl export_definitions` has written (JSON). Its users, \
             vhosts, permissions, exchanges, queues and bindings are declared when the worker \
             starts, where they are not there yet; a user or permission that this file names too \
             is taken from here. The log and `crosstie check` list what is not imported. A relative \
             path begins at the node's directory.",
        )
        .environment(),
        key(
            "store",
            Kind::Text(Rule::Path),
            "The file of durable exchanges, queues and messages. It is made when there is \
             something to write. A relative path begins at the node's directory; no two workers \
             share one.",
        )
        .fallback(Fallback::Text("amqp.store"))
        .environment(),
        key(
            "limits",
            Kind::Object(&AMQP_LIMITS),
            "The bounds of its vhosts: of memory all together, of what is declared each.",
        )
        .otherwise("all of their defaults"),
        key(
            "identity",
            Kind::Object(&IDENTITY),
            "What its `server_properties` say that it is: clients decide by it what they ask for, \
             and how.",
        )
        .otherwise("RabbitMQ, by which it is meant that all of RabbitMQ's ways are understood"),
    ],
};

static IDENTITY: Table = Table {
    path: "workers[router].amqp.identity",
    name: "the identity of an AMQP broker",
    keys: &[
        key(
            "product",
            Kind::Text(Rule::ShortText),
            "The property `product`. Under another name kombu, and Celery with it, sets \
             prefetch in a way that does not reach running consumers. `platform` and \
             `information` name Crosstie whatever is said here.",
        )
        .fallback(Fallback::Text("RabbitMQ")),
        key(
            "version",
            Kind::Text(Rule::ShortText),
            "The property `version`: of RabbitMQ the version whose ways are meant.",
        )
        .fallback(Fallback::Text("3.13.7")),
        key(
            "cluster_name",
            Kind::Text(Rule::ShortText),
            "The property `cluster_name`.",
        )
        .otherwise("`crosstie@` and the machine's name"),
    ],
};

static USER: Table = Table {
    path: "workers[router].amqp.users[]",
    name: "an AMQP user",
    keys: &[
        key("name", Kind::Text(Rule::ShortText), "The user's name.").required(),
        key(
            "password",
            Kind::Text(Rule::NotEmpty),
            "The password; only a hash of it is kept in memory.",
        )
        .otherwise("none: a certificate proves who it is")
        .environment(),
        key(
            "password_hash",
            Kind::Text(Rule::NotEmpty),
            "In place of the password: its salted hash, as RabbitMQ exports it.",
        )
        .otherwise("made from the password")
        .environment(),
        key(
            "hashing_algorithm",
            Kind::OneOf(&HASHING_ALGORITHMS),
            "How `password_hash` was made.",
        )
        .fallback(Fallback::Text("rabbit_password_hashing_sha256")),
        key(
            "tags",
            list(&Kind::Text(Rule::NotEmpty)),
            "Words about the user, as RabbitMQ has them. `impersonator` lets the user publish in \
             the name of others (the property `user-id`); no other allows anything here.",
        )
        .otherwise("none"),
        key(
            "loopback_only",
            Kind::Boolean,
            "Whether the user may connect from this machine only.",
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
        key("name", Kind::Text(Rule::ShortText), "The vhost's name.").required(),
        key(
            "permissions",
            list(&Kind::Object(&PERMISSION)),
            "Who may open it, and what they may do there.",
        )
        .otherwise("nobody may open it"),
        key(
            "replicated",
            Kind::Object(&REPLICATED),
            "Has the vhost survive its machine: its journal is kept by servers of NATS, and another node takes it over.",
        )
        .otherwise("it is this worker's alone, and in its store")
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
        key("user", Kind::Text(Rule::ShortText), "Whose it is.").required(),
        pattern(
            "configure",
            "A regular expression over names of exchanges and queues: those that the user may \
             declare and delete. An empty one allows none.",
        ),
        pattern(
            "write",
            "The same: those that the user may publish or bind to.",
        ),
        pattern(
            "read",
            "The same: those that the user may consume or bind from.",
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
            "Bytes of messages in memory, and of what the logs of replicated vhosts take there. \
             Beyond them connections that publish are told `connection.blocked` and not read from until there is room.",
        )
        .fallback(Fallback::Integer(1 << 30)),
        key(
            "message_bytes_max",
            integer(1_024, 1 << 31),
            "Bytes of one message's body. A larger one closes its channel with 406.",
        )
        .fallback(Fallback::Integer(128 << 20)),
        key(
            "commit_bytes_max",
            integer(1 << 16, 1 << 40),
            "Bytes that wait to be written to the store. Beyond them connections that \
             publish, declare or acknowledge what survives are blocked as above.",
        )
        .fallback(Fallback::Integer(256 << 20)),
        key(
            "disk_free_bytes_min",
            integer_or_zero(1 << 20, 1 << 40),
            "Bytes that should be free on the store's file system, with what is free within the \
             store; RabbitMQ's `disk_free_limit`. Below, connections that publish, declare or bind \
             what survives are blocked (`connection.blocked`: low on disk), and others go on: \
             consuming makes room. Publishers go on when a tenth more is free. Of a small file \
             system an eighth, if that is less. 0: they are not blocked before the disk is full. \
             A file beside the store, `…-reserve`, holds 16 MiB (of a small file system a twelfth) \
             that are given up to delete messages when the disk is full all the same.",
        )
        .fallback(Fallback::Integer(128 << 20)),
        key(
            "queues_max",
            integer(1, 100_000_000),
            "Queues of a vhost; one more closes its channel with 406.",
        )
        .fallback(Fallback::Integer(100_000)),
        key(
            "connection_queues_max",
            integer(1, 100_000_000),
            "Exclusive queues of one connection; one more closes its channel with 406. Who may make \
             others is for `permissions` to say.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "exchanges_max",
            integer(8, 100_000_000),
            "Exchanges of a vhost, with those that are always there; one more closes its \
             channel with 406.",
        )
        .fallback(Fallback::Integer(100_000)),
        key(
            "bindings_max",
            integer(1, 100_000_000),
            "Bindings of a vhost; one more closes its channel with 406.",
        )
        .fallback(Fallback::Integer(1_000_000)),
        key(
            "definition_bytes_max",
            integer(1 << 16, 1 << 40),
            "Bytes of the names, keys and arguments of all queues, exchanges and bindings of a \
             vhost; more close their channel with 406.",
        )
        .fallback(Fallback::Integer(64 << 20)),
        key(
            "exchange_steps_max",
            integer(100, 1 << 40),
            "Steps, of some 50 ns each, that the patterns bound to one topic or headers exchange may \
             cost a message at worst; a binding that would make it more closes its channel with \
             406. Those of all exchanges that other exchanges lead to (by a binding, or as \
             alternate) are together at most as many, where each has 16 free; a message whose \
             `CC` and `BCC` cost it more than twice this closes its channel with 406. A word costs \
             one, a second that the same key may match another (`*`), and what follows a `#` in \
             the middle of a pattern 256 times as much.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "pattern_nodes_max",
            integer(100, 1 << 40),
            "Words of topic exchanges' patterns with wildcards, those that begin alike counted \
             once, and fields of headers exchanges' patterns, of all exchanges of a vhost; a \
             binding with more closes its channel with 406.",
        )
        .fallback(Fallback::Integer(1_000_000)),
        key(
            "consumers_max",
            integer(1, 100_000_000),
            "Consumers of a channel; one more closes it with 406.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "connection_consumers_max",
            integer(1, 100_000_000),
            "Consumers of all channels of a connection; one more closes its channel with 406.",
        )
        .fallback(Fallback::Integer(100_000)),
        key(
            "copy_keys_max",
            integer(0, 1_000_000),
            "Routing keys in the headers `CC` and `BCC` of one message, each of which is routed by; \
             one more closes its channel with 406.",
        )
        .fallback(Fallback::Integer(128)),
        key(
            "transaction_messages_max",
            integer(1, 1_000_000),
            "Publications and acknowledgements of one transaction (`tx.select`); one more closes \
             its channel with 406. A commit holds up everybody in its vhost: some 3 µs for each, \
             and for each queue that it goes to.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "transaction_bytes_max",
            integer(1_024, 1 << 40),
            "Bytes of what the channels of one connection have published in transactions and not \
             committed; more close their channel with 406. Together with messages of which only a \
             part has come they are at most a quarter of `memory_bytes_max` for one connection (or \
             one message of the largest size); more close their channel with 311. For all \
             connections they are at most `memory_bytes_max`; beyond, the connection that holds most \
             is closed.",
        )
        .fallback(Fallback::Integer(128 << 20)),
        key(
            "consumer_timeout_ms",
            integer_or_zero(1_000, 31_536_000_000),
            "How long a delivery may wait for its acknowledgement, in milliseconds, before its \
             channel is closed with 406; 0: for ever.",
        )
        .fallback(Fallback::Integer(1_800_000)),
        key(
            "incomplete_timeout_ms",
            integer_or_zero(1_000, 86_400_000),
            "How long a message of which only a part has come is waited for, in milliseconds; as long \
             again for each 64 KiB more of it that came meanwhile. Where too little comes, its channel \
             is closed with 406; where nothing does, its connection with 320 after twice as long. 0: \
             for ever. While a connection is blocked its messages are not late.",
        )
        .fallback(Fallback::Integer(60_000)),
        key(
            "login_delay_max_ms",
            integer_or_zero(1, 60_000),
            "Maximum delay of the answer to a wrong password, in milliseconds. From the fourth failure of an \
             address or for a user within a minute or two, each doubles the delay, from 100 ms on; clients \
             on this machine wait 250 ms at most. The right password is not delayed. While 8 wrong \
             passwords of an address for one user wait for their answers, or 24 for any, another attempt \
             waits for its turn, 2 s at most. 0: no delay.",
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
        key("endpoint", Kind::Tagged(&ENDPOINT), "Where it listens.").required(),
        MAX_CONNECTIONS,
        key(
            "mechanisms",
            list_not_empty(&Kind::OneOf(&MECHANISMS)),
            "How clients may prove who they are. `EXTERNAL` needs `ca_certificates`: the common \
             name in the client's certificate is the user.",
        )
        .otherwise("`PLAIN` and `AMQPLAIN`; `EXTERNAL` too where `ca_certificates` are given"),
        key(
            "options",
            Kind::Object(&AMQP_OPTIONS),
            "How AMQP is spoken.",
        )
        .otherwise("all of their defaults"),
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
            "The largest frame that is offered, in bytes. A larger one closes its \
             connection with 501.",
        )
        .fallback(Fallback::Integer(131_072)),
        key(
            "channels_max",
            integer(1, 65_535),
            "How many channels a connection may have. One more closes it with 530.",
        )
        .fallback(Fallback::Integer(2_047)),
        key(
            "heartbeat_seconds",
            integer(0, 3_600),
            "The heartbeat that clients are asked for; one from which nothing came for twice \
             as long is closed. 0: none is asked for.",
        )
        .fallback(Fallback::Integer(60)),
        key(
            "handshake_timeout_ms",
            integer(100, 3_600_000),
            "How long a connection may take until it has opened its vhost, in milliseconds.",
        )
        .fallback(Fallback::Integer(10_000)),
        key(
            "closing_timeout_ms",
            integer(1_000, 3_600_000),
            "How long a client may take to answer `connection.close`, and to close its socket \
             after `connection.close-ok`, in milliseconds. Then its socket is closed here. For as \
             long after a client's `channel.close`, frames on that channel are ignored: the client \
             may have sent them before it read `channel.close-ok`.",
        )
        .fallback(Fallback::Integer(10_000)),
    ],
};
