//! Keys of AMQP: users, vhosts, limits and listeners.

use std::time::Duration;

use crosstie_auth::PasswordHash;

use super::auth_backends::{AUTH_BACKEND, AmqpAuthBackend};
use super::endpoint::ENDPOINT;
use super::form::{
    Kind, Rule, TYPE, integer, integer_or_zero, list, list_not_empty, object, one_of, tagged, text,
};
use super::replicated::REPLICATED;
use super::table::tables;
use super::transport::{ALLOWED_HOSTS, MAX_CONNECTIONS, TRANSPORT_ID};
use crate::model::Replicated;
use crate::plain;

tables! {
    /// The broker behind a router worker's AMQP transports. With definitions the default users and vhosts are added
    /// only after the import.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Amqp = pub(crate) static AMQP("workers[router].amqp", "a router worker's AMQP") {
        "users" = list_not_empty(&object(&USER))
            .otherwise(
                "`guest` with the password `guest`, from this machine only; none beside those of `definitions`"
            )
            .at_once(),
            "Users that may connect.";
        "vhosts" = list_not_empty(&object(&VHOST))
            .otherwise("`/` with all permissions for every user; none beside those of `definitions`")
            .at_once(),
            "Virtual hosts, each with its own exchanges and queues.";
        "auth_backends" = list_not_empty(&tagged(&AUTH_BACKEND)).otherwise("`internal`").own().new_sessions(),
            "Backends of logins, in their order: `internal` (`users`), `http`, `oauth2`. The first that allows a login also \
             decides on the user's rights.";
        definitions: Option<String> = text(Rule::Path).optional().environment(),
            "Definitions file written by `rabbitmqctl export_definitions` (JSON). When the worker starts, the \
             broker declares its users, vhosts, permissions, exchanges, queues and bindings that do not exist yet. A \
             user or permission that the configuration also names is taken from the configuration. The log and \
             `crosstie check` list the parts that are not imported. A relative path starts at the node's directory.";
        store: String = text(Rule::Path).or_text("amqp.store").environment(),
            "Directory of durable exchanges, queues and persistent messages, created at the first write. A \
             relative path starts at the node's directory; no two workers share a file.";
        limits: AmqpLimits as plain::section = object(&AMQP_LIMITS).otherwise("the defaults").at_once(),
            "Limits on the broker's memory, connections and declarations.";
        identity: AmqpIdentity as plain::section = object(&IDENTITY)
            .otherwise("RabbitMQ, whose behaviour the broker follows"),
            "Product, version and cluster name in `server_properties`. Clients choose features by them.";
        let users: Vec<AmqpUser> = Vec::new();
        let vhosts: Vec<AmqpVhost> = Vec::new();
        let auth_backends: Vec<AmqpAuthBackend> = Vec::new();
    }

    /// Identity in a broker's `server_properties`. Clients choose features by it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AmqpIdentity = static IDENTITY("workers[router].amqp.identity", "the identity of an AMQP broker") {
        product: String = text(Rule::ShortText).or_text("RabbitMQ"),
            "Value of the property `product`. With another name than RabbitMQ, kombu (and so Celery) sets prefetch \
             in a way that does not reach running consumers. `platform` and `information` always name Crosstie.";
        version: String = text(Rule::ShortText).or_text("3.13.7"),
            "Value of the property `version`: the RabbitMQ version whose behaviour the broker follows.";
        cluster_name: Option<String> = text(Rule::ShortText).otherwise("`crosstie@` and the machine's name"),
            "Value of the property `cluster_name`.";
    }

    /// A user with the hash of the password. A user without one logs in by certificate only.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AmqpUser = static USER("workers[router].amqp.users[]", "an AMQP user") {
        name: String = text(Rule::ShortText).required().environment(), "Name of the user.";
        "password" = text(Rule::NotEmpty).otherwise("none; the user logs in by certificate").environment(),
            "Password of the user. Only a hash of it is kept in memory.";
        "password_hash" = text(Rule::NotEmpty).otherwise("made from the password").environment(),
            "Salted hash in place of the password, as RabbitMQ exports it.";
        "hashing_algorithm" = one_of(&HASHING_ALGORITHMS).or_text("rabbit_password_hashing_sha256"),
            "Hash algorithm of `password_hash`.";
        tags: Vec<String> = list(&text(Rule::NotEmpty)).optional(),
            "Tags of the user, as in RabbitMQ. `impersonator` lets the user publish with another user's name in the \
             property `user-id`; no other tag has an effect.";
        "loopback_only" = Kind::Boolean.otherwise("`true` for `guest`, else `false`"),
            "Restricts the user to connections from this machine.";
        let password: Option<PasswordHash> = None;
        let is_remote_allowed: bool = true;
        let is_default: bool = false;
    }

    words HASHING_ALGORITHMS("") {
        "rabbit_password_hashing_sha256",
        "rabbit_password_hashing_sha512",
        "rabbit_password_hashing_md5",
    }

    /// A vhost with its permissions.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AmqpVhost = static VHOST("workers[router].amqp.vhosts[]", "an AMQP vhost") {
        name: String = text(Rule::ShortText).required().environment(), "Name of the vhost.";
        "permissions" = list(&object(&PERMISSION)).optional().at_once(),
            "Users that may open the vhost, with their permissions in it.";
        "replicated" = object(&REPLICATED).otherwise("the vhost exists on this worker only, in its store").own().restart(),
            "Replication of the vhost: NATS servers keep its journal, and another node takes over if the owner \
             fails.";
        let permissions: Vec<AmqpPermission> = Vec::new();
        let replicated: Option<Replicated> = None;
        let is_default: bool = false;
    }

    /// Three regular expressions for names of queues and exchanges. As in RabbitMQ, an empty one allows nothing.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AmqpPermission = static PERMISSION(
        "workers[router].amqp.vhosts[].permissions[]", "an AMQP permission"
    ) {
        user: String = text(Rule::ShortText).required().environment(), "Name of the user.";
        configure: String = text(Rule::Any).or_text(""),
            "Regular expression for names of exchanges and queues that the user may declare and delete. An empty \
             expression allows none.";
        write: String = text(Rule::Any).or_text(""),
            "Regular expression for names of exchanges and queues that the user may publish to, or bind as the \
             destination. An empty expression allows none.";
        read: String = text(Rule::Any).or_text(""),
            "Regular expression for names of exchanges and queues that the user may consume from, or bind as the \
             source. An empty expression allows none.";
    }

    /// Limits of a router worker's AMQP broker.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AmqpLimits = static AMQP_LIMITS("workers[router].amqp.limits", "the limits of AMQP") {
        memory_bytes_max: usize = integer(1 << 20, 1 << 44).or(1 << 30),
            "Maximum memory for messages, with the journals of replicated vhosts, in bytes per broker. Long queues leave \
             memory for the disk before that. At the limit publishing connections receive `connection.blocked` and are \
             not read until memory is free.";
        message_bytes_max: usize = integer(1_024, 1 << 31).or(128 << 20),
            "Maximum size of a message body, in bytes. A larger one closes the channel with 406 PRECONDITION_FAILED.";
        commit_bytes_max: usize = integer(1 << 16, 1 << 40).or(256 << 20),
            "Maximum data waiting to be written to the store, in bytes. At the limit connections that publish, \
             declare or acknowledge durable data receive `connection.blocked`.";
        disk_free_bytes_min: u64 = integer_or_zero(1 << 20, 1 << 40).or(128 << 20),
            "Minimum free space on the store's file system, in bytes. It is \
             RabbitMQ's `disk_free_limit`. Below it, connections that publish, declare or bind durable data receive \
             `connection.blocked` (low on disk); consumers continue and so free space. Publishers resume at a tenth \
             more free space. On a small file system the limit is an eighth of it, if that is less. 0 blocks nothing \
             until the disk is full. The store keeps 16 MiB in reserve, or a sixteenth of a small file system: removals \
             of messages use them on a full disk.";
        queues_max: usize = integer(1, 100_000_000).or(100_000),
            "Maximum number of queues per vhost. Declaring another closes the channel with 406 PRECONDITION_FAILED.";
        connection_queues_max: usize = integer(1, 100_000_000).or(10_000),
            "Maximum number of exclusive queues per connection. Declaring another closes the channel with 406 \
             PRECONDITION_FAILED. `permissions` decide on other queues.";
        exchanges_max: usize = integer(8, 100_000_000).or(100_000),
            "Maximum number of exchanges per vhost, predeclared ones included. Declaring another closes the channel \
             with 406 PRECONDITION_FAILED.";
        bindings_max: usize = integer(1, 100_000_000).or(1_000_000),
            "Maximum number of bindings per vhost. Another one closes the channel with 406 PRECONDITION_FAILED.";
        definition_bytes_max: usize = integer(1 << 16, 1 << 40).or(64 << 20),
            "Maximum size of the names, keys and arguments of all queues, exchanges and bindings, in bytes per \
             vhost. A declaration beyond it closes the channel with 406 PRECONDITION_FAILED.";
        exchange_steps_max: usize = integer(100, 1 << 40).or(10_000),
            "Maximum worst-case cost of matching a message against the bindings of a topic or headers exchange, in \
             steps of about 50 ns. A binding beyond it closes the channel with 406 PRECONDITION_FAILED. The limit \
             also applies to the sum over all exchanges reached from other exchanges (by binding or as alternate), \
             with 16 steps free for each. A message whose `CC` and `BCC` keys cost more than twice the limit closes \
             the channel with 406. A word costs one step, and another if `*` can match the same key. The words \
             behind a `#` in the middle of a pattern cost 256 times as much.";
        pattern_nodes_max: usize = integer(100, 1 << 40).or(1_000_000),
            "Maximum number of pattern nodes of all exchanges of a vhost: words of topic patterns with wildcards, \
             common beginnings counted once, and fields of headers bindings. A binding beyond it closes the channel \
             with 406 PRECONDITION_FAILED.";
        history_messages_max: usize = integer(1, 1_000_000).or(1_000),
            "Maximum `x-recent-history-length` of an exchange of type `x-recent-history`. A longer history closes the \
             channel with 406 PRECONDITION_FAILED. A new binding gets the history in one turn, which delays the whole \
             vhost by about 1 µs per message.";
        history_bytes_max: usize = integer_or_zero(1_024, 1 << 40).or(64 << 20),
            "Maximum size of the messages that exchanges of type `x-recent-history` keep, in bytes per vhost. At the \
             limit the exchange with the largest history forgets its oldest messages, which \
             `crosstie_amqp_history_evicted_total` counts.";
        consumers_max: usize = integer(1, 100_000_000).or(10_000),
            "Maximum number of consumers per channel. Another one closes the channel with 406 PRECONDITION_FAILED.";
        connection_consumers_max: usize = integer(1, 100_000_000).or(100_000),
            "Maximum number of consumers on all channels of a connection. Another one closes its channel with 406 \
             PRECONDITION_FAILED.";
        copy_keys_max: usize = integer(0, 1_000_000).or(128),
            "Maximum number of routing keys in the headers `CC` and `BCC` of a message, each of which is routed. \
             Another one closes the channel with 406 PRECONDITION_FAILED.";
        transaction_messages_max: usize = integer(1, 1_000_000).or(10_000),
            "Maximum number of publications and acknowledgements per transaction (`tx.select`). Another one closes \
             the channel with 406 PRECONDITION_FAILED. A commit delays the whole vhost by about 3 µs for each, and \
             for each queue that a message reaches.";
        transaction_bytes_max: usize = integer(1_024, 1 << 40).or(128 << 20),
            "Maximum size of uncommitted publications on all channels of a connection, in bytes. More close the \
             channel with 406 PRECONDITION_FAILED. Together with partly received messages, a connection may hold a \
             quarter of `memory_bytes_max`, or one message of the largest size; more close the channel with 311 \
             CONTENT_TOO_LARGE. All connections together may hold `memory_bytes_max`; beyond it the broker closes \
             the connection that holds most.";
        consumer_timeout_ms => consumer_timeout: Option<Duration> = integer_or_zero(1_000, 31_536_000_000)
            .or(1_800_000)
            .restart(),
            "Maximum time for a consumer to acknowledge a delivery, in milliseconds. A slower one has its channel \
             closed with 406 PRECONDITION_FAILED. 0 waits forever. The default is RabbitMQ's.";
        incomplete_timeout_ms => incomplete_timeout: Option<Duration> = integer_or_zero(1_000, 86_400_000)
            .or(60_000)
            .restart(),
            "Maximum time for a partly received message to complete, in milliseconds, extended by the same time for \
             each further 64 KiB received. If the rest arrives too slowly, the channel is closed with 406 \
             PRECONDITION_FAILED. If nothing arrives, the connection is closed with 320 CONNECTION_FORCED after \
             twice that time. 0 waits forever. The time stands still while the connection is blocked.";
        login_delay_max_ms => login_delay_max: Duration = integer_or_zero(1, 60_000).or(2_000).restart(),
            "Maximum delay of the answer to a wrong password, in milliseconds. From the fourth failure of an \
             address or for a user within one to two minutes, each failure doubles the delay, starting at 100 ms. \
             Clients on this machine wait at most 250 ms. The right password is not delayed. If 8 wrong passwords of \
             an address for one user, or 24 for any user, await their answers, another attempt waits its turn, at \
             most 2 s. 0 disables the delay.";
    }

    pub(super) static AMQP_TRANSPORT("transports[amqp]", "an AMQP transport") {
        ..TYPE, TRANSPORT_ID;
        "endpoint" = tagged(&ENDPOINT).required(), "Address that the listener binds.";
        ..MAX_CONNECTIONS;
        "mechanisms" = list_not_empty(&one_of(&MECHANISMS))
            .otherwise("`PLAIN` and `AMQPLAIN`, and with `ca_certificates` also `EXTERNAL`"),
            "SASL mechanisms offered to clients. `EXTERNAL` needs `ca_certificates`: the common name in the \
             client's certificate is the user.";
        "options" = object(&AMQP_OPTIONS).otherwise("the defaults"), "Options of the AMQP protocol.";
    }

    /// RabbitMQ's management API on a listener.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AmqpManagement = pub(super) static AMQP_MANAGEMENT_TRANSPORT(
        "transports[amqp.management]", "a transport of RabbitMQ's management API"
    ) {
        ..TYPE, TRANSPORT_ID;
        "endpoint" = tagged(&ENDPOINT).required(), "Address that the listener binds. RabbitMQ's port is 15672, and 15671 with TLS.";
        ..MAX_CONNECTIONS, ALLOWED_HOSTS;
        cors: Option<Cors> as plain::optional_section = object(&CORS).optional(),
            "Pages of other sites that may use the API. Without it only pages of the API's own origin may.";
    }

    /// Pages of other sites that may use the management API (CORS).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Cors = static CORS("transports[amqp.management].cors", "CORS of the management API") {
        allow_origins: Vec<String> = list_not_empty(&text(Rule::Origin)).required(),
            "Origins of the pages. Their requests may change objects and carry the browser's stored login. RabbitMQ's `*` \
             is refused: every site could use a login that the browser has.";
        max_age_seconds => max_age: Duration as plain::seconds = integer(0, 86_400).or(1_800),
            "Time for which a browser remembers the answer to its first request, in seconds. The default is RabbitMQ's.";
    }

    pub(super) static AMQP_PROMETHEUS_TRANSPORT(
        "transports[amqp.prometheus]", "a transport of metrics under RabbitMQ's names"
    ) {
        ..TYPE, TRANSPORT_ID;
        "endpoint" = tagged(&ENDPOINT).required(), "Address that the listener binds. RabbitMQ's port is 15692. Requests need no login.";
        ..MAX_CONNECTIONS, ALLOWED_HOSTS;
    }

    /// A SASL mechanism.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum AmqpMechanism = words MECHANISMS("") {
        "PLAIN" => Plain,
        "AMQPLAIN" => AmqPlain,
        /// By the name in the client's TLS certificate.
        "EXTERNAL" => External,
    }

    /// Options of an AMQP listener.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AmqpTransport = static AMQP_OPTIONS("transports[amqp].options", "AMQP options") {
        frame_bytes_max: u32 = integer(4_096, 16 << 20).or(131_072),
            "Maximum frame size offered in `connection.tune`, in bytes. A larger frame closes its connection with \
             501 FRAME_ERROR. The default is RabbitMQ's.";
        channels_max: u16 = integer(1, 65_535).or(2_047),
            "Maximum number of channels per connection. Opening another closes the connection with 530 NOT_ALLOWED. \
             The default is RabbitMQ's.";
        heartbeat_seconds => heartbeat: Option<Duration> as plain::positive_seconds = integer(0, 3_600).or(60),
            "Heartbeat interval requested from clients, in seconds. A connection that sends nothing for twice as \
             long is closed. 0 requests no heartbeat.";
        handshake_timeout_ms => handshake_timeout: Duration = integer(100, 3_600_000).or(10_000),
            "Maximum time from accepting a connection until the client has opened a vhost, in milliseconds. A \
             slower connection is closed.";
        closing_timeout_ms => closing_timeout: Duration = integer(1_000, 3_600_000).or(10_000),
            "Maximum time for a client to answer `connection.close`, and to close its socket after \
             `connection.close-ok`, in milliseconds. After that the broker closes the socket. For the same time \
             after a client's `channel.close`, the broker ignores frames on that channel: the client may have sent \
             them before it read `channel.close-ok`.";
        let mechanisms: Vec<AmqpMechanism> = Vec::new();
    }
}
