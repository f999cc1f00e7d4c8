//! SCRAM: every key that is taken. Long and flat.

use super::auth::{DEFAULT_ROLE, DYNAMIC, FUNCTION, ROLE_OF_PRINCIPAL};
use super::form::{Kind, Rule, TYPE, Table, Tagged, Words, integer, key};

pub(super) static SCRAM: Tagged = Tagged {
    path: "auth.scram.type",
    name: "SCRAM",
    variants: &[
        ("static", &SCRAM_STATIC),
        ("dynamic", &SCRAM_DYNAMIC),
        ("function", &SCRAM_FUNCTION),
    ],
};

static SCRAM_STATIC: Table = Table {
    path: "auth.scram[static]",
    name: "SCRAM",
    keys: &[
        TYPE,
        key(
            "principals",
            Kind::Map {
                keys: Rule::NotEmpty,
                of: &Kind::Object(&SCRAM_PRINCIPAL),
                environment: false,
            },
            "Principals by authid.",
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

static SCRAM_PRINCIPAL: Table = Table {
    path: "auth.scram[static].principals{}",
    name: "a principal of SCRAM",
    keys: &[
        key(
            "kdf",
            Kind::OneOf(&FUNCTIONS),
            "Key derivation function of the client. `argon2id13`, the specification's name for `argon2id-13`, is \
             accepted too.",
        )
        .required(),
        key(
            "iterations",
            integer(1, 10_000_000),
            "Number of iterations of the key derivation.",
        )
        .required(),
        key(
            "memory",
            integer(0, 4 << 20),
            "Memory of Argon2id, in KiB, at least 8. PBKDF2 ignores it, though Crossbar.io requires the key.",
        )
        .otherwise("required by Argon2id"),
        key(
            "salt",
            Kind::Text(Rule::NotEmpty),
            "Random salt of the principal, in hexadecimal digits. Every client that logs in receives it.",
        )
        .required(),
        key(
            "stored-key",
            Kind::Text(Rule::NotEmpty),
            "Key that verifies the client's proof: 64 hexadecimal digits.",
        )
        .required()
        .environment(),
        key(
            "server-key",
            Kind::Text(Rule::NotEmpty),
            "Key that signs the router's own proof: 64 hexadecimal digits.",
        )
        .required()
        .environment(),
        ROLE_OF_PRINCIPAL,
    ],
};

static FUNCTIONS: Words = Words {
    path: "auth.scram[static].principals{}.kdf",
    words: &["argon2id-13", "argon2id13", "pbkdf2"],
};

static SCRAM_DYNAMIC: Table = Table {
    path: "auth.scram[dynamic]",
    name: "SCRAM by a procedure",
    keys: DYNAMIC,
};

static SCRAM_FUNCTION: Table = Table {
    path: "auth.scram[function]",
    name: "SCRAM by a function",
    keys: FUNCTION,
};
