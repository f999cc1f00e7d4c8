//! Authentication by key: every key of the configuration that is taken. Flat.

use super::auth::{DEFAULT_ROLE, DYNAMIC, FUNCTION, ROLE_OF_PRINCIPAL};
use super::form::{Kind, Rule, TYPE, Table, Tagged, key, list_not_empty};

pub(super) static CRYPTOSIGN: Tagged = Tagged {
    path: "auth.cryptosign.type",
    name: "WAMP-cryptosign",
    variants: &[
        ("static", &CRYPTOSIGN_STATIC),
        ("dynamic", &CRYPTOSIGN_DYNAMIC),
        ("function", &CRYPTOSIGN_FUNCTION),
    ],
};

static CRYPTOSIGN_STATIC: Table = Table {
    path: "auth.cryptosign[static]",
    name: "WAMP-cryptosign",
    keys: &[
        TYPE,
        key(
            "principals",
            Kind::Map {
                keys: Rule::NotEmpty,
                of: &Kind::Object(&CRYPTOSIGN_PRINCIPAL),
                environment: false,
            },
            "Principals by authid. A client that sends no authid is the principal that has its key.",
        )
        .otherwise("read from `principals_file`"),
        key(
            "principals_file",
            Kind::Text(Rule::Path),
            "JSON or YAML file that holds the value of `principals`. The router reloads a changed file within three \
             seconds. While the file has an error, the previous content stays in force. A relative path starts at \
             the node's directory.",
        )
        .environment()
        .own(),
        DEFAULT_ROLE.own(),
    ],
};

static CRYPTOSIGN_PRINCIPAL: Table = Table {
    path: "auth.cryptosign[static].principals{}",
    name: "a principal with keys",
    keys: &[
        key(
            "authorized_keys",
            list_not_empty(&Kind::Text(Rule::Hexadecimal64)),
            "Public keys of the principal (Ed25519), each 64 hexadecimal digits.",
        )
        .required(),
        ROLE_OF_PRINCIPAL,
        key(
            "realm",
            Kind::Text(Rule::RealmName),
            "Realm that the principal's sessions join, whichever they ask for.",
        )
        .otherwise("the realm that they ask for"),
    ],
};

static CRYPTOSIGN_DYNAMIC: Table = Table {
    path: "auth.cryptosign[dynamic]",
    name: "WAMP-cryptosign by a procedure",
    keys: DYNAMIC,
};

static CRYPTOSIGN_FUNCTION: Table = Table {
    path: "auth.cryptosign[function]",
    name: "WAMP-cryptosign by a function",
    keys: FUNCTION,
};
