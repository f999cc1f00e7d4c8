//! Rewrites addresses and cookies in another server's answer, as its clients may know that server by another name and
//! path. Values that cannot be rewritten stay unchanged.

use http::header::{HeaderMap, HeaderValue, LOCATION, SET_COOKIE};

/// The names of one server: its own, and those for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names<'n> {
    /// The requested authority: `host`, or `host:port`.
    pub host: &'n str,
    /// The server's path for its clients' path; empty for `/`.
    pub path: &'n str,
    /// The path by which its clients reach it; empty for `/`.
    pub base: &'n str,
}

/// Rewrites `Location` and the scope of cookies for the server's clients.
pub fn rewrite(headers: &mut HeaderMap, names: Names<'_>) {
    rewrite_each(headers, &LOCATION, |value| location(value, names));
    rewrite_each(headers, &SET_COOKIE, |value| cookie(value, names));
}

fn rewrite_each(
    headers: &mut HeaderMap,
    name: &http::HeaderName,
    rewrite: impl Fn(&str) -> Option<String>,
) {
    let http::header::Entry::Occupied(mut values) = headers.entry(name) else {
        return;
    };
    for value in values.iter_mut() {
        let rewritten = value.to_str().ok().and_then(&rewrite);
        if let Some(rewritten) = rewritten.and_then(|text| HeaderValue::try_from(text).ok()) {
            *value = rewritten;
        }
    }
}

/// An address of that server as a path, which needs neither host nor scheme.
fn location(address: &str, names: Names<'_>) -> Option<String> {
    let path = match address.split_once("//") {
        Some((scheme, rest)) if scheme.is_empty() || scheme.eq_ignore_ascii_case("http:") => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let authority = authority.strip_suffix(":80").unwrap_or(authority);
            if !authority.eq_ignore_ascii_case(names.host) {
                return None;
            }
            path
        }
        _ if address.starts_with('/') => address,
        _ => return None,
    };
    moved(path, names)
}

/// Replaces a cookie's `Domain` and `Path`, if they are the server's own.
fn cookie(cookie: &str, names: Names<'_>) -> Option<String> {
    // This prefix allows no other values (RFC 6265bis section 4.1.3.2).
    if cookie.trim_start().starts_with("__Host-") {
        return None;
    }
    let host = names
        .host
        .rsplit_once(':')
        .filter(|(_, port)| !port.ends_with(']'));
    let host = host.map_or(names.host, |(host, _)| host);
    let mut parts = cookie.split(';');
    let mut rewritten = parts.next()?.to_owned();
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (name, value) = (name.trim(), value.trim());
        if name.eq_ignore_ascii_case("domain") {
            let domain = value.strip_prefix('.').unwrap_or(value);
            if domain.eq_ignore_ascii_case(host) {
                // Without a domain, the cookie is for the requested host.
                continue;
            }
        } else if name.eq_ignore_ascii_case("path")
            && let Some(path) = moved(value, names)
        {
            rewritten.push_str("; Path=");
            // `/app/` would not match `/app`.
            let is_all = path.len() > 1 && path.trim_end_matches('/') == names.base;
            rewritten.push_str(if is_all { names.base } else { &path });
            continue;
        }
        rewritten.push(';');
        rewritten.push_str(part);
    }
    Some(rewritten)
}

/// The clients' path for a server's path; `None` if they cannot reach it.
fn moved(path: &str, names: Names<'_>) -> Option<String> {
    let rest = path.strip_prefix(names.path.trim_end_matches('/'))?;
    if !(rest.is_empty() || rest.starts_with(['/', '?', '#'])) {
        return None;
    }
    let mut moved = names.base.to_owned();
    if names.base.is_empty() && !rest.starts_with('/') {
        moved.push('/');
    }
    moved.push_str(rest);
    // Browsers take two of these for the beginning of a host.
    let leads_elsewhere = |second: &u8| matches!(second, b'/' | b'\\' | 0..=b' ');
    (!moved.as_bytes().get(1).is_some_and(leads_elsewhere)).then_some(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INNER: Names<'_> = Names {
        host: "back:81",
        path: "/inner/",
        base: "/app",
    };
    const ROOT: Names<'_> = Names {
        host: "back",
        path: "",
        base: "/app",
    };
    const OUTSIDE: Names<'_> = Names {
        host: "[::1]:81",
        path: "/inner",
        base: "",
    };

    fn check(name: http::HeaderName, rows: &[(Names<'_>, &str, &str)]) {
        for (names, given, expected) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(&name, HeaderValue::try_from(*given).expect("a value"));
            rewrite(&mut headers, *names);
            assert_eq!(headers[&name], *expected, "{given} {names:?}");
        }
    }

    #[test]
    fn locations() {
        check(
            LOCATION,
            &[
                (INNER, "http://back:81/inner/x?q#f", "/app/x?q#f"),
                (INNER, "HTTP://BACK:81/inner", "/app"),
                (INNER, "//back:81/inner/", "/app/"),
                (INNER, "/inner?q", "/app?q"),
                // Elsewhere, or beyond the clients' reach.
                (INNER, "http://back:82/inner/x", "http://back:82/inner/x"),
                (INNER, "http://back/inner/x", "http://back/inner/x"),
                (INNER, "https://back:81/inner/x", "https://back:81/inner/x"),
                (INNER, "/innermost", "/innermost"),
                (INNER, "/other", "/other"),
                (INNER, "x/y", "x/y"),
                (
                    INNER,
                    "?next=http://back:81/inner",
                    "?next=http://back:81/inner",
                ),
                (ROOT, "http://back/", "/app/"),
                (ROOT, "http://back:80", "/app"),
                (ROOT, "http://back@evil/", "http://back@evil/"),
                (ROOT, "/x", "/app/x"),
                (ROOT, "//evil/x", "//evil/x"),
                (OUTSIDE, "http://[::1]:81/inner", "/"),
                (OUTSIDE, "/inner/x", "/x"),
                (OUTSIDE, "/inner?q", "/?q"),
                // Paths that would lead to another host.
                (OUTSIDE, "/inner//evil/x", "/inner//evil/x"),
                (OUTSIDE, "/inner/\\evil/x", "/inner/\\evil/x"),
                (OUTSIDE, "/inner/\t/evil/x", "/inner/\t/evil/x"),
            ],
        );
    }

    #[test]
    fn cookies() {
        check(
            SET_COOKIE,
            &[
                (INNER, "a=1", "a=1"),
                (INNER, "a=1; Path=/inner; Secure", "a=1; Path=/app; Secure"),
                (INNER, "a=1; path=/inner/", "a=1; Path=/app"),
                (INNER, "a=1; Path=/inner/x/", "a=1; Path=/app/x/"),
                (INNER, "a=1; Path=/", "a=1; Path=/"),
                (INNER, "a=1;Domain=.Back;HttpOnly", "a=1;HttpOnly"),
                (INNER, "a=1; Domain=other", "a=1; Domain=other"),
                (ROOT, "a=1; Path=/", "a=1; Path=/app"),
                (OUTSIDE, "a=1; Path=/inner", "a=1; Path=/"),
                (OUTSIDE, "a=1; Domain=[::1]", "a=1"),
                (
                    ROOT,
                    "__Host-a=1; Path=/; Secure",
                    "__Host-a=1; Path=/; Secure",
                ),
                (ROOT, "path=/; Max-Age=1", "path=/; Max-Age=1"),
            ],
        );
    }

    #[test]
    fn each_of_several_is_rewritten() {
        let mut headers = HeaderMap::new();
        for cookie in ["a=1; Path=/inner", "b=2; Path=/inner/b"] {
            headers.append(SET_COOKIE, HeaderValue::from_static(cookie));
        }
        rewrite(&mut headers, INNER);
        let cookies: Vec<_> = headers.get_all(SET_COOKIE).iter().collect();
        assert_eq!(cookies, ["a=1; Path=/app", "b=2; Path=/app/b"]);
    }
}
