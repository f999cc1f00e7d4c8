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
            "Who may come in, by authid.",
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

static SCRAM_PRINCIPAL: Table = Table {
    path: "auth.scram[static].principals{}",
    name: "a principal of SCRAM",
    keys: &[
        key(
            "kdf",
            Kind::OneOf(&FUNCTIONS),
            "How clients make of the password what keys are made of. `argon2id13` is the specification's name \
             for `argon2id-13`, and an addition.",
        )
        .required(),
        key(
            "iterations",
            integer(1, 10_000_000),
            "How often that is done.",
        )
        .required(),
        key(
            "memory",
            integer(0, 4 << 20),
            "KiB that Argon2id takes for it, at least 8. Without meaning for PBKDF2, for which Crossbar.io \
             wants it nevertheless.",
        )
        .otherwise("required by Argon2id"),
        key(
            "salt",
            Kind::Text(Rule::NotEmpty),
            "Random bytes of the principal's own, in hexadecimal digits; every client that logs in is sent \
             them.",
        )
        .required(),
        key(
            "stored-key",
            Kind::Text(Rule::NotEmpty),
            "What a client's proof is seen by: 64 hexadecimal digits.",
        )
        .required()
        .environment(),
        key(
            "server-key",
            Kind::Text(Rule::NotEmpty),
            "What the router proves itself with: 64 hexadecimal digits.",
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
