//! Keys of router workers.

use super::super::amqp::AMQP;
use super::super::form::{Effect, OFF, Rule, TYPE, integer, list, object, tagged};
use super::super::joint::JOINT;
use super::super::realm::REALM;
use super::super::table::tables;
use super::super::transport::TRANSPORT;
use super::component::ROUTER_COMPONENT;
use super::{
    CPU_AFFINITY, DISABLED, ENV, EXPOSE_CONTROLLER, EXPOSE_SHARED, EXTRA, NEEDS_COMPONENTS, PYTHON,
    PYTHONPATH, TITLE, worker_id,
};
use crate::model::{Amqp, Component, Joint, NativeOptions, OutgoingBridge, Realm, Transport};

tables! {
    pub(super) static ROUTER("workers[router]", "a router worker") {
        ..TYPE, worker_id(Rule::Id);
        "options" = object(&ROUTER_OPTIONS).otherwise("the defaults"), "Options of the worker.";
        "realms" = list(&object(&REALM)).optional().at_once().within(Effect::Restart), "Realms that the worker routes.";
        "transports" = list(&tagged(&TRANSPORT)).optional().at_once().within(Effect::NewSessions), "Listeners of the worker.";
        "amqp" = object(&AMQP).otherwise("the defaults, if a transport has the type `amqp`").own(),
            "AMQP 0-9-1 broker behind the worker's AMQP transports.";
        "joints" = list(&tagged(&JOINT)).optional().own().at_once(),
            "Joints between WAMP and AMQP: [procedures and targets, topics and exchanges](joints.md).";
        "components" = list(&tagged(&ROUTER_COMPONENT)).optional(),
            "Components in the worker's realms. One process beside the router hosts them all.";
    }

    /// An isolated router: realms and their transports.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RouterWorker = static ROUTER_OPTIONS("workers[router].options", "a router worker's options") {
        threads: Option<usize> = integer(1, 1024).otherwise("one per core").own(),
            "Number of routing threads. Every thread serves every realm of the worker.";
        spin_budget: usize = integer(0, 100).or(90).own(),
            "Maximum share of one core, in per cent over 100 ms, for which a thread looks for input instead of \
             sleeping. A thread does so only while that has paid lately. 0 turns it off.";
        busy_poll: bool = OFF.own(),
            "Polls the sockets on one thread instead of sleeping, whether it pays or not. It occupies a whole core \
             while there are messages, and replaces `spin_budget`.";
        goodbye => says_goodbye: bool = OFF.own(),
            "Sends GOODBYE to WAMP clients when the router, a transport or a realm stops, as specified. JavaScript \
             clients then do not reconnect. With `false` the connection is closed, with code 1001 over WebSocket, \
             and [clients come back](coming-back.md).";
        ..NEEDS_COMPONENTS => needs_components: bool;
        ..CPU_AFFINITY => cpu_affinity: Vec<usize>;
        ..DISABLED.at_once();
        ..TITLE.about("Name of the components' process in process lists."), PYTHON, PYTHONPATH;
        ..ENV.about("Environment of the components' process."), EXTRA, EXPOSE_CONTROLLER, EXPOSE_SHARED;
        flat process: NativeOptions;
        let id: String = String::new();
        let realms: Vec<Realm> = Vec::new();
        let transports: Vec<Transport> = Vec::new();
        let amqp: Option<Amqp> = None;
        let joints: Vec<Joint> = Vec::new();
        let components: Vec<Component> = Vec::new();
        let bridges: Vec<OutgoingBridge> = Vec::new();
    }
}
