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
            "Sessions that prove nothing.",
        )
        .otherwise("taken with its defaults where no other method is given, else not taken"),
        key(
            "ticket",
            Kind::Tagged(&TICKET),
            "Sessions that know a ticket, which they send as it is.",
        )
        .otherwise("not taken"),
        key(
            "wampcra",
            Kind::Tagged(&WAMPCRA),
            "Sessions that know a secret, with which they sign a challenge (WAMP-CRA).",
        )
        .otherwise("not taken"),
        key(
            "scram",
            Kind::Tagged(&SCRAM),
            "Sessions that know a password, of which the router has no more than what it takes to see a proof \
             (SCRAM; `scram` and `wamp-scram` among a client's methods).",
        )
        .otherwise("not taken"),
        key(
            "cryptosign",
            Kind::Tagged(&CRYPTOSIGN),
            "Sessions that have a private key, with which they sign a challenge (WAMP-cryptosign).",
        )
        .otherwise("not taken"),
        key(
            "jwt",
            Kind::Tagged(&JWT),
            "Sessions that have a JSON Web Token of an issuer.",
        )
        .otherwise("not taken")
        .own(),
        key(
            "tls",
            Kind::Tagged(&TLS_AUTH),
            "Sessions whose connection has shown a TLS client certificate, which the endpoint's `ca_certificates` ask \
             for.",
        )
        .otherwise("not taken"),
        key(
            "cookie",
            Kind::Object(&COOKIE_AUTH),
            "Sessions whose browser has logged in before, by another method and with the same `cookie`.",
        )
        .otherwise("not taken"),
        key(
            "end_revoked_sessions",
            Kind::Boolean,
            "Whether the sessions of a principal end at once when it is taken out of its file, or has another secret, key \
             or role there. Otherwise they go on until their clients leave. Its cookies, kept decisions and sessions that \
             wait to be resumed end in any case.",
        )
        .fallback(NO)
        .own(),
        key(
            "error_texts",
            Kind::OneOf(&ERROR_TEXTS),
            "What a client is told that is not let in: `neutral` says the same whether there is such a \
             principal or not; `crossbar` has Crossbar.io's words, by which anybody can find out who there \
             is, and refuses who is unknown before a challenge.",
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
    "The role of those for whom no other is named.",
)
.otherwise("they are refused");

/// What is said of a procedure that says who somebody is.
pub(super) const DYNAMIC: &[Key] = &[
    TYPE,
    key(
        "authenticator",
        Kind::Text(Rule::ExactUri),
        "The procedure that is asked, with the realm, the authid and a dictionary of what else is known. It \
         answers with a role, or with a dictionary: `role`, `realm`, `authid`, `extra`; for WAMP-CRA also \
         `secret`, which is required, `salt`, `iterations`, `keylen`; for SCRAM also what its principals have; \
         for WAMP-cryptosign also `pubkey`, which is required.",
    )
    .required(),
    key(
        "authenticator-realm",
        Kind::Text(Rule::RealmName),
        "The realm in which it is registered.",
    )
    .otherwise("the one that the client asks for"),
    key(
        "authenticator-role",
        Kind::Text(Rule::NotEmpty),
        "The role of the router's own session that calls it.",
    )
    .fallback(Fallback::Text("trusted")),
    DEFAULT_ROLE,
    TIMEOUT,
];

const TIMEOUT: Key = key(
    "authenticator_timeout_ms",
    integer(1, 3_600_000),
    "How long it may take to answer, in milliseconds, before the client is refused; the whole \
     handshake has `handshake_timeout_ms`.",
)
.fallback(Fallback::Integer(5_000))
.own();

/// What is said of a function that makes one.
pub(super) const FUNCTION: &[Key] = &[
    TYPE,
    key(
        "create",
        Kind::Text(Rule::PythonName),
        "A function in Python, by its full name: `package.module.function`. It is called with `config` and \
         None, and returns the authenticator: a function of realm, authid and details that answers as a \
         procedure does. Both run in the process of the worker's components.",
    )
    .required(),
    key("config", Kind::Json, "Anything: what `create` is called with.").otherwise("an empty dictionary"),
    key(
        "expose_controller",
        Kind::Only(
            false,
            "`create` is called with None; an authenticator that is to manage the node connects to its management realm like any client",
        ),
        "Whether `create` gets the node's controller.",
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
            "The role that such sessions get.",
        )
        .fallback(Fallback::Text("anonymous")),
        key(
            "realm",
            Kind::Text(Rule::RealmName),
            "The only realm that they may join.",
        )
        .otherwise("the one they ask for"),
        key(
            "authid",
            Kind::Text(Rule::NotEmpty),
            "The authid that they all get.",
        )
        .otherwise("a fresh one for each"),
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

static TICKET_PRINCIPAL: Table = Table {
    path: "auth.ticket[static].principals{}",
    name: "a principal with a ticket",
    keys: &[
        key(
            "ticket",
            SECRET,
            "What the principal shows.",
        )
        .otherwise("known by `ticket_hash`")
        .environment(),
        key(
            "ticket_hash",
            SECRET,
            "In place of the ticket, so that it need not be here, a hash of it: `sha256:` and 64 hexadecimal \
             digits, for a ticket that nobody can guess; `$argon2id$v=19$m=…,t=…,p=…$SALT$HASH` or \
             `$pbkdf2-sha256$i=…$SALT$HASH`, for passwords. `crosstie passwd` makes it.",
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
    "The role that its sessions get.",
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
            "Who may come in, by authid.",
        )
        .otherwise("read from `users_file`"),
        key(
            "users_file",
            Kind::Text(Rule::Path),
            "In place of `users`, a file of JSON or YAML with what would stand there. It is read again within three \
             seconds of a change; while it has an error what was read before holds. A relative path begins at the \
             node's directory.",
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
            "What the user signs with. Beside a `salt` it is either the password or, so that the password \
             need not be here, the key that was derived from it (PBKDF2 with SHA-256, in Base64): both are \
             taken.",
        )
        .required()
        .environment(),
        ROLE_OF_PRINCIPAL,
        key(
            "salt",
            Kind::Text(Rule::NotEmpty),
            "What clients derive their key with from the password.",
        )
        .otherwise("the secret itself is the key"),
        key(
            "iterations",
            integer(1, 1_000_000),
            "How often that is done. Whoever has the configuration needs as often for each guess.",
        )
        .fallback(Fallback::Integer(1_000)),
        key("keylen", integer(1, 64), "Bytes of the key.").fallback(Fallback::Integer(32)),
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
