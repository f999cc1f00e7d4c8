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
    "Id of the component, unique within the worker.",
)
.otherwise("`component1`, `component2`, … by position");
const COMPONENT_REALM: Key = key(
    "realm",
    Kind::Text(Rule::RealmName),
    "Realm that the component joins.",
)
.required();
const CLASSNAME: Key = key(
    "classname",
    Kind::Text(Rule::PythonName),
    "Session class, as `package.module.Class`: a subclass of Autobahn's `ApplicationSession`.",
)
.required();
const CALLBACKS: Key = key(
    "callbacks",
    Kind::Object(&CALLBACKS_OF_FUNCTION),
    "Functions that the component calls on events, each as `package.module.function`.",
)
.otherwise("none");
const COMPONENT_EXTRA: Key = key(
    "extra",
    Kind::Json,
    "Value of any type, passed to the component as `config.extra`.",
)
.otherwise("null");
const REFERENCES: Key = key(
    "references",
    list(&Kind::Text(Rule::NotEmpty)),
    "Components of the worker, each as `component:ID`, whose `onJoin` must have returned before this component \
     starts. They must precede it in the file. Crossbar.io's `connection:ID` is ignored with a warning.",
)
.otherwise("none");
const TRANSPORT: Key = key(
    "transport",
    Kind::Tagged(&CONNECTING_TRANSPORT),
    "Transport to the router. The component retries until it connects, and again after a lost connection.",
)
.required();
const ROLE: Key = key(
    "role",
    Kind::Text(Rule::NotEmpty),
    "Role of the component in the realm.",
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
            "Authentication methods of the component.",
        )
        .otherwise("`anonymous`"),
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
        callback(
            "connect",
            "Function called when the component has connected.",
        ),
        callback(
            "join",
            "Function called when the session has joined the realm.",
        ),
        callback(
            "ready",
            "Function called when all `join` handlers have finished.",
        )
        .own(),
        callback(
            "leave",
            "Function called when the session has left the realm.",
        ),
        callback(
            "disconnect",
            "Function called when the connection is closed.",
        ),
    ],
};

static COMPONENT_AUTH: Table = Table {
    path: "components[function].auth",
    name: "a component's auth",
    keys: &[
        method(
            "anonymous",
            &COMPONENT_ANONYMOUS,
            "Joins without credentials.",
        ),
        method("ticket", &COMPONENT_TICKET, "Authenticates by ticket."),
        method(
            "wampcra",
            &COMPONENT_WAMPCRA,
            "Authenticates by a shared secret (WAMP-CRA).",
        ),
        method(
            "scram",
            &COMPONENT_SCRAM,
            "Authenticates by password (SCRAM).",
        ),
        method(
            "cryptosign",
            &COMPONENT_CRYPTOSIGN,
            "Authenticates by private key (WAMP-cryptosign).",
        ),
    ],
};

const fn method(name: &'static str, of: &'static Table, about: &'static str) -> Key {
    key(name, Kind::Object(of), about)
        .otherwise("not offered; all that are given are offered together")
}

const AUTHID: Key = key(
    "authid",
    Kind::Text(Rule::NotEmpty),
    "Authid sent in HELLO.",
);
const AUTHROLE: Key = key(
    "authrole",
    Kind::Text(Rule::NotEmpty),
    "Role requested in HELLO.",
)
.otherwise("assigned by the router");
const AUTHEXTRA: Key = key(
    "authextra",
    Kind::Json,
    "Dictionary sent in HELLO as `authextra`.",
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
        AUTHID.otherwise("generated by the router"),
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
        secret("ticket", "Ticket to send."),
    ],
};

static COMPONENT_WAMPCRA: Table = Table {
    path: "components[function].auth.wampcra",
    name: "a component's WAMP-CRA",
    keys: &[
        AUTHID.required(),
        AUTHROLE,
        AUTHEXTRA,
        secret("secret", "Secret that signs the challenge."),
    ],
};

static COMPONENT_SCRAM: Table = Table {
    path: "components[function].auth.scram",
    name: "a component's SCRAM",
    keys: &[
        AUTHID.required(),
        AUTHROLE,
        AUTHEXTRA,
        secret("password", "SCRAM password."),
    ],
};

static COMPONENT_CRYPTOSIGN: Table = Table {
    path: "components[function].auth.cryptosign",
    name: "a component's cryptosign",
    keys: &[
        AUTHID.otherwise("given by the router for the key"),
        AUTHROLE,
        AUTHEXTRA,
        secret("privkey", "Private key: 64 hexadecimal digits."),
    ],
};
