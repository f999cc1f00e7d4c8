//! Realms, roles and permissions: every key that is taken. Long and flat.

use super::fabric::FABRIC;
use super::form::{
    Fallback, Kind, NO, Rule, Table, Words, YES, integer, integer_or_zero, key, list,
};
use super::rlink::RLINK;
use super::session_limits::{REALM_LIMITS, ROLE_LIMITS};
use super::store::REALM_STORE;

pub(crate) static REALM: Table = Table {
    path: "realms[]",
    name: "a realm",
    keys: &[
        key(
            "name",
            Kind::Text(Rule::RealmName),
            "Name of the realm, unique within the worker.",
        )
        .required(),
        key("id", Kind::Text(Rule::Any), "").inert("realms are known by their names"),
        key(
            "options",
            Kind::Object(&REALM_OPTIONS),
            "Routing options of the realm.",
        )
        .otherwise("the defaults"),
        key(
            "roles",
            list(&Kind::Object(&ROLE)),
            "Roles of the realm with their permissions. A session with another role cannot join.",
        )
        .otherwise("none"),
        key(
            "fabric",
            Kind::Object(&FABRIC),
            "Connects the realm with those of the same name on [other nodes](fabric.md).",
        )
        .otherwise("the realm exists on this node only")
        .own(),
        key(
            "limits",
            Kind::Object(&REALM_LIMITS),
            "Limits of the realm's [sessions](authorization.md#limits). The node's `limits` apply if they are lower.",
        )
        .otherwise("the node's `limits` alone")
        .own(),
        key(
            "resumption",
            Kind::Object(&RESUMPTION),
            "Lets sessions outlive their connections and continue over [another one](events.md#resumption).",
        )
        .otherwise("a session ends with its connection")
        .own(),
        key(
            "store",
            Kind::Tagged(&REALM_STORE),
            "Store for events and waiting calls.",
        )
        .otherwise("none"),
        key(
            "rlinks",
            list(&Kind::Object(&RLINK)),
            "[Links](rlinks.md) that forward events and calls to and from realms of other routers.",
        )
        .otherwise("none"),
    ],
};

static RESUMPTION: Table = Table {
    path: "realms[].resumption",
    name: "how sessions are resumed",
    keys: &[
        key(
            "window_ms",
            integer(1, 86_400_000),
            "Time that a session waits for its client to return, in milliseconds.",
        )
        .required()
        .own(),
        key(
            "sessions_max",
            integer(1, 1_000_000),
            "Maximum number of waiting sessions. Another one evicts the session that has waited longest.",
        )
        .fallback(Fallback::Integer(1_000))
        .own(),
    ],
};

static REALM_OPTIONS: Table = Table {
    path: "realms[].options",
    name: "a realm's options",
    keys: &[
        key(
            "uri_check",
            Kind::OneOf(&URI_CHECK),
            "Strictness of the URI check.",
        )
        .fallback(Fallback::Text("loose")),
        key(
            "request_id_check",
            Kind::OneOf(&REQUEST_ID_CHECK),
            "Check of request ids. `strict` requires that they count up from 1, as specified. `loose` accepts any id \
             that no open call has.",
        )
        .fallback(Fallback::Text("loose"))
        .own(),
        key(
            "disclose_me",
            Kind::OneOf(&DISCLOSE_ME),
            "Permission for callers and publishers to disclose themselves with `disclose_me`.",
        )
        .fallback(Fallback::Text("allow"))
        .own(),
        key(
            "call_timeout_unit",
            Kind::OneOf(&CALL_TIMEOUT_UNIT),
            "Unit of a call's `timeout`. The specification has milliseconds, Crossbar.io seconds.",
        )
        .fallback(Fallback::Text("milliseconds"))
        .own(),
        key(
            "lone_surrogates",
            Kind::OneOf(&LONE_SURROGATES),
            "Handling of a lone surrogate in a JSON message, such as `\\ud83d` without its other half. `replace` \
             puts U+FFFD in its place. `refuse` rejects the message with `wamp.error.invalid_argument`; a \
             publication without acknowledgement is dropped.",
        )
        .fallback(Fallback::Text("replace"))
        .own(),
        key(
            "unreadable_values",
            Kind::OneOf(&UNREADABLE_VALUES),
            "Handling of arguments that common WAMP libraries cannot decode and that would end the receivers' \
             sessions ([values](values.md#what-is-refused)). `refuse`: the sender gets ERROR \
             `wamp.error.invalid_argument`; a publication without acknowledgement is dropped. `convert`: receivers \
             get what their serializer can hold, and the event is dropped for the others. `pass`: receivers with the \
             sender's serializer get the arguments unread.",
        )
        .fallback(Fallback::Text("refuse"))
        .own(),
        key(
            "empty_eligible",
            Kind::OneOf(&EMPTY_ELIGIBLE),
            "Receivers of an event with an empty whitelist (`eligible: []`): none, or all, as in Crossbar.io.",
        )
        .fallback(Fallback::Text("nobody"))
        .own(),
        key(
            "cancel_answers",
            Kind::OneOf(&CANCEL_ANSWERS),
            "Answer to CANCEL with the ERROR that the specification requires. With the mode `kill` it is always \
             sent. `by_client` sends it to every client but Autobahn|JS, whose session would end with 3002. HELLO \
             identifies that client. `kill_only` sends it to no client in the other modes.",
        )
        .fallback(Fallback::Text("by_client"))
        .own(),
        key(
            "on_leave",
            Kind::OneOf(&ON_LEAVE),
            "Arguments of `wamp.session.on_leave`: the session id alone, as in Crossbar.io, or the id, authid and \
             authrole, as specified. Python handlers written for one fail with the other.",
        )
        .fallback(Fallback::Text("crossbar"))
        .own(),
        key(
            "disclose_router",
            Kind::Boolean,
            "Sends the node, worker, process and peer address of the session in WELCOME (`x_cb_node`, `x_cb_worker`, \
             `x_cb_pid`, `x_cb_peer`, at the top and in `authextra`), as Crossbar.io does. The node's default id \
             contains its host name.",
        )
        .fallback(YES)
        .own(),
        key("event_dispatching_chunk_size", integer(1, i64::MAX), "")
            .inert("a large fan-out gives way to other work by itself"),
        key(
            "enable_meta_api",
            Kind::Boolean,
            "Provides the [meta API](meta-api.md): procedures and events about sessions, registrations and \
             subscriptions. Permissions decide on their use.",
        )
        .fallback(YES),
        key(
            "bridge_meta_api",
            Kind::Boolean,
            "Provides the meta API in the [management realm](management.md#the-meta-api-of-a-realm), too.",
        )
        .fallback(NO),
    ],
};

static REQUEST_ID_CHECK: Words = Words {
    path: "realms[].options.request_id_check",
    words: &["loose", "strict"],
};

static CALL_TIMEOUT_UNIT: Words = Words {
    path: "realms[].options.call_timeout_unit",
    words: &["milliseconds", "seconds"],
};

static LONE_SURROGATES: Words = Words {
    path: "realms[].options.lone_surrogates",
    words: &["replace", "refuse"],
};

static UNREADABLE_VALUES: Words = Words {
    path: "realms[].options.unreadable_values",
    words: &["refuse", "convert", "pass"],
};

static EMPTY_ELIGIBLE: Words = Words {
    path: "realms[].options.empty_eligible",
    words: &["nobody", "everybody"],
};

static CANCEL_ANSWERS: Words = Words {
    path: "realms[].options.cancel_answers",
    words: &["by_client", "always", "kill_only"],
};

static ON_LEAVE: Words = Words {
    path: "realms[].options.on_leave",
    words: &["crossbar", "specified"],
};

static DISCLOSE_ME: Words = Words {
    path: "realms[].options.disclose_me",
    words: &["allow", "refuse"],
};

static URI_CHECK: Words = Words {
    path: "realms[].options.uri_check",
    words: &["loose", "strict"],
};

pub(crate) static ROLE: Table = Table {
    path: "realms[].roles[]",
    name: "a role",
    keys: &[
        key(
            "name",
            Kind::Text(Rule::NotEmpty),
            "Name of the role, unique within the realm.",
        )
        .required(),
        key("id", Kind::Text(Rule::Any), "").inert("roles are known by their names"),
        key(
            "permissions",
            list(&Kind::Object(&PERMISSION)),
            "Permissions of sessions with the role. Of the permissions that match a URI the most specific counts. \
             Without a match nothing is allowed.",
        )
        .otherwise("none"),
        key(
            "authorizer",
            Kind::Text(Rule::ExactUri),
            "Authorizer: the procedure of the realm that [decides](authorization.md#authorizers) in place of \
             `permissions`. The router calls it with the session, the URI, the action and the message's options.",
        )
        .otherwise("none"),
        key(
            "authorizer_timeout_ms",
            integer(1, 3_600_000),
            "Maximum time for the authorizer to answer, in milliseconds. After it the request fails.",
        )
        .fallback(Fallback::Integer(5_000))
        .own(),
        key(
            "authorizer_cache",
            Kind::OneOf(&AUTHORIZER_CACHE),
            "Scope of a cached decision: all sessions with the role, as in Crossbar.io; sessions with the same \
             authid; or the same session. `uri` shares it with sessions of all roles that have the same authorizer \
             and the same settings.",
        )
        .fallback(Fallback::Text("role"))
        .own(),
        key(
            "authorizer_cache_ms",
            integer_or_zero(1, 31_536_000_000),
            "Lifetime of a cached decision, in milliseconds. 0 keeps it until it is evicted or the role ends.",
        )
        .fallback(Fallback::Integer(0))
        .own(),
        key(
            "authorizer_cache_entries_max",
            integer_or_zero(1, 100_000),
            "Maximum number of cached decisions. Another one evicts the least recently used. 0 caches none.",
        )
        .fallback(Fallback::Integer(10_000))
        .own(),
        key(
            "authorizer_cache_bytes_max",
            integer(4_096, 1_073_741_824),
            "Maximum size of cached decisions, in bytes, approximately. They count towards `queue_bytes_total_max`.",
        )
        .fallback(Fallback::Integer(4_194_304))
        .own(),
        key(
            "allow-by-default",
            Kind::Boolean,
            "Allows everything to a role without `permissions` and `authorizer`.",
        )
        .fallback(NO),
        key(
            "role_match",
            Kind::OneOf(&ROLE_MATCH),
            "Choice among several permissions that match a URI: the [most specific](authorization.md), or the one \
             that Crossbar.io finds.",
        )
        .fallback(Fallback::Text("specific"))
        .own(),
        key(
            "trustlevel",
            integer_or_zero(0, 65_535),
            "[Trust level](authorization.md#trust-levels) of the role's publications and calls, sent in EVENT and \
             INVOCATION. 0 is the lowest.",
        )
        .otherwise("none, unless the permission has one")
        .own(),
        key(
            "forward_for",
            Kind::Boolean,
            "Allows the option `forward_for`, which [links](rlinks.md#forward_for) of other routers send. A session \
             without the right gets an error.",
        )
        .fallback(YES)
        .own(),
        key(
            "limits",
            Kind::Object(&ROLE_LIMITS),
            "Limits of sessions with the role. The node's `limits` apply if they are lower.",
        )
        .otherwise("the node's `limits` alone")
        .own(),
    ],
};

static AUTHORIZER_CACHE: Words = Words {
    path: "realms[].roles[].authorizer_cache",
    words: &["role", "authid", "session", "uri"],
};

static ROLE_MATCH: Words = Words {
    path: "realms[].roles[].role_match",
    words: &["specific", "crossbar"],
};

static PERMISSION: Table = Table {
    path: "realms[].roles[].permissions[]",
    name: "a permission",
    keys: &[
        key(
            "uri",
            Kind::Text(Rule::Uri),
            "URI or pattern. Without `match`, a star at the end makes it a prefix (`com.*`), and stars elsewhere a \
             wildcard (`com.*.on_change`).",
        )
        .required(),
        key(
            "match",
            Kind::OneOf(&MATCH),
            "Matching policy of `uri`. With this key a star in `uri` is an ordinary character.",
        )
        .otherwise("derived from the stars in `uri`; `exact` without any"),
        key(
            "allow",
            Kind::Object(&ALLOW),
            "Allowed actions.",
        )
        .otherwise("none"),
        key(
            "disclose",
            Kind::Object(&DISCLOSE),
            "Sessions that are disclosed without asking for it.",
        )
        .otherwise("sessions that ask for it"),
        key(
            "cache",
            Kind::Boolean,
            "Allows the decision to be cached. Decisions of static permissions always are.",
        )
        .fallback(NO),
        key(
            "trustlevel",
            integer_or_zero(0, 65_535),
            "[Trust level](authorization.md#trust-levels) of publications and calls under this permission.",
        )
        .otherwise("the role's")
        .own(),
    ],
};

static MATCH: Words = Words {
    path: "permissions[].match",
    words: &["exact", "prefix", "wildcard"],
};

static ALLOW: Table = Table {
    path: "permissions[].allow",
    name: "a permission's allow",
    keys: &[
        key("call", Kind::Boolean, "Allows CALL.").fallback(NO),
        key("register", Kind::Boolean, "Allows REGISTER.").fallback(NO),
        key("publish", Kind::Boolean, "Allows PUBLISH.").fallback(NO),
        key("subscribe", Kind::Boolean, "Allows SUBSCRIBE.").fallback(NO),
    ],
};

static DISCLOSE: Table = Table {
    path: "permissions[].disclose",
    name: "a permission's disclose",
    keys: &[
        key(
            "caller",
            Kind::Boolean,
            "Discloses the caller to callees, whether the caller asks for it or not.",
        )
        .fallback(NO),
        key(
            "publisher",
            Kind::Boolean,
            "Discloses the publisher to subscribers, whether the publisher asks for it or not.",
        )
        .fallback(NO),
        key(
            "callee",
            Kind::Boolean,
            "Discloses the callee of procedures registered under this permission to callers. Crossbar.io always \
             does.",
        )
        .fallback(NO)
        .own(),
    ],
};
