//! Web services that lead to no realm: files, values, other places. Long and flat.

use super::form::{Fallback, Key, Kind, NO, Rule, TYPE, Table, YES, integer, key, list};

pub(super) const SERVICE_ID: Key =
    key("id", Kind::Text(Rule::Id), "").inert("a web service is known by its path");

const MIME_TYPES: Key = key(
    "mime_types",
    Kind::Map {
        keys: Rule::NotEmpty,
        of: &Kind::Text(Rule::MediaType),
        environment: false,
    },
    "Media types by the end of a file's name (`.svg`), beside those that are known.",
)
.otherwise("none");

const DEFAULT_FILE: Key = key(
    "default_file",
    Kind::Text(Rule::Path),
    "What is served, with status 200, in the place of what is not there: for pages that find their way by scripts.",
)
.otherwise("404");

pub(super) static STATIC: Table = Table {
    path: "web[static]",
    name: "a service of files",
    keys: &[
        TYPE,
        SERVICE_ID,
        key(
            "directory",
            Kind::Text(Rule::Path),
            "The files' directory; a relative path begins at the node's directory. It, or `package` with `resource`.",
        )
        .otherwise("`package` says it")
        .environment(),
        key(
            "package",
            Kind::Text(Rule::NotEmpty),
            "The Python package that the files are part of.",
        )
        .otherwise("`directory` says it"),
        key(
            "resource",
            Kind::Text(Rule::Path),
            "The folder in that package.",
        )
        .otherwise("`directory` says it"),
        key(
            "options",
            Kind::Object(&STATIC_OPTIONS),
            "How files are served.",
        )
        .otherwise("all of their defaults"),
    ],
};

static STATIC_OPTIONS: Table = Table {
    path: "web[static].options",
    name: "options of a service of files",
    keys: &[
        key(
            "enable_directory_listing",
            Kind::Boolean,
            "Whether a directory without `index.html` is listed.",
        )
        .fallback(NO),
        MIME_TYPES,
        key(
            "cache_timeout",
            Kind::OrNull(&integer(0, 1 << 32)),
            "How long browsers may keep a file without asking again, in seconds; `null`: they are told nothing.",
        )
        .fallback(Fallback::Integer(43_200)),
        DEFAULT_FILE,
        key(
            "compress",
            Kind::Boolean,
            "Whether texts of 1 KiB to 1 MiB are sent compressed (gzip) to those who take that. Up to 16 MiB of them are \
             kept in memory.",
        )
        .fallback(NO)
        .own(),
    ],
};

pub(super) static ARCHIVE: Table = Table {
    path: "web[archive]",
    name: "a service of an archive",
    keys: &[
        TYPE,
        SERVICE_ID,
        key(
            "archive",
            Kind::Text(Rule::Path),
            "The zip file; a relative path begins at the node's directory.",
        )
        .required()
        .environment(),
        key(
            "origin",
            Kind::Text(Rule::HttpUrl),
            "Where the file is fetched from when it is not there and `download` is set.",
        )
        .otherwise("nowhere"),
        key(
            "download",
            Kind::Boolean,
            "Whether the file is fetched at the start when it is not there.",
        )
        .fallback(NO),
        key(
            "cache",
            Kind::Boolean,
            "Whether members that were asked for are kept in memory.",
        )
        .fallback(NO),
        key(
            "default_object",
            Kind::Text(Rule::Path),
            "The member that is served for a path that ends in a slash.",
        )
        .otherwise("none"),
        key(
            "object_prefix",
            Kind::Text(Rule::Path),
            "The folder in the file that paths begin at.",
        )
        .otherwise("its root"),
        MIME_TYPES,
        key(
            "hashes",
            list(&Kind::Text(Rule::Hexadecimal64)),
            "SHA-256 digests, in hexadecimal; the file must have one of them.",
        )
        .otherwise("the file is not checked"),
        key(
            "options",
            Kind::Object(&ARCHIVE_OPTIONS),
            "How members are served.",
        )
        .otherwise("all of their defaults"),
        key(
            "archive_bytes_max",
            integer(22, 1 << 32),
            "The longest file that is fetched, in bytes.",
        )
        .fallback(Fallback::Integer(64 << 20))
        .own(),
        key(
            "member_bytes_max",
            integer(1, 1 << 40),
            "A longer member is not served, in bytes, however short it is in the file.",
        )
        .fallback(Fallback::Integer(256 << 20))
        .own(),
        key(
            "cache_bytes_max",
            integer(1, 1 << 40),
            "How much of members `cache` keeps, in bytes.",
        )
        .fallback(Fallback::Integer(64 << 20))
        .own(),
    ],
};

static ARCHIVE_OPTIONS: Table = Table {
    path: "web[archive].options",
    name: "options of a service of an archive",
    keys: &[DEFAULT_FILE],
};

pub(super) static REDIRECT: Table = Table {
    path: "web[redirect]",
    name: "a redirection",
    keys: &[
        TYPE,
        SERVICE_ID,
        key(
            "url",
            Kind::Text(Rule::Location),
            "Where browsers are sent (302): a URL or a path.",
        )
        .required(),
    ],
};

pub(super) static JSON: Table = Table {
    path: "web[json]",
    name: "a service of a value",
    keys: &[
        TYPE,
        SERVICE_ID,
        key("value", Kind::Json, "What is answered.").required(),
        key(
            "options",
            Kind::Object(&JSON_OPTIONS),
            "How it is answered. (On Crossbar.io they are without effect.)",
        )
        .otherwise("all of their defaults"),
    ],
};

static JSON_OPTIONS: Table = Table {
    path: "web[json].options",
    name: "options of a service of a value",
    keys: &[
        key(
            "prettify",
            Kind::Boolean,
            "Whether it is indented, with its keys in order.",
        )
        .fallback(NO),
        key(
            "allow_cross_origin",
            Kind::Boolean,
            "Whether pages of other origins may read it.",
        )
        .fallback(YES),
        key(
            "discourage_caching",
            Kind::Boolean,
            "Whether browsers are told to ask each time.",
        )
        .fallback(NO),
    ],
};

pub(super) static NODE_INFO: Table = Table {
    path: "web[nodeinfo]",
    name: "a page about the node",
    keys: &[TYPE, SERVICE_ID],
};

pub(super) static NONE: Table = Table {
    path: "web[none]",
    name: "a path without a service",
    keys: &[TYPE, SERVICE_ID],
};

pub(super) static CGI: Table = Table {
    path: "web[cgi]",
    name: "a service of CGI programs",
    keys: &[
        TYPE,
        SERVICE_ID,
        key(
            "directory",
            Kind::Text(Rule::Path),
            "The programs' directory; a relative path begins at the node's directory.",
        )
        .required()
        .environment(),
        key(
            "processor",
            Kind::Text(Rule::Path),
            "The program that is started with a program's file (RFC 3875): `/usr/bin/python3`.",
        )
        .required()
        .environment(),
        key(
            "processes_max",
            integer(1, 10_000),
            "Programs that run at a time. As many more requests wait for `timeout`; beyond, clients are told to \
             come again (503).",
        )
        .fallback(Fallback::Integer(16))
        .own(),
        key(
            "timeout",
            integer(1, 86_400),
            "How long a program may take to answer, and may be silent before its answer's end, in seconds (504). \
             Then it is ended, with all that it has started.",
        )
        .fallback(Fallback::Integer(60))
        .own(),
        key(
            "run_timeout",
            integer(1, 604_800),
            "How long a program may run in all, in seconds, however much it says.",
        )
        .fallback(Fallback::Integer(600))
        .own(),
    ],
};
