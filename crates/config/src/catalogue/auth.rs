//! Authentication: every key that is taken. Long and flat.

use super::certificates::TLS_AUTH;
use super::cookie::COOKIE_AUTH;
use super::cryptosign::CRYPTOSIGN;
use super::form::{
    Fallback, Key, Kind, NO, Rule, SECRET, TYPE, Table, Tagged, Words, integer, key,
};
use super::jwt::JWT;
use super::scram::SCRAM;

pub(crate) static AUTH: Table = Table {
    path: "auth",
    name: "a transport's auth",
    keys: &[
        key(
            "anonymous",
            Kind::Tagged(&ANONYMOUS),
            "Accepts sessions without credentials.",
        )
        .otherwise("enabled if no other method is given, else disabled"),
        key(
            "ticket",
            Kind::Tagged(&TICKET),
            "Accepts sessions that send the ticket of a principal.",
        )
        .otherwise("disabled"),
        key(
            "wampcra",
            Kind::Tagged(&WAMPCRA),
            "Accepts sessions that sign a challenge with a shared secret (WAMP-CRA).",
        )
        .otherwise("disabled"),
        key(
            "scram",
            Kind::Tagged(&SCRAM),
            "Accepts sessions that prove knowledge of a password (SCRAM). The router stores only the keys that \
             verify the proof. A client's method may be named `scram` or `wamp-scram`.",
        )
        .otherwise("disabled"),
        key(
            "cryptosign",
            Kind::Tagged(&CRYPTOSIGN),
            "Accepts sessions that sign a challenge with an Ed25519 key (WAMP-cryptosign).",
        )
        .otherwise("disabled"),
        key(
            "jwt",
            Kind::Tagged(&JWT),
            "Accepts sessions that send a JSON Web Token of an issuer.",
        )
        .otherwise("disabled")
        .own(),
        key(
            "tls",
            Kind::Tagged(&TLS_AUTH),
            "Accepts sessions whose connection has presented a TLS client certificate. The endpoint's \
             `ca_certificates` request it.",
        )
        .otherwise("disabled"),
        key(
            "cookie",
            Kind::Object(&COOKIE_AUTH),
            "Accepts sessions whose browser has logged in before by another method and sends the same `cookie`.",
        )
        .otherwise("disabled"),
        key(
            "end_revoked_sessions",
            Kind::Boolean,
            "Ends the sessions of a principal at once when its file no longer has it, or changes its secret, key or \
             role. With `false` the sessions continue until their clients leave. Its cookies, cached decisions and \
             sessions awaiting resumption end in either case.",
        )
        .fallback(NO)
        .own(),
        key(
            "error_texts",
            Kind::OneOf(&ERROR_TEXTS),
            "Error texts for clients that fail to log in. `neutral` does not reveal whether the principal exists. \
             `crossbar` uses Crossbar.io's texts, which reveal it, and rejects unknown principals before a \
             challenge.",
        )
        .fallback(Fallback::Text("neutral"))
        .own(),
    ],
};

static ERROR_TEXTS: Words = Words {
    path: "auth.error_texts",
    words: &["neutral", "crossbar"],
};

pub(super) const DEFAULT_ROLE: Key = key(
    "default-role",
    Kind::Text(Rule::NotEmpty),
    "Role of principals that have no role of their own.",
)
.otherwise("none: they are rejected");

/// What is said of a procedure that says who somebody is.
pub(super) const DYNAMIC: &[Key] = &[
    TYPE,
    key(
        "authenticator",
        Kind::Text(Rule::ExactUri),
        "Authenticator: the procedure that the router calls with the realm, the authid and a dictionary of details. \
         It returns a role, or a dictionary with `role`, `realm`, `authid` and `extra`. For WAMP-CRA the dictionary \
         also has `secret`, which is required, `salt`, `iterations` and `keylen`. For SCRAM it has the keys of a \
         SCRAM principal. For WAMP-cryptosign it has `pubkey`, which is required.",
    )
    .required(),
    key(
        "authenticator-realm",
        Kind::Text(Rule::RealmName),
        "Realm that the authenticator is registered in.",
    )
    .otherwise("the realm that the client asks for"),
    key(
        "authenticator-role",
        Kind::Text(Rule::NotEmpty),
        "Role of the router's own session that calls the authenticator.",
    )
    .fallback(Fallback::Text("trusted")),
    DEFAULT_ROLE,
    TIMEOUT,
];

const TIMEOUT: Key = key(
    "authenticator_timeout_ms",
    integer(1, 3_600_000),
    "Maximum time for the authenticator to answer, in milliseconds. After it the router rejects the client. \
     `handshake_timeout_ms` bounds the whole handshake.",
)
.fallback(Fallback::Integer(5_000))
.own();

/// What is said of a function that makes one.
pub(super) const FUNCTION: &[Key] = &[
    TYPE,
    key(
        "create",
        Kind::Text(Rule::PythonName),
        "Python function that makes the authenticator, as `package.module.function`. It is called with `config` and \
         None, and returns a function of realm, authid and details. That function answers as a procedure does. Both \
         run in the process of the worker's components.",
    )
    .required(),
    key("config", Kind::Json, "Value of any type, passed to `create`.").otherwise("an empty dictionary"),
    key(
        "expose_controller",
        Kind::Only(
            false,
            "`create` is called with None; an authenticator that is to manage the node connects to its management realm like any client",
        ),
        "Passes the node's controller to `create`.",
    )
    .fallback(Fallback::Boolean(false)),
    DEFAULT_ROLE,
    TIMEOUT,
];

pub(super) static ANONYMOUS: Tagged = Tagged {
    path: "auth.anonymous.type",
    name: "anonymous authentication",
    variants: &[
        ("static", &ANONYMOUS_STATIC),
        ("dynamic", &ANONYMOUS_DYNAMIC),
        ("function", &ANONYMOUS_FUNCTION),
    ],
};

pub(super) static ANONYMOUS_STATIC: Table = Table {
    path: "auth.anonymous[static]",
    name: "anonymous authentication",
    keys: &[
        TYPE,
        key(
            "role",
            Kind::Text(Rule::NotEmpty),
            "Role of anonymous sessions.",
        )
        .fallback(Fallback::Text("anonymous")),
        key(
            "realm",
            Kind::Text(Rule::RealmName),
            "Realm that anonymous sessions must join.",
        )
        .otherwise("the realm that they ask for"),
        key(
            "authid",
            Kind::Text(Rule::NotEmpty),
            "Authid of all anonymous sessions.",
        )
        .otherwise("a new one for each session"),
    ],
};

static TICKET: Tagged = Tagged {
    path: "auth.ticket.type",
    name: "authentication by ticket",
    variants: &[
        ("static", &TICKET_STATIC),
        ("dynamic", &TICKET_DYNAMIC),
        ("function", &TICKET_FUNCTION),
    ],
};

static TICKET_STATIC: Table = Table {
    path: "auth.ticket[static]",
    name: "authentication by ticket",
    keys: &[
        TYPE,
        key(
            "principals",
            Kind::Map {
                keys: Rule::NotEmpty,
                of: &Kind::Object(&TICKET_PRINCIPAL),
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

static TICKET_PRINCIPAL: Table = Table {
    path: "auth.ticket[static].principals{}",
    name: "a principal with a ticket",
    keys: &[
        key(
            "ticket",
            SECRET,
            "Ticket that the principal sends.",
        )
        .otherwise("none, with `ticket_hash`")
        .environment(),
        key(
            "ticket_hash",
            SECRET,
            "Hash in place of the ticket, made by `crosstie passwd`. For a random ticket: `sha256:` and 64 \
             hexadecimal digits. For a password: `$argon2id$v=19$m=…,t=…,p=…$SALT$HASH` or \
             `$pbkdf2-sha256$i=…$SALT$HASH`.",
        )
        .otherwise("made from the ticket")
        .environment()
        .own(),
        ROLE_OF_PRINCIPAL,
    ],
};

pub(super) const ROLE_OF_PRINCIPAL: Key = key(
    "role",
    Kind::Text(Rule::NotEmpty),
    "Role of the principal's sessions.",
)
.otherwise("`default-role`");

static WAMPCRA: Tagged = Tagged {
    path: "auth.wampcra.type",
    name: "WAMP-CRA",
    variants: &[
        ("static", &WAMPCRA_STATIC),
        ("dynamic", &WAMPCRA_DYNAMIC),
        ("function", &WAMPCRA_FUNCTION),
    ],
};

static WAMPCRA_STATIC: Table = Table {
    path: "auth.wampcra[static]",
    name: "WAMP-CRA",
    keys: &[
        TYPE,
        key(
            "users",
            Kind::Map {
                keys: Rule::NotEmpty,
                of: &Kind::Object(&WAMPCRA_USER),
                environment: false,
            },
            "Principals by authid.",
        )
        .otherwise("read from `users_file`"),
        key(
            "users_file",
            Kind::Text(Rule::Path),
            "JSON or YAML file that holds the value of `users`. The router reloads a changed file within three \
             seconds. While the file has an error, the previous content stays in force. A relative path starts at \
             the node's directory.",
        )
        .environment()
        .own(),
        DEFAULT_ROLE.own(),
    ],
};

static WAMPCRA_USER: Table = Table {
    path: "auth.wampcra[static].users{}",
    name: "a user with a secret",
    keys: &[
        key(
            "secret",
            SECRET,
            "Secret that signs the challenge. With a `salt` it is either the password or the key derived from it \
             (PBKDF2 with SHA-256, in Base64), so that the file need not hold the password. The router accepts both.",
        )
        .required()
        .environment(),
        ROLE_OF_PRINCIPAL,
        key(
            "salt",
            Kind::Text(Rule::NotEmpty),
            "Salt of the key derivation in the client (PBKDF2).",
        )
        .otherwise("the secret itself is the key"),
        key(
            "iterations",
            integer(1, 1_000_000),
            "Number of iterations of the key derivation. An attacker with the configuration needs as many for each \
             guess.",
        )
        .fallback(Fallback::Integer(1_000)),
        key("keylen", integer(1, 64), "Length of the derived key, in bytes.").fallback(Fallback::Integer(32)),
    ],
};

static ANONYMOUS_DYNAMIC: Table = Table {
    path: "auth.anonymous[dynamic]",
    name: "anonymous authentication by a procedure",
    keys: DYNAMIC,
};

static TICKET_DYNAMIC: Table = Table {
    path: "auth.ticket[dynamic]",
    name: "authentication by ticket and a procedure",
    keys: DYNAMIC,
};

static WAMPCRA_DYNAMIC: Table = Table {
    path: "auth.wampcra[dynamic]",
    name: "WAMP-CRA by a procedure",
    keys: DYNAMIC,
};

static ANONYMOUS_FUNCTION: Table = Table {
    path: "auth.anonymous[function]",
    name: "anonymous authentication by a function",
    keys: FUNCTION,
};

static TICKET_FUNCTION: Table = Table {
    path: "auth.ticket[function]",
    name: "authentication by ticket and a function",
    keys: FUNCTION,
};

static WAMPCRA_FUNCTION: Table = Table {
    path: "auth.wampcra[function]",
    name: "WAMP-CRA by a function",
    keys: FUNCTION,
};
