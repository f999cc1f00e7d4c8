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
    "Media types by file name ending (`.svg`), beside the built-in ones.",
)
.otherwise("none");

const DEFAULT_FILE: Key = key(
    "default_file",
    Kind::Text(Rule::Path),
    "File served with status 200 in place of a missing one, for single-page applications.",
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
            "Directory of the files; a relative path starts at the node's directory. Give it, or `package` with \
             `resource`.",
        )
        .otherwise("the folder in `package`")
        .environment(),
        key(
            "package",
            Kind::Text(Rule::NotEmpty),
            "Python package that contains the files.",
        )
        .otherwise("the one in `directory`"),
        key(
            "resource",
            Kind::Text(Rule::Path),
            "Folder in that package.",
        )
        .otherwise("the one in `directory`"),
        key(
            "options",
            Kind::Object(&STATIC_OPTIONS),
            "Options of the file service.",
        )
        .otherwise("the defaults"),
    ],
};

static STATIC_OPTIONS: Table = Table {
    path: "web[static].options",
    name: "options of a service of files",
    keys: &[
        key(
            "enable_directory_listing",
            Kind::Boolean,
            "Lists a directory that has no `index.html`.",
        )
        .fallback(NO),
        MIME_TYPES,
        key(
            "cache_timeout",
            Kind::OrNull(&integer(0, 1 << 32)),
            "Time that browsers may cache a file, in seconds. `null` sends no cache header.",
        )
        .fallback(Fallback::Integer(43_200)),
        DEFAULT_FILE,
        key(
            "compress",
            Kind::Boolean,
            "Compresses texts of 1 KiB to 1 MiB (gzip) for clients that accept it. Up to 16 MiB of compressed texts \
             are kept in memory.",
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
            "Zip file; a relative path starts at the node's directory.",
        )
        .required()
        .environment(),
        key(
            "origin",
            Kind::Text(Rule::HttpUrl),
            "URL of the file, fetched with `download` if the file does not exist.",
        )
        .otherwise("none"),
        key(
            "download",
            Kind::Boolean,
            "Fetches the file at start if it does not exist.",
        )
        .fallback(NO),
        key(
            "cache",
            Kind::Boolean,
            "Caches requested members in memory.",
        )
        .fallback(NO),
        key(
            "default_object",
            Kind::Text(Rule::Path),
            "Member served for a path that ends in a slash.",
        )
        .otherwise("none"),
        key(
            "object_prefix",
            Kind::Text(Rule::Path),
            "Folder in the file that paths start at.",
        )
        .otherwise("the root of the file"),
        MIME_TYPES,
        key(
            "hashes",
            list(&Kind::Text(Rule::Hexadecimal64)),
            "SHA-256 digests in hexadecimal, of which the file must have one.",
        )
        .otherwise("none: the file is not checked"),
        key(
            "options",
            Kind::Object(&ARCHIVE_OPTIONS),
            "Options of the member service.",
        )
        .otherwise("the defaults"),
        key(
            "archive_bytes_max",
            integer(22, 1 << 32),
            "Maximum size of a fetched file, in bytes.",
        )
        .fallback(Fallback::Integer(64 << 20))
        .own(),
        key(
            "member_bytes_max",
            integer(1, 1 << 40),
            "Maximum size of an extracted member, in bytes. A longer one is not served.",
        )
        .fallback(Fallback::Integer(256 << 20))
        .own(),
        key(
            "cache_bytes_max",
            integer(1, 1 << 40),
            "Maximum size of cached members, in bytes.",
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
            "Target of the redirection (302): a URL or a path.",
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
        key("value", Kind::Json, "Value of the answer.").required(),
        key(
            "options",
            Kind::Object(&JSON_OPTIONS),
            "Options of the answer. (In Crossbar.io they have no effect.)",
        )
        .otherwise("the defaults"),
    ],
};

static JSON_OPTIONS: Table = Table {
    path: "web[json].options",
    name: "options of a service of a value",
    keys: &[
        key(
            "prettify",
            Kind::Boolean,
            "Indents the value and sorts its keys.",
        )
        .fallback(NO),
        key(
            "allow_cross_origin",
            Kind::Boolean,
            "Lets pages of other origins read the value.",
        )
        .fallback(YES),
        key(
            "discourage_caching",
            Kind::Boolean,
            "Tells browsers not to cache the value.",
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
            "Directory of the programs; a relative path starts at the node's directory.",
        )
        .required()
        .environment(),
        key(
            "processor",
            Kind::Text(Rule::Path),
            "Interpreter that runs the programs (RFC 3875): `/usr/bin/python3`.",
        )
        .required()
        .environment(),
        key(
            "processes_max",
            integer(1, 10_000),
            "Maximum number of running programs. As many more requests wait for `timeout`; further ones get status \
             503.",
        )
        .fallback(Fallback::Integer(16))
        .own(),
        key(
            "timeout",
            integer(1, 86_400),
            "Maximum time for a program to answer, and between the parts of its answer, in seconds. After it the \
             client gets status 504, and the program ends with all its children.",
        )
        .fallback(Fallback::Integer(60))
        .own(),
        key(
            "run_timeout",
            integer(1, 604_800),
            "Maximum total run time of a program, in seconds.",
        )
        .fallback(Fallback::Integer(600))
        .own(),
    ],
};
