//! The kinds of objects that verbs are about: their arguments, paths and columns.

/// A kind that can be listed or shown.
pub(super) struct Listed {
    pub(super) name: &'static str,
    /// Whether `--vhost` selects some of them.
    pub(super) is_of_vhost: bool,
    /// The columns without `--depth`; those of the answer if there are none.
    pub(super) columns: &'static [&'static str],
    /// An object that is one column, as JSON.
    pub(super) json: &'static str,
}

const fn listed(name: &'static str, is_of_vhost: bool, columns: &'static [&'static str]) -> Listed {
    Listed {
        name,
        is_of_vhost,
        columns,
        json: "",
    }
}

const fn listed_with_json(name: &'static str, json: &'static str) -> Listed {
    Listed {
        json,
        ..listed(name, false, &[])
    }
}

pub(super) const LISTED: [Listed; 14] = [
    listed("connections", false, &["name", "user", "channels"]),
    listed("channels", false, &["name", "user"]),
    listed("consumers", true, &[]),
    listed("exchanges", true, &["name", "type"]),
    listed("queues", true, &["name", "messages"]),
    listed("bindings", true, &["source", "destination", "routing_key"]),
    listed("users", false, &[]),
    listed("vhosts", false, &["name", "messages"]),
    listed("permissions", false, &[]),
    listed("nodes", false, &["name", "type", "mem_used"]),
    listed_with_json("parameters", "value"),
    listed_with_json("policies", "definition"),
    listed_with_json("operator_policies", "definition"),
    listed_with_json("vhost_limits", "value"),
];

pub(super) const SHOWN: [Listed; 1] = [listed(
    "overview",
    false,
    &[
        "rabbitmq_version",
        "cluster_name",
        "queue_totals.messages",
        "object_totals.queues",
    ],
)];

/// What a verb does to a kind of object.
pub(super) struct Acted {
    pub(super) name: &'static str,
    /// Below `/api`; a name in braces is replaced by that argument.
    pub(super) path: &'static str,
    /// Required arguments. One with a bar is either of two.
    pub(super) required: &'static [&'static str],
    /// Others, with their values if they are not given, in JSON.
    pub(super) optional: &'static [(&'static str, Option<&'static str>)],
    /// Arguments in JSON.
    pub(super) json: &'static [&'static str],
}

const fn acted(name: &'static str, path: &'static str, required: &'static [&'static str]) -> Acted {
    Acted {
        name,
        path,
        required,
        optional: &[],
        json: &[],
    }
}

const POLICY: &[(&str, Option<&str>)] = &[("priority", Some("0")), ("apply-to", None)];

const FALSE: Option<&str> = Some("\"false\"");
const TRUE: Option<&str> = Some("\"true\"");

pub(super) const DECLARED: [Acted; 10] = [
    Acted {
        optional: &[
            ("auto_delete", FALSE),
            ("durable", TRUE),
            ("internal", FALSE),
            ("arguments", Some("{}")),
        ],
        json: &["arguments"],
        ..acted("exchange", "/exchanges/{vhost}/{name}", &["name", "type"])
    },
    Acted {
        optional: &[
            ("auto_delete", FALSE),
            ("durable", TRUE),
            ("arguments", Some("{}")),
            ("node", None),
            ("queue_type", None),
        ],
        json: &["arguments"],
        ..acted("queue", "/queues/{vhost}/{name}", &["name"])
    },
    Acted {
        optional: &[
            ("destination_type", Some("\"queue\"")),
            ("routing_key", Some("\"\"")),
            ("arguments", Some("{}")),
        ],
        json: &["arguments"],
        ..acted(
            "binding",
            "/bindings/{vhost}/e/{source}/{destination_char}/{destination}",
            &["source", "destination"],
        )
    },
    Acted {
        optional: &[("tracing", None)],
        ..acted("vhost", "/vhosts/{name}", &["name"])
    },
    Acted {
        optional: &[("hashing_algorithm", None)],
        ..acted(
            "user",
            "/users/{name}",
            &["name", "password|password_hash", "tags"],
        )
    },
    acted(
        "permission",
        "/permissions/{vhost}/{user}",
        &["vhost", "user", "configure", "write", "read"],
    ),
    Acted {
        json: &["value"],
        ..acted(
            "parameter",
            "/parameters/{component}/{vhost}/{name}",
            &["component", "name", "value"],
        )
    },
    Acted {
        optional: POLICY,
        json: &["definition", "priority"],
        ..acted(
            "policy",
            "/policies/{vhost}/{name}",
            &["name", "pattern", "definition"],
        )
    },
    Acted {
        optional: POLICY,
        json: &["definition", "priority"],
        ..acted(
            "operator_policy",
            "/operator-policies/{vhost}/{name}",
            &["name", "pattern", "definition"],
        )
    },
    Acted {
        json: &["value"],
        ..acted(
            "vhost_limit",
            "/vhost-limits/{vhost}/{name}",
            &["vhost", "name", "value"],
        )
    },
];

pub(super) const DELETED: [Acted; 10] = [
    acted("exchange", "/exchanges/{vhost}/{name}", &["name"]),
    acted("queue", "/queues/{vhost}/{name}", &["name"]),
    Acted {
        optional: &[("properties_key", Some("\"~\""))],
        ..acted(
            "binding",
            "/bindings/{vhost}/e/{source}/{destination_char}/{destination}/{properties_key}",
            &["source", "destination_type", "destination"],
        )
    },
    acted("vhost", "/vhosts/{name}", &["name"]),
    acted("user", "/users/{name}", &["name"]),
    acted(
        "permission",
        "/permissions/{vhost}/{user}",
        &["vhost", "user"],
    ),
    acted(
        "parameter",
        "/parameters/{component}/{vhost}/{name}",
        &["component", "name"],
    ),
    acted("policy", "/policies/{vhost}/{name}", &["name"]),
    acted(
        "operator_policy",
        "/operator-policies/{vhost}/{name}",
        &["name"],
    ),
    acted(
        "vhost_limit",
        "/vhost-limits/{vhost}/{name}",
        &["vhost", "name"],
    ),
];

pub(super) const CLOSED: [Acted; 1] = [acted("connection", "/connections/{name}", &["name"])];

pub(super) const PURGED: [Acted; 1] =
    [acted("queue", "/queues/{vhost}/{name}/contents", &["name"])];

pub(super) const PUBLISH: Acted = Acted {
    optional: &[
        ("payload", None),
        ("properties", Some("{}")),
        ("exchange", Some("\"amq.default\"")),
        ("payload_encoding", Some("\"string\"")),
    ],
    json: &["properties"],
    ..acted(
        "publish",
        "/exchanges/{vhost}/{exchange}/publish",
        &["routing_key"],
    )
};

pub(super) const GET: Acted = Acted {
    optional: &[
        ("count", Some("\"1\"")),
        ("ackmode", Some("\"ack_requeue_true\"")),
        ("payload_file", None),
        ("encoding", Some("\"auto\"")),
    ],
    ..acted("get", "/queues/{vhost}/{queue}/get", &["queue"])
};
