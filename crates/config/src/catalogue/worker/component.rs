//! Autobahn|Python components, in containers and beside routers: every key that is taken. Long
//! and flat.

use super::super::connecting::CONNECTING_TRANSPORT;
use super::super::form::{Kind, Rule, TYPE, Tagged, list, object, tagged, text};
use super::super::table::{keys, table};

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

keys! {
    COMPONENT_ID = "id": text(Rule::Name).otherwise("`component1`, `component2`, … by position"),
        "Id of the component, unique within the worker.";
    COMPONENT_REALM = "realm": text(Rule::RealmName).required(), "Realm that the component joins.";
    CLASSNAME = "classname": text(Rule::PythonName).required(),
        "Session class, as `package.module.Class`: a subclass of Autobahn's `ApplicationSession`.";
    CALLBACKS = "callbacks": object(&CALLBACKS_OF_FUNCTION).optional(),
        "Functions that the component calls on events, each as `package.module.function`.";
    COMPONENT_EXTRA = "extra": Kind::Json.otherwise("null"),
        "Value of any type, passed to the component as `config.extra`.";
    REFERENCES = "references": list(&text(Rule::NotEmpty)).optional(),
        "Components of the worker, each as `component:ID`, whose `onJoin` must have returned before this \
         component starts. They must precede it in the file. Crossbar.io's `connection:ID` is ignored with a \
         warning.";
    TRANSPORT = "transport": tagged(&CONNECTING_TRANSPORT).required(),
        "Transport to the router. The component retries until it connects, and again after a lost connection.";
    ROLE = "role": text(Rule::NotEmpty).or_text("anonymous"), "Role of the component in the realm.";
}

table! {
    static CONTAINER_CLASS("workers[container].components[class]", "a class component") {
        ..TYPE, COMPONENT_ID, CLASSNAME, COMPONENT_REALM, TRANSPORT, REFERENCES.own(), COMPONENT_EXTRA;
    }
}

table! {
    static CONTAINER_FUNCTION("workers[container].components[function]", "a function component") {
        ..TYPE, COMPONENT_ID, CALLBACKS, COMPONENT_REALM, TRANSPORT;
        "auth" = object(&COMPONENT_AUTH).otherwise("`anonymous`"), "Authentication methods of the component.";
        ..REFERENCES.own(), COMPONENT_EXTRA;
    }
}

table! {
    static ROUTER_CLASS("workers[router].components[class]", "a class component of a router") {
        ..TYPE, COMPONENT_ID, CLASSNAME, COMPONENT_REALM, ROLE, REFERENCES, COMPONENT_EXTRA;
    }
}

table! {
    static ROUTER_FUNCTION("workers[router].components[function]", "a function component of a router") {
        ..TYPE, COMPONENT_ID, CALLBACKS, COMPONENT_REALM, ROLE, REFERENCES.own(), COMPONENT_EXTRA;
    }
}

table! {
    static CALLBACKS_OF_FUNCTION("components[function].callbacks", "a component's callbacks") {
        "connect" = text(Rule::PythonName).optional(), "Function called when the component has connected.";
        "join" = text(Rule::PythonName).optional(), "Function called when the session has joined the realm.";
        "ready" = text(Rule::PythonName).optional().own(), "Function called when all `join` handlers have finished.";
        "leave" = text(Rule::PythonName).optional(), "Function called when the session has left the realm.";
        "disconnect" = text(Rule::PythonName).optional(), "Function called when the connection is closed.";
    }
}

table! {
    static COMPONENT_AUTH("components[function].auth", "a component's auth") {
        "anonymous" = object(&COMPONENT_ANONYMOUS).otherwise("not offered; all that are given are offered together"),
            "Joins without credentials.";
        "ticket" = object(&COMPONENT_TICKET).otherwise("not offered; all that are given are offered together"),
            "Authenticates by ticket.";
        "wampcra" = object(&COMPONENT_WAMPCRA).otherwise("not offered; all that are given are offered together"),
            "Authenticates by a shared secret (WAMP-CRA).";
        "scram" = object(&COMPONENT_SCRAM).otherwise("not offered; all that are given are offered together"),
            "Authenticates by password (SCRAM).";
        "cryptosign" = object(&COMPONENT_CRYPTOSIGN)
            .otherwise("not offered; all that are given are offered together"),
            "Authenticates by private key (WAMP-cryptosign).";
    }
}

keys! {
    AUTHID = "authid": text(Rule::NotEmpty).optional(), "Authid sent in HELLO.";
    AUTHROLE = "authrole": text(Rule::NotEmpty).otherwise("assigned by the router"), "Role requested in HELLO.";
    AUTHEXTRA = "authextra": Kind::Json.optional(), "Dictionary sent in HELLO as `authextra`.";
}

table! {
    static COMPONENT_ANONYMOUS("components[function].auth.anonymous", "a component's anonymous auth") {
        ..AUTHID.otherwise("generated by the router"), AUTHROLE, AUTHEXTRA;
    }
}

table! {
    static COMPONENT_TICKET("components[function].auth.ticket", "a component's ticket") {
        ..AUTHID.required(), AUTHROLE, AUTHEXTRA;
        "ticket" = text(Rule::NotEmpty).required().environment(), "Ticket to send.";
    }
}

table! {
    static COMPONENT_WAMPCRA("components[function].auth.wampcra", "a component's WAMP-CRA") {
        ..AUTHID.required(), AUTHROLE, AUTHEXTRA;
        "secret" = text(Rule::NotEmpty).required().environment(), "Secret that signs the challenge.";
    }
}

table! {
    static COMPONENT_SCRAM("components[function].auth.scram", "a component's SCRAM") {
        ..AUTHID.required(), AUTHROLE, AUTHEXTRA;
        "password" = text(Rule::NotEmpty).required().environment(), "SCRAM password.";
    }
}

table! {
    static COMPONENT_CRYPTOSIGN("components[function].auth.cryptosign", "a component's cryptosign") {
        ..AUTHID.otherwise("given by the router for the key"), AUTHROLE, AUTHEXTRA;
        "privkey" = text(Rule::NotEmpty).required().environment(), "Private key: 64 hexadecimal digits.";
    }
}
