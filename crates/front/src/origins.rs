//! Checks of browsers' origins and hosts.
//!
//! A browser lets any page connect to any address, including this machine's, and sends the page's origin in `Origin`.
//! If the page's own name resolves to this machine (DNS rebinding), its origin looks right, as the browser takes this
//! server for the page's site: only `Host` reveals it. Other clients send no origin, and any allowed host.

use std::net::{Ipv4Addr, Ipv6Addr};

use crosstie_config::{Allowed, WebSocketOptions};

/// Whether pages of this origin may open a WebSocket at this host; only browsers send an origin.
pub fn origin_may_connect(
    origin: Option<&str>,
    host: &str,
    options: &WebSocketOptions,
) -> Result<(), String> {
    let Some(origin) = origin else {
        return Ok(());
    };
    let may = match origin {
        "null" => options.allow_null_origin,
        _ if options.allowed_origins == Allowed::SameHost => is_of_host(origin, host),
        _ => origin_is_allowed(origin, &options.allowed_origins),
    };
    if may {
        return Ok(());
    }
    let advice = match (origin, &options.allowed_origins) {
        ("null", _) => "set \"allow_null_origin\": true".to_owned(),
        (_, Allowed::SameHost) => {
            return Err(format!(
                "origin {origin} is not of {host}: only pages of this listener may connect; a proxy in front of it \
                 passes on the Host that the browser sent"
            ));
        }
        (_, Allowed::Loopback) => format!(
            "without \"allowed_origins\" only pages of this machine may connect; set \"allowed_origins\": [\"{origin}\"]"
        ),
        _ => format!("add \"{origin}\" to \"allowed_origins\""),
    };
    Err(format!(
        "origin {origin} is not allowed: {advice} in the WebSocket's options"
    ))
}

/// Whether a request with this Host, if any, may be answered.
pub fn host_may_enter(host: Option<&str>, allowed: &Allowed) -> Result<(), String> {
    let Some(host) = host else {
        return Ok(());
    };
    let (name, port) = split_port(host);
    let advice = match allowed {
        Allowed::Loopback if is_loopback(name) => return Ok(()),
        Allowed::Loopback => format!(
            "the listener is for this machine; behind a proxy, set \"allowed_hosts\": [\"{name}\"] of the transport, \
             or \"allowed_origins\" in a WebSocket's options"
        ),
        Allowed::Matching(patterns) if host_matches(patterns, name, port) => return Ok(()),
        Allowed::Matching(_) => format!("add \"{name}\" to \"allowed_hosts\" of the transport"),
        _ => return Ok(()),
    };
    Err(format!(
        "host {host} is not a name of this listener: {advice}"
    ))
}

/// Whether a page of this origin may request the router's pages. It could not read them; on a listener for this machine
/// it may not request them either.
pub fn page_may_ask(origin: Option<&str>, allowed_hosts: &Allowed) -> Result<(), String> {
    match (origin, allowed_hosts) {
        (Some(origin), Allowed::Loopback) if !origin_is_allowed(origin, allowed_hosts) => {
            let name = origin
                .split_once("://")
                .map_or(origin, |(_, host)| split_port(host).0);
            Err(format!(
                "origin {origin} is not of this machine: set \"allowed_hosts\": [\"{name}\"] of the listener"
            ))
        }
        _ => Ok(()),
    }
}

/// Whether the origin has that host and port. A scheme's default port may be left out on either side.
fn is_of_host(origin: &str, host: &str) -> bool {
    let Some((scheme, _)) = origin.split_once("://") else {
        return false;
    };
    let asked = forms(&format!("{scheme}://{host}"));
    forms(origin).iter().any(|form| asked.contains(form))
}

fn origin_is_allowed(origin: &str, allowed: &Allowed) -> bool {
    match allowed {
        Allowed::Loopback => origin
            .split_once("://")
            .is_some_and(|(_, host)| is_loopback(split_port(host).0)),
        Allowed::Matching(patterns) => {
            let forms = forms(origin);
            patterns.iter().any(|pattern| {
                let pattern = pattern.to_ascii_lowercase();
                let pattern = pattern.strip_suffix('/').unwrap_or(&pattern);
                forms.iter().any(|form| matches_star(pattern, form))
            })
        }
        _ => true,
    }
}

/// An origin without its scheme's default port and with it: patterns may be written either way, and browsers omit the
/// port (RFC 6454 section 6.2).
fn forms(origin: &str) -> [String; 2] {
    let origin = origin.to_ascii_lowercase();
    let Some((scheme, authority)) = origin.split_once("://") else {
        return [origin.clone(), origin];
    };
    let default = match scheme {
        "http" | "ws" => "80",
        "https" | "wss" => "443",
        _ => return [origin.clone(), origin],
    };
    match authority.rfind(':').filter(|at| is_port(&authority[*at..])) {
        None => [origin.clone(), format!("{origin}:{default}")],
        Some(at) if &authority[at + 1..] == default => {
            [format!("{scheme}://{}", &authority[..at]), origin]
        }
        Some(_) => [origin.clone(), origin],
    }
}

/// A pattern without a port matches any port. A request without one came to its scheme's default port.
fn host_matches(patterns: &[String], name: &str, port: Option<&str>) -> bool {
    let name = name.to_ascii_lowercase();
    let said: Vec<_> = port.map_or_else(|| vec!["80", "443"], |port| vec![port]);
    let with_port = said.iter().map(|port| format!("{name}:{port}"));
    let forms: Vec<_> = std::iter::once(name.clone()).chain(with_port).collect();
    patterns.iter().any(|pattern| {
        let pattern = pattern.to_ascii_lowercase();
        forms.iter().any(|form| matches_star(&pattern, form))
    })
}

/// Whether credentials in a request stand for the browser's user: a page of another site may open a WebSocket too, and
/// the browser sends the cookies along.
pub fn may_use_cookies(origin: Option<&str>, host: &str, allowed: &Allowed) -> bool {
    let Some(origin) = origin else {
        return true;
    };
    let of_origin = origin.split_once("://").map(|(_, host)| split_port(host).0);
    if of_origin.is_some_and(|name| name.eq_ignore_ascii_case(split_port(host).0)) {
        return true;
    }
    match allowed {
        Allowed::Matching(patterns) => patterns.iter().all(|pattern| pattern != "*"),
        Allowed::Loopback => true,
        _ => false,
    }
}

/// Splits a host as in URLs and `Host`, without the brackets of an IPv6 address, from its port.
fn split_port(host: &str) -> (&str, Option<&str>) {
    if let Some(bracketed) = host.strip_prefix('[') {
        // An unclosed bracket is left as it is, and matches no address.
        return match bracketed.split_once(']') {
            Some((name, "")) => (name, None),
            Some((name, rest)) if is_port(rest) => (name, Some(&rest[1..])),
            _ => (host, None),
        };
    }
    match host.rfind(':') {
        Some(at) if is_port(&host[at..]) => (&host[..at], Some(&host[at + 1..])),
        _ => (host, None),
    }
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':')
        .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Names that always resolve to this machine: none can be another site's (RFC 6761 section 6.3).
fn is_loopback(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.eq_ignore_ascii_case("localhost")
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
            ("https://tauri.localhost", true),
            ("http://a.b.LOCALHOST:5173", true),
            ("http://evillocalhost", false),
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
    fn pages_of_the_same_server() {
        let config = crosstie_config::Config::embedded_default();
        let console = config.console.expect("the embedded default has a console");
        let options = &console.kind.websockets()[0].options;
        for (origin, host, expected) in [
            ("http://127.0.0.1:8090", "127.0.0.1:8090", true),
            ("https://console.example.com", "console.example.com", true),
            (
                "https://console.example.com",
                "console.example.com:443",
                true,
            ),
            ("http://Localhost:8090", "localhost:8090", true),
            ("http://127.0.0.1:8080", "127.0.0.1:8090", false),
            ("http://localhost:8090", "127.0.0.1:8090", false),
            ("http://evil.example:8090", "127.0.0.1:8090", false),
            (
                "https://console.example.com",
                "console.example.com:80",
                false,
            ),
            ("null", "127.0.0.1:8090", false),
            ("", "", false),
        ] {
            let may = origin_may_connect(Some(origin), host, options).is_ok();
            assert_eq!(may, expected, "{origin} at {host}");
        }
    }

    #[test]
    fn default_ports_are_filled_in_on_both_sides() {
        for (pattern, origin, expected) in [
            (
                "https://app.example.com:443",
                "https://app.example.com",
                true,
            ),
            (
                "https://app.example.com",
                "https://app.example.com:443",
                true,
            ),
            ("http://app.example.com:80", "http://app.example.com", true),
            ("HTTPS://App.Example.com/", "https://app.example.com", true),
            ("https://*.example.com:443", "https://a.example.com", true),
            ("https://*.example.com:*", "https://a.example.com", true),
            ("*://*:80", "http://a", true),
            ("*:443", "https://a", true),
            ("http://[::1]:80", "http://[::1]", true),
            ("capacitor://localhost", "capacitor://localhost", true),
            (
                "https://app.example.com:443",
                "http://app.example.com",
                false,
            ),
            (
                "https://app.example.com:443",
                "https://app.example.com:8443",
                false,
            ),
            (
                "https://app.example.com",
                "https://app.example.com:8443",
                false,
            ),
            (
                "http://app.example.com:443",
                "https://app.example.com",
                false,
            ),
            (
                "https://app.example.com:80",
                "https://app.example.com",
                false,
            ),
            ("http://[::1]:80", "http://[::1", false),
        ] {
            let allowed = Allowed::Matching(vec![pattern.to_owned()]);
            let found = origin_is_allowed(origin, &allowed);
            assert_eq!(found, expected, "{pattern} {origin}");
        }
        for (pattern, host, expected) in [
            ("app.example.com:443", "app.example.com", true),
            ("app.example.com:80", "app.example.com", true),
            ("App.example.com", "app.example.com:8080", true),
            ("app.example.com:8080", "app.example.com:8080", true),
            ("::1", "[::1]:8080", true),
            ("app.example.com:8080", "app.example.com", false),
            ("app.example.com:443", "app.example.com:8080", false),
        ] {
            let allowed = Allowed::Matching(vec![pattern.to_owned()]);
            let found = host_may_enter(Some(host), &allowed).is_ok();
            assert_eq!(found, expected, "{pattern} {host}");
        }
    }

    #[test]
    fn a_refusal_gives_the_value_to_set() {
        let refused = host_may_enter(Some("app.example.com:8080"), &Allowed::Loopback);
        let text = refused.expect_err("not this machine");
        assert!(
            text.contains(r#""allowed_hosts": ["app.example.com"]"#),
            "{text}"
        );
        let refused = page_may_ask(Some("https://app.example.com"), &Allowed::Loopback);
        let text = refused.expect_err("not this machine");
        assert!(
            text.contains(r#""allowed_hosts": ["app.example.com"]"#),
            "{text}"
        );
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
