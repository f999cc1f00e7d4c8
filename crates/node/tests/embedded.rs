//! Nodes inside another program: this one.

use crosstie_client::{Client, Disconnected, args};
use crosstie_node::{EmbeddedError, EmbeddedNode, EmbeddedOptions, Outcome, test_node};

/// One realm with this name, on a free port.
fn realm(name: &str, more: &str) -> String {
    format!(
        r#"{{"version": 2, "workers": [{{"type": "router", "id": "only",
            "realms": [{{"name": "{name}", "roles": [{{"name": "anonymous", "permissions": [
                {{"uri": "*", "allow": {{"call": true, "register": true}}}}]}}]}}],
            "transports": [{{"type": "rawsocket", "id": "raw",
                "endpoint": {{"type": "tcp", "interface": "127.0.0.1", "port": 0}}}}]{more}}}]}}"#
    )
}

async fn join(node: &EmbeddedNode, realm: &str) -> Client {
    let mut config = crosstie_client::Config::new(node.url()).unwrap();
    config.realm = realm.to_owned();
    config.reconnect = None;
    Client::connect(config).await.unwrap()
}

#[tokio::test]
async fn nodes_of_one_process_share_nothing() {
    let mut nodes = Vec::new();
    for name in ["one", "two", "three"] {
        let options = EmbeddedOptions::from_json(&realm(name, "")).unwrap();
        nodes.push((name, EmbeddedNode::start(options).unwrap()));
    }
    let mut clients = Vec::new();
    for (name, node) in &nodes {
        let client = join(node, name).await;
        let answer = *name;
        let handler = move |_| async move { Ok(args![answer]) };
        client.register("com.example.who", handler).await.unwrap();
        clients.push(client);
    }
    for ((name, _), client) in nodes.iter().zip(&clients) {
        let answer = client.call("com.example.who", ()).await.unwrap();
        assert_eq!(answer.argument::<String>(0).unwrap(), *name);
    }
    // The end of one is not the end of another.
    let (_, first) = nodes.remove(0);
    assert_eq!(first.stop().await, Outcome::Orderly);
    clients[1].call("com.example.who", ()).await.unwrap();
    clients.remove(0).ended().await;
    for client in clients {
        client.leave().await;
    }
}

#[tokio::test]
async fn the_default_speaks_wamp_and_amqp_and_has_pages() {
    let node = test_node().unwrap();
    assert!(node.url().starts_with("ws://127.0.0.1:"), "{}", node.url());
    assert!(
        node.amqp_url().starts_with("amqp://127.0.0.1:"),
        "{}",
        node.amqp_url()
    );
    assert!(node.pages().all(|url| url.starts_with("http://127.0.0.1:")));
    assert_eq!(node.pages().count(), 1);
    assert_eq!(node.urls_of("transport1").next(), Some(node.url()));
    assert_eq!(node.urls_of("transport9").next(), None);
    let urls: Vec<_> = node.urls().collect();
    assert!(urls.iter().any(|url| url.starts_with("rs://")), "{urls:?}");
    let is_wamp = |url: &&&str| !url.starts_with("amqp") && !url.starts_with("http");
    for url in urls.iter().filter(is_wamp) {
        let client = Client::connect(*url).await.unwrap();
        client.leave().await;
    }
    node.stop().await;
}

#[tokio::test]
async fn a_stop_sends_clients_away_and_closes_the_listeners() {
    let node = test_node().unwrap();
    let url = node.url().to_owned();
    let mut config = crosstie_client::Config::new(&url).unwrap();
    config.reconnect = None;
    let client = Client::connect(config).await.unwrap();
    assert_eq!(node.stop().await, Outcome::Orderly);
    let cause = client.ended().await;
    assert!(matches!(cause, Disconnected::Closed { .. }), "{cause}");
    let refused = Client::connect(&*url).await.unwrap_err();
    assert!(
        refused.to_string().starts_with("cannot reach "),
        "{refused}"
    );
}

#[tokio::test]
async fn open_calls_are_answered_before_the_end() {
    let options = EmbeddedOptions::from_json(&realm("r", "")).unwrap();
    let node = EmbeddedNode::start(options).unwrap();
    let client = join(&node, "r").await;
    let (called, calls) = tokio::sync::oneshot::channel();
    let called = std::sync::Mutex::new(Some(called));
    let (finish, finishes) = tokio::sync::watch::channel(false);
    client
        .register("com.example.slow", move |_| {
            called.lock().unwrap().take().unwrap().send(()).unwrap();
            let mut finishes = finishes.clone();
            async move {
                finishes.wait_for(|is_due| *is_due).await.unwrap();
                Ok(args!["in time"])
            }
        })
        .await
        .unwrap();
    let call = {
        let client = client.clone();
        tokio::spawn(async move { client.call("com.example.slow", ()).await })
    };
    calls.await.unwrap();
    let stop = tokio::spawn(node.stop());
    finish.send(true).unwrap();
    let answer = call.await.unwrap().unwrap();
    assert_eq!(answer.argument::<String>(0).unwrap(), "in time");
    assert_eq!(stop.await.unwrap(), Outcome::Orderly);
}

#[test]
fn a_temporary_directory_ends_with_the_node_and_another_one_does_not() {
    let text = realm("r", "").replace(
        r#""type": "tcp", "interface": "127.0.0.1", "port": 0"#,
        r#""type": "unix", "path": "router.sock""#,
    );
    let mut options = EmbeddedOptions::from_json(&text).unwrap();
    let node = EmbeddedNode::start(options.clone()).unwrap();
    let temporary = node.directory().to_owned();
    assert!(temporary.join("router.sock").exists());
    drop(node);
    assert!(!temporary.exists());

    let own = tempfile::tempdir().unwrap();
    options.directory = Some(own.path().to_owned());
    let node = EmbeddedNode::start(options).unwrap();
    assert_eq!(node.directory(), own.path());
    assert!(own.path().join("router.sock").exists());
    drop(node);
    assert!(own.path().exists());
}

#[test]
fn what_a_node_inside_another_program_does_not_do() {
    let check = |text: &str, expected: &str| {
        let started = EmbeddedOptions::from_json(text).and_then(EmbeddedNode::start);
        let error = started.map(drop).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        error
    };
    let guest = r#"{"version": 2, "workers": [
        {"type": "guest", "id": "g", "executable": "/bin/true"}]}"#;
    let error = check(guest, "worker 'g' needs a process or a management realm");
    assert!(matches!(error, EmbeddedError::NeedsProcess { .. }));
    let monitor = r#"{"version": 2, "workers": [{"type": "hostmonitor", "id": "m"}]}"#;
    check(monitor, "worker 'm' needs a process or a management realm");
    let component = r#", "components": [{"type": "class", "classname": "a.B", "realm": "r", "role": "anonymous"}]"#;
    check(&realm("r", component), "worker 'only' needs a process");
    let misspelled = r#"{"version": 2, "workers": [{"type": "router", "realmz": []}]}"#;
    let error = check(misspelled, "realmz");
    assert!(matches!(error, EmbeddedError::Configuration(_)));
    let yaml = EmbeddedOptions::from_yaml("version: 2\nworkers: [{type: router}]\n").unwrap();
    assert_eq!(EmbeddedNode::start(yaml).unwrap().url(), "");
}

#[tokio::test]
async fn a_port_in_use_leaves_nothing_behind() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let text = realm("r", "").replace("\"port\": 0", &format!("\"port\": {port}"));
    let own = tempfile::tempdir().unwrap();
    let mut options = EmbeddedOptions::from_json(&text).unwrap();
    options.directory = Some(own.path().to_owned());
    let error = EmbeddedNode::start(options.clone()).unwrap_err();
    assert!(matches!(error, EmbeddedError::Start(_)), "{error}");
    assert!(error.to_string().contains("in use"), "{error}");
    drop(taken);
    let node = EmbeddedNode::start(options).unwrap();
    join(&node, "r").await.leave().await;
    node.stop().await;
}
