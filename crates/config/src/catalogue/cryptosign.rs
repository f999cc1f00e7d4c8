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
            "Who may come in, by authid. A client that says no authid is the principal that has its key.",
        )
        .otherwise("read from `principals_file`"),
        key(
            "principals_file",
            Kind::Text(Rule::Path),
            "In place of `principals`, a file of JSON or YAML with what would stand there. It is read again within three \
             seconds of a change; while it has an error what was read before holds. A relative path begins at the \
             node's directory.",
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
            "The principal's public keys (Ed25519), each 64 hexadecimal digits.",
        )
        .required(),
        ROLE_OF_PRINCIPAL,
        key(
            "realm",
            Kind::Text(Rule::RealmName),
            "The realm that its sessions join, whichever they ask for.",
        )
        .otherwise("the one they ask for"),
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
