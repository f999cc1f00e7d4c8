//! Container workers: every key that is taken.

use super::super::form::{Fallback, Kind, TYPE, Table, Words, key, list};
use super::component::CONTAINER_COMPONENT;
use super::{
    CPU_AFFINITY, DISABLED, ENV, EXPOSE_CONTROLLER, EXPOSE_SHARED, EXTRA, NEEDS_COMPONENTS, PYTHON,
    PYTHONPATH, RESTART, TITLE, WORKER_ID,
};

pub(super) static CONTAINER: Table = Table {
    path: "workers[container]",
    name: "a container worker",
    keys: &[
        TYPE,
        WORKER_ID,
        key(
            "options",
            Kind::Object(&CONTAINER_OPTIONS),
            "Options of the worker.",
        )
        .otherwise("the defaults"),
        key(
            "components",
            list(&Kind::Tagged(&CONTAINER_COMPONENT)),
            "Components that the worker hosts in one process.",
        )
        .otherwise("none"),
    ],
};

static CONTAINER_OPTIONS: Table = Table {
    path: "workers[container].options",
    name: "a container worker's options",
    keys: &[
        TITLE,
        PYTHON,
        PYTHONPATH,
        CPU_AFFINITY,
        ENV,
        EXTRA,
        key(
            "shutdown",
            Kind::OneOf(&CONTAINER_SHUTDOWN),
            "Event of a component that ends the worker.",
        )
        .fallback(Fallback::Text("shutdown-manual")),
        RESTART,
        NEEDS_COMPONENTS,
        DISABLED,
        EXPOSE_CONTROLLER,
        EXPOSE_SHARED,
    ],
};

static CONTAINER_SHUTDOWN: Words = Words {
    path: "workers[container].options.shutdown",
    words: &[
        "shutdown-manual",
        "shutdown-on-last-component-stopped",
        "shutdown-on-any-component-stopped",
        "shutdown-on-any-component-failed",
    ],
};
