//! The figures of the pages: whether the node is ready, its metrics, and its status for people.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crosstie_broker::{self as amqp, Alarm, Ownership, Whose};
use crosstie_fabric::State;
use crosstie_front::markup::escaped;
use crosstie_realms::event_store::RealmStore;
use crosstie_site::pages::{Figures, Form};
use parking_lot::Mutex;

use crate::metrics::metrics;
use crate::registry::{Registry, brokers, realms};
use crate::sessions::{self, Rows};
use crate::{rlink_table, worker_table};

/// The routers that a listener's pages tell of.
pub(crate) struct Told {
    /// The router of the listener.
    home: Arc<Registry>,
    /// An operators' listener tells of every router.
    routers: Mutex<Vec<Arc<Registry>>>,
}

impl Told {
    pub(crate) fn new(home: &Arc<Registry>, routers: Vec<Arc<Registry>>) -> Arc<Self> {
        Arc::new(Self {
            home: Arc::clone(home),
            routers: Mutex::new(routers),
        })
    }

    /// Replaces the routers that the pages show.
    pub(crate) fn show(&self, routers: Vec<Arc<Registry>>) {
        *self.routers.lock() = routers;
    }

    /// Not under the lock: the start of a worker would wait.
    fn routers(&self) -> Vec<Arc<Registry>> {
        self.routers.lock().clone()
    }
}

impl Figures for Told {
    fn health(&self) -> (bool, String) {
        health(&self.routers())
    }

    fn metrics(&self, form: Form) -> String {
        metrics(&self.routers(), form)
    }

    fn status(&self) -> String {
        status(&self.home, &self.routers())
    }
}

/// Whether the node is ready for clients: 503 if clients would be admitted and not served, because durable messages
/// cannot be stored, a vhost has no owner, or a realm refuses all sessions. Neither full memory nor a low disk takes a
/// node out of service: consumers are served, and free memory. Nor does a realm without its other nodes that serves its
/// own sessions, or one whose events cannot be stored.
pub(crate) fn health(routers: &[Arc<Registry>]) -> (bool, String) {
    let mut wrong = String::new();
    let mut is_ready = true;
    for (router, alarm) in amqp::alarms(brokers(routers)) {
        is_ready &= !matches!(alarm, Alarm::StoreFailing { .. });
        let _ = writeln!(wrong, "AMQP of router '{router}': {alarm}");
    }
    for (router, vhost) in amqp::replicated_vhosts(brokers(routers)) {
        let seen = vhost.seen();
        match vhost.ownership() {
            Ownership::Here(_) => is_ready &= !seen.is_log_refusing,
            Ownership::NotHere(Whose::Elsewhere { .. }) => {}
            Ownership::NotHere(Whose::Nobody { why }) => {
                is_ready = false;
                // An alarm has described this already.
                if seen.alarm.is_none() {
                    let name = &vhost.name;
                    let _ = writeln!(
                        wrong,
                        "AMQP of router '{router}': replicated vhost '{name}' is on no node that is known: {why}"
                    );
                }
            }
        }
    }
    // WAMP is served nevertheless.
    for router in routers.iter().filter(|router| router.is_amqp_stopped()) {
        let router = router.id();
        let _ = writeln!(wrong, "AMQP of router '{router}': stopped by an operator");
    }
    add_mqtt_stores(routers, &mut wrong);
    for (router, realm) in realms(routers) {
        if let Some(why) = realm.store.as_ref().and_then(RealmStore::failure) {
            let (router, realm) = (router.id(), realm.name());
            let _ = writeln!(
                wrong,
                "Realm '{realm}' of router '{router}': its event store cannot be written: {why}"
            );
        }
        let Some(port) = &realm.port else {
            continue;
        };
        let (router, realm) = (router.id(), realm.name());
        let (is_open, all) = port.seen().judge(port.settings.is_refused_detached);
        is_ready &= is_open;
        for wrong_there in all {
            let _ = writeln!(wrong, "Realm '{realm}' of router '{router}': {wrong_there}");
        }
    }
    // The routers' clients are served nevertheless.
    for router in routers {
        for certificate in router.certificates() {
            for trouble in certificate.status().troubles() {
                let (router, id) = (router.id(), &certificate.id);
                let _ = writeln!(wrong, "Transport '{id}' of router '{router}': {trouble}");
            }
        }
        for outdated in router.realms.door.outdated() {
            let _ = writeln!(wrong, "Router '{}': {outdated}", router.id());
        }
    }
    let workers = routers
        .first()
        .map(|router| router.grounds.overview.workers());
    wrong += &worker_table::troubles(&workers.unwrap_or_default());
    let word = if is_ready { "ok" } else { "degraded" };
    (is_ready, format!("{word}\n{wrong}"))
}

/// Adds the realms whose MQTT store cannot be written. WAMP is served nevertheless.
fn add_mqtt_stores(routers: &[Arc<Registry>], wrong: &mut String) {
    for router in routers {
        for (realm, status) in router.spaces.stores() {
            if let Some(why) = status.failure {
                let router = router.id();
                let _ = writeln!(
                    wrong,
                    "Realm '{realm}' of router '{router}': its MQTT store cannot be written: {why}"
                );
            }
        }
    }
}

fn status(home: &Registry, routers: &[Arc<Registry>]) -> String {
    let mut realm_rows = String::new();
    for (router, realm) in realms(routers) {
        let counts = realm.counts();
        let _ = write!(
            realm_rows,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
            escaped(router.id()),
            escaped(realm.name()),
            counts.sessions,
            counts.subscriptions,
            counts.registrations,
            counts.calls
        );
    }
    let (addresses, workers) = (
        addresses(routers),
        worker_table::table(&home.grounds.overview.workers()),
    );
    let sessions = session_table(routers);
    let (brokers, fabric) = (amqp_status(routers), fabric_status(routers));
    let links = routers.iter().flat_map(|router| {
        let links = router.rlinks.all().into_iter();
        links.map(|link| (router.id(), link.status()))
    });
    let links = rlink_table::table(links);
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Crosstie</title>\
         <link rel=icon href=\"data:,\">\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <meta name=color-scheme content=\"light dark\"><style>{STYLE}</style>\
         <h1>Crosstie {}</h1><p>Up for {}; {} open connections, that of this page included.\
         {addresses}{workers}\
         <h2>WAMP</h2><div><table><tr><th>router<th>realm<th>sessions<th>subscriptions\
         <th>registrations<th>open calls{realm_rows}</table></div>{fabric}{links}{sessions}{brokers}\
         <p><a href=/health>health</a> · <a href=/metrics>metrics</a></html>\n",
        env!("CARGO_PKG_VERSION"),
        duration(home.grounds.overview.uptime()),
        routers
            .iter()
            .map(|router| router.connections())
            .sum::<usize>(),
    )
}

/// The browser's own colours, light or dark; a wide table scrolls, not the page.
const STYLE: &str = ":root{color-scheme:light dark}\
    body{font:16px/1.5 system-ui;margin:2em auto;max-width:60em;padding:0 1em}\
    div{overflow-x:auto}table{border-collapse:collapse}\
    td,th{padding:.2em 1em .2em 0;text-align:left;vertical-align:top}code{overflow-wrap:anywhere}";

/// The addresses for clients.
fn addresses(routers: &[Arc<Registry>]) -> String {
    let mut rows = String::new();
    for router in routers {
        for (transport, _, urls) in &*router.addresses.lock() {
            let urls: Vec<_> = urls.iter().map(|url| escaped(url)).collect();
            let _ = write!(
                rows,
                "<tr><td>{}<td>{}<td><code>{}</code>",
                escaped(router.id()),
                escaped(transport),
                urls.join("</code><br><code>")
            );
        }
    }
    format!("<h2>Connect to</h2><div><table><tr><th>router<th>transport<th>URL{rows}</table></div>")
}

/// The two largest units that are not zero.
fn duration(duration: Duration) -> String {
    let s = duration.as_secs();
    let (days, hours, minutes) = (s / 86_400, s / 3_600 % 24, s / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{s} s"),
        (0, 0, _) => format!("{minutes} min {} s", s % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// The first sessions of each router; `crosstie sessions` lists all.
fn session_table(routers: &[Arc<Registry>]) -> String {
    let mut rows = String::new();
    let mut is_cut = false;
    let first = Rows {
        realm: None,
        text: "",
        offset: 0,
        limit: SESSIONS_SHOWN + 1,
    };
    for router in routers {
        let sessions = sessions::of_router(router, &first);
        is_cut |= sessions.len() > SESSIONS_SHOWN;
        for session in sessions.iter().take(SESSIONS_SHOWN) {
            let age = duration(session.since.elapsed().unwrap_or_default());
            let _ = write!(
                rows,
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}, {}<td>{age}",
                escaped(router.id()),
                escaped(&session.realm),
                session.id,
                escaped(&session.authid),
                escaped(&session.authrole),
                escaped(&session.peer),
                session.framing,
                session.serializer,
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let more = match is_cut {
        true => "<p>There are more: <code>crosstie sessions</code> lists all.",
        false => "",
    };
    format!(
        "<h2>Sessions</h2><div><table><tr><th>router<th>realm<th>session<th>authid<th>role<th>peer\
         <th>transport<th>for{rows}</table></div>{more}"
    )
}

/// Maximum number of a router's sessions on the page.
const SESSIONS_SHOWN: usize = 50;

/// The realms that span several nodes.
fn fabric_status(routers: &[Arc<Registry>]) -> String {
    let mut rows = String::new();
    for (router, realm) in realms(routers) {
        let Some(port) = &realm.port else {
            continue;
        };
        let (seen, counts) = (port.seen(), realm.counts());
        let state = match seen.state {
            State::Attached => format!("on NATS server {}", escaped(&seen.server)),
            State::Joining => format!("joining on NATS server {}", escaped(&seen.server)),
            State::Detached => format!(
                "<strong>no NATS server is reached</strong> {}",
                escaped(&seen.why)
            ),
        };
        let wrong = escaped(&seen.wrong().join("; "));
        let nodes: Vec<_> = seen.nodes.iter().map(|node| escaped(node)).collect();
        let _ = write!(
            rows,
            "<tr><td>{}<td>{}<td>{state} <strong>{wrong}</strong><td>{}<td>{}<td>{}",
            escaped(router.id()),
            escaped(realm.name()),
            nodes.join("<br>"),
            counts.registrations_elsewhere,
            counts.calls_across
        );
    }
    match rows.is_empty() {
        true => rows,
        false => format!(
            "<h2>Other nodes</h2><div><table><tr><th>router<th>realm<th>state<th>nodes<th>their registrations<th>open calls{rows}</table></div>"
        ),
    }
}

/// The vhosts of routers with AMQP, and their alarms.
fn amqp_status(routers: &[Arc<Registry>]) -> String {
    let mut rows = String::new();
    for (router, broker) in brokers(routers) {
        for vhost in broker.vhosts() {
            let vhost = vhost.status();
            let _ = write!(
                rows,
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
                escaped(router),
                escaped(&vhost.name),
                vhost.connections,
                vhost.queues,
                vhost.consumers,
                vhost.messages_ready,
                vhost.messages_unacked
            );
        }
    }
    let replicated = amqp::replicated_page(brokers(routers));
    if rows.is_empty() && replicated.is_empty() {
        return rows;
    }
    let mut alarms = String::new();
    for (router, alarm) in amqp::alarms(brokers(routers)) {
        let (router, alarm) = (escaped(router), escaped(&alarm.to_string()));
        let _ = write!(alarms, "<p><strong>Router '{router}': {alarm}</strong>");
    }
    format!(
        "<h2>AMQP</h2>{alarms}<div><table><tr><th>router<th>vhost<th>connections<th>queues\
         <th>consumers<th>ready<th>unacknowledged{rows}</table></div>{replicated}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        for (s, expected) in [
            (0, "0 s"),
            (61, "1 min 1 s"),
            (3_600, "1 h 0 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(Duration::from_secs(s)), expected);
        }
    }
}
