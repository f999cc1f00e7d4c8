//! Links between realms of two routers: their transports and authentication.

use std::time::Duration;

use super::{Builder, bound, transport};
use crate::model::{
    RLink, RLinkAuth, RLinkEndpoint, RLinkRequest, RLinkTls, RLinkTransport, Role, Serializer,
};
use crate::plain::{Plain, Section};
use crate::problem::Problem;
use crate::tree::quoted;
use crate::view::View;

impl Builder<'_> {
    /// The links of a realm with these roles. Their ids are unique in the worker.
    pub(super) fn rlinks(&mut self, realm: View<'_>, roles: &[Role]) -> Vec<RLink> {
        let mut links = Vec::new();
        for object in realm.objects("rlinks") {
            let id = self.rlink_ids.id(object, self.problems);
            let link = self.rlink(object, id);
            self.check_rlink_role(object, &link, roles);
            if !realm.section("options").boolean("enable_meta_api") {
                let message = "a link needs the realm's meta API, and \"enable_meta_api\" is false";
                self.problems
                    .push(Problem::error(object.span, message.into()));
            }
            links.push(link);
        }
        links
    }

    pub(crate) fn rlink(&mut self, object: View<'_>, id: String) -> RLink {
        let link = RLink::read(object);
        RLink {
            id,
            transport: self.rlink_transport(object),
            auth: self.rlink_auth(object, link.authid.as_deref()),
            ..link
        }
    }

    fn rlink_auth(&mut self, object: View<'_>, authid: Option<&str>) -> RLinkAuth {
        let Some(auth) = object.object("auth") else {
            return RLinkAuth::NodeKey;
        };
        let methods: Vec<_> = auth.keys().collect();
        let [(method, _)] = methods[..] else {
            let message = "\"auth\" of a link must have one method".to_owned();
            self.problems.push(Problem::error(auth.span, message));
            return RLinkAuth::NodeKey;
        };
        let needs_authid = !matches!(method, "anonymous" | "cryptosign");
        if needs_authid && authid.is_none() {
            let message = format!("{} needs the link's \"authid\"", quoted(method));
            self.problems.push(Problem::error(auth.span, message));
        }
        let given = auth.section(method);
        let text = |name: &str| given.text(name).unwrap_or_default().to_owned();
        match method {
            "ticket" => RLinkAuth::Ticket {
                ticket: text("ticket"),
            },
            "wampcra" => RLinkAuth::WampCra {
                secret: text("secret"),
            },
            "scram" => RLinkAuth::Scram {
                password: text("password"),
            },
            "cryptosign" => RLinkAuth::Cryptosign {
                privkey: text("privkey"),
            },
            _ => RLinkAuth::Anonymous,
        }
    }

    fn check_rlink_role(&mut self, object: View<'_>, link: &RLink, roles: &[Role]) {
        let role = quoted(&link.role);
        let message = match roles.iter().find(|role| role.name == link.role) {
            Some(role) if role.authorizer.is_none() && role.may_forward => return,
            // Every realm has it.
            None if link.role == Role::TRUSTED => return,
            None => format!("the realm has no role {role}"),
            Some(found) if found.authorizer.is_none() => format!(
                "the role {role} has \"forward_for\": false, and a link says for others all that it says"
            ),
            Some(_) => format!(
                "the role {role} has an authorizer, which is not asked for what a link says; give it permissions"
            ),
        };
        self.error(object, "role", message);
    }

    fn rlink_transport(&mut self, object: View<'_>) -> RLinkTransport {
        let Some(view) = object.object("transport") else {
            return RLinkTransport::nowhere();
        };
        let options = view.section("options");
        let (request, secure) = match view.text("type") {
            Some("websocket") => {
                let url = view.text("url").unwrap_or_default();
                (Some(request(url)), url.starts_with("wss:"))
            }
            _ => (None, false),
        };
        let (endpoint, connect_timeout) = match view.object("endpoint") {
            Some(given) => {
                let endpoint = self.rlink_endpoint(given);
                let has_tls = matches!(&endpoint, RLinkEndpoint::Tcp { tls: Some(_), .. });
                if secure && !has_tls {
                    let message = "the URL begins with wss://, and the endpoint has no \"tls\"";
                    self.error(view, "endpoint", message);
                }
                let seconds = given.integer("timeout").unwrap_or(10);
                let timeout = Duration::from_secs(seconds.try_into().unwrap_or(10));
                (endpoint, timeout)
            }
            None => {
                let host = request.as_ref().map(|request| request.host.as_str());
                let Some(endpoint) = of_url(host.unwrap_or_default(), secure) else {
                    let message = "expected a host and a port from 1 to 65535 in the URL";
                    self.error(view, "url", message);
                    return RLinkTransport::nowhere();
                };
                (endpoint, Duration::from_secs(10))
            }
        };
        let serializers = match view.has("serializer") {
            true => {
                let named = view.text("serializer").and_then(Serializer::from_name);
                named.into_iter().collect()
            }
            false if view.given("serializers").is_none() => Serializer::ALL.to_vec(),
            false => transport::serializers(view),
        };
        RLinkTransport {
            endpoint,
            request,
            serializers,
            connect_timeout,
            ping_interval: Option::read(options, "auto_ping_interval"),
            message_bytes_max: bound(options, "max_message_size"),
        }
    }

    fn rlink_endpoint(&mut self, endpoint: View<'_>) -> RLinkEndpoint {
        let text = |view: View<'_>, name: &str| view.text(name).unwrap_or_default().to_owned();
        if endpoint.text("type") == Some("unix") {
            return RLinkEndpoint::Unix {
                path: text(endpoint, "path"),
            };
        }
        let tls = endpoint.object("tls").map(|tls| {
            let own = ["certificate", "key"].map(|name| tls.text(name).map(str::to_owned));
            let certificate = match own {
                [Some(certificate), Some(key)] => Some((certificate, key)),
                [None, None] => None,
                _ => {
                    let message = "\"certificate\" and \"key\" of a link's TLS need each other";
                    let problem = Problem::error(tls.span, message.to_owned());
                    self.problems.push(problem);
                    None
                }
            };
            RLinkTls {
                hostname: text(tls, "hostname"),
                ca_certificates: tls.texts("ca_certificates").map(str::to_owned).collect(),
                certificate,
            }
        });
        RLinkEndpoint::Tcp {
            host: text(endpoint, "host"),
            port: bound(endpoint, "port").try_into().unwrap_or(0),
            version: endpoint
                .integer("version")
                .and_then(|version| u8::try_from(version).ok()),
            tls,
        }
    }
}

/// The host and target of a WebSocket request.
fn request(url: &str) -> RLinkRequest {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, target) = rest.split_at(end);
    RLinkRequest {
        host: host.to_owned(),
        target: match target.starts_with('/') {
            true => target.to_owned(),
            false => format!("/{target}"),
        },
    }
}

/// The address of a URL.
fn of_url(host: &str, secure: bool) -> Option<RLinkEndpoint> {
    let colon = host
        .rfind(':')
        .filter(|colon| !host[*colon..].contains(']'));
    let (name, port) = match colon {
        Some(colon) => (&host[..colon], host[colon + 1..].parse().ok()?),
        None if secure => (host, 443),
        None => (host, 80),
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let tls = secure.then(|| RLinkTls {
        hostname: name.to_owned(),
        ca_certificates: Vec::new(),
        certificate: None,
    });
    (!name.is_empty() && port != 0).then(|| RLinkEndpoint::Tcp {
        host: name.to_owned(),
        port,
        version: None,
        tls,
    })
}
