//! Keys and values of Crossbar.io that Crosstie refuses, by place, with the reasons.
//!
//! A key or value that becomes supported moves from here to the tables beside this file.

/// The degree of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Not yet supported.
    Later,
    /// Not supported.
    Never,
    /// Ignored with a warning: the node does not need it.
    LeftOut,
}

/// A key or value that is refused at one place.
#[derive(Debug)]
pub struct Place {
    /// The [`super::Table`], [`super::Words`] or [`super::Tagged`] that has this path.
    pub path: &'static str,
    pub refused: &'static [Refused],
}

/// One key or value that is refused.
#[derive(Debug)]
pub struct Refused {
    pub name: &'static str,
    pub when: When,
    pub why: &'static str,
}

/// Writes a list of places, each with rows of [`When`].
macro_rules! refused {
    ($(#[$meta:meta])* $NAME:ident $($path:literal { $($when:ident $name:literal: $why:expr;)* })*) => {
        $(#[$meta])*
        pub static $NAME: &[Place] = &[$(Place {
            path: $path,
            refused: &[$(Refused { name: $name, when: When::$when, why: $why }),*],
        }),*];
    };
}

const NO_FLASH: &str = "browsers have no Flash any more";
const NO_MANHOLE: &str = "its password would allow any code to run there; `crosstie` and the management realm look into a node";
const NO_CONNECTIONS: &str = "components connect to databases themselves";
const NO_TWISTED: &str = "an endpoint is described by its keys, not by Twisted's strings";
const PUBLIC_KEYS: &str =
    "tokens are verified by public keys alone, so that who verifies one cannot make one";
const NO_PROXY: &str = "a router worker serves a realm on all cores by itself";

const ROLE_OF_TRANSPORT: &str = "the router's transport says which role it gets";
const NO_WAMP: &str = "a testee speaks no WAMP";

refused! {
    /// Refused keys, by table.
    KEYS
    "controller" {
        LeftOut "manhole": NO_MANHOLE;
        LeftOut "connections": NO_CONNECTIONS;
        Later "keyring": "the node's key is `key.priv` in its directory";
        LeftOut "blockchain": "a router needs no blockchain";
        LeftOut "enable_docker": "containers of Docker are managed by Docker; a guest may run `docker run`";
    }
    "controller.fabric" {
        LeftOut "transport":
            "there is no uplink to a management node; the management realm `crossbar` is the node's own";
        LeftOut "heartbeat": "there is no uplink to a management node; /metrics tells what it would";
    }
    "workers[router]" {
        LeftOut "manhole": NO_MANHOLE;
        LeftOut "connections": NO_CONNECTIONS;
    }
    "workers[container]" {
        LeftOut "manhole": NO_MANHOLE;
        LeftOut "connections": NO_CONNECTIONS;
    }
    "workers[container].options" {
        LeftOut "reactor": "Twisted takes the best of its reactors";
    }
    "workers[container].components[class]" {
        Never "role": ROLE_OF_TRANSPORT;
        Never "auth": "a class says in its `onConnect` who it is";
    }
    "workers[container].components[function]" {
        Never "role": ROLE_OF_TRANSPORT;
    }
    "workers[router].components[class]" {
        Never "transport": "it is connected to its router";
        Never "auth": "its `role` says what it may do";
    }
    "workers[router].components[function]" {
        Never "transport": "it is connected to its router";
        Never "auth": "its `role` says what it may do";
    }
    "components[function].auth" {
        Never "anonymous-proxy": NO_PROXY;
        Never "cryptosign-proxy": NO_PROXY;
    }
    "workers[websocket-testee].transport[websocket]" {
        Never "serializers": NO_WAMP;
        Never "auth": NO_WAMP;
        Never "cookie": NO_WAMP;
    }
    "realms[]" {
        Later "inventory": "there are no interface catalogs";
        LeftOut "trace": "messages are not recorded";
        LeftOut "stats": "the page /metrics counts messages; `wamp.session.on_stats` is not published";
    }
    "realms[].roles[].permissions[]" {
        Later "validate": "there are no interface catalogs to validate against";
    }
    "transports[rawsocket]" {
        Never "cookie": "RawSocket has no cookies";
        Never "url": "a RawSocket endpoint is its own address";
    }
    "transports[websocket.testee].options" {
        Later "allowed_origins": "a testee lets pages of every origin in";
        Later "allow_null_origin": "a testee lets pages of every origin in";
        LeftOut "flash_policy": NO_FLASH;
    }
    "transports[universal].mqtt" {
        Never "id": "the universal transport has the id";
        Never "endpoint": "the universal transport has the endpoint";
        Never "max_connections": "it belongs to the universal transport";
    }
    "transports[universal].rawsocket" {
        Never "id": "the universal transport has the id";
        Never "endpoint": "the universal transport has the endpoint";
        Never "max_connections": "it belongs to the universal transport";
    }
    "transports[universal].websocket{}" {
        Never "id": "the universal transport has the id";
        Never "endpoint": "the universal transport has the endpoint";
        Never "max_connections": "it belongs to the universal transport";
        Never "pages": "they belong to the universal transport";
    }
    "transports[universal].web" {
        Never "id": "the universal transport has the id";
        Never "endpoint": "the universal transport has the endpoint";
        Never "max_connections": "it belongs to the universal transport";
        Never "pages": "they belong to the universal transport";
    }
    "websocket.options" {
        LeftOut "flash_policy": NO_FLASH;
    }
    "auth.cryptosign[static]" {
        Never "trustroots":
            "certificates of Ethereum need a blockchain; `principals` lists keys, and a dynamic authenticator \
             may look at `authextra.certificates` itself";
    }
    "auth" {
        Never "anonymous-proxy": NO_PROXY;
        Never "cryptosign-proxy": NO_PROXY;
    }
}

refused! {
    /// Refused words and numbers, by the path of the choice.
    VALUES
    "workers[].type" {
        Never "proxy": NO_PROXY;
        Never "xbrmm": "a router needs no blockchain";
    }
    "workers[router].amqp.auth_backends[].type" {
        Never "ldap": "let a server ask LDAP, and name it as the backend `http`";
        Never "cache": "the backend `http` has a cache of its own";
    }
    "auth.jwt[static].algorithms[]" {
        Never "HS256": PUBLIC_KEYS;
        Never "HS384": PUBLIC_KEYS;
        Never "HS512": PUBLIC_KEYS;
        Never "none": "a token without a signature is anybody's";
    }
    "transports[].type" {
        LeftOut "flashpolicy": NO_FLASH;
    }
    "transports[web].paths{}.type" {
        Never "wap": "templates are filled in by a program of one's own, which `wsgi` runs";
        Never "upload": "Crossbar.io has dropped it; a program of one's own, which `wsgi` runs, takes files";
        Never "catalog": "a router needs no blockchain";
        Never "pairme": "a router needs no blockchain";
    }
    "serializers[]" {
        LeftOut "flatbuffers": "its messages need a schema that WAMP does not have";
        LeftOut "ubjson": "two encodings that cannot read each other go by this name; clients choose another";
    }
    "components[].type" {
        Never "wamplet": "Crossbar.io has dropped it; use `class`";
        Never "module": "Crossbar.io has dropped it; use `function`";
    }
    "components[].transport.endpoint.type" {
        Never "tor": "put a Tor client before a TCP endpoint";
        Never "twisted": NO_TWISTED;
    }
    "endpoint.type" {
        Never "onion": "put a Tor service before a TCP endpoint";
        Never "twisted": NO_TWISTED;
    }
}

/// The refusal of `name` at `path`, if it is in [`KEYS`] or [`VALUES`].
pub(crate) fn find(places: &'static [Place], path: &str, name: &str) -> Option<&'static Refused> {
    at(places, path).find(|refused| refused.name == name)
}

/// All refusals at `path`.
pub(crate) fn at(places: &'static [Place], path: &str) -> impl Iterator<Item = &'static Refused> {
    let here = places.iter().filter(move |place| place.path == path);
    here.flat_map(|place| place.refused)
}

impl When {
    pub fn is_left_out(self) -> bool {
        self == Self::LeftOut
    }

    /// The beginning of the sentence that [`Refused::why`] ends.
    pub fn words(self) -> &'static str {
        match self {
            Self::Later => "not yet supported",
            Self::Never => "not supported",
            Self::LeftOut => "left out",
        }
    }
}
