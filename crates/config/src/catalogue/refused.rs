//! Keys and values that Crossbar.io knows and Crosstie does not take, place by place, and why. Long and flat.
//!
//! A key or value that starts to work moves from here to the tables beside this file.

/// Whether what is refused may be taken one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Not yet supported.
    Later,
    /// Not supported.
    Never,
    /// Taken with a warning, and left out: what it is for is not lost, or not what a node is for.
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

const NO_FLASH: &str = "browsers have no Flash any more";
const NO_MANHOLE: &str = "its password would allow any code to run there; `crosstie` and the management realm look into a node";
const NO_CONNECTIONS: &str = "components connect to databases themselves";
const NO_TWISTED: &str = "an endpoint is described by its keys, not by Twisted's strings";
const NO_PROXY: &str = "a router worker serves a realm on all cores by itself";

const ROLE_OF_TRANSPORT: &str = "the router's transport says which role it gets";
const NO_WAMP: &str = "a testee speaks no WAMP";
const IN_CONTAINER_CLASS: &[Refused] = &[
    never("role", ROLE_OF_TRANSPORT),
    never("auth", "a class says in its `onConnect` who it is"),
];
const BESIDE_ROUTER: &[Refused] = &[
    never("transport", "it is connected to its router"),
    never("auth", "its `role` says what it may do"),
];

/// Keys, by the table in which they would stand.
pub static KEYS: &[Place] = &[
    within(
        "controller",
        &[
            left_out("manhole", NO_MANHOLE),
            left_out("connections", NO_CONNECTIONS),
            later("keyring", "the node's key is `key.priv` in its directory"),
            left_out("blockchain", "a router needs no blockchain"),
            left_out(
                "enable_docker",
                "containers of Docker are managed by Docker; a guest may run `docker run`",
            ),
        ],
    ),
    within(
        "controller.fabric",
        &[
            left_out(
                "transport",
                "there is no uplink to a management node; the management realm `crossbar` is the node's own",
            ),
            left_out(
                "heartbeat",
                "there is no uplink to a management node; /metrics tells what it would",
            ),
        ],
    ),
    within(
        "workers[router]",
        &[
            left_out("manhole", NO_MANHOLE),
            left_out("connections", NO_CONNECTIONS),
        ],
    ),
    within(
        "workers[container]",
        &[
            left_out("manhole", NO_MANHOLE),
            left_out("connections", NO_CONNECTIONS),
        ],
    ),
    within(
        "workers[container].options",
        &[left_out(
            "reactor",
            "Twisted takes the best of its reactors",
        )],
    ),
    within("workers[container].components[class]", IN_CONTAINER_CLASS),
    within(
        "workers[container].components[function]",
        &[never("role", ROLE_OF_TRANSPORT)],
    ),
    within("workers[router].components[class]", BESIDE_ROUTER),
    within("workers[router].components[function]", BESIDE_ROUTER),
    within(
        "components[function].auth",
        &[
            never("anonymous-proxy", NO_PROXY),
            never("cryptosign-proxy", NO_PROXY),
        ],
    ),
    within(
        "workers[websocket-testee].transport[websocket]",
        &[
            never("serializers", NO_WAMP),
            never("auth", NO_WAMP),
            never("cookie", NO_WAMP),
        ],
    ),
    within(
        "realms[]",
        &[
            later("inventory", "there are no interface catalogs"),
            left_out("trace", "messages are not recorded"),
            left_out(
                "stats",
                "the page /metrics counts messages; `wamp.session.on_stats` is not published",
            ),
        ],
    ),
    within(
        "realms[].roles[].permissions[]",
        &[later(
            "validate",
            "there are no interface catalogs to validate against",
        )],
    ),
    within(
        "transports[rawsocket]",
        &[
            never("cookie", "RawSocket has no cookies"),
            never("url", "a RawSocket endpoint is its own address"),
        ],
    ),
    within(
        "transports[websocket.testee].options",
        &[
            later("allowed_origins", "a testee lets pages of every origin in"),
            later(
                "allow_null_origin",
                "a testee lets pages of every origin in",
            ),
            left_out("flash_policy", NO_FLASH),
        ],
    ),
    within(
        "transports[universal]",
        &[later("mqtt", "MQTT is not spoken")],
    ),
    within(
        "transports[universal].rawsocket",
        &[
            never("id", "the universal transport has the id"),
            never("endpoint", "the universal transport has the endpoint"),
            never("max_connections", "it belongs to the universal transport"),
        ],
    ),
    within(
        "transports[universal].websocket{}",
        &[
            never("id", "the universal transport has the id"),
            never("endpoint", "the universal transport has the endpoint"),
            never("max_connections", "it belongs to the universal transport"),
            never("pages", "they belong to the universal transport"),
        ],
    ),
    within(
        "transports[universal].web",
        &[
            never("id", "the universal transport has the id"),
            never("endpoint", "the universal transport has the endpoint"),
            never("max_connections", "it belongs to the universal transport"),
            never("pages", "they belong to the universal transport"),
        ],
    ),
    within("websocket.options", &[left_out("flash_policy", NO_FLASH)]),
    within(
        "auth.cryptosign[static]",
        &[never(
            "trustroots",
            "certificates of Ethereum need a blockchain; `principals` lists keys, and a dynamic authenticator may \
             look at `authextra.certificates` itself",
        )],
    ),
    within(
        "auth",
        &[
            never("anonymous-proxy", NO_PROXY),
            never("cryptosign-proxy", NO_PROXY),
        ],
    ),
];

/// Values of a key that chooses among words or numbers, by the path of the choice.
pub static VALUES: &[Place] = &[
    within(
        "workers[].type",
        &[
            never("proxy", NO_PROXY),
            never("xbrmm", "a router needs no blockchain"),
        ],
    ),
    within(
        "transports[].type",
        &[
            left_out("flashpolicy", NO_FLASH),
            later("mqtt", "MQTT is not spoken"),
        ],
    ),
    within(
        "transports[web].paths{}.type",
        &[
            never(
                "wap",
                "templates are filled in by a program of one's own, which `wsgi` runs",
            ),
            never(
                "upload",
                "Crossbar.io has dropped it; a program of one's own, which `wsgi` runs, takes files",
            ),
            never("catalog", "a router needs no blockchain"),
            never("pairme", "a router needs no blockchain"),
        ],
    ),
    within(
        "serializers[]",
        &[
            left_out(
                "flatbuffers",
                "its messages need a schema that WAMP does not have",
            ),
            left_out(
                "ubjson",
                "two encodings that cannot read each other go by this name; clients choose another",
            ),
        ],
    ),
    within(
        "components[].type",
        &[
            never("wamplet", "Crossbar.io has dropped it; use `class`"),
            never("module", "Crossbar.io has dropped it; use `function`"),
        ],
    ),
    within(
        "components[].transport.endpoint.type",
        &[
            never("tor", "put a Tor client before a TCP endpoint"),
            never("twisted", NO_TWISTED),
        ],
    ),
    within(
        "endpoint.type",
        &[
            never("onion", "put a Tor service before a TCP endpoint"),
            never("twisted", NO_TWISTED),
        ],
    ),
];

/// The refusal of `name` at `path`, if it is in [`KEYS`] or [`VALUES`].
pub(crate) fn find(places: &'static [Place], path: &str, name: &str) -> Option<&'static Refused> {
    at(places, path).find(|refused| refused.name == name)
}

/// All that is known at `path`.
pub(crate) fn at(places: &'static [Place], path: &str) -> impl Iterator<Item = &'static Refused> {
    let here = places.iter().filter(move |place| place.path == path);
    here.flat_map(|place| place.refused)
}

const fn within(path: &'static str, refused: &'static [Refused]) -> Place {
    Place { path, refused }
}

const fn later(name: &'static str, why: &'static str) -> Refused {
    Refused {
        name,
        when: When::Later,
        why,
    }
}

const fn left_out(name: &'static str, why: &'static str) -> Refused {
    Refused {
        name,
        when: When::LeftOut,
        why,
    }
}

const fn never(name: &'static str, why: &'static str) -> Refused {
    Refused {
        name,
        when: When::Never,
        why,
    }
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
