//! Guest workers: every key that is taken. Long and flat.

use super::super::form::{
    Fallback, Kind, Rule, TYPE, Table, Tagged, Words, YES, integer, key, list, list_not_empty,
};
use super::{CPU_AFFINITY, DISABLED, ENV, PATH, RESTART, worker_id};

pub(super) static GUEST: Table = Table {
    path: "workers[guest]",
    name: "a guest worker",
    keys: &[
        TYPE,
        worker_id(Rule::Name),
        key(
            "executable",
            Kind::Text(Rule::Path),
            "The program: a name to be looked for on `PATH`, or a path, which begins at \
             `workdir` where it is relative.",
        )
        .required(),
        key(
            "arguments",
            list(&Kind::Text(Rule::NoNul)),
            "Its arguments.",
        )
        .otherwise("none"),
        key(
            "options",
            Kind::Object(&GUEST_OPTIONS),
            "How the worker runs.",
        )
        .otherwise("all of their defaults"),
    ],
};

static GUEST_OPTIONS: Table = Table {
    path: "workers[guest].options",
    name: "a guest worker's options",
    keys: &[
        ENV,
        key(
            "workdir",
            Kind::Text(Rule::Path),
            "The directory that it runs in; a relative path begins at the node's directory.",
        )
        .otherwise("the node's directory"),
        key(
            "stdin",
            Kind::Either(
                &Kind::OneOf(&GUEST_STDIN_WORDS),
                &Kind::Tagged(&GUEST_STDIN),
            ),
            "What it finds at its standard input: nothing, or a value.",
        )
        .fallback(Fallback::Text("close")),
        key(
            "stdout",
            Kind::OneOf(&GUEST_OUTPUT),
            "Where its standard output goes: nowhere, into the node's log, or away.",
        )
        .fallback(Fallback::Text("log")),
        key(
            "stderr",
            Kind::OneOf(&GUEST_OUTPUT),
            "Where its standard error goes, likewise.",
        )
        .fallback(Fallback::Text("log")),
        key(
            "watch",
            Kind::Object(&WATCH),
            "Directories whose changes restart it.",
        )
        .otherwise("none"),
        RESTART.own(),
        CPU_AFFINITY.own(),
        DISABLED.own(),
    ],
};

static GUEST_STDIN_WORDS: Words = Words {
    path: "workers[guest].options.stdin",
    words: &["close"],
};

static GUEST_STDIN: Tagged = Tagged {
    path: "workers[guest].options.stdin.type",
    name: "a guest's standard input",
    variants: &[("json", &GUEST_STDIN_JSON)],
};

static GUEST_STDIN_JSON: Table = Table {
    path: "workers[guest].options.stdin",
    name: "a guest's standard input",
    keys: &[
        TYPE,
        key(
            "value",
            Kind::Json,
            "Anything: it is written to the guest's standard input, in JSON.",
        )
        .required(),
        key("close", Kind::Boolean, "Whether the input ends after it.").fallback(YES),
    ],
};

static GUEST_OUTPUT: Words = Words {
    path: "workers[guest].options.stdout",
    words: &["close", "log", "drop"],
};

static WATCH: Table = Table {
    path: "workers[guest].options.watch",
    name: "a guest's watch",
    keys: &[
        key(
            "directories",
            list_not_empty(&PATH),
            "The directories; relative ones begin at the node's directory.",
        )
        .required(),
        key(
            "action",
            Kind::OneOf(&WATCH_ACTION),
            "What is done when a file there changes.",
        )
        .fallback(Fallback::Text("restart")),
        key("timeout", integer(0, 3_600), "")
            .inert("the guest is started again as soon as it has ended"),
    ],
};

static WATCH_ACTION: Words = Words {
    path: "workers[guest].options.watch.action",
    words: &["restart"],
};
