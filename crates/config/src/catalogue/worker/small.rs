//! Keys of the WebSocket testee and the host monitor.

use std::time::Duration;

use super::super::form::{Kind, Rule, TYPE, integer, map, object, tagged};
use super::super::table::tables;
use super::super::transport::{TESTEE_TRANSPORT_KEYS, WEBSOCKET_TESTEE_TRANSPORT};
use super::{
    CPU_AFFINITY, DISABLED, ENV, EXPOSE_CONTROLLER, EXPOSE_SHARED, EXTRA, PYTHON, PYTHONPATH,
    TITLE, WORKER_ID,
};

tables! {
    pub(super) static WEBSOCKET_TESTEE("workers[websocket-testee]", "a websocket-testee worker") {
        ..TYPE, WORKER_ID;
        "options" = object(&TESTEE_OPTIONS).otherwise("the defaults"), "Options of the worker.";
        "transport" = tagged(&TESTEE_TRANSPORT).required(), "Listener of the worker.";
    }
}

const THREAD: &str = "the worker is a thread of the node";

tables! {
    static TESTEE_OPTIONS("workers[websocket-testee].options", "a websocket-testee worker's options") {
        ..CPU_AFFINITY, DISABLED, TITLE.inert(THREAD), PYTHON.inert(THREAD), PYTHONPATH.inert(THREAD);
        ..ENV.inert(THREAD), EXTRA.inert(THREAD), EXPOSE_CONTROLLER, EXPOSE_SHARED.inert(THREAD);
    }

    /// Crossbar.io names the testee's transport `websocket`.
    tagged TESTEE_TRANSPORT("workers[websocket-testee].transport.type", "a testee's transport") {
        "websocket" => TESTEE_WEBSOCKET, "websocket.testee" => WEBSOCKET_TESTEE_TRANSPORT
    }

    static TESTEE_WEBSOCKET("workers[websocket-testee].transport[websocket]", "a WebSocket testee") =
        TESTEE_TRANSPORT_KEYS;

    pub(super) static HOST_MONITOR("workers[hostmonitor]", "a host monitor") {
        ..TYPE, WORKER_ID;
        "options" = object(&HOST_MONITOR_OPTIONS).otherwise("the defaults"), "Options of the worker.";
    }

    /// A worker that measures the machine and publishes the results in the management realm.
    #[derive(Clone, Debug, PartialEq)]
    pub struct HostMonitorWorker = static HOST_MONITOR_OPTIONS(
        "workers[hostmonitor].options", "a host monitor's options"
    ) {
        interval: Duration = integer(100, 3_600_000).or(500), "Interval between measurements, in milliseconds.";
        ..DISABLED, MONITORS, CPU_AFFINITY.inert(THREAD), TITLE.inert(THREAD), PYTHON.inert(THREAD);
        ..PYTHONPATH.inert(THREAD), ENV.inert(THREAD), EXTRA.inert(THREAD), EXPOSE_CONTROLLER;
        ..EXPOSE_SHARED.inert(THREAD);
        let id: String = String::new();
    }

    const MONITORS = "monitors": map(Rule::Any, &Kind::Json).inert("everything that it reads is published");
}
