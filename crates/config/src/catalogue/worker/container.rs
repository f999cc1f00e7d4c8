//! Keys of container workers.

use super::super::form::{TYPE, list, object, one_of, tagged};
use super::super::table::tables;
use super::component::CONTAINER_COMPONENT;
use super::{
    CPU_AFFINITY, DISABLED, ENV, EXPOSE_CONTROLLER, EXPOSE_SHARED, EXTRA, NEEDS_COMPONENTS, PYTHON,
    PYTHONPATH, RESTART, TITLE, WORKER_ID,
};
use crate::model::{Component, NativeOptions, Restart};

tables! {
    pub(super) static CONTAINER("workers[container]", "a container worker") {
        ..TYPE, WORKER_ID;
        "options" = object(&CONTAINER_OPTIONS).otherwise("the defaults").at_once(), "Options of the worker.";
        "components" = list(&tagged(&CONTAINER_COMPONENT)).optional().at_once(),
            "Components that the worker hosts in one process.";
    }

    /// A child process that hosts Autobahn|Python components.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ContainerWorker = static CONTAINER_OPTIONS(
        "workers[container].options", "a container worker's options"
    ) {
        ..TITLE, PYTHON, PYTHONPATH, CPU_AFFINITY, ENV, EXTRA;
        shutdown: ContainerShutdown = one_of(&CONTAINER_SHUTDOWN).or_text("shutdown-manual"),
            "Event of a component that ends the worker.";
        ..RESTART => restart: Restart;
        ..NEEDS_COMPONENTS => needs_components: bool;
        ..DISABLED, EXPOSE_CONTROLLER, EXPOSE_SHARED;
        flat process: NativeOptions;
        let id: String = String::new();
        let components: Vec<Component> = Vec::new();
    }

    /// The event of a component that ends a container.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum ContainerShutdown = words CONTAINER_SHUTDOWN("workers[container].options.shutdown") {
        "shutdown-manual" => Manual,
        "shutdown-on-last-component-stopped" => LastComponentStopped,
        "shutdown-on-any-component-stopped" => AnyComponentStopped,
        "shutdown-on-any-component-failed" => AnyComponentFailed,
    }
}
