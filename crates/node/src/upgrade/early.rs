//! The routers that need nothing of the former process, and move to the successor first.

use crosstie_config::{RouterWorker, Transport, Worker};

/// Whether two processes may run this worker for a time: it has no store, no session with other nodes or routers, and no
/// process of its own. Its clients then find the successor without a wait.
pub(super) fn moves_early(worker: &Worker) -> bool {
    match worker {
        Worker::Router(router) => is_light(router),
        Worker::WebSocketTestee(_) => true,
        _ => false,
    }
}

fn is_light(router: &RouterWorker) -> bool {
    let is_alone = router.amqp.is_none()
        && router.joints.is_empty()
        && router.components.is_empty()
        && router.bridges.is_empty();
    let mut realms = router.realms.iter();
    is_alone
        && realms.all(|realm| {
            realm.event_store.is_none()
                && realm.mqtt_store.is_none()
                && realm.fabric.is_none()
                && realm.rlinks.is_empty()
        })
        && router.transports.iter().all(is_light_transport)
}

fn is_light_transport(transport: &Transport) -> bool {
    let kind = &transport.kind;
    // A broker starts with its first transport. Cookies have a file, and web services programs.
    !kind.is_of_broker()
        && kind.web_services().is_empty()
        && kind.websockets().iter().all(|each| each.cookie.is_none())
}

#[cfg(test)]
mod tests {
    use crosstie_config::Json;
    use serde_json::json;

    use super::*;

    #[test]
    fn workers_that_share_nothing_move_early() {
        let socket = |name: &str| json!({"type": "unix", "path": name});
        let raw = json!({"type": "rawsocket", "endpoint": socket("a.sock")});
        let amqp = json!({"type": "amqp", "endpoint": socket("b.sock")});
        let cookie = json!({
            "type": "websocket",
            "endpoint": socket("c.sock"),
            "cookie": {"store": {"type": "memory"}},
        });
        let pages = json!({
            "type": "web",
            "endpoint": socket("d.sock"),
            "paths": {"/": {"type": "nodeinfo"}},
        });
        let realm = json!({"name": "realm1", "roles": []});
        let kept = json!({
            "name": "realm1",
            "roles": [],
            "store": {"type": "sqlite", "path": "events", "event-history": [{"uri": "com.a"}]},
        });
        let router = |realms: &[&Json], transports: &[&Json]| json!({"type": "router", "realms": realms, "transports": transports});
        for (definition, expected) in [
            (router(&[&realm], &[&raw]), true),
            (router(&[&realm], &[&raw, &amqp]), false),
            (router(&[&realm], &[&cookie]), false),
            (router(&[&realm], &[&pages]), false),
            (router(&[&kept], &[&raw]), false),
            (
                json!({"type": "guest", "executable": "true", "arguments": []}),
                false,
            ),
        ] {
            let worker = crosstie_config::worker_from_json(Some("worker1"), &definition);
            let worker = worker.unwrap_or_else(|problems| panic!("{problems}: {definition}"));
            assert_eq!(moves_early(&worker), expected, "{definition}");
        }
    }
}
