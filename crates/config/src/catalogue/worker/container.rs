//! Container workers: every key that is taken.

use super::super::form::{TYPE, list, object, one_of, tagged};
use super::super::table::{table, words};
use super::component::CONTAINER_COMPONENT;
use super::{
    CPU_AFFINITY, DISABLED, ENV, EXPOSE_CONTROLLER, EXPOSE_SHARED, EXTRA, NEEDS_COMPONENTS, PYTHON,
    PYTHONPATH, RESTART, TITLE, WORKER_ID,
};
use crate::model::ContainerShutdown;

table! {
    pub(super) static CONTAINER("workers[container]", "a container worker") {
        ..TYPE, WORKER_ID;
        "options" = object(&CONTAINER_OPTIONS).otherwise("the defaults"), "Options of the worker.";
        "components" = list(&tagged(&CONTAINER_COMPONENT)).optional(),
            "Components that the worker hosts in one process.";
    }
}

table! {
    static CONTAINER_OPTIONS("workers[container].options", "a container worker's options") {
        ..TITLE, PYTHON, PYTHONPATH, CPU_AFFINITY, ENV, EXTRA;
        "shutdown" = one_of(&CONTAINER_SHUTDOWN).or_text("shutdown-manual"),
            "Event of a component that ends the worker.";
        ..RESTART, NEEDS_COMPONENTS, DISABLED, EXPOSE_CONTROLLER, EXPOSE_SHARED;
    }
}

words! {
    CONTAINER_SHUTDOWN("workers[container].options.shutdown") => ContainerShutdown {
        "shutdown-manual" => Manual,
        "shutdown-on-last-component-stopped" => LastComponentStopped,
        "shutdown-on-any-component-stopped" => AnyComponentStopped,
        "shutdown-on-any-component-failed" => AnyComponentFailed,
    }
}
