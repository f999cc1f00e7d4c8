//! Cookies of a WebSocket transport: every key that is taken. Flat.

use super::form::{Fallback, Kind, NO, Rule, TYPE, Table, Tagged, Words, integer, key};

pub(super) static COOKIE: Table = Table {
    path: "websocket.cookie",
    name: "a cookie",
    keys: &[
        key("name", Kind::Text(Rule::CookieName), "Name of the cookie.").fallback(Fallback::Text("cbtid")),
        key(
            "length",
            integer(6, 64),
            "Length of the cookie's value, in characters of 6 bits each. The value is a credential: use at least 22 \
             characters (128 bits).",
        )
        .fallback(Fallback::Integer(24)),
        key(
            "max_age",
            integer(1, 311_040_000),
            "Lifetime of the cookie from its creation, in seconds.",
        )
        .fallback(Fallback::Integer(604_800)),
        key(
            "secure",
            Kind::Boolean,
            "Restricts the cookie to TLS connections (`Secure`).",
        )
        .fallback(NO),
        key(
            "http_strict",
            Kind::Boolean,
            "Hides the cookie from scripts (`HttpOnly`).",
        )
        .fallback(NO),
        key(
            "same_site",
            Kind::OneOf(&SAME_SITE),
            "Policy for sending the cookie from pages of other sites (`SameSite`).",
        )
        .otherwise("the browser decides"),
        key("store", Kind::Tagged(&STORE), "Storage of cookie logins.").otherwise("in memory"),
        key(
            "cookies_max",
            integer(1, 10_000_000),
            "Maximum number of stored cookies. Another one evicts the oldest. Only cookies of logged-in sessions are \
             stored, at most 64 per principal.",
        )
        .fallback(Fallback::Integer(65_536))
        .own(),
    ],
};

static SAME_SITE: Words = Words {
    path: "websocket.cookie.same_site",
    words: &["Strict", "Lax", "None"],
};

static STORE: Tagged = Tagged {
    path: "websocket.cookie.store.type",
    name: "a store of cookies",
    variants: &[
        ("memory", &MEMORY),
        ("file", &FILE),
        ("database", &DATABASE),
    ],
};

static MEMORY: Table = Table {
    path: "websocket.cookie.store[memory]",
    name: "a store of cookies in memory",
    keys: &[TYPE],
};

static FILE: Table = Table {
    path: "websocket.cookie.store[file]",
    name: "a store of cookies in a file",
    keys: &[
        TYPE,
        key(
            "filename",
            Kind::Text(Rule::Path),
            "File of cookie logins, in Crossbar.io's line format; no two transports share a file. A relative path \
             starts at the node's directory.",
        )
        .required(),
        key("purge_on_startup", Kind::Boolean, "")
            .inert("what is deleted or expired is purged at every start"),
    ],
};

static DATABASE: Table = Table {
    path: "websocket.cookie.store[database]",
    name: "a store of cookies in a database",
    keys: &[
        TYPE,
        key(
            "path",
            Kind::Text(Rule::Path),
            "Directory of the database. Cookies are stored in a file beside it, named after the directory with \
             `.cookies` appended. A relative path starts at the node's directory.",
        )
        .required(),
        key("purge_on_startup", Kind::Boolean, "")
            .inert("what is deleted or expired is purged at every start"),
        key("maxsize", integer(0, i64::MAX), "").inert("`cookies_max` bounds the file"),
        key("sync", Kind::Boolean, "").inert("the file is synced by a thread of its own"),
        key(
            "readonly",
            Kind::Always(false, "who logs in is written down"),
            "Opens the store for reading only.",
        )
        .fallback(NO),
    ],
};

pub(super) static COOKIE_AUTH: Table = Table {
    path: "auth.cookie",
    name: "authentication by cookie",
    keys: &[key(
        "type",
        Kind::OneOf(&Words {
            path: "",
            words: &["static"],
        }),
        "Type of the object; may be left out.",
    )
    .fallback(Fallback::Text("static"))],
};
