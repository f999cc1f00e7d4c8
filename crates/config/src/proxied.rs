//! Crossbar.io's workers of type `proxy`: their transports move to the router worker that they lead to, in the tree and
//! before all checks.
//!
//! In Crossbar.io one thread serves a realm, and proxies take connections off that thread. Here the router serves a
//! realm on all cores. Transports that only proxies use are dropped.

use crate::problem::Problem;
use crate::tree::{Entry, Node, Span, Value, quoted};

/// The authentication method with which a router admits only proxies.
const PROXIES_OWN: [&str; 2] = ["anonymous-proxy", "cryptosign-proxy"];

/// Types of transports that carry sessions.
const JOINABLE: [&str; 4] = ["rawsocket", "universal", "web", "websocket"];

const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "::1"];

/// Moves the transports of proxies to routers. A proxy of another node's router is an error.
pub(crate) fn give(root: &mut Node, problems: &mut Vec<Problem>) {
    let Some(Value::List(workers)) = value_mut(root, "workers") else {
        return;
    };
    let is_proxy = |worker: &Node| text(worker, "type") == Some("proxy");
    if !workers.iter().any(is_proxy) {
        return;
    }
    let (proxies, mut others): (Vec<Node>, Vec<Node>) =
        std::mem::take(workers).into_iter().partition(is_proxy);
    let mut led_to = Vec::new();
    for proxy in proxies {
        match leads_to(&proxy, &others) {
            Ok(index) => {
                hand_over(proxy, &mut others[index], problems);
                led_to.push(index);
            }
            Err((at, message)) => problems.push(Problem::error(at, message)),
        }
    }
    led_to.sort_unstable();
    led_to.dedup();
    for index in led_to {
        close_doors(&mut others[index], problems);
    }
    *workers = others;
}

/// The index of the router that all routes of a proxy lead to.
fn leads_to(proxy: &Node, workers: &[Node]) -> Result<usize, (Span, String)> {
    let routes = value(proxy, "routes").map_or(&[][..], entries);
    let mut found: Option<usize> = None;
    for route in routes.iter().flat_map(|realm| entries(&realm.node.value)) {
        for name in names(&route.node) {
            let at = route.node.span;
            let index = router_behind(proxy, name, workers).ok_or_else(|| {
                let name = quoted(name);
                let text = format!(
                    "a route of a proxy leads to connection {name}, and no router worker of this node listens there: \
                     clients connect to a router of another machine themselves, or by a `websocket-reverseproxy`"
                );
                (at, text)
            })?;
            if found.is_some_and(|found| found != index) {
                let text = "the routes of a proxy lead to several router workers: a transport is one router's, which \
                            may have all of the realms and serves each on all cores";
                return Err((at, text.to_owned()));
            }
            found = Some(index);
        }
    }
    found.ok_or_else(|| {
        let text =
            "a proxy without routes leads nowhere; a router worker has transports of its own";
        (proxy.span, text.to_owned())
    })
}

/// The connections of a route: one, or several alternatives.
fn names(route: &Node) -> Vec<&str> {
    match &route.value {
        Value::Text(name) => vec![name.as_str()],
        Value::List(names) => names.iter().filter_map(as_text).collect(),
        _ => Vec::new(),
    }
}

fn router_behind(proxy: &Node, connection: &str, workers: &[Node]) -> Option<usize> {
    let connections = value(proxy, "connections").map_or(&[][..], entries);
    let connection = connections.iter().find(|entry| entry.key == connection)?;
    let transport = &connection.node.entry("transport")?.node;
    let endpoint = &transport.entry("endpoint")?.node;
    workers.iter().position(|worker| {
        let transports = value(worker, "transports").map_or(&[][..], items);
        text(worker, "type") == Some("router")
            && transports
                .iter()
                .filter_map(|transport| transport.entry("endpoint"))
                .any(|entry| is_one_place(endpoint, &entry.node))
    })
}

/// Whether a connection to one endpoint reaches the other.
fn is_one_place(connecting: &Node, listening: &Node) -> bool {
    let same = |key| {
        let there = value(connecting, key);
        there.is_some() && there == value(listening, key)
    };
    match text(connecting, "type") {
        Some("unix") => same("path"),
        Some("tcp") => {
            same("port")
                && text(connecting, "host").is_none_or(|host| LOOPBACK.contains(&host))
                && text(listening, "type") == Some("tcp")
        }
        _ => false,
    }
}

/// Moves a proxy's transports and Python path.
fn hand_over(mut proxy: Node, router: &mut Node, problems: &mut Vec<Problem>) {
    let at = proxy
        .entry("type")
        .map_or(proxy.span, |entry| entry.node.span);
    let named = text(router, "id").map_or_else(String::new, |id| format!(" {}", quoted(id)));
    let message = format!(
        "a proxy's transports are taken to be those of the router worker{named}, which serves its realms on all cores: \
         the realms and roles of `routes` may join by them, and no others"
    );
    problems.push(Problem::warning(at, message));
    if let Some(options) = proxy.entry("options") {
        for option in entries(&options.node.value) {
            if option.key != "pythonpath" {
                let key = quoted(&option.key);
                let message =
                    format!("{key} in a proxy's options has no effect: the router's count");
                problems.push(Problem::warning(option.key_span, message));
            }
        }
    }
    let modules = value_mut(&mut proxy, "options")
        .and_then(|options| take_items(options, "pythonpath"))
        .unwrap_or_default();
    if !modules.is_empty() {
        let options = made(router, "options", at, Value::Object(Vec::new()));
        let list =
            options.and_then(|options| made(options, "pythonpath", at, Value::List(Vec::new())));
        add_new(list, modules);
    }
    let mut transports = take_items(&mut proxy.value, "transports").unwrap_or_default();
    let routes = value(&proxy, "routes").map_or(&[][..], entries);
    for transport in &mut transports {
        if text(transport, "type").is_some_and(|kind| JOINABLE.contains(&kind)) {
            made(transport, "admits", at, admits(routes, at));
        }
    }
    let list = made(router, "transports", at, Value::List(Vec::new()));
    add_new(list, transports);
}

/// The roles of each realm that a proxy has a route for: sessions of other roles cannot join through it.
fn admits(routes: &[Entry], at: Span) -> Value {
    let node = |value| Node { span: at, value };
    let roles = |route: &Entry| {
        let roles = entries(&route.node.value).iter();
        let roles = roles.map(|role| node(Value::Text(role.key.clone())));
        node(Value::List(roles.collect()))
    };
    let realms = routes.iter().map(|route| Entry {
        key: route.key.clone(),
        key_span: at,
        node: roles(route),
    });
    Value::Object(realms.collect())
}

/// Removes the transports that only proxies use.
fn close_doors(router: &mut Node, problems: &mut Vec<Problem>) {
    let Some(Value::List(transports)) = value_mut(router, "transports") else {
        return;
    };
    transports.retain_mut(|transport| {
        let Some(Value::Object(methods)) = value_mut(transport, "auth") else {
            return true;
        };
        let before = methods.len();
        methods.retain(|method| {
            let is_proxies = PROXIES_OWN.contains(&method.key.as_str());
            if is_proxies {
                let key = quoted(&method.key);
                let message =
                    format!("{key} is left out: there are no proxies that would come by it");
                problems.push(Problem::warning(method.key_span, message));
            }
            !is_proxies
        });
        // Without `auth` the transport would admit every session, where it had admitted only proxies.
        before == methods.len() || !methods.is_empty()
    });
}

/// Adds missing items only: proxies that share a port repeat each other.
fn add_new(list: Option<&mut Node>, more: Vec<Node>) {
    let Some(Value::List(list)) = list.map(|list| &mut list.value) else {
        return;
    };
    for node in more {
        if !list.iter().any(|known| known.to_json() == node.to_json()) {
            list.push(node);
        }
    }
}

fn value<'n>(node: &'n Node, key: &str) -> Option<&'n Value> {
    node.entry(key).map(|entry| &entry.node.value)
}

fn value_mut<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Value> {
    entry_mut(&mut node.value, key).map(|entry| &mut entry.node.value)
}

fn entry_mut<'n>(value: &'n mut Value, key: &str) -> Option<&'n mut Entry> {
    match value {
        Value::Object(entries) => entries.iter_mut().find(|entry| entry.key == key),
        _ => None,
    }
}

fn as_text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    }
}

fn text<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    as_text(&node.entry(key)?.node)
}

fn entries(value: &Value) -> &[Entry] {
    match value {
        Value::Object(entries) => entries,
        _ => &[],
    }
}

fn items(value: &Value) -> &[Node] {
    match value {
        Value::List(items) => items,
        _ => &[],
    }
}

fn take_items(value: &mut Value, key: &str) -> Option<Vec<Node>> {
    match &mut entry_mut(value, key)?.node.value {
        Value::List(items) => Some(std::mem::take(items)),
        _ => None,
    }
}

/// The entry of an object, created empty if missing.
fn made<'n>(node: &'n mut Node, key: &str, at: Span, empty: Value) -> Option<&'n mut Node> {
    let Value::Object(entries) = &mut node.value else {
        return None;
    };
    let index = entries.iter().position(|entry| entry.key == key);
    let index = index.unwrap_or_else(|| {
        let (key, key_span) = (key.to_owned(), at);
        let node = Node::new(at, empty);
        entries.push(Entry::new(key, key_span, node));
        entries.len() - 1
    });
    Some(&mut entries[index].node)
}
