//! Cookies of a WebSocket transport: every key that is taken. Flat.

use super::form::{Fallback, Kind, NO, Rule, TYPE, Table, Tagged, Words, integer, key};

pub(super) static COOKIE: Table = Table {
    path: "websocket.cookie",
    name: "a cookie",
    keys: &[
        key("name", Kind::Text(Rule::CookieName), "Its name.").fallback(Fallback::Text("cbtid")),
        key(
            "length",
            integer(6, 64),
            "Its length in characters, each of which is one of 64. Whoever guesses one is who logged in by it: fewer \
             than 22 are not enough.",
        )
        .fallback(Fallback::Integer(24)),
        key(
            "max_age",
            integer(1, 311_040_000),
            "How long it is good for, in seconds from when it was given out.",
        )
        .fallback(Fallback::Integer(604_800)),
        key(
            "secure",
            Kind::Boolean,
            "Whether browsers send it over TLS only.",
        )
        .fallback(NO),
        key(
            "http_strict",
            Kind::Boolean,
            "Whether pages' scripts do not see it (`HttpOnly`).",
        )
        .fallback(NO),
        key(
            "same_site",
            Kind::OneOf(&SAME_SITE),
            "Whether browsers send it for pages of other sites.",
        )
        .otherwise("the browser decides"),
        key("store", Kind::Tagged(&STORE), "Where it is kept who logged in.").otherwise("in memory"),
        key(
            "cookies_max",
            integer(1, 10_000_000),
            "How many are kept; at one more the oldest goes. Only those by which somebody has logged in are kept, and \
             of each principal 64.",
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
            "The file, which no two transports share; a relative path begins at the node's directory. Its lines are \
             Crossbar.io's.",
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
            "The database's directory. Cookies are kept in a file beside it, whose name has `.cookies` behind the \
             directory's; a relative path begins at the node's directory.",
        )
        .required(),
        key("purge_on_startup", Kind::Boolean, "")
            .inert("what is deleted or expired is purged at every start"),
        key("maxsize", integer(0, i64::MAX), "").inert("`cookies_max` bounds the file"),
        key("sync", Kind::Boolean, "").inert("the file is synced by a thread of its own"),
        key(
            "readonly",
            Kind::Always(false, "who logs in is written down"),
            "Whether nothing is written.",
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
        "May be left out.",
    )
    .fallback(Fallback::Text("static"))],
};
