//! Autobahn|Python components, in containers and beside routers: every key that is taken. Long
//! and flat.

use super::super::connecting::CONNECTING_TRANSPORT;
use super::super::form::{Fallback, Key, Kind, Rule, TYPE, Table, Tagged, key};

pub(crate) static CONTAINER_COMPONENT: Tagged = Tagged {
    path: "components[].type",
    name: "a component",
    variants: &[
        ("class", &CONTAINER_CLASS),
        ("function", &CONTAINER_FUNCTION),
    ],
};

pub(crate) static ROUTER_COMPONENT: Tagged = Tagged {
    path: "components[].type",
    name: "a component of a router",
    variants: &[("class", &ROUTER_CLASS), ("function", &ROUTER_FUNCTION)],
};

const COMPONENT_ID: Key = key(
    "id",
    Kind::Text(Rule::Id),
    "The component's id; no two components of a worker share one.",
)
.otherwise("`component1`, `component2`, …, by its place");
const COMPONENT_REALM: Key = key(
    "realm",
    Kind::Text(Rule::RealmName),
    "The realm that it joins.",
)
.required();
const CLASSNAME: Key = key(
    "classname",
    Kind::Text(Rule::PythonName),
    "The class of its sessions, by its full name: `package.module.Class`. It is a \
     subclass of Autobahn's `ApplicationSession`.",
)
.required();
const CALLBACKS: Key = key(
    "callbacks",
    Kind::Object(&CALLBACKS_OF_FUNCTION),
    "The functions that are called, each by its full name: `package.module.function`.",
)
.otherwise("none");
const COMPONENT_EXTRA: Key = key(
    "extra",
    Kind::Json,
    "Anything: the component finds it in its `config.extra`.",
)
.otherwise("null");
const TRANSPORT: Key = key(
    "transport",
    Kind::Tagged(&CONNECTING_TRANSPORT),
    "How it connects to a router. It tries until it succeeds, and again when the \
     connection is lost.",
)
.required();
const ROLE: Key = key(
    "role",
    Kind::Text(Rule::NotEmpty),
    "The role that it has in the realm.",
)
.fallback(Fallback::Text("anonymous"));

static CONTAINER_CLASS: Table = Table {
    path: "workers[container].components[class]",
    name: "a class component",
    keys: &[
        TYPE,
        COMPONENT_ID,
        CLASSNAME,
        COMPONENT_REALM,
        TRANSPORT,
        COMPONENT_EXTRA,
    ],
};

static CONTAINER_FUNCTION: Table = Table {
    path: "workers[container].components[function]",
    name: "a function component",
    keys: &[
        TYPE,
        COMPONENT_ID,
        CALLBACKS,
        COMPONENT_REALM,
        TRANSPORT,
        key(
            "auth",
            Kind::Object(&COMPONENT_AUTH),
            "How it says who it is.",
        )
        .otherwise("it is anonymous"),
        COMPONENT_EXTRA,
    ],
};

static ROUTER_CLASS: Table = Table {
    path: "workers[router].components[class]",
    name: "a class component of a router",
    keys: &[
        TYPE,
        COMPONENT_ID,
        CLASSNAME,
        COMPONENT_REALM,
        ROLE,
        COMPONENT_EXTRA,
    ],
};

static ROUTER_FUNCTION: Table = Table {
    path: "workers[router].components[function]",
    name: "a function component of a router",
    keys: &[
        TYPE,
        COMPONENT_ID,
        CALLBACKS,
        COMPONENT_REALM,
        ROLE,
        COMPONENT_EXTRA,
    ],
};

const fn callback(name: &'static str, about: &'static str) -> Key {
    key(name, Kind::Text(Rule::PythonName), about).otherwise("none")
}

static CALLBACKS_OF_FUNCTION: Table = Table {
    path: "components[function].callbacks",
    name: "a component's callbacks",
    keys: &[
        callback("connect", "Called when it has a connection."),
        callback("join", "Called when its session has joined the realm."),
        callback("ready", "Called when all that waited for the join is done.").own(),
        callback("leave", "Called when its session has left the realm."),
        callback("disconnect", "Called when its connection is gone."),
    ],
};

static COMPONENT_AUTH: Table = Table {
    path: "components[function].auth",
    name: "a component's auth",
    keys: &[key(
        "anonymous",
        Kind::Object(&COMPONENT_ANONYMOUS),
        "It proves nothing. Must be empty: `{}`.",
    )
    .otherwise("taken")],
};

static COMPONENT_ANONYMOUS: Table = Table {
    path: "components[function].auth.anonymous",
    name: "a component's anonymous auth",
    keys: &[],
};
