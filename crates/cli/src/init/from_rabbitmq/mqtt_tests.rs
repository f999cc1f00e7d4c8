//! Keys of MQTT, and the transports that they become.

use serde_json::{Value as Json, json};

use super::mqtt::EXPIRY_S_MAX;
use super::tests::moved_of;

/// The transports of MQTT, those over WebSockets among them.
fn transports(config: &Json) -> Vec<Json> {
    let all = config["workers"][0]["transports"].as_array();
    let all = all.expect("a list").iter();
    let of_mqtt = all.filter(|one| one["type"] == "mqtt" || one["type"] == "universal");
    of_mqtt.cloned().collect()
}

fn tcp(port: u16) -> Json {
    json!({"type": "tcp", "port": port})
}

#[test]
fn keys_of_mqtt_are_transports() {
    let conf = "
ssl_options.cacertfile = /ca.pem
ssl_options.certfile = /server.pem
ssl_options.keyfile = /server.key
mqtt.listeners.tcp.default = 127.0.0.1:1884
mqtt.listeners.ssl.default = 8883
mqtt.vhost = fleet
mqtt.exchange = sensors
mqtt.prefetch = 20
mqtt.allow_anonymous = false
mqtt.subscription_ttl = 1500
mqtt.proxy_protocol = false
mqtt.ssl_cert_login = false
mqtt.sparkplug = false
mqtt.durable_queue_type = classic
mqtt.retained_message_store = rabbit_mqtt_retained_msg_store_ets
web_mqtt.tcp.port = 15676
web_mqtt.tcp.ip = 127.0.0.1
web_mqtt.ssl.port = 15677
web_mqtt.ssl.certfile = /web.pem
web_mqtt.ssl.keyfile = /web.key
web_mqtt.ws_path = /devices
web_mqtt.max_connections = 100
";
    let (config, left_out) = moved_of(conf, None);
    assert_eq!(left_out, Vec::<String>::new());
    assert_eq!(config["limits"]["mqtt_session_expiry_3_seconds"], 2);
    let options = json!({"vhost": "fleet", "exchange": "sensors", "prefetch": 20});
    let mut plain = tcp(1884);
    plain["interface"] = "127.0.0.1".into();
    let mut secure = tcp(8883);
    secure["tls"] = json!({"key": "/server.key", "certificate": "/server.pem"});
    let mut web = tcp(15_676);
    web["interface"] = "127.0.0.1".into();
    let mut secure_web = tcp(15_677);
    secure_web["tls"] = json!({"key": "/web.key", "certificate": "/web.pem"});
    let path = json!({"devices": {"mqtt": {"options": options}}});
    let over = |endpoint: Json| json!({"type": "universal", "endpoint": endpoint, "websocket": path, "max_connections": 100});
    let expected = [
        json!({"type": "mqtt", "endpoint": plain, "options": options}),
        json!({"type": "mqtt", "endpoint": secure, "options": options}),
        over(web),
        over(secure_web),
    ];
    assert_eq!(transports(&config), expected);
}

#[test]
fn defaults_are_those_of_the_plugins() {
    let (config, _) = moved_of("heartbeat = 20", None);
    assert_eq!(transports(&config), Vec::<Json>::new());
    let options = json!({"options": {"vhost": "/", "anonymous_user": "guest"}});
    let mqtt = json!({"type": "mqtt", "endpoint": tcp(1883), "options": options["options"]});
    let (config, left_out) = moved_of("mqtt.prefetch = 10\nmqtt.vhost = /", None);
    assert_eq!(left_out, Vec::<String>::new());
    let mut with_prefetch = mqtt.clone();
    with_prefetch["options"]["prefetch"] = 10.into();
    assert_eq!(transports(&config), [with_prefetch]);
    // The plugin of WebSockets has the other one, too.
    let (config, _) = moved_of("web_mqtt.tcp.listener = 127.0.0.1:80", None);
    let found = transports(&config);
    assert_eq!(found[0], mqtt);
    assert_eq!(found[1]["endpoint"]["port"], 80);
    assert_eq!(found[1]["websocket"]["ws"]["mqtt"], options);
    let off = "mqtt.listeners.tcp = none\nweb_mqtt.tcp.listener = none\nmqtt.prefetch = 1";
    let (config, _) = moved_of(off, None);
    assert_eq!(transports(&config), Vec::<Json>::new());
    let secure = "mqtt.listeners.ssl.1 = 8883";
    let (config, left_out) = moved_of(secure, None);
    assert_eq!(transports(&config), [mqtt]);
    assert!(left_out[0].starts_with("mqtt.listeners.ssl.1: it needs"));
}

#[test]
fn other_keys_are_left_out_with_a_reason() {
    let conf = "
mqtt.listeners.tcp.1 = nowhere
mqtt.prefetch = 0
mqtt.subscription_ttl = infinity
mqtt.proxy_protocol = true
mqtt.ssl_cert_login = true
mqtt.durable_queue_type = quorum
mqtt.retained_message_store = rabbit_mqtt_retained_msg_store_dets
mqtt.retained_message_store_dets_sync_interval = 2000
mqtt.tcp_listen_options.backlog = 128
mqtt.num_acceptors.tcp = 10
mqtt.sparkplug = true
mqtt.login_timeout = 10000
mqtt.nope = 1
web_mqtt.tcp.backlog = 1024
web_mqtt.ssl.port = 15677
web_mqtt.ssl.depth = 2
web_mqtt.ws_path = /a/b
web_mqtt.ws_opts.compress = true
web_mqtt.max_connections = many
web_stomp.tcp.port = 15674
";
    let keys = conf.lines().filter_map(|line| line.split_once(" ="));
    let keys: Vec<_> = keys.map(|(key, _)| key).collect();
    let (config, left_out) = moved_of(conf, None);
    let has = |key: &&str| {
        left_out
            .iter()
            .any(|text| text.starts_with(&format!("{key}: ")))
    };
    // The port is right, and the files are missing.
    let missing: Vec<_> = keys.iter().filter(|key| !has(key)).collect();
    assert_eq!(missing, [&"web_mqtt.ssl.port"], "{left_out:#?}");
    assert!(
        left_out
            .iter()
            .any(|text| text.starts_with("web_mqtt.ssl: it needs"))
    );
    assert_eq!(left_out.len(), keys.len());
    assert_eq!(
        config["limits"]["mqtt_session_expiry_3_seconds"],
        EXPIRY_S_MAX
    );
    assert_eq!(transports(&config).len(), 2);
}

#[test]
fn clients_without_a_name_are_let_in_by_the_right_password_alone() {
    let hash = |password: &[u8]| crosstie_auth::PasswordHash::of(password, *b"salt").to_text();
    let user = |name: &str| json!({"name": name, "password_hash": hash(b"p"), "tags": ""});
    let definitions = json!({"users": [user("ada"), user("guest")]}).to_string();
    let ada = "mqtt.default_user = ada\nmqtt.default_pass = ";
    let name = "mqtt.default_user: ";
    let own = "default_user = ada\ndefault_pass = p\n";
    for (conf, definitions, expected, reason) in [
        ("mqtt.prefetch = 1".to_owned(), None, "guest", ""),
        ("mqtt.allow_anonymous = false".to_owned(), None, "", ""),
        ("mqtt.allow_anonymous = true".to_owned(), None, "guest", ""),
        (format!("{own}{ada}p"), None, "ada", ""),
        (format!("{own}{ada}q"), None, "", name),
        (format!("{own}mqtt.prefetch = 1"), None, "", ""),
        (format!("{ada}p"), Some(&*definitions), "ada", ""),
        (format!("{ada}q"), Some(&*definitions), "", name),
        ("mqtt.prefetch = 1".to_owned(), Some(&*definitions), "", ""),
        (
            "mqtt.default_user = nobody".to_owned(),
            Some(&*definitions),
            "",
            name,
        ),
        (
            format!("{own}{ada}p\nauth_backends.1 = http"),
            None,
            "",
            name,
        ),
        (
            format!("{own}{ada}p\nauth_backends.1 = internal"),
            None,
            "ada",
            "",
        ),
    ] {
        let (config, left_out) = moved_of(&conf, definitions);
        let found = &transports(&config)[0]["options"]["anonymous_user"];
        assert_eq!(found.as_str().unwrap_or_default(), expected, "{conf}");
        let reasons: Vec<_> = left_out
            .iter()
            .filter(|text| text.starts_with(name))
            .collect();
        assert_eq!(
            !reasons.is_empty(),
            !reason.is_empty(),
            "{conf}: {left_out:?}"
        );
    }
}

#[test]
fn definitions_name_vhosts_of_ports() {
    let conf = "mqtt.listeners.tcp.1 = 1883\nmqtt.listeners.tcp.2 = 1884";
    for value in [json!({"1884": "fleet"}), json!([["1884", "fleet"]])] {
        let parameter = json!({"name": "mqtt_port_to_vhost_mapping", "value": value});
        let definitions = json!({"global_parameters": [parameter]}).to_string();
        let (config, _) = moved_of(conf, Some(&definitions));
        let found = transports(&config);
        let vhosts: Vec<_> = found.iter().map(|one| &one["options"]["vhost"]).collect();
        assert_eq!(vhosts, ["/", "fleet"]);
    }
}
