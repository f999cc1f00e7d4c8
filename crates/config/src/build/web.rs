//! Web services by path, and checks of their keys.

use std::net::IpAddr;
use std::time::Duration;

use super::transport::{Place, serializers};
use super::{Builder, bound, text};
use crate::files::Files;
use crate::model::{
    Cgi, FileSource, HttpBridge, HttpBridgeOptions, LongPoll, Ping, RawSocket, RequestKey,
    ReverseProxy, Role, Web, WebArchive, WebFiles, WebJson, WebOptions, WebPaths, WebProgram,
    WebPython, WebService, WebSocketReverseProxy, Webhook,
};
use crate::plain::{Plain, Section, positive, positive_seconds, seconds};
use crate::problem::Problem;
use crate::tree::quoted;
use crate::view::View;

/// Maximum size of a request body, in bytes: that of a message.
const BODY_BYTES_MAX: usize = 16 << 20;

const DAY: Duration = Duration::from_hours(24);

impl Builder<'_> {
    pub(super) fn web(&mut self, object: View<'_>, place: Place<'_>) -> Web {
        let options = object.section("options");
        let hsts = options.boolean("hsts");
        if hsts && !place.is_tls {
            let message = "\"hsts\" has no effect without \"tls\" in the endpoint: browsers heed it over TLS alone";
            self.warn(options, "hsts", message);
        }
        let web_options = WebOptions::read(options);
        Web {
            paths: self.web_paths(object, place),
            options: WebOptions {
                hsts_max_age: web_options.hsts_max_age.filter(|_| hsts),
                ..web_options
            },
        }
    }

    fn web_paths(&mut self, object: View<'_>, place: Place<'_>) -> WebPaths {
        let paths = object.map("paths");
        let paths =
            paths.map(|(path, service)| (path.to_owned(), self.web_service(service, place)));
        paths.collect()
    }

    fn web_service(&mut self, service: View<'_>, place: Place<'_>) -> WebService {
        match service.text("type").unwrap_or_default() {
            "static" => WebService::Files(self.web_files(service)),
            "path" => WebService::Path(self.web_paths(service, place)),
            "redirect" => WebService::Redirect {
                url: text(service, "url"),
            },
            "json" => WebService::Json(web_json(service)),
            "nodeinfo" => WebService::NodeInfo,
            "websocket" => WebService::WebSocket(Box::new(self.websocket(service, place))),
            "longpoll" => WebService::LongPoll(Box::new(self.long_poll(service, place))),
            "caller" => WebService::Caller(Box::new(self.http_bridge(service, place))),
            "publisher" => WebService::Publisher(Box::new(self.http_bridge(service, place))),
            "webhook" => WebService::Webhook(Box::new(self.webhook(service, place))),
            "reverseproxy" => WebService::ReverseProxy(ReverseProxy::read(service)),
            "websocket-reverseproxy" => {
                WebService::WebSocketReverseProxy(Box::new(self.websocket_proxy(service, place)))
            }
            "archive" => WebService::Archive(self.web_archive(service)),
            "cgi" => {
                let directory = Files::Directory(text(service, "directory"));
                self.names(service.span_of("directory"), directory);
                WebService::Cgi(Cgi::read(service))
            }
            "wsgi" => WebService::Python(Box::new(self.wsgi(service))),
            "resource" => {
                let program = WebProgram::Resource {
                    class: text(service, "classname"),
                    extra: service.json("extra"),
                };
                WebService::Python(Box::new(python(service, program, (0, 1))))
            }
            _ => WebService::None,
        }
    }

    fn web_files(&mut self, service: View<'_>) -> WebFiles {
        let given = |key| service.given(key).is_some();
        let source = match (given("directory"), given("package"), given("resource")) {
            (false, true, true) => FileSource::Package {
                package: text(service, "package"),
                resource: text(service, "resource"),
            },
            (is_directory, is_package, is_resource) => {
                if !is_directory || is_package || is_resource {
                    let message = "a service of files needs \"directory\", or \"package\" and \"resource\", and not both";
                    self.problems
                        .push(Problem::error(service.span, message.into()));
                }
                let directory = text(service, "directory");
                let files = Files::Directory(directory.clone());
                self.names(service.span_of("directory"), files);
                FileSource::Directory(directory)
            }
        };
        let options = service.section("options");
        WebFiles {
            source,
            ..WebFiles::read(options)
        }
    }

    fn web_archive(&mut self, service: View<'_>) -> WebArchive {
        let download = service.boolean("download");
        if download && service.given("origin").is_none() {
            let message = "\"download\" has no effect without \"origin\"";
            self.warn(service, "download", message);
        }
        if !(download && service.given("origin").is_some()) {
            let file = Files::File(text(service, "archive"));
            self.names(service.span_of("archive"), file);
        }
        let options = service.section("options");
        let archive = WebArchive::read(service);
        WebArchive {
            hashes: archive
                .hashes
                .iter()
                .map(|hash| hash.to_ascii_lowercase())
                .collect(),
            default_file: Option::read(options, "default_file"),
            ..archive
        }
    }

    fn long_poll(&mut self, service: View<'_>, place: Place<'_>) -> LongPoll {
        let options = service.section("options");
        let patience = |key| positive_seconds(options, key).unwrap_or(DAY);
        let most = |key| positive(options, key).unwrap_or(usize::MAX);
        LongPoll {
            session: RawSocket {
                serializers: serializers(service),
                auth: self.auth_at(service, place),
                message_bytes_max: self.message_bytes_max(options),
                ping: Ping::NONE,
            },
            session_timeout: patience("session_timeout"),
            request_timeout: patience("request_timeout"),
            queue_bytes_max: most("queue_limit_bytes").min(self.queue_bytes_max),
            queue_messages_max: most("queue_limit_messages"),
        }
    }

    fn http_bridge(&mut self, service: View<'_>, place: Place<'_>) -> HttpBridge {
        self.check_bridge(service, place);
        let options = service.section("options");
        let signature = self.request_key(options);
        let read = HttpBridgeOptions::read(options);
        let refuse_replay = read.refuse_replay;
        if refuse_replay && (signature.is_none() || read.timestamp_delta_max.is_none()) {
            let message = "\"refuse_replay\" needs \"key\" and \"secret\", and a \"timestamp_delta_limit\" that is not 0: \
                           what was signed is remembered as long as it would be taken";
            self.error(options, "refuse_replay", message);
        }
        if read.require_tls && !place.is_tls {
            let message = "\"require_tls\" refuses every request: the endpoint has no \"tls\"";
            self.warn(options, "require_tls", message);
        }
        HttpBridge {
            options: HttpBridgeOptions {
                signature,
                require_ip: self.networks(options, "require_ip"),
                body_bytes_max: self.body_bytes_max(options),
                ..read
            },
            ..HttpBridge::read(service)
        }
    }

    fn request_key(&mut self, options: View<'_>) -> Option<RequestKey> {
        match (options.text("key"), options.text("secret")) {
            (Some(key), Some(secret)) => Some(RequestKey {
                key: key.to_owned(),
                secret: secret.to_owned(),
            }),
            (None, None) => None,
            (key, _) => {
                let (there, missing) = match key {
                    Some(_) => ("key", "secret"),
                    None => ("secret", "key"),
                };
                let message = format!("\"{there}\" needs \"{missing}\" beside it");
                self.error(options, there, message);
                None
            }
        }
    }

    fn webhook(&mut self, service: View<'_>, place: Place<'_>) -> Webhook {
        self.check_bridge(service, place);
        let options = service.section("options");
        Webhook {
            bridge: HttpBridge {
                options: HttpBridgeOptions {
                    body_bytes_max: self.body_bytes_max(options),
                    ..HttpBridgeOptions::default()
                },
                ..HttpBridge::read(service)
            },
            ..Webhook::read(options)
        }
    }

    /// The maximum size of a request body. 0 is that of a message.
    fn body_bytes_max(&self, options: View<'_>) -> usize {
        match bound(options, "post_body_limit") {
            0 => BODY_BYTES_MAX.min(self.queue_bytes_max),
            max => max,
        }
    }

    /// Whether the worker has the realm, and the realm the role.
    fn check_bridge(&mut self, service: View<'_>, place: Place<'_>) {
        let Some(realms) = place.realms else { return };
        let [name, role] = ["realm", "role"].map(|key| text(service, key));
        let realm = realms.iter().find(|realm| realm.name == name);
        let problem = match realm {
            None => {
                let message = format!("this router worker has no realm {}", quoted(&name));
                Problem::error(service.span_of("realm"), message)
            }
            Some(realm) if role == Role::TRUSTED || realm.roles.iter().any(|r| r.name == role) => {
                return;
            }
            Some(_) => {
                let (realm, quoted) = (quoted(&name), quoted(&role));
                let message =
                    format!("the realm {realm} of this router worker has no role {quoted}");
                Problem::error(service.span_of("role"), message)
            }
        };
        self.problems.push(problem);
    }

    fn websocket_proxy(&mut self, service: View<'_>, place: Place<'_>) -> WebSocketReverseProxy {
        let backend = service.section("backend");
        let url = text(backend, "url");
        let endpoint = backend.object("endpoint");
        if endpoint.is_some_and(|endpoint| !leads_to(&url, endpoint)) {
            let message = "\"endpoint\" is not where \"url\" leads; the URL's own host and port are connected to";
            self.error(backend, "endpoint", message);
        }
        let tls = endpoint.filter(|endpoint| endpoint.text("type") == Some("tcp"));
        let tls = tls.and_then(|endpoint| endpoint.object("tls"));
        for key in ["certificate", "key"] {
            if let Some(tls) = tls.filter(|tls| tls.given(key).is_some()) {
                let message = format!(
                    "\"{key}\": a reverse proxy shows the server no certificate of its own"
                );
                self.problems
                    .push(Problem::error(tls.span_of(key), message));
            }
        }
        for (key, at) in service.section("options").keys() {
            if !OF_PROXIED.contains(&key) {
                let message = format!(
                    "\"{key}\" has no effect in a reverse proxy: what client and server agree on is passed on"
                );
                self.problems.push(Problem::warning(at, message));
            }
        }
        WebSocketReverseProxy {
            frontend: self.websocket_without_sessions(service, place),
            url,
            server_name: tls.and_then(|tls| tls.text("hostname")).map(str::to_owned),
            ca_certificates: tls.map_or_else(Vec::new, |tls| {
                tls.texts("ca_certificates").map(str::to_owned).collect()
            }),
            connections_max: bound(service, "connections_max"),
            timeout: seconds(service, "timeout"),
        }
    }

    fn wsgi(&mut self, service: View<'_>) -> WebPython {
        let (threads_min, threads_max) =
            (bound(service, "minthreads"), bound(service, "maxthreads"));
        if threads_min > threads_max {
            let message = format!(
                "\"minthreads\" must not be more than \"maxthreads\", which is {threads_max}"
            );
            self.error(service, "minthreads", message);
        }
        let program = WebProgram::Wsgi {
            module: text(service, "module"),
            object: text(service, "object"),
        };
        python(service, program, (threads_min, threads_max))
    }
}

fn web_json(service: View<'_>) -> WebJson {
    WebJson {
        value: service.json("value"),
        ..WebJson::read(service.section("options"))
    }
}

fn python(service: View<'_>, program: WebProgram, threads: (usize, usize)) -> WebPython {
    WebPython {
        program,
        threads_min: threads.0,
        threads_max: threads.1,
        requests_max: bound(service, "requests_max"),
        timeout: seconds(service, "timeout"),
        body_bytes_max: u64::read(service, "body_bytes_max"),
    }
}

/// The WebSocket options that apply to forwarded connections.
const OF_PROXIED: &[&str] = &["allowed_origins", "allow_null_origin", "enable_webstatus"];

/// Whether an endpoint has the host and port of a URL.
fn leads_to(url: &str, endpoint: View<'_>) -> bool {
    let (rest, port) = match (url.strip_prefix("wss://"), url.strip_prefix("ws://")) {
        (Some(rest), _) => (rest, 443),
        (_, Some(rest)) => (rest, 80),
        _ => return false,
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, digits)) if !digits.ends_with(']') => (host, digits.parse().unwrap_or(0)),
        _ => (authority, port),
    };
    let bare = |host: &str| {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let is_loopback = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if is_loopback {
            "localhost".to_owned()
        } else {
            host
        }
    };
    endpoint.text("type") == Some("tcp")
        && endpoint
            .text("host")
            .is_some_and(|there| bare(there) == bare(host))
        && endpoint.integer("port") == Some(port)
        && endpoint.given("tls").is_some() == url.starts_with("wss://")
}
