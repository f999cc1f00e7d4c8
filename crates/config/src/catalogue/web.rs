//! Web transports, which are refused as a whole and looked into all the same. Somebody who brings one is
//! told at once what else of it would have to change, such as how its clients authenticate.
//!
//! These tables are reached by the checks alone: nothing here is taken.

use super::endpoint::ENDPOINT;
use super::form::{Kind, Rule, TYPE, Table, Tagged, key};
use super::transport::{TRANSPORT_ID, UNIVERSAL_WEBSOCKET};

/// The catalogue of a refused value or key, by its place and name; nothing where it is not looked into.
pub(crate) fn inside(path: &str, name: &str) -> Option<Kind> {
    match (path, name) {
        ("transports[].type", "web") => Some(Kind::Object(&WEB_TRANSPORT)),
        ("transports[universal]", "web") => Some(Kind::Object(&UNIVERSAL_WEB)),
        ("transports[web].paths{}.type", "path") => Some(Kind::Object(&WEB_PATH)),
        _ => None,
    }
}

static WEB_TRANSPORT: Table = Table {
    path: "transports[web]",
    name: "a web transport",
    keys: &[
        TYPE,
        TRANSPORT_ID,
        key("endpoint", Kind::Tagged(&ENDPOINT), "").required(),
        key("paths", PATHS, "").required(),
        key("options", Kind::Json, ""),
    ],
};

static UNIVERSAL_WEB: Table = Table {
    path: "transports[universal].web",
    name: "web services in a universal transport",
    keys: &[
        key("paths", PATHS, "").required(),
        key("options", Kind::Json, ""),
    ],
};

static WEB_PATH: Table = Table {
    path: "transports[web].paths{}[path]",
    name: "a nested web path",
    keys: &[TYPE, key("paths", PATHS, "").required()],
};

const PATHS: Kind = Kind::Map {
    keys: Rule::WebPath,
    of: &Kind::Tagged(&WEB_SERVICE),
    environment: false,
};

/// WebSocket alone is something that there is, elsewhere.
static WEB_SERVICE: Tagged = Tagged {
    path: "transports[web].paths{}.type",
    name: "a web service",
    variants: &[("websocket", &UNIVERSAL_WEBSOCKET)],
};
