//! Parts of a configuration that come as values: each with what comes out, or all that is said.

use crosstie_config::{
    TransportKind, Worker, component_from_json, realm_from_json, role_from_json,
    transport_from_json, worker_from_json,
};
use serde_json::json;

#[test]
fn parts_are_built_as_in_a_file() {
    let router = json!({
        "type": "router",
        "realms": [{"name": "realm1", "roles": [{"name": "anonymous"}]}],
        "transports": [{"type": "rawsocket", "endpoint": {"type": "unix", "path": "s"}}],
    });
    let worker = worker_from_json(Some("front"), &router).expect("a router");
    assert_eq!((worker.id(), worker.type_name()), ("front", "router"));
    let worker = worker_from_json(None, &router).expect("a router");
    assert_eq!(worker.id(), "worker1");
    let guest = json!({"type": "guest", "id": "first", "executable": "sleep"});
    let worker = worker_from_json(Some("second"), &guest).expect("a guest");
    assert_eq!((worker.id(), worker.type_name()), ("second", "guest"));

    let realm = realm_from_json(&json!({"name": "realm2", "roles": [{"name": "a"}]}));
    assert_eq!(realm.expect("a realm").roles.len(), 1);
    let role = role_from_json(&json!({"name": "a", "permissions": [{"uri": "com.*"}]}));
    assert_eq!(role.expect("a role").permissions[0].uri, "com.");

    let transport = json!({
        "type": "websocket",
        "id": "public",
        "endpoint": {"type": "tcp", "port": 8080},
        // A realm that this worker may have: nobody knows here.
        "auth": {"anonymous": {"type": "static", "role": "a", "realm": "realm2"}},
    });
    let transport = transport_from_json(&transport).expect("a transport");
    assert_eq!(transport.id, "public");

    let component = json!({"type": "class", "classname": "a.B", "realm": "realm2", "extra": [1]});
    let built = component_from_json(&component, true).expect("a component");
    assert_eq!(built.role.as_deref(), Some("anonymous"));
    assert_eq!(built.definition["extra"], json!([1]));
    assert_eq!(built.definition["id"], "component1");
}

/// What is said of it, one line for each problem.
fn check<T>(built: Result<T, String>, expected: &str) {
    let said = built.err().unwrap_or_default();
    assert_eq!(said, expected);
}

#[test]
fn everything_wrong_is_told_with_the_way_to_it() {
    check(
        worker_from_json(None, &json!([])),
        "a worker must be an object, found an empty list",
    );
    check(
        worker_from_json(Some(""), &json!({"type": "guest", "executable": "sleep"})),
        "/id: \"id\" in a guest worker must be an id: text that is not empty, without control \
         characters, found the text \"\"",
    );
    check(
        worker_from_json(None, &json!({"type": "proxy"})),
        "/type: \"proxy\" as \"type\" of a worker is not supported: a router worker serves a \
         realm on all cores by itself",
    );
    check(
        worker_from_json(
            None,
            &json!({"type": "container", "options": {"disabled": true}}),
        ),
        "/options/disabled: the worker is disabled",
    );
    check(
        worker_from_json(
            None,
            &json!({"type": "guest", "options": {"env": {"vars": {"A/B~": 1}}}, "arguments": [1]}),
        ),
        "a guest worker needs \"executable\" (it must be a path)\n\
         /options/env/vars/A~1B~0: \"A/B~\" in \"vars\" in a process's environment must be text \
         (without U+0000), found the integer 1\n\
         /arguments/0: an item of \"arguments\" in a guest worker must be text (without U+0000), \
         found the integer 1",
    );
    check(
        realm_from_json(&json!({"name": "realm1", "rolls": [], "store": {}})),
        "/rolls: unknown key \"rolls\" in a realm; did you mean \"roles\"? (known here: name, \
         options, roles, fabric, limits, resumption, store, mqtt_store, rlinks)\n\
         /store: a realm's store needs \"type\" (it must be one of \"memory\", \"sqlite\" and \"cfxdb\")",
    );
    check(
        realm_from_json(&json!({"name": "a", "roles": [{"name": "b"}, {"name": "b"}]})),
        "/roles/1/name: the role \"b\" is given twice",
    );
    check(
        role_from_json(&json!(null)),
        "a role must be an object, found nothing (null)",
    );
    check(
        transport_from_json(
            &json!({"type": "rawsocket", "endpoint": {"type": "tcp", "port": 70_000}}),
        ),
        "/endpoint/port: \"port\" in a TCP endpoint must be an integer from 0 to 65535, found the \
         integer 70000",
    );
    check(
        component_from_json(
            &json!({"type": "class", "realm": "a", "classname": "A"}),
            false,
        ),
        "a class component needs \"transport\" (it must be an object with \"type\" \"rawsocket\" \
         or \"websocket\")\n\
         /classname: \"classname\" in a class component must be a full name in Python, such as \
         package.module.name, found the text \"A\"",
    );
}

/// Not even the secrets of the node's environment are for those who can start something in it.
#[test]
fn variables_are_not_replaced() {
    let guest = json!({
        "type": "guest",
        "executable": "sleep",
        "options": {"env": {"vars": {"A": "$PATH"}}},
    });
    let worker = worker_from_json(None, &guest).expect("a guest");
    let Worker::Guest(guest) = worker else {
        panic!("not a guest");
    };
    let variables = [("A".to_owned(), "$PATH".to_owned())];
    assert_eq!(guest.environment.variables, variables);
    check(
        transport_from_json(
            &json!({"type": "rawsocket", "endpoint": {"type": "tcp", "port": "$PORT"}}),
        ),
        "/endpoint/port: \"port\" in a TCP endpoint must be an integer from 0 to 65535, found the \
         text \"$PORT\"",
    );
}

#[test]
fn a_value_nested_too_deep_is_refused() {
    let mut value = json!(null);
    for _ in 0..100 {
        value = json!([value]);
    }
    let component = json!({"type": "class", "classname": "a.B", "realm": "a", "extra": value});
    check(
        component_from_json(&component, true),
        "objects and lists are nested more than 64 deep",
    );
}

/// A worker's AMQP may come with it; a transport's is then the one of its worker.
#[test]
fn amqp_comes_in_parts_too() {
    let transport = json!({"type": "amqp", "endpoint": {"type": "tcp", "port": 0}});
    let built = transport_from_json(&transport).expect("a transport");
    assert!(matches!(built.kind, TransportKind::Amqp(_)));
    let worker = json!({
        "type": "router",
        "amqp": {"users": [{"name": "a", "password": "$PATH"}]},
        "transports": [transport],
    });
    let Ok(Worker::Router(router)) = worker_from_json(Some("worker9"), &worker) else {
        panic!("not a router");
    };
    let amqp = router.amqp.expect("it speaks AMQP");
    let password = amqp.users[0].password.as_ref().expect("a password");
    assert!(password.verify(b"$PATH"));
    assert_eq!(amqp.vhosts[0].permissions[0].user, "a");
    check(
        worker_from_json(
            None,
            &json!({"type": "router", "amqp": {"vhosts": [{"name": "/", "permissions": [{"user": "b"}]}]}}),
        ),
        "/amqp/vhosts/0/permissions/0/user: there is no AMQP user \"b\" in this worker",
    );
}
