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
            "The name that clients join it by; no two realms of a worker share one.",
        )
        .required(),
        key("id", Kind::Text(Rule::Any), "").inert("realms are known by their names"),
        key(
            "options",
            Kind::Object(&REALM_OPTIONS),
            "How the realm routes.",
        )
        .otherwise("all of their defaults"),
        key(
            "roles",
            list(&Kind::Object(&ROLE)),
            "Who may do what. A session whose role is not here cannot join.",
        )
        .otherwise("none"),
        key(
            "fabric",
            Kind::Object(&FABRIC),
            "The realm is one with those of its name on [other nodes](fabric.md): events go to all of them.",
        )
        .otherwise("the realm is this node's alone")
        .own(),
        key(
            "limits",
            Kind::Object(&REALM_LIMITS),
            "What the realm's [sessions](authorization.md#limits) may have, where that is less than the node's `limits` let \
             everybody have.",
        )
        .otherwise("the node's `limits` alone")
        .own(),
        key(
            "resumption",
            Kind::Object(&RESUMPTION),
            "Sessions may outlive their connections, and go on over [another one](events.md#resumption).",
        )
        .otherwise("a session ends with its connection")
        .own(),
        key(
            "store",
            Kind::Tagged(&REALM_STORE),
            "What is kept of what passes.",
        )
        .otherwise("nothing"),
        key(
            "rlinks",
            list(&Kind::Object(&RLINK)),
            "[Links](rlinks.md) to realms of other routers: what is published and registered in one can be had in the \
             other.",
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
            "For how long a session waits for its client, in milliseconds.",
        )
        .required()
        .own(),
        key(
            "sessions_max",
            integer(1, 1_000_000),
            "Sessions that wait at a time; at one more the one that has waited longest is given up.",
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
            "How much of WAMP's URI grammar is demanded.",
        )
        .fallback(Fallback::Text("loose")),
        key(
            "request_id_check",
            Kind::OneOf(&REQUEST_ID_CHECK),
            "Whether request ids must count up from 1 as the specification says. Loose \
             takes any id that is not the id of an open call.",
        )
        .fallback(Fallback::Text("loose"))
        .own(),
        key(
            "disclose_me",
            Kind::OneOf(&DISCLOSE_ME),
            "Whether callers and publishers may disclose themselves with `disclose_me`.",
        )
        .fallback(Fallback::Text("allow"))
        .own(),
        key(
            "call_timeout_unit",
            Kind::OneOf(&CALL_TIMEOUT_UNIT),
            "What the number in a call's `timeout` counts: the specification says \
             milliseconds, Crossbar.io counts seconds.",
        )
        .fallback(Fallback::Text("milliseconds"))
        .own(),
        key(
            "lone_surrogates",
            Kind::OneOf(&LONE_SURROGATES),
            "What becomes of a JSON message with half of a character in it, as `\\ud83d` without \
             its other half: each half is replaced by U+FFFD, or the message is refused with \
             `wamp.error.invalid_argument` (a publication without acknowledgement is dropped).",
        )
        .fallback(Fallback::Text("replace"))
        .own(),
        key(
            "unreadable_values",
            Kind::OneOf(&UNREADABLE_VALUES),
            "Treatment of a message with arguments that common WAMP libraries cannot decode, and that \
             would end the receivers' sessions ([values](values.md#what-is-refused)). `refuse`: the sender \
             gets ERROR `wamp.error.invalid_argument`; a publication without acknowledgement is dropped. \
             `convert`: receivers get what their serializer can hold, and the event is dropped for the \
             others. `pass`: receivers with the sender's serializer get the arguments unread.",
        )
        .fallback(Fallback::Text("refuse"))
        .own(),
        key(
            "empty_eligible",
            Kind::OneOf(&EMPTY_ELIGIBLE),
            "Whom an event with an empty whitelist (`eligible: []`) reaches: a list on which \
             nobody is, or, as on Crossbar.io, as good as none.",
        )
        .fallback(Fallback::Text("nobody"))
        .own(),
        key(
            "cancel_answers",
            Kind::OneOf(&CANCEL_ANSWERS),
            "Whether a caller that sends CANCEL gets the ERROR that the specification asks for. With the mode `kill` it \
             always does. `by_client`: every client but Autobahn|JS, whose session ends with 3002 when a call is answered \
             that it has cancelled; it is recognized by its HELLO. `kill_only`: no client.",
        )
        .fallback(Fallback::Text("by_client"))
        .own(),
        key(
            "on_leave",
            Kind::OneOf(&ON_LEAVE),
            "What `wamp.session.on_leave` says of a session that has left: its id alone, as on Crossbar.io, or, as the \
             specification has it, its id, its authid and its authrole. Handlers in Python that were written for the \
             one fail with the other.",
        )
        .fallback(Fallback::Text("crossbar"))
        .own(),
        key(
            "disclose_router",
            Kind::Boolean,
            "Whether WELCOME says which node, worker and process serve the session, and from which \
             address it comes (`x_cb_node`, `x_cb_worker`, `x_cb_pid`, `x_cb_peer`, at the top and in \
             `authextra`), as Crossbar.io's does. The node's id is its host's name unless configured.",
        )
        .fallback(YES)
        .own(),
        key("event_dispatching_chunk_size", integer(1, i64::MAX), "")
            .inert("a large fan-out gives way to other work by itself"),
        key(
            "enable_meta_api",
            Kind::Boolean,
            "Whether the realm has the [meta API](meta-api.md): procedures and events about its sessions, \
             registrations and subscriptions. Who may call and subscribe is for the permissions.",
        )
        .fallback(YES),
        key(
            "bridge_meta_api",
            Kind::Boolean,
            "Whether the meta API is seen from the [management realm](management.md#the-meta-api-of-a-realm), too.",
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
            "The role's name; no two roles of a realm share one.",
        )
        .required(),
        key("id", Kind::Text(Rule::Any), "").inert("roles are known by their names"),
        key(
            "permissions",
            list(&Kind::Object(&PERMISSION)),
            "What sessions with the role may do. Of the permissions that match a URI \
             the most specific counts; without any, nothing is allowed.",
        )
        .otherwise("none"),
        key(
            "authorizer",
            Kind::Text(Rule::ExactUri),
            "The procedure of the realm that [decides](authorization.md#authorizers) what sessions with the \
             role may do, in place of `permissions`. It is called with the session, the URI, the action \
             and the message's options.",
        )
        .otherwise("permissions decide"),
        key(
            "authorizer_timeout_ms",
            integer(1, 3_600_000),
            "How long it may take to answer, in milliseconds; what it is asked about fails then.",
        )
        .fallback(Fallback::Integer(5_000))
        .own(),
        key(
            "authorizer_cache",
            Kind::OneOf(&AUTHORIZER_CACHE),
            "For whom a decision counts that it lets be kept: for all sessions with the role, as on \
             Crossbar.io, for those with the same authid, for that session alone, or (`uri`) for all \
             sessions of all roles with the same authorizer of which the same is said.",
        )
        .fallback(Fallback::Text("role"))
        .own(),
        key(
            "authorizer_cache_ms",
            integer_or_zero(1, 31_536_000_000),
            "For how long a decision is kept, in milliseconds; 0 is until it is taken out, or the role ends.",
        )
        .fallback(Fallback::Integer(0))
        .own(),
        key(
            "authorizer_cache_entries_max",
            integer_or_zero(1, 100_000),
            "How many decisions are kept; for one more the one goes that has not been used for the longest \
             time. 0 keeps none.",
        )
        .fallback(Fallback::Integer(10_000))
        .own(),
        key(
            "authorizer_cache_bytes_max",
            integer(4_096, 1_073_741_824),
            "The same of their bytes, roughly; they count for `queue_bytes_total_max`.",
        )
        .fallback(Fallback::Integer(4_194_304))
        .own(),
        key(
            "allow-by-default",
            Kind::Boolean,
            "Whether a role without `permissions` and `authorizer` may do everything.",
        )
        .fallback(NO),
        key(
            "role_match",
            Kind::OneOf(&ROLE_MATCH),
            "Which of several permissions that match a URI counts: the [most specific](authorization.md), \
             or the one that Crossbar.io finds.",
        )
        .fallback(Fallback::Text("specific"))
        .own(),
        key(
            "trustlevel",
            integer_or_zero(0, 65_535),
            "How far what its sessions publish and call is to be trusted: the \
             [trust level](authorization.md#trust-levels) that events and invocations have then. 0 is the lowest.",
        )
        .otherwise("they have none, unless the permission says one")
        .own(),
        key(
            "forward_for",
            Kind::Boolean,
            "Whether its sessions may say for whom they publish and call, as [links](rlinks.md#forward_for) of other routers do. \
             Those of a role that may not get an error.",
        )
        .fallback(YES)
        .own(),
        key(
            "limits",
            Kind::Object(&ROLE_LIMITS),
            "What sessions with the role may have, where that is less than the node's `limits` let everybody have.",
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
            "The URI or pattern. Without `match`, a star at the end makes it a prefix \
             (`com.*`), stars elsewhere a wildcard (`com.*.on_change`).",
        )
        .required(),
        key(
            "match",
            Kind::OneOf(&MATCH),
            "How `uri` is compared. A star in `uri` then means itself.",
        )
        .otherwise("told from the stars in `uri`; `exact` without any"),
        key(
            "allow",
            Kind::Object(&ALLOW),
            "The actions that are allowed.",
        )
        .otherwise("nothing"),
        key(
            "disclose",
            Kind::Object(&DISCLOSE),
            "Who is disclosed without asking for it.",
        )
        .otherwise("those who ask for it"),
        key(
            "cache",
            Kind::Boolean,
            "Whether the decision may be kept; that of a static permission always is.",
        )
        .fallback(NO),
        key(
            "trustlevel",
            integer_or_zero(0, 65_535),
            "The [trust level](authorization.md#trust-levels) of what is published and called there.",
        )
        .otherwise("that of the role")
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
        key("call", Kind::Boolean, "CALL.").fallback(NO),
        key("register", Kind::Boolean, "REGISTER.").fallback(NO),
        key("publish", Kind::Boolean, "PUBLISH.").fallback(NO),
        key("subscribe", Kind::Boolean, "SUBSCRIBE.").fallback(NO),
    ],
};

static DISCLOSE: Table = Table {
    path: "permissions[].disclose",
    name: "a permission's disclose",
    keys: &[
        key(
            "caller",
            Kind::Boolean,
            "Callees are told who calls, whether the caller asks for it or not.",
        )
        .fallback(NO),
        key(
            "publisher",
            Kind::Boolean,
            "Subscribers are told who publishes, whether the publisher asks for it or not.",
        )
        .fallback(NO),
        key(
            "callee",
            Kind::Boolean,
            "Callers are told who answers what was registered under this permission; \
             Crossbar.io always tells.",
        )
        .fallback(NO)
        .own(),
    ],
};
