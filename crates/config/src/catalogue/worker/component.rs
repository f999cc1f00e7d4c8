//! Autobahn|Python components, in containers and beside routers: every key that is taken. Long
//! and flat.

use super::super::connecting::CONNECTING_TRANSPORT;
use super::super::form::{Fallback, Key, Kind, Rule, TYPE, Table, Tagged, key, list};

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
    Kind::Text(Rule::Name),
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
const REFERENCES: Key = key(
    "references",
    list(&Kind::Text(Rule::NotEmpty)),
    "Components of the worker that must be ready (their `onJoin` has returned) before this one is \
     started: `component:ID` each, of those that stand before it. Crossbar.io's `connection:ID` is left \
     out, with a warning.",
)
.otherwise("none: it is started at once");
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
        REFERENCES.own(),
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
        REFERENCES.own(),
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
        REFERENCES,
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
        REFERENCES.own(),
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
    keys: &[
        method("anonymous", &COMPONENT_ANONYMOUS, "It proves nothing."),
        method("ticket", &COMPONENT_TICKET, "It knows a ticket."),
        method(
            "wampcra",
            &COMPONENT_WAMPCRA,
            "It knows a secret (WAMP-CRA).",
        ),
        method("scram", &COMPONENT_SCRAM, "It knows a password (SCRAM)."),
        method("cryptosign", &COMPONENT_CRYPTOSIGN, "It has a private key."),
    ],
};

const fn method(name: &'static str, of: &'static Table, about: &'static str) -> Key {
    key(name, Kind::Object(of), about)
        .otherwise("not offered; all that are given are offered together")
}

const AUTHID: Key = key(
    "authid",
    Kind::Text(Rule::NotEmpty),
    "Who it says that it is.",
);
const AUTHROLE: Key = key(
    "authrole",
    Kind::Text(Rule::NotEmpty),
    "The role that it asks for.",
)
.otherwise("the router says which it gets");
const AUTHEXTRA: Key = key(
    "authextra",
    Kind::Json,
    "A dictionary of what else the router is told in HELLO.",
)
.otherwise("none");

const fn secret(name: &'static str, about: &'static str) -> Key {
    key(name, Kind::Text(Rule::NotEmpty), about)
        .required()
        .environment()
}

static COMPONENT_ANONYMOUS: Table = Table {
    path: "components[function].auth.anonymous",
    name: "a component's anonymous auth",
    keys: &[
        AUTHID.otherwise("the router makes one"),
        AUTHROLE,
        AUTHEXTRA,
    ],
};

static COMPONENT_TICKET: Table = Table {
    path: "components[function].auth.ticket",
    name: "a component's ticket",
    keys: &[
        AUTHID.required(),
        AUTHROLE,
        AUTHEXTRA,
        secret("ticket", "What it shows."),
    ],
};

static COMPONENT_WAMPCRA: Table = Table {
    path: "components[function].auth.wampcra",
    name: "a component's WAMP-CRA",
    keys: &[
        AUTHID.required(),
        AUTHROLE,
        AUTHEXTRA,
        secret("secret", "What it signs with."),
    ],
};

static COMPONENT_SCRAM: Table = Table {
    path: "components[function].auth.scram",
    name: "a component's SCRAM",
    keys: &[
        AUTHID.required(),
        AUTHROLE,
        AUTHEXTRA,
        secret("password", "What it proves that it knows."),
    ],
};

static COMPONENT_CRYPTOSIGN: Table = Table {
    path: "components[function].auth.cryptosign",
    name: "a component's cryptosign",
    keys: &[
        AUTHID.otherwise("the router knows it by its key"),
        AUTHROLE,
        AUTHEXTRA,
        secret("privkey", "Its private key: 64 hexadecimal digits."),
    ],
};
