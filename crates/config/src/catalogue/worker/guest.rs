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
            "Program: a name to look up on `PATH`, or a path. A relative path starts at `workdir`.",
        )
        .required(),
        key(
            "arguments",
            list(&Kind::Text(Rule::NoNul)),
            "Arguments of the program.",
        )
        .otherwise("none"),
        key(
            "options",
            Kind::Object(&GUEST_OPTIONS),
            "Options of the worker.",
        )
        .otherwise("the defaults"),
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
            "Working directory; a relative path starts at the node's directory.",
        )
        .otherwise("the node's directory"),
        key(
            "stdin",
            Kind::Either(
                &Kind::OneOf(&GUEST_STDIN_WORDS),
                &Kind::Tagged(&GUEST_STDIN),
            ),
            "Standard input: closed, or a value.",
        )
        .fallback(Fallback::Text("close")),
        key(
            "stdout",
            Kind::OneOf(&GUEST_OUTPUT),
            "Destination of standard output: closed, the node's log, or discarded.",
        )
        .fallback(Fallback::Text("log")),
        key(
            "stderr",
            Kind::OneOf(&GUEST_OUTPUT),
            "Destination of standard error, likewise.",
        )
        .fallback(Fallback::Text("log")),
        key(
            "watch",
            Kind::Object(&WATCH),
            "Directories whose changes restart the guest.",
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
            "Value of any type, written to standard input as JSON.",
        )
        .required(),
        key("close", Kind::Boolean, "Closes the input after the value.").fallback(YES),
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
            "Directories to watch; relative ones start at the node's directory.",
        )
        .required(),
        key(
            "action",
            Kind::OneOf(&WATCH_ACTION),
            "Action when a file in the directories changes.",
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
