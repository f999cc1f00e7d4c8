//! The pages of the reference, and the tables that each has.

use std::ops::RangeInclusive;

/// A page below `docs/configuration`.
pub(crate) struct Page {
    pub(crate) file: &'static str,
    pub(crate) title: &'static str,
    /// One sentence for the list of pages.
    pub(crate) about: &'static str,
    /// Beginnings of the paths of its tables. The longest one of all pages decides.
    prefixes: &'static [&'static str],
}

pub(crate) const PAGES: &[Page] = &[
    Page {
        file: "node.md",
        title: "Node and controller",
        about: "The file, the controller, the node's limits, the audit log, the console, the admin listener and spans by OTLP.",
        prefixes: &[
            "(file)",
            "controller",
            "limits",
            "audit_log",
            "console",
            "admin",
            "otlp",
        ],
    },
    Page {
        file: "workers.md",
        title: "Workers",
        about: "Router, container and guest workers, the host monitor, and the processes of workers.",
        prefixes: &["workers[]", "workers["],
    },
    Page {
        file: "realms.md",
        title: "Realms",
        about: "Realms of a router worker, their options and limits, and resumed sessions.",
        prefixes: &["realms[]"],
    },
    Page {
        file: "permissions.md",
        title: "Roles and permissions",
        about: "Roles, their permissions, authorizers and limits.",
        prefixes: &["realms[].roles[]", "permissions[]"],
    },
    Page {
        file: "transports.md",
        title: "Transports",
        about: "Listeners for WAMP, their endpoints, TLS, limits and protocol options.",
        prefixes: &[
            "transports[",
            "endpoint[",
            "rawsocket.options",
            "websocket.options",
        ],
    },
    Page {
        file: "web.md",
        title: "Web services",
        about: "Files, redirections, long-poll, HTTP bridges, proxies and applications by path.",
        prefixes: &["web[", "transports[universal].web", "transports[web]"],
    },
    Page {
        file: "authentication.md",
        title: "Authentication",
        about: "Anonymous sessions, tickets, WAMP-CRA, SCRAM and WAMP-cryptosign.",
        prefixes: &["auth", "{secret}"],
    },
    Page {
        file: "credentials.md",
        title: "Tokens, certificates and cookies",
        about: "Authentication by JSON Web Token, by client certificate and by cookie.",
        prefixes: &["auth.jwt", "auth.tls", "auth.cookie", "websocket.cookie"],
    },
    Page {
        file: "amqp.md",
        title: "AMQP broker",
        about: "Users, vhosts, permissions, limits and the transport of AMQP 0-9-1.",
        prefixes: &[
            "transports[amqp]",
            "transports[amqp.management]",
            "transports[amqp.prometheus]",
            "workers[router].amqp",
        ],
    },
    Page {
        file: "mqtt.md",
        title: "MQTT",
        about: "MQTT on a listener of its own, beside other protocols and over WebSocket.",
        prefixes: &["transports[mqtt]", "transports[universal].mqtt"],
    },
    Page {
        file: "store.md",
        title: "Stores",
        about: "Event histories, call queues and retained events of a realm, in memory or on disk.",
        prefixes: &["realms[].store"],
    },
    Page {
        file: "cluster.md",
        title: "Clusters",
        about: "Realms on several nodes, and replicated vhosts.",
        prefixes: &[
            "realms[].fabric",
            "workers[router].amqp.vhosts[].replicated",
        ],
    },
    Page {
        file: "links.md",
        title: "Joints and links",
        about: "Joints between WAMP and AMQP, and links to other routers.",
        prefixes: &["realms[].rlinks[]", "workers[router].joints", "joints[]"],
    },
    Page {
        file: "components.md",
        title: "Components",
        about: "Components of router and container workers, their transports and authentication.",
        prefixes: &[
            "components[",
            "workers[router].components",
            "workers[container].components",
        ],
    },
    Page {
        file: "testees.md",
        title: "Testees",
        about: "Endpoints that protocol test suites connect to.",
        prefixes: &[
            "transports[stream.testee]",
            "transports[websocket.testee]",
            "workers[websocket-testee]",
        ],
    },
];

/// The page with the keys of Crossbar.io that change nothing or are refused.
pub(crate) const CROSSBAR: &str = "crossbar.md";

/// The pages of the index, with the first letters of their keys.
pub(crate) const INDEX: &[(&str, RangeInclusive<char>)] =
    &[("keys.md", '$'..='l'), ("keys-m-z.md", 'm'..='z')];

/// The page that has the table at `path`.
pub(crate) fn page_of(path: &str) -> &'static Page {
    let fits = |page: &&Page| length_of_match(page, path).is_some();
    PAGES
        .iter()
        .filter(fits)
        .max_by_key(|page| length_of_match(page, path))
        .unwrap_or_else(|| panic!("no page has the prefix of {path}"))
}

fn length_of_match(page: &Page, path: &str) -> Option<usize> {
    let prefixes = page.prefixes.iter();
    let fitting = prefixes.filter(|prefix| path.starts_with(*prefix));
    fitting.map(|prefix| prefix.len()).max()
}

/// The anchor that GitHub and mdBook give a heading of this text.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then(|| c.to_ascii_lowercase()),
    });
    kept.collect()
}

/// Sections that were written by hand on the page that had all of this once, and the place of each now.
pub(crate) const FORMER: &[(&str, &str)] = &[
    ("Where it is looked for", "node.md#where-it-is-looked-for"),
    ("Without a file", "node.md#without-a-file"),
    ("An example", "node.md#an-example"),
    ("Who gets in", "transports.md#who-gets-in"),
    ("How many connections", "transports.md#how-many-connections"),
    ("Pages in browsers", "transports.md#pages-in-browsers"),
    ("AMQP", "amqp.md"),
    ("Workers", "workers.md"),
    ("Every key", "keys.md"),
    ("Taken without effect", "crossbar.md#taken-without-effect"),
    ("Not taken", "crossbar.md#not-taken"),
];
