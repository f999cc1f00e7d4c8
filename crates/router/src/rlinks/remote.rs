//! A link's configuration as that of a client.

use std::path::Path;
use std::sync::Arc;

use crosstie_auth::wamp::SigningKey;
use crosstie_client::{
    Address, Anonymous, Authenticator, Config, Cryptosign, Endpoint, Scram, Ticket, Transport,
    WampCra,
};
use crosstie_config::{RLink, RLinkAuth, RLinkEndpoint};

/// The client configuration of a link, or why it is invalid.
pub(super) fn config(
    link: &RLink,
    node_key: Option<&Arc<SigningKey>>,
    directory: &Path,
) -> Result<Config, String> {
    let transport = &link.transport;
    let address = match &transport.endpoint {
        RLinkEndpoint::Unix { path } => Address::Unix(directory.join(path)),
        RLinkEndpoint::Tcp {
            host, port, tls, ..
        } => Address::Tcp {
            host: host.clone(),
            port: *port,
            tls: tls.is_some(),
        },
    };
    let endpoint = Endpoint {
        address,
        transport: match &transport.request {
            None => Transport::RawSocket,
            Some(request) => Transport::WebSocket {
                target: request.target.clone(),
            },
        },
    };
    let mut config = Config::of(endpoint);
    config.realm.clone_from(&link.realm);
    config.serializers.clone_from(&transport.serializers);
    config.connect_timeout = transport.connect_timeout;
    config.ping_interval = transport.ping_interval;
    config.message_bytes_max = transport.message_bytes_max;
    config.outgoing_bytes_max = link.queue_bytes_max;
    config.reconnect = None;
    config.http_host = transport
        .request
        .as_ref()
        .map(|request| request.host.clone());
    if let RLinkEndpoint::Tcp { version, tls, .. } = &transport.endpoint {
        config.ip_version = *version;
        if let Some(tls) = tls {
            let within = |path: &String| directory.join(path);
            config.tls.server_name = Some(tls.hostname.clone());
            config.tls.ca_files = tls.ca_certificates.iter().map(within).collect();
            config.tls.system_roots = tls.ca_certificates.is_empty();
            let own = tls.certificate.as_ref();
            config.tls.certificate =
                own.map(|(certificate, key)| (within(certificate), within(key)));
        }
    }
    config.authenticator = authenticator(link, node_key)?;
    Ok(config)
}

fn authenticator(
    link: &RLink,
    node_key: Option<&Arc<SigningKey>>,
) -> Result<Arc<dyn Authenticator>, String> {
    let authid = link.authid.clone();
    // The configuration ensures an authid for methods that need one.
    let named = || authid.clone().unwrap_or_default();
    Ok(match &link.auth {
        RLinkAuth::Anonymous => Arc::new(Anonymous { authid }),
        RLinkAuth::Ticket { ticket } => Arc::new(Ticket {
            authid: named(),
            ticket: ticket.clone(),
        }),
        RLinkAuth::WampCra { secret } => Arc::new(WampCra {
            authid: named(),
            secret: secret.clone(),
        }),
        RLinkAuth::Scram { password } => Arc::new(Scram {
            authid: named(),
            password: password.clone(),
        }),
        RLinkAuth::Cryptosign { privkey } => Arc::new(Cryptosign {
            authid,
            key: SigningKey::parse(privkey)
                .map(Arc::new)
                .ok_or("its privkey is not a private key of 64 hexadecimal digits")?,
        }),
        _ => Arc::new(Cryptosign {
            authid,
            key: node_key
                .map(Arc::clone)
                .ok_or("the node has no key that the link could sign with")?,
        }),
    })
}
