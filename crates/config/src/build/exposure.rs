//! Warnings about listeners that other machines reach without authentication.

use crosstie_auth::wamp::{Anonymous, Methods};

use super::Builder;
use crate::model::{Amqp, AmqpUser, Endpoint, Realm, Role, Transport, TransportKind, WebService};
use crate::problem::Problem;
use crate::tree::quoted;
use crate::view::View;

impl Builder<'_> {
    /// Warns of a worker's transports that give rights to every client from anywhere. Such a file may be right (on a
    /// private network, behind a proxy), or an example that was kept.
    pub(super) fn check_exposure(
        &mut self,
        worker: View<'_>,
        realms: &[Realm],
        transports: &[Transport],
        amqp: Option<&Amqp>,
    ) {
        for (view, transport) in worker.objects("transports").zip(transports) {
            let at = view.span_of("endpoint");
            let warning = open_to_all(transport, realms)
                .map(|realm| everybody(&transport.endpoint, &realm))
                .or_else(|| easily_guessed(transport, amqp));
            self.problems
                .extend(warning.map(|text| Problem::warning(at, text)));
        }
    }
}

/// The warning about a listener that gives rights to every client.
fn everybody(endpoint: &Endpoint, (realm, role): &(String, String)) -> String {
    let place = match endpoint {
        Endpoint::Tcp(tcp) => match tcp.port_last {
            Some(last) => format!("{}, ports {} to {last}", tcp.interface, tcp.port),
            None => format!("{}, port {}", tcp.interface, tcp.port),
        },
        Endpoint::Unix { path, .. } => path.clone(),
        Endpoint::Systemd(socket) => format!("systemd's socket '{}'", socket.name),
    };
    let narrower = match endpoint {
        Endpoint::Systemd(_) => "let the socket unit listen at 127.0.0.1",
        _ => "set \"interface\" to \"127.0.0.1\"",
    };
    format!(
        "whoever reaches this machine ({place}) may join realm {} without saying who he is, with the rights \
         of role {}: {narrower}, let the role do less, or ask for certificates \
         (\"ca_certificates\" in \"tls\")",
        quoted(realm),
        quoted(role)
    )
}

/// The realm, and the role with rights in it, of an unauthenticated client from another machine.
fn open_to_all(transport: &Transport, realms: &[Realm]) -> Option<(String, String)> {
    if !is_reached_from_elsewhere(&transport.endpoint) {
        return None;
    }
    let raw = match &transport.kind {
        TransportKind::RawSocket(rawsocket) => Some(&rawsocket.auth),
        TransportKind::Universal { rawsocket, .. } => rawsocket.as_ref().map(|r| &r.auth),
        _ => None,
    };
    let websockets = transport.kind.websockets();
    let websockets = websockets.iter().map(|websocket| &websocket.auth);
    let mqtt = transport.kind.mqtt();
    // The users of a broker have passwords.
    let mqtt = mqtt.iter().filter(|mqtt| mqtt.options.vhost.is_none());
    let mqtt = mqtt.map(|mqtt| &mqtt.auth);
    let services = transport.kind.web_services().into_iter();
    let long_polls = services.filter_map(|service| match service {
        WebService::LongPoll(long_poll) => Some(&long_poll.session.auth),
        _ => None,
    });
    let mut all = raw
        .into_iter()
        .chain(websockets)
        .chain(mqtt)
        .chain(long_polls);
    all.find_map(|auth| of_auth(auth, realms))
}

/// A listener that requires certificates rejects clients without one.
fn is_reached_from_elsewhere(endpoint: &Endpoint) -> bool {
    if matches!(endpoint, Endpoint::Unix { .. }) {
        return false;
    }
    let asks = endpoint.tls();
    let asks =
        asks.is_some_and(|tls| !tls.client_authorities.is_empty() && !tls.is_certificate_optional);
    !endpoint.is_loopback() && !asks
}

fn of_auth(auth: &Methods, realms: &[Realm]) -> Option<(String, String)> {
    let Some(Anonymous::Static { role, realm, .. }) = &auth.anonymous else {
        return None;
    };
    let (named, name) = (realm.as_deref(), role);
    let mut realms = realms
        .iter()
        .filter(|realm| named.is_none_or(|name| realm.name == name));
    if **name == *Role::TRUSTED {
        return realms
            .next()
            .map(|realm| (realm.name.clone(), name.to_string()));
    }
    realms.find_map(|realm| {
        let role = realm.roles.iter().find(|role| *role.name == **name)?;
        let mut rights = role.permissions.iter().map(|permission| permission.allow);
        rights
            .any(|allow| allow.call || allow.register || allow.publish || allow.subscribe)
            .then(|| (realm.name.clone(), role.name.clone()))
    })
}

/// Warns of AMQP listeners for a user whose password equals the name, such as `guest`, which attackers try first.
fn easily_guessed(transport: &Transport, amqp: Option<&Amqp>) -> Option<String> {
    if !matches!(
        transport.kind,
        TransportKind::Amqp(_) | TransportKind::AmqpManagement(_)
    ) || !is_reached_from_elsewhere(&transport.endpoint)
    {
        return None;
    }
    let is_guessed = |user: &&AmqpUser| {
        let password = user.password.as_ref();
        user.is_remote_allowed
            && password.is_some_and(|password| password.verify(user.name.as_bytes()))
    };
    let user = amqp?.users.iter().find(is_guessed)?;
    Some(format!(
        "the password of the AMQP user {} is the user's name, and whoever reaches this machine may try \
         it: choose another, set \"loopback_only\" of the user, or \"interface\" to \"127.0.0.1\"",
        quoted(&user.name)
    ))
}
