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
    "The joint's id; no two joints of a worker share one.",
)
.otherwise("`joint1`, `joint2`, …, by its place");
const REALM: Key = key(
    "realm",
    Kind::Text(Rule::RealmName),
    "The realm that it is in.",
)
.required();
const ROLE: Key = key(
    "role",
    Kind::Text(Rule::NotEmpty),
    "The role that it has there; what that may do it may do.",
)
.required();
const VHOST: Key = key(
    "vhost",
    Kind::Text(Rule::ShortText),
    "The vhost that it is in.",
)
.fallback(Fallback::Text("/"));
const USER: Key = key(
    "user",
    Kind::Text(Rule::ShortText),
    "The AMQP user whose permissions it has there.",
)
.required();
const BODY_BYTES_MAX: Key = key(
    "body_bytes_max",
    integer(1_024, 64 << 20),
    "Bytes of a message's body. A longer one is not passed on: a call is an error, a message of AMQP is \
     rejected without being requeued.",
)
.fallback(Fallback::Integer(1 << 20));
const HOPS_MAX: Key = key(
    "hops_max",
    integer(1, 64),
    "Joints that a message may come through, this one counted; beyond, it is not passed on.",
)
.fallback(Fallback::Integer(8));
const TARGET_EXCHANGE: Key = key(
    "exchange",
    Kind::Text(Rule::ShortText),
    "The target's exchange (oslo.messaging's `control_exchange`).",
)
.fallback(Fallback::Text("openstack"));
const TARGET_TOPIC: Key =
    key("topic", Kind::Text(Rule::ShortText), "The target's topic.").required();
const NAMESPACE: Key = key(
    "namespace",
    Kind::Text(Rule::NotEmpty),
    "The target's namespace.",
)
.otherwise("none");
const VERSION: Key = key(
    "version",
    Kind::Text(Rule::NotEmpty),
    "The target's version.",
)
.otherwise("none, which is 1.0");
const TARGET_DURABLE: Key = key(
    "durable",
    Kind::Boolean,
    "Whether its exchange and queues are durable, as with oslo.messaging's `amqp_durable_queues`.",
)
.fallback(NO);
const TIMEOUT: Key = key(
    "timeout_ms",
    integer(1, 86_400_000),
    "How long an answer is waited for, in milliseconds.",
)
.fallback(Fallback::Integer(60_000));
const PENDING_MAX: Key = key(
    "pending_max",
    integer(1, 1_000_000),
    "Calls that wait for their answer.",
)
.fallback(Fallback::Integer(1_000));
const PREFETCH: Key = key(
    "prefetch",
    integer(1, 65_535),
    "Deliveries that it takes ahead of those that it has done with.",
)
.fallback(Fallback::Integer(100));
const ERRORS: Key = key(
    "errors",
    list(&ONE_ERROR),
    "Errors that have a name on both sides.",
)
.otherwise("those that every joint knows");
const IMPERSONATE: Key = key(
    "impersonate",
    Kind::Boolean,
    "Whether the authid of a disclosed sender is the message's `user-id`. The AMQP user must have the tag \
     `impersonator`.",
)
.fallback(NO);
const PROPERTIES_ARGUMENT: Key = key(
    "properties_argument",
    Kind::Text(Rule::NotEmpty),
    "A keyword argument that has the message's properties, with the `user_id` that the broker has checked.",
)
.otherwise("they are not passed on");
const MATCH: Key =
    key("match", Kind::OneOf(&MATCHES), "How URIs are compared.").fallback(Fallback::Text("exact"));
const EXCHANGE: Key = key(
    "exchange",
    Kind::Text(Rule::ShortText),
    "The exchange's name.",
)
.required();
const EXCHANGE_TYPE: Key = key(
    "exchange_type",
    Kind::OneOf(&EXCHANGE_TYPES),
    "The exchange's type.",
)
.fallback(Fallback::Text("topic"));
const DURABLE: Key =
    key("durable", Kind::Boolean, "Whether the exchange is durable.").fallback(YES);
const DECLARE: Key = key(
    "declare",
    Kind::Boolean,
    "Whether the exchange is declared; otherwise it has to be there.",
)
.fallback(YES);
const BODY: Key = key(
    "body",
    Kind::OneOf(&BODIES),
    "What an event's arguments are as a body.",
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
            "The procedure that it registers.",
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
            "One server of the topic's, by its name.",
        )
        .otherwise("any of them"),
        NAMESPACE,
        VERSION,
        TARGET_DURABLE,
        key(
            "method",
            Kind::Text(Rule::NotEmpty),
            "The method: `{procedure}` stands for the URI, `{rest}` for what is behind a prefix, `{last}` for \
             the last component.",
        )
        .otherwise("`{rest}` where `match` is `prefix`, else `{last}`"),
        key(
            "mode",
            Kind::OneOf(&MODES),
            "Whether the method's result is waited for, or only that the broker has the message.",
        )
        .fallback(Fallback::Text("call")),
        key(
            "fanout",
            Kind::Boolean,
            "Whether a cast is for every server of the topic.",
        )
        .fallback(NO),
        key(
            "arguments",
            list_not_empty(&Kind::Text(Rule::NotEmpty)),
            "Names for positional arguments, which methods of oslo.messaging do not have.",
        )
        .otherwise("a call with positional arguments is an error"),
        key(
            "context",
            Kind::Map {
                keys: Rule::NotEmpty,
                of: &Kind::Json,
                environment: false,
            },
            "Fields of the context that each call has.",
        )
        .otherwise("none beside the caller's, where that is disclosed"),
        TIMEOUT,
        PENDING_MAX.about("Calls that wait for their answer; one more is an error."),
        BODY_BYTES_MAX,
        HOPS_MAX,
        ERRORS,
        key(
            "tracebacks",
            Kind::Boolean,
            "Whether an error has the traceback of the server's exception.",
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
            "The procedure that is called: `{method}` and `{namespace}` stand for those of the request.",
        )
        .required(),
        VHOST,
        USER,
        TARGET_EXCHANGE,
        TARGET_TOPIC,
        key(
            "server",
            Kind::Text(Rule::NotEmpty),
            "Its own name among the topic's servers.",
        )
        .required(),
        NAMESPACE,
        VERSION,
        TARGET_DURABLE,
        TIMEOUT,
        PENDING_MAX.about("Calls that wait for their answer; further requests wait in their queues."),
        PREFETCH,
        BODY_BYTES_MAX,
        HOPS_MAX,
        key(
            "context_argument",
            Kind::Text(Rule::NotEmpty),
            "A keyword argument that has the caller's context.",
        )
        .otherwise("it is not passed on"),
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
            "The topic that it subscribes to.",
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
            "The routing key: `{topic}` stands for the event's topic, `{rest}` for what is behind a prefix.",
        )
        .fallback(Fallback::Text("{topic}")),
        BODY,
        key(
            "persistent",
            Kind::Boolean,
            "Whether messages survive in durable queues.",
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
            "The topic: `{routing_key}` and `{exchange}` stand for those of the message.",
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
            "A durable queue of that name, which keeps messages while the joint is not there.",
        )
        .otherwise("a queue that goes with the joint"),
        key(
            "binding_keys",
            list_not_empty(&Kind::Text(Rule::Any)),
            "What the queue is bound by.",
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
        key(
            "uri",
            Kind::Text(Rule::ExactUri),
            "The error's URI in WAMP.",
        )
        .required(),
        key(
            "exception",
            Kind::Text(Rule::PythonName),
            "The exception's full name in Python: `package.module.Class`.",
        )
        .required(),
    ],
};
