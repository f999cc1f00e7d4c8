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
mqtt.retained_message_store = rabbit_mqtt_retained_msg_store_noop
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
fn both_stores_of_retained_messages_are_taken() {
    for store in ["dets", "ets"] {
        let conf = format!("mqtt.retained_message_store = rabbit_mqtt_retained_msg_store_{store}");
        let (config, left_out) = moved_of(&conf, None);
        assert_eq!(left_out, Vec::<String>::new());
        assert_eq!(transports(&config).len(), 1);
    }
}

#[test]
fn certificates_log_in_where_clients_are_asked_for_them() {
    let files = |prefix: &str, more: &str| {
        format!(
            "{prefix}.cacertfile = /ca.pem\n{prefix}.certfile = /server.pem\n{prefix}.keyfile = /server.key\n{more}\n"
        )
    };
    let listeners = "mqtt.ssl_cert_login = true\nmqtt.listeners.ssl.default = 8883\nweb_mqtt.ssl.port = 15677\n";
    let tcp_asks = "ssl_options.verify = verify_peer";
    let web_asks = "web_mqtt.ssl.verify = verify_peer\nweb_mqtt.ssl.fail_if_no_peer_cert = true";
    for (of_tcp, of_web, expected) in [
        (tcp_asks, web_asks, [true, true]),
        (tcp_asks, "", [true, false]),
        ("", web_asks, [false, true]),
        ("", "", [false, false]),
    ] {
        let conf = [
            listeners,
            &files("ssl_options", of_tcp),
            &files("web_mqtt.ssl", of_web),
        ];
        let (config, left_out) = moved_of(&conf.concat(), None);
        let found = transports(&config);
        let [plain, secure, web, secure_web] = &found[..] else {
            panic!("{found:#?}");
        };
        let options_of = |one: &Json| match one["type"] == "mqtt" {
            true => one["options"].clone(),
            false => one["websocket"]["ws"]["mqtt"]["options"].clone(),
        };
        let logs_in = |one: &Json| options_of(one)["certificate_login"] == true;
        assert!(!logs_in(plain) && !logs_in(web));
        assert_eq!([logs_in(secure), logs_in(secure_web)], expected);
        let tls = |one: &Json| one["endpoint"]["tls"].clone();
        let asks = |one: &Json| tls(one)["ca_certificates"] == json!(["/ca.pem"]);
        assert_eq!([asks(secure), asks(secure_web)], expected);
        let is_optional = |one: &Json| tls(one)["client_certificate"] == "optional";
        assert_eq!(
            [is_optional(secure), is_optional(secure_web)],
            [expected[0], false]
        );
        let is_left_out = left_out
            .iter()
            .any(|text| text.starts_with("mqtt.ssl_cert_login: "));
        assert_eq!(is_left_out, expected == [false, false], "{left_out:?}");
    }
}

#[test]
fn a_listener_that_cannot_ask_for_certificates_is_left_out() {
    let conf =
        "web_mqtt.ssl.certfile = /a\nweb_mqtt.ssl.keyfile = /b\nweb_mqtt.ssl.verify = verify_peer";
    let (config, left_out) = moved_of(conf, None);
    assert!(left_out[0].starts_with("web_mqtt.ssl: it asks clients"));
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
    let of_4 = "anonymous_login_user = ada\nanonymous_login_pass = ";
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
        (
            "mqtt.prefetch = 1\nanonymous_login_user = none".to_owned(),
            None,
            "",
            "",
        ),
        (format!("mqtt.prefetch = 1\n{own}{of_4}p"), None, "ada", ""),
        (
            format!("mqtt.prefetch = 1\n{own}{of_4}q"),
            None,
            "",
            "anonymous_login_user: ",
        ),
    ] {
        let (config, left_out) = moved_of(&conf, definitions);
        let found = &transports(&config)[0]["options"]["anonymous_user"];
        assert_eq!(found.as_str().unwrap_or_default(), expected, "{conf}");
        let reasons: Vec<_> = left_out
            .iter()
            .filter(|text| text.contains(" clients without a user name are refused"))
            .collect();
        assert_eq!(
            reasons.len(),
            usize::from(!reason.is_empty()),
            "{conf}: {left_out:?}"
        );
        assert!(
            reasons.iter().all(|text| text.starts_with(reason)),
            "{reasons:?}"
        );
    }
}

#[test]
fn the_user_of_clients_without_a_name_is_that_of_mqtt_alone() {
    for (user, is_left_out) in [("none", false), ("guest", true)] {
        let (config, left_out) = moved_of(&format!("anonymous_login_user = {user}"), None);
        assert_eq!(transports(&config), Vec::<Json>::new());
        let reason =
            "anonymous_login_user: MQTT is not served, and there is no mechanism ANONYMOUS";
        let expected: Vec<_> = is_left_out.then(|| reason.to_owned()).into_iter().collect();
        assert_eq!(left_out, expected);
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
