//! Backends of AMQP logins, in their order.

use std::net::IpAddr;
use std::sync::Arc;

use crosstie_auth::oauth2::Rules;
use crosstie_auth::wamp::jwt::Algorithm;

use super::Builder;
use crate::model::{AmqpAuthBackend, AmqpHttpBackend, AmqpOAuth2Backend};
use crate::plain::Section;
use crate::problem::Problem;
use crate::tree::quoted;
use crate::view::View;

impl Builder<'_> {
    /// The backends of an object of AMQP; the broker's own users if none is named.
    pub(super) fn auth_backends(&mut self, amqp: View<'_>) -> Vec<AmqpAuthBackend> {
        let mut backends = Vec::new();
        let mut named: Vec<&str> = Vec::new();
        for backend in amqp.objects("auth_backends") {
            let kind = backend.text("type").unwrap_or_default();
            if named.contains(&kind) {
                let message = format!("the backend {} is named twice", quoted(kind));
                self.problems.push(Problem::error(backend.span, message));
            }
            named.push(kind);
            backends.push(match kind {
                "http" => AmqpAuthBackend::Http(self.http_backend(backend)),
                "oauth2" => AmqpAuthBackend::OAuth2(self.oauth2_backend(backend)),
                _ => AmqpAuthBackend::Internal,
            });
        }
        match backends.is_empty() {
            true => vec![AmqpAuthBackend::Internal],
            false => backends,
        }
    }

    fn http_backend(&mut self, backend: View<'_>) -> AmqpHttpBackend {
        let read = AmqpHttpBackend::read(backend);
        for (key, url) in [
            ("user_path", &read.user_path),
            ("vhost_path", &read.vhost_path),
            ("resource_path", &read.resource_path),
            ("topic_path", &read.topic_path),
        ] {
            if url.starts_with("http://") && !is_here(url) {
                let message = "anybody between this node and the server may read passwords and decide on rights: https:// \
                               is meant for that";
                self.warn(backend, key, message);
            }
        }
        AmqpHttpBackend {
            is_post: backend.text("http_method") == Some("post"),
            ..read
        }
    }

    /// The keys are read later, with their file.
    fn oauth2_backend(&mut self, backend: View<'_>) -> AmqpOAuth2Backend {
        let named = backend.texts("algorithms").filter_map(Algorithm::parse);
        let mut algorithms: Vec<_> = named.collect();
        if algorithms.is_empty() {
            algorithms = Algorithm::ALL.to_vec();
        }
        let text = |key| backend.text(key).map(str::to_owned);
        if backend.text("resource_server_id").is_none() {
            let message =
                "no \"resource_server_id\" is given: tokens that were made for others let in, too";
            self.problems
                .push(Problem::warning(backend.span, message.to_owned()));
        }
        AmqpOAuth2Backend {
            rules: Arc::new(Rules {
                algorithms,
                resource_server_id: text("resource_server_id").unwrap_or_default(),
                additional_scopes_key: text("additional_scopes_key"),
                scope_aliases: backend.lists("scope_aliases"),
                default_key: text("default_key"),
            }),
            keys_file: text("jwks_file"),
            keys_url: self.keys_url(backend).map(Arc::new),
        }
    }
}

/// Whether a URL leads to this machine.
fn is_here(url: &str) -> bool {
    let authority = url.trim_start_matches("http://").split('/').next();
    let authority = authority.unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    host == "localhost" || address.is_ok_and(|address: IpAddr| address.is_loopback())
}
