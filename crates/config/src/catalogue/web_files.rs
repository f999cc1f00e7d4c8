//! Keys of web services without a realm: files, values, redirections and programs.

use std::time::Duration;

use super::form::{Kind, OFF, ON, Rule, TYPE, integer, list, map, object, text};
use super::table::tables;
use crate::model::{FileSource, Json};
use crate::plain;

tables! {
    pub(super) const SERVICE_ID = "id": text(Rule::Id).inert("a web service is known by its path");
    const MIME_TYPES = "mime_types": map(Rule::NotEmpty, &text(Rule::MediaType)).optional(),
        "Media types by file name ending (`.svg`), beside the built-in ones.";
    const DEFAULT_FILE = "default_file": text(Rule::Path).otherwise("404"),
        "File served with status 200 in place of a missing one, for single-page applications.";

    pub(super) static STATIC("web[static]", "a service of files") {
        ..TYPE, SERVICE_ID;
        "directory" = text(Rule::Path).otherwise("the folder in `package`").environment(),
            "Directory of the files; a relative path starts at the node's directory. Give it, or `package` with \
             `resource`.";
        "package" = text(Rule::NotEmpty).otherwise("the one in `directory`"),
            "Python package that contains the files.";
        "resource" = text(Rule::Path).otherwise("the one in `directory`"), "Folder in that package.";
        "options" = object(&STATIC_OPTIONS).otherwise("the defaults"), "Options of the file service.";
    }

    /// Files below a directory, or of a Python package.
    #[derive(Clone, Debug, PartialEq)]
    pub struct WebFiles = static STATIC_OPTIONS("web[static].options", "options of a service of files") {
        enable_directory_listing => lists_directories: bool = OFF, "Lists a directory that has no `index.html`.";
        ..MIME_TYPES => mime_types: Vec<(String, String)> as plain::mime_types;
        cache_timeout: Option<Duration> as plain::seconds_or_null = Kind::OrNull(&integer(0, 1 << 32)).or(43_200),
            "Time that browsers may cache a file, in seconds. `null` sends no cache header.";
        ..DEFAULT_FILE => default_file: Option<String>;
        compress => compresses: bool = OFF.own(),
            "Compresses texts of 1 KiB to 1 MiB (gzip) for clients that accept it. Up to 16 MiB of compressed texts \
             are kept in memory.";
        let source: FileSource = FileSource::Directory(String::new());
    }

    /// Members of a zip file.
    #[derive(Clone, Debug, PartialEq)]
    pub struct WebArchive = pub(super) static ARCHIVE("web[archive]", "a service of an archive") {
        ..TYPE, SERVICE_ID;
        archive: String = text(Rule::Path).required().environment(),
            "Zip file; a relative path starts at the node's directory.";
        origin: Option<String> = text(Rule::HttpUrl).optional(),
            "URL of the file, fetched with `download` if the file does not exist.";
        download: bool = OFF, "Fetches the file at start if it does not exist.";
        cache: bool = OFF, "Caches requested members in memory.";
        default_object: Option<String> = text(Rule::Path).optional(),
            "Member served for a path that ends in a slash.";
        object_prefix: Option<String> = text(Rule::Path).otherwise("the root of the file"),
            "Folder in the file that paths start at.";
        ..MIME_TYPES => mime_types: Vec<(String, String)> as plain::mime_types;
        hashes: Vec<String> = list(&text(Rule::Hexadecimal64)).otherwise("none: the file is not checked"),
            "SHA-256 digests in hexadecimal, of which the file must have one.";
        "options" = object(&ARCHIVE_OPTIONS).otherwise("the defaults"), "Options of the member service.";
        archive_bytes_max: usize = integer(22, 1 << 32).or(64 << 20).own(),
            "Maximum size of a fetched file, in bytes.";
        member_bytes_max: u64 = integer(1, 1 << 40).or(256 << 20).own(),
            "Maximum size of an extracted member, in bytes. A longer one is not served.";
        cache_bytes_max: usize = integer(1, 1 << 40).or(64 << 20).own(), "Maximum size of cached members, in bytes.";
        let default_file: Option<String> = None;
    }

    static ARCHIVE_OPTIONS("web[archive].options", "options of a service of an archive") {
        ..DEFAULT_FILE;
    }

    pub(super) static REDIRECT("web[redirect]", "a redirection") {
        ..TYPE, SERVICE_ID;
        "url" = text(Rule::Location).required(), "Target of the redirection (302): a URL or a path.";
    }

    pub(super) static JSON("web[json]", "a service of a value") {
        ..TYPE, SERVICE_ID;
        "value" = Kind::Json.required(), "Value of the answer.";
        "options" = object(&JSON_OPTIONS).otherwise("the defaults"),
            "Options of the answer. (In Crossbar.io they have no effect.)";
    }

    /// A fixed JSON value.
    #[derive(Clone, Debug, PartialEq)]
    pub struct WebJson = static JSON_OPTIONS("web[json].options", "options of a service of a value") {
        prettify => is_pretty: bool = OFF, "Indents the value and sorts its keys.";
        allow_cross_origin: bool = ON, "Lets pages of other origins read the value.";
        discourage_caching: bool = OFF, "Tells browsers not to cache the value.";
        let value: Json = Json::Null;
    }

    pub(super) static NODE_INFO("web[nodeinfo]", "a page about the node") {
        ..TYPE, SERVICE_ID;
    }

    pub(super) static NONE("web[none]", "a path without a service") {
        ..TYPE, SERVICE_ID;
    }

    /// Programs that serve one request each (RFC 3875).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Cgi = pub(super) static CGI("web[cgi]", "a service of CGI programs") {
        ..TYPE, SERVICE_ID;
        directory: String = text(Rule::Path).required().environment(),
            "Directory of the programs; a relative path starts at the node's directory.";
        processor: String = text(Rule::Path).required().environment(),
            "Interpreter that runs the programs (RFC 3875): `/usr/bin/python3`.";
        processes_max: usize = integer(1, 10_000).or(16).own(),
            "Maximum number of running programs. As many more requests wait for `timeout`; further ones get status \
             503.";
        timeout: Duration as plain::seconds = integer(1, 86_400).or(60).own(),
            "Maximum time for a program to answer, and between the parts of its answer, in seconds. After it the \
             client gets status 504, and the program ends with all its children.";
        run_timeout: Duration as plain::seconds = integer(1, 604_800).or(600).own(),
            "Maximum total run time of a program, in seconds.";
    }
}
