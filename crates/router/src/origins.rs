//! Which pages of browsers may come in.
//!
//! A browser lets any page connect to any address, this machine's own among them, and says in `Origin`
//! where the page is from. A page whose own name is led to this machine (DNS rebinding) has the right
//! origin, for the browser believes to have reached its site: it shows in `Host`. A client that is no browser says
//! no origin, and may say any host that is allowed.

use std::net::{Ipv4Addr, Ipv6Addr};

use crosstie_config::{Allowed, WebSocketOptions};

/// Whether pages of this origin may open a WebSocket; browsers alone name one.
pub(crate) fn origin_may_connect(
    origin: Option<&str>,
    options: &WebSocketOptions,
) -> Result<(), String> {
    let Some(origin) = origin else {
        return Ok(());
    };
    let (may, key) = match origin {
        "null" => (options.allow_null_origin, "allow_null_origin"),
        _ => (
            origin_is_allowed(origin, &options.allowed_origins),
            "allowed_origins",
        ),
    };
    if may {
        return Ok(());
    }
    let ours = match options.allowed_origins {
        Allowed::Loopback => ", where none are listed only pages of this machine may connect",
        _ => "",
    };
    Err(format!(
        "origin {origin} is not allowed{ours}: \"{key}\" in the WebSocket's options lets others in"
    ))
}

/// Whether a request that came by this name, if it said one, may be answered.
pub(crate) fn host_may_enter(host: Option<&str>, allowed: &Allowed) -> Result<(), String> {
    let Some(host) = host else {
        return Ok(());
    };
    let name = without_port(host);
    let may = match allowed {
        Allowed::Loopback => is_loopback(name),
        Allowed::Matching(patterns) => any_matches(patterns, name),
        _ => true,
    };
    match may {
        true => Ok(()),
        false => Err(format!(
            "host {host} is not a name of this listener: \"allowed_hosts\" of the transport, or \
             \"allowed_origins\" of a WebSocket on it, lets others in"
        )),
    }
}

/// Whether a page of this origin may ask for ours. It could not read them; it is not to ask either
/// where only this machine does.
pub(crate) fn page_may_ask(origin: Option<&str>, allowed_hosts: &Allowed) -> Result<(), String> {
    match (origin, allowed_hosts) {
        (Some(origin), Allowed::Loopback) if !origin_is_allowed(origin, allowed_hosts) => {
            Err(format!(
                "origin {origin} is not of this machine: \"allowed_hosts\" of the listener lets others in"
            ))
        }
        _ => Ok(()),
    }
}

fn origin_is_allowed(origin: &str, allowed: &Allowed) -> bool {
    match allowed {
        Allowed::Loopback => origin
            .split_once("://")
            .is_some_and(|(_, host)| is_loopback(without_port(host))),
        Allowed::Matching(patterns) => any_matches(patterns, origin),
        _ => true,
    }
}

/// Whether what a page says is said for whoever has the browser: a page of another site may open a WebSocket too, and
/// the browser sends the cookies along.
pub(crate) fn may_use_cookies(origin: Option<&str>, host: &str, allowed: &Allowed) -> bool {
    let Some(origin) = origin else {
        return true;
    };
    let of_origin = origin.split_once("://").map(|(_, host)| without_port(host));
    if of_origin.is_some_and(|name| name.eq_ignore_ascii_case(without_port(host))) {
        return true;
    }
    match allowed {
        Allowed::Matching(patterns) => patterns.iter().all(|pattern| pattern != "*"),
        Allowed::Loopback => true,
        _ => false,
    }
}

fn any_matches(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| matches_star(pattern, text))
}

/// A host as URLs and `Host` name it, less its port, and less the brackets of an IPv6 address.
fn without_port(host: &str) -> &str {
    if let Some(bracketed) = host.strip_prefix('[') {
        // What is not closed stays as it is, and is no address.
        return bracketed.split_once(']').map_or(host, |(name, rest)| {
            match rest.is_empty() || is_port(rest) {
                true => name,
                false => host,
            }
        });
    }
    match host.rfind(':') {
        Some(at) if is_port(&host[at..]) => &host[..at],
        _ => host,
    }
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':')
        .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Names that lead here by whatever resolver: none of them can be anybody's page.
fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<Ipv4Addr>()
            .is_ok_and(|address| address.is_loopback())
        || name
            .parse::<Ipv6Addr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Whether `text` matches `pattern`, in which `*` stands for any run of characters.
fn matches_star(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_run() {
        for (pattern, text, expected) in [
            ("*", "http://a", true),
            ("http://a", "http://a", true),
            ("http://a", "http://ab", false),
            ("http://*.example.org", "http://x.example.org", true),
            ("http://*.example.org", "http://example.org", false),
            ("*://*:80", "http://a:80", true),
            ("*://*:80", "http://a:8080", false),
            ("", "", true),
        ] {
            assert_eq!(matches_star(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn pages_of_this_machine() {
        for (origin, expected) in [
            ("http://localhost", true),
            ("https://LocalHost:8443", true),
            ("http://127.0.0.1:8080", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:80", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("https://evil.example", false),
            ("http://localhost.evil.example", false),
            ("http://127.0.0.1.evil.example", false),
            ("http://127.0.0.1:80.evil.example", false),
            ("http://evil.example:127", false),
            ("http://evil.example/http://localhost", false),
            ("http://localhost@evil.example", false),
            ("http://10.0.0.1", false),
            ("http://[::2]", false),
            ("http://[::1].evil.example", false),
            ("http://[::1", false),
            ("http://127.1", false),
            ("http://0.0.0.0", false),
            ("localhost", false),
            ("null", false),
            ("", false),
        ] {
            let found = origin_is_allowed(origin, &Allowed::Loopback);
            assert_eq!(found, expected, "{origin}");
        }
    }

    #[test]
    fn hosts_by_name() {
        let listed = Allowed::Matching(vec!["*.example".to_owned(), "10.0.0.1".to_owned()]);
        for (host, loopback, matching) in [
            ("localhost:8080", true, false),
            ("127.0.0.1", true, false),
            ("[::1]:8080", true, false),
            ("a.example:80", false, true),
            ("10.0.0.1:80", false, true),
            ("evil.test", false, false),
            ("", false, false),
        ] {
            let may = |allowed| host_may_enter(Some(host), allowed).is_ok();
            assert_eq!(may(&Allowed::Loopback), loopback, "{host}");
            assert_eq!(may(&listed), matching, "{host}");
            assert!(may(&Allowed::All), "{host}");
        }
        assert!(host_may_enter(None, &Allowed::Loopback).is_ok());
    }
}
