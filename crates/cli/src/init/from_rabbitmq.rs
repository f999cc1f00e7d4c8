//! `crosstie init --from-rabbitmq`: a configuration from RabbitMQ's, and what it leaves out.

mod backends;
mod conf;
mod files;
mod keys;
mod listeners;
mod mqtt;
#[cfg(test)]
mod mqtt_tests;
mod values;

use std::path::{Path, PathBuf};

use anyhow::bail;
use crosstie_config::Definitions;
use serde_json::{Value as Json, json};

use conf::Setting;
use files::read;
use keys::Made;

/// Maximum size of `rabbitmq.conf`, in bytes.
const CONF_BYTES_MAX: u64 = 1 << 20;

/// Maximum size of definitions, in bytes: what a node reads.
const DEFINITIONS_BYTES_MAX: u64 = 256 << 20;

pub(super) const CONFIG: &str = ".crossbar/config.json";
const DEFINITIONS: &str = ".crossbar/definitions.json";
const KEYS: &str = ".crossbar/oauth2-keys.json";

/// Files to write, and the report.
pub(super) struct Moved {
    /// By their paths in the directory.
    pub(super) files: Vec<(&'static str, String)>,
    /// The parts that are left out, with the reasons.
    pub(super) left_out: Vec<String>,
    /// A decision that the files leave open, and how it was made.
    pub(super) note: &'static str,
    /// Keys that were taken.
    pub(super) taken: usize,
}

/// Makes a node's files of RabbitMQ's. Nothing is written.
pub(super) fn moved(paths: &[PathBuf]) -> anyhow::Result<Moved> {
    let (conf, definitions) = match paths {
        [conf] => (conf, None),
        [conf, definitions] => (conf, Some(definitions)),
        _ => bail!("--from-rabbitmq: expected rabbitmq.conf and definitions.json"),
    };
    let text = read(conf, CONF_BYTES_MAX)?;
    if conf::is_erlang(&text) {
        bail!(
            "{}: Erlang terms (advanced.config, or rabbitmq.config of old) are not read; write its settings as keys of \
             rabbitmq.conf",
            conf.display()
        );
    }
    let settings = conf::parse(&text);
    let settings = settings.map_err(|why| anyhow::anyhow!("{}: {why}", conf.display()))?;
    let definitions = definitions.map(|path| defined(path)).transpose()?;
    Ok(made(&settings, definitions, crate::passwd::salt::salt()?))
}

fn made(
    settings: &[Setting<'_>],
    definitions: Option<(String, Definitions)>,
    salt: [u8; 4],
) -> Moved {
    let mut made = Made::new(settings);
    let mut left_out = Vec::new();
    let mut taken = 0;
    for setting in settings {
        match made.take(setting, definitions.is_some()) {
            Ok(()) => taken += 1,
            Err(why) => left_out.push(format!("{}: {why}", setting.key)),
        }
    }
    let read = definitions.as_ref().map(|(_, definitions)| definitions);
    let mut amqp = made.amqp(read, salt, &mut left_out);
    let mut transports = made.transports(read, &mut left_out);
    let mut files = Vec::new();
    if let Some((text, definitions)) = definitions {
        left_out.extend(definitions.skipped.iter().map(ToString::to_string));
        amqp["definitions"] = "definitions.json".into();
        files.push((DEFINITIONS, text));
    }
    match made.backends.made(&mut left_out) {
        Ok(None) => {}
        Ok(Some(backends)) => {
            let has_keys = |backend: &Json| backend.get("jwks_file").is_some();
            if backends
                .as_array()
                .is_some_and(|all| all.iter().any(has_keys))
            {
                files.push((KEYS, pretty(&made.backends.keys())));
            }
            amqp["auth_backends"] = backends;
        }
        Err(why) => {
            transports.clear();
            left_out.push(why.to_owned());
        }
    }
    let mut config = json!({
        "version": 2,
        "workers": [{"type": "router", "amqp": amqp, "transports": transports}],
        "admin": {
            "endpoint": {"type": "tcp", "interface": "127.0.0.1", "port": 9100},
            "pages": ["health", "metrics", "status"],
        },
    });
    if let Some(limits) = made.mqtt.limits() {
        config["limits"] = limits;
    }
    files.push((CONFIG, pretty(&config)));
    Moved {
        files,
        left_out,
        note: made.mqtt.note(),
        taken,
    }
}

fn pretty(json: &Json) -> String {
    // A value that was parsed can be written.
    serde_json::to_string_pretty(json).unwrap_or_default() + "\n"
}

/// The text of definitions, and what a node reads of them.
fn defined(path: &Path) -> anyhow::Result<(String, Definitions)> {
    let text = read(path, DEFINITIONS_BYTES_MAX)?;
    let definitions = Definitions::parse(text.as_bytes());
    let definitions =
        definitions.map_err(|why| anyhow::anyhow!("{}: no definitions: {why}", path.display()))?;
    Ok((text, definitions))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The configuration, and what is left out.
    pub(super) fn moved_of(conf: &str, definitions: Option<&str>) -> (Json, Vec<String>) {
        let settings = conf::parse(conf).expect("settings");
        let definitions = definitions.map(|text| {
            let definitions = Definitions::parse(text.as_bytes()).expect("definitions");
            (text.to_owned(), definitions)
        });
        let moved = made(&settings, definitions, *b"salt");
        let config = moved.files.iter().find(|(path, _)| *path == CONFIG);
        let config = &config.expect("a configuration").1;
        let directory = tempfile::tempdir().expect("a directory");
        for (path, text) in &moved.files {
            super::super::put(&directory.path().join(path), text, 0o600).expect("a file");
        }
        let loaded = crosstie_config::load(&directory.path().join(CONFIG), &|_| None);
        loaded.unwrap_or_else(|failure| panic!("{failure}\n{config}"));
        let config = serde_json::from_str(config).expect("JSON");
        (config, moved.left_out)
    }

    #[test]
    fn the_keys_that_most_files_have_are_taken() {
        let conf = "
# a comment
listeners.tcp.default = 5673
listeners.tcp.local = 127.0.0.1:5674
listeners.ssl.default = 5671
ssl_options.cacertfile = /ca.pem
ssl_options.certfile = /server.pem
ssl_options.keyfile = /server.key
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = true
default_user = ada
default_pass = secret # hers
default_vhost = home
default_user_tags.administrator = true
default_permissions.write = ^a
heartbeat = 30
frame_max = 65536
channel_max = 100
vm_memory_high_watermark.absolute = 2GB
disk_free_limit.absolute = 50MiB
consumer_timeout = 60000
max_message_size = 1048576
cluster_name = 'the cluster'
auth_mechanisms.1 = PLAIN
management.tcp.port = 15673
management.tcp.ip = 127.0.0.1
management.cors.allow_origins.1 = https://app.example.com
management.cors.max_age = 60
prometheus.tcp.port = 15693
";
        let (config, left_out) = moved_of(conf, None);
        assert_eq!(left_out, Vec::<String>::new());
        let worker = &config["workers"][0];
        let amqp = &worker["amqp"];
        let hash = amqp["users"][0]["password_hash"].as_str().expect("a text");
        let hash = crosstie_auth::PasswordHash::parse(hash, None).expect("a hash");
        assert!(hash.verify(b"secret"));
        assert_eq!(amqp["users"][0]["tags"], json!(["administrator"]));
        assert_eq!(amqp["vhosts"][0]["permissions"][0]["write"], "^a");
        assert_eq!(amqp["limits"]["memory_bytes_max"], 2_000_000_000_u64);
        assert_eq!(amqp["limits"]["disk_free_bytes_min"], 50 << 20);
        assert_eq!(amqp["identity"]["cluster_name"], "the cluster");
        let transports = worker["transports"].as_array().expect("a list");
        let ports: Vec<_> = transports.iter().map(|t| &t["endpoint"]["port"]).collect();
        assert_eq!(ports, [5673, 5674, 5671, 15673, 15693]);
        assert_eq!(transports[1]["endpoint"]["interface"], "127.0.0.1");
        assert_eq!(
            transports[2]["endpoint"]["tls"]["ca_certificates"],
            json!(["/ca.pem"])
        );
        assert_eq!(transports[0]["options"]["heartbeat_seconds"], 30);
        let cors = json!({"allow_origins": ["https://app.example.com"], "max_age_seconds": 60});
        assert_eq!(transports[3]["cors"], cors);
    }

    #[test]
    fn each_other_key_is_left_out_with_a_reason() {
        let conf = "
listeners.tcp = none
listeners.ssl.1 = 5671
vm_memory_high_watermark.relative = 0.6
cluster_partition_handling = autoheal
cluster_formation.peer_discovery_backend = k8s
log.console = true
auth_backends.1 = ldap
heartbeat = soon
frame_max = 0
default_user = ada
loopback_users = none
management.cors.allow_origins.1 = *
nope = 1
";
        let definitions =
            r#"{"users": [{"name": "guest", "password_hash": "", "tags": ""}], "x": 1}"#;
        let (config, left_out) = moved_of(conf, Some(definitions));
        let expected = [
            "listeners.ssl.1: it needs ssl_options.certfile and ssl_options.keyfile",
            "vm_memory_high_watermark.relative: ",
            "cluster_partition_handling: ",
            "cluster_formation.peer_discovery_backend: ",
            "log.console: ",
            "auth_backends.1: ",
            "heartbeat: expected a whole number, got soon",
            "frame_max: expected 4096 to 16777216, got 0: the default stays",
            "default_user: the definitions have the users",
            "management.cors.allow_origins.1: expected the origin of pages",
            "nope: it is not known",
            "'x': not imported: it is not known",
            "no listener is left",
            "none of the auth_backends is left",
        ];
        let is_told = |text: &&str| left_out.iter().any(|found| found.starts_with(*text));
        let missing: Vec<_> = expected.iter().filter(|text| !is_told(text)).collect();
        assert!(missing.is_empty(), "{missing:?} of {left_out:#?}");
        assert_eq!(left_out.len(), expected.len(), "{left_out:#?}");
        assert_eq!(
            config["workers"][0]["amqp"]["definitions"],
            "definitions.json"
        );
    }

    #[test]
    fn a_node_is_never_more_open_than_its_rabbitmq() {
        let tls = "listeners.ssl.1 = 5671\nssl_options.certfile = /c\nssl_options.keyfile = /k\n";
        let left_out = |conf: &str, expected: &str| {
            let (config, left_out) = moved_of(conf, None);
            let is_told = left_out.iter().any(|text| text.starts_with(expected));
            assert!(is_told, "{expected}: {left_out:#?}");
            config["workers"][0].clone()
        };
        let transports = |worker: &Json| {
            let transports = worker["transports"].as_array().expect("a list").iter();
            let of_tools = ["amqp.management", "amqp.prometheus"].map(Json::from);
            let is_open = |transport: &&Json| {
                !of_tools.contains(&transport["type"])
                    || transport["endpoint"]["interface"] != "127.0.0.1"
            };
            transports.filter(is_open).count()
        };
        // Certificates are asked for, and nobody is named who signs them.
        for key in ["verify = verify_peer", "fail_if_no_peer_cert = true"] {
            let worker = left_out(
                &format!("{tls}ssl_options.{key}\n"),
                "listeners.ssl.1: it asks",
            );
            assert_eq!(transports(&worker), 1);
        }
        // The management API has its TLS, or is left out.
        let listener = "management.listener.port = 15671\nmanagement.listener.ssl = true\n";
        let worker = left_out(listener, "management.listener: it needs");
        assert_eq!(transports(&worker), 1);
        let files = "management.listener.ssl_opts.certfile = /c\nmanagement.listener.ssl_opts.keyfile = /k\n";
        let (config, none) = moved_of(&format!("{listener}{files}"), None);
        assert_eq!(none, Vec::<String>::new());
        let endpoint = &config["workers"][0]["transports"][1]["endpoint"];
        assert_eq!(
            (&endpoint["port"], &endpoint["tls"]["key"]),
            (&json!(15671), &json!("/k"))
        );
        let (config, _) = moved_of("management.tcp.ip = 127.0.0.1", None);
        let endpoint = &config["workers"][0]["transports"][1]["endpoint"];
        assert_eq!(
            (&endpoint["port"], &endpoint["interface"]),
            (&json!(15672), &json!("127.0.0.1"))
        );
        // Mechanisms.
        let external = "auth_mechanisms.1 = PLAIN\nauth_mechanisms.2 = EXTERNAL\n";
        let (config, _) = moved_of(external, None);
        assert_eq!(
            config["workers"][0]["transports"][0]["mechanisms"],
            json!(["PLAIN"])
        );
        let worker = left_out(
            "auth_mechanisms.1 = RABBIT-CR-DEMO",
            "listeners.tcp.default: none of",
        );
        assert_eq!(transports(&worker), 0);
    }

    #[test]
    fn users_of_this_machine_alone_stay_so() {
        let (config, _) = moved_of("default_user_tags.administrator = false", None);
        assert_eq!(config["workers"][0]["amqp"]["users"][0]["tags"], json!([]));
        let (config, _) = moved_of("default_user = ada\nloopback_users.ada = true", None);
        assert_eq!(
            config["workers"][0]["amqp"]["users"][0]["loopback_only"],
            true
        );
        let definitions = r#"{"users": [{"name": "ada", "password_hash": "", "tags": "x"}]}"#;
        let (config, _) = moved_of("loopback_users.ada = true", Some(definitions));
        let ada = json!({"name": "ada", "tags": ["x"], "loopback_only": true});
        assert_eq!(config["workers"][0]["amqp"]["users"], json!([ada]));
        // That of definitions may be let in from elsewhere.
        let definitions = r#"{"users": [{"name": "guest", "password_hash": "", "tags": "x"}]}"#;
        let guest = json!({"name": "guest", "tags": ["x"], "loopback_only": false});
        for (conf, users) in [
            ("loopback_users = none", json!([guest])),
            ("loopback_users.guest = false", json!([guest])),
            ("loopback_users.guest = true", Json::Null),
        ] {
            let (config, left_out) = moved_of(conf, Some(definitions));
            assert_eq!(left_out, Vec::<String>::new());
            assert_eq!(config["workers"][0]["amqp"]["users"], users, "{conf}");
        }
        for (conf, definitions) in [
            ("loopback_users = none", Some(r#"{"users": []}"#)),
            ("loopback_users.guest = false", Some(r#"{"users": []}"#)),
            ("loopback_users.ada = true", Some(definitions)),
            ("loopback_users.ada = true", None),
        ] {
            let (_, left_out) = moved_of(conf, definitions);
            assert_eq!(left_out.len(), 1, "{conf}: {left_out:?}");
            assert!(left_out[0].ends_with(": there is no such user"));
        }
    }

    #[test]
    fn backends_keep_their_order_and_their_keys() {
        let directory = tempfile::tempdir().expect("a directory");
        let pem = directory.path().join("key.pem");
        std::fs::write(&pem, ED25519).expect("written");
        let pem = pem.display();
        let conf = format!(
            "
auth_backends.2 = internal
auth_backends.1 = rabbit_auth_backend_oauth2
auth_backends.3 = http
auth_backends.4 = cache
auth_backends.5.authn = internal
auth_oauth2.resource_server_id = rabbitmq
auth_oauth2.additional_scopes_key = roles
auth_oauth2.default_key = first
auth_oauth2.signing_keys.first = {pem}
auth_oauth2.signing_keys.second = /nowhere.pem
auth_oauth2.algorithms.1 = EdDSA
auth_oauth2.algorithms.2 = HS256
auth_oauth2.https.peer_verification = verify_none
auth_http.user_path = http://127.0.0.1/u
auth_http.request_timeout = 20000
auth_http.connection_timeout = 1
"
        );
        let (config, left_out) = moved_of(&conf, None);
        let expected = [
            "auth_backends.4: the backend `http` has a cache",
            "auth_backends.5.authn: a login and the rights",
            "auth_oauth2.signing_keys.second: cannot read /nowhere.pem",
            "auth_oauth2.algorithms.2: tokens are not verified by HS256",
            "auth_oauth2.https.peer_verification: ",
            "auth_http.connection_timeout: ",
        ];
        for text in expected {
            assert!(
                left_out.iter().any(|found| found.starts_with(text)),
                "{text}: {left_out:#?}"
            );
        }
        assert_eq!(left_out.len(), expected.len(), "{left_out:#?}");
        let backends = &config["workers"][0]["amqp"]["auth_backends"];
        let oauth2 = json!({
            "type": "oauth2",
            "resource_server_id": "rabbitmq",
            "additional_scopes_key": "roles",
            "default_key": "first",
            "algorithms": ["EdDSA"],
            "jwks_file": "oauth2-keys.json",
        });
        assert_eq!(backends[0], oauth2);
        assert_eq!(backends[1], json!({"type": "internal"}));
        assert_eq!(backends[2]["user_path"], "http://127.0.0.1/u");
        assert_eq!(backends[2]["timeout_ms"], 20_000);
        let url = "auth_backends.1 = rabbit_auth_backend_oauth2
auth_oauth2.jwks_url = https://keys.example/
auth_oauth2.https.cacertfile = /ca.pem";
        let (config, left_out) = moved_of(url, None);
        assert_eq!(left_out, Vec::<String>::new());
        let backend = &config["workers"][0]["amqp"]["auth_backends"][0];
        assert_eq!(backend["jwks_ca_certificates"], json!(["/ca.pem"]));
        // Without a key no token is right, and the node's own users are not let in by that.
        let (config, left_out) = moved_of("auth_backends.1 = rabbit_auth_backend_oauth2", None);
        assert_eq!(left_out.len(), 2, "{left_out:#?}");
        assert_eq!(config["workers"][0]["transports"], json!([]));
        // Keys of a backend that is not named.
        let (_, left_out) = moved_of("auth_oauth2.resource_server_id = x", None);
        assert_eq!(left_out, ["auth_oauth2: no auth_backends names it"]);
    }

    #[test]
    fn urls_of_backends_are_those_of_the_configuration() {
        let http = "auth_backends.1 = http\nauth_backends.2 = internal\n";
        let oauth2 = "auth_backends.1 = oauth2\nauth_backends.2 = internal\n";
        let url = "expected a URL that begins with http:// or https:// and names a host";
        for (before, wrong, what) in [
            (http, "auth_http.user_path = localhost:8000/user", url),
            (http, "auth_http.topic_path = http://a/b?c=d", url),
            (http, "auth_http.vhost_path = http://user:pass@a/b", url),
            (http, "auth_http.http_method = PUT", "expected get or post"),
            (oauth2, "auth_oauth2.jwks_url = file:///keys", url),
            (
                oauth2,
                "auth_oauth2.default_key =",
                "expected text that is not empty",
            ),
        ] {
            let (config, left_out) = moved_of(&format!("{before}{wrong}"), None);
            let key = wrong.split_once(" =").expect("a key").0;
            let expected = format!("{key}: {what}");
            assert!(left_out[0].starts_with(&expected), "{wrong}: {left_out:#?}");
            // No other server is asked in the place of the one that is meant.
            let backends = &config["workers"][0]["amqp"]["auth_backends"];
            let is_left = what.starts_with("expected get");
            let types = backends.as_array().expect("a list").iter();
            let types: Vec<_> = types.map(|backend| &backend["type"]).collect();
            assert_eq!(types.len(), 1 + usize::from(is_left), "{wrong}: {types:?}");
        }
    }

    const ED25519: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
";

    #[test]
    fn erlang_terms_are_refused_by_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("advanced.config");
        std::fs::write(&path, "%% old\n[{rabbit, [{heartbeat, 5}]}].\n").expect("written");
        let refused = moved(&[path]).err().expect("refused").to_string();
        assert!(
            refused.contains("advanced.config: Erlang terms"),
            "{refused}"
        );
    }
}
