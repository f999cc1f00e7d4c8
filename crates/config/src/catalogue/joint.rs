//! Joints of WAMP and AMQP: every key that is taken. Long and flat.

use super::form::{
    Fallback, Key, Kind, NO, Rule, TYPE, Table, Tagged, Words, YES, integer, key, list,
    list_not_empty,
};

pub(crate) static JOINT: Tagged = Tagged {
    path: "joints[].type",
    name: "a joint",
    variants: &[
        ("exchange-to-topic", &EXCHANGE_TO_TOPIC),
        ("procedure-to-target", &PROCEDURE_TO_TARGET),
        ("target-to-procedure", &TARGET_TO_PROCEDURE),
        ("topic-to-exchange", &TOPIC_TO_EXCHANGE),
    ],
};

const JOINT_ID: Key = key(
    "id",
    Kind::Text(Rule::Id),
    "Id of the joint, unique within the worker.",
)
.otherwise("`joint1`, `joint2`, … by position");
const REALM: Key = key("realm", Kind::Text(Rule::RealmName), "Realm of the joint.").required();
const ROLE: Key = key(
    "role",
    Kind::Text(Rule::NotEmpty),
    "Role of the joint in the realm; its permissions apply to the joint.",
)
.required();
const VHOST: Key =
    key("vhost", Kind::Text(Rule::ShortText), "Vhost of the joint.").fallback(Fallback::Text("/"));
const USER: Key = key(
    "user",
    Kind::Text(Rule::ShortText),
    "AMQP user whose permissions apply to the joint.",
)
.required();
const BODY_BYTES_MAX: Key = key(
    "body_bytes_max",
    integer(1_024, 64 << 20),
    "Maximum size of a message body, in bytes. A longer call fails; a longer AMQP message is rejected without \
     requeueing.",
)
.fallback(Fallback::Integer(1 << 20));
const HOPS_MAX: Key = key(
    "hops_max",
    integer(1, 64),
    "Maximum number of joints that a message may pass, this one included. A message beyond it is not forwarded, \
     which stops loops.",
)
.fallback(Fallback::Integer(8));
const TARGET_EXCHANGE: Key = key(
    "exchange",
    Kind::Text(Rule::ShortText),
    "Exchange of the target (oslo.messaging's `control_exchange`).",
)
.fallback(Fallback::Text("openstack"));
const TARGET_TOPIC: Key =
    key("topic", Kind::Text(Rule::ShortText), "Topic of the target.").required();
const NAMESPACE: Key = key(
    "namespace",
    Kind::Text(Rule::NotEmpty),
    "Namespace of the target.",
)
.otherwise("none");
const VERSION: Key = key(
    "version",
    Kind::Text(Rule::NotEmpty),
    "Version of the target.",
)
.otherwise("none, which means 1.0");
const TARGET_DURABLE: Key = key(
    "durable",
    Kind::Boolean,
    "Declares the exchange and queues as durable, as oslo.messaging's `amqp_durable_queues` does.",
)
.fallback(NO);
const TIMEOUT: Key = key(
    "timeout_ms",
    integer(1, 86_400_000),
    "Maximum time to wait for an answer, in milliseconds.",
)
.fallback(Fallback::Integer(60_000));
const PENDING_MAX: Key = key(
    "pending_max",
    integer(1, 1_000_000),
    "Maximum number of pending calls.",
)
.fallback(Fallback::Integer(1_000));
const PREFETCH: Key = key(
    "prefetch",
    integer(1, 65_535),
    "Maximum number of unacknowledged deliveries.",
)
.fallback(Fallback::Integer(100));
const ERRORS: Key = key(
    "errors",
    list(&ONE_ERROR),
    "Pairs of WAMP error URIs and Python exceptions.",
)
.otherwise("the built-in pairs");
const IMPERSONATE: Key = key(
    "impersonate",
    Kind::Boolean,
    "Sends the authid of a disclosed sender as the message's `user-id`. The AMQP user needs the tag `impersonator`.",
)
.fallback(NO);
const PROPERTIES_ARGUMENT: Key = key(
    "properties_argument",
    Kind::Text(Rule::NotEmpty),
    "Name of a keyword argument that carries the message's properties, with the `user_id` that the broker has \
     checked.",
)
.otherwise("none");
const MATCH: Key = key(
    "match",
    Kind::OneOf(&MATCHES),
    "Matching policy of the URI.",
)
.fallback(Fallback::Text("exact"));
const EXCHANGE: Key = key(
    "exchange",
    Kind::Text(Rule::ShortText),
    "Name of the exchange.",
)
.required();
const EXCHANGE_TYPE: Key = key(
    "exchange_type",
    Kind::OneOf(&EXCHANGE_TYPES),
    "Type of the exchange.",
)
.fallback(Fallback::Text("topic"));
const DURABLE: Key = key(
    "durable",
    Kind::Boolean,
    "Declares the exchange as durable.",
)
.fallback(YES);
const DECLARE: Key = key(
    "declare",
    Kind::Boolean,
    "Declares the exchange. With `false` it must exist.",
)
.fallback(YES);
const BODY: Key = key(
    "body",
    Kind::OneOf(&BODIES),
    "Encoding of an event's arguments in a message body.",
)
.fallback(Fallback::Text("json"));

static ONE_ERROR: Kind = Kind::Object(&ERROR);

static MATCHES: Words = Words {
    path: "joints[].match",
    words: &["exact", "prefix", "wildcard"],
};

static EXCHANGE_TYPES: Words = Words {
    path: "joints[].exchange_type",
    words: &["direct", "fanout", "headers", "topic"],
};

static BODIES: Words = Words {
    path: "joints[].body",
    words: &["json", "wamp", "oslo-notification", "bytes"],
};

static MODES: Words = Words {
    path: "joints[].mode",
    words: &["call", "cast"],
};

static PROCEDURE_TO_TARGET: Table = Table {
    path: "workers[router].joints[procedure-to-target]",
    name: "a joint of a procedure to a target",
    keys: &[
        TYPE,
        JOINT_ID,
        REALM,
        ROLE,
        key(
            "procedure",
            Kind::Text(Rule::Uri),
            "Procedure that the joint registers.",
        )
        .required(),
        MATCH,
        VHOST,
        USER,
        TARGET_EXCHANGE,
        TARGET_TOPIC,
        key(
            "server",
            Kind::Text(Rule::NotEmpty),
            "Name of one server of the topic.",
        )
        .otherwise("any of them"),
        NAMESPACE,
        VERSION,
        TARGET_DURABLE,
        key(
            "method",
            Kind::Text(Rule::NotEmpty),
            "Method to call. `{procedure}` stands for the URI, `{rest}` for the part behind the prefix, `{last}` for \
             the last component.",
        )
        .otherwise("`{rest}` if `match` is `prefix`, else `{last}`"),
        key(
            "mode",
            Kind::OneOf(&MODES),
            "Kind of request: a call awaits the method's result, a cast only the broker's confirm.",
        )
        .fallback(Fallback::Text("call")),
        key(
            "fanout",
            Kind::Boolean,
            "Sends a cast to every server of the topic.",
        )
        .fallback(NO),
        key(
            "arguments",
            list_not_empty(&Kind::Text(Rule::NotEmpty)),
            "Names for positional arguments, which oslo.messaging's methods do not have.",
        )
        .otherwise("none: a call with positional arguments fails"),
        key(
            "context",
            Kind::Map {
                keys: Rule::NotEmpty,
                of: &Kind::Json,
                environment: false,
            },
            "Fields added to the context of each call.",
        )
        .otherwise("only the caller's, if disclosed"),
        TIMEOUT,
        PENDING_MAX.about("Maximum number of pending calls. Another one fails."),
        BODY_BYTES_MAX,
        HOPS_MAX,
        ERRORS,
        key(
            "tracebacks",
            Kind::Boolean,
            "Includes the server's traceback in errors.",
        )
        .fallback(NO),
        IMPERSONATE,
    ],
};

static TARGET_TO_PROCEDURE: Table = Table {
    path: "workers[router].joints[target-to-procedure]",
    name: "a joint of a target to a procedure",
    keys: &[
        TYPE,
        JOINT_ID,
        REALM,
        ROLE,
        key(
            "procedure",
            Kind::Text(Rule::ExactUri),
            "Procedure to call. `{method}` and `{namespace}` stand for those of the request.",
        )
        .required(),
        VHOST,
        USER,
        TARGET_EXCHANGE,
        TARGET_TOPIC,
        key(
            "server",
            Kind::Text(Rule::NotEmpty),
            "Name of the joint among the topic's servers.",
        )
        .required(),
        NAMESPACE,
        VERSION,
        TARGET_DURABLE,
        TIMEOUT,
        PENDING_MAX
            .about("Maximum number of pending calls. Further requests wait in their queues."),
        PREFETCH,
        BODY_BYTES_MAX,
        HOPS_MAX,
        key(
            "context_argument",
            Kind::Text(Rule::NotEmpty),
            "Name of a keyword argument that carries the caller's context.",
        )
        .otherwise("none"),
        PROPERTIES_ARGUMENT,
        ERRORS,
    ],
};

static TOPIC_TO_EXCHANGE: Table = Table {
    path: "workers[router].joints[topic-to-exchange]",
    name: "a joint of a topic to an exchange",
    keys: &[
        TYPE,
        JOINT_ID,
        REALM,
        ROLE,
        key(
            "topic",
            Kind::Text(Rule::Uri),
            "Topic that the joint subscribes to.",
        )
        .required(),
        MATCH,
        VHOST,
        USER,
        EXCHANGE,
        EXCHANGE_TYPE,
        DURABLE,
        DECLARE,
        key(
            "routing_key",
            Kind::Text(Rule::Any),
            "Routing key of the messages. `{topic}` stands for the event's topic, `{rest}` for the part behind the \
             prefix.",
        )
        .fallback(Fallback::Text("{topic}")),
        BODY,
        key(
            "persistent",
            Kind::Boolean,
            "Publishes persistent messages, which survive a restart in durable queues.",
        )
        .fallback(YES),
        BODY_BYTES_MAX,
        HOPS_MAX,
        IMPERSONATE,
    ],
};

static EXCHANGE_TO_TOPIC: Table = Table {
    path: "workers[router].joints[exchange-to-topic]",
    name: "a joint of an exchange to a topic",
    keys: &[
        TYPE,
        JOINT_ID,
        REALM,
        ROLE,
        key(
            "topic",
            Kind::Text(Rule::ExactUri),
            "Topic of the events. `{routing_key}` and `{exchange}` stand for those of the message.",
        )
        .required(),
        VHOST,
        USER,
        EXCHANGE,
        EXCHANGE_TYPE,
        DURABLE,
        DECLARE,
        key(
            "queue",
            Kind::Text(Rule::ShortText),
            "Name of a durable queue that keeps messages while the joint is not connected.",
        )
        .otherwise("a queue that is deleted with the joint"),
        key(
            "binding_keys",
            list_not_empty(&Kind::Text(Rule::Any)),
            "Binding keys of the queue.",
        )
        .otherwise("`#`"),
        BODY,
        PREFETCH,
        BODY_BYTES_MAX,
        HOPS_MAX,
        PROPERTIES_ARGUMENT,
    ],
};

static ERROR: Table = Table {
    path: "joints[].errors[]",
    name: "an error of a joint",
    keys: &[
        key("uri", Kind::Text(Rule::ExactUri), "WAMP URI of the error.").required(),
        key(
            "exception",
            Kind::Text(Rule::PythonName),
            "Python exception, as `package.module.Class`.",
        )
        .required(),
    ],
};
