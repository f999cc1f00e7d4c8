//! The target of an HTTP request that a call describes: a server named by the operator, and no other.

use std::fmt;

use http::Uri;

/// Why the target is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTarget {
    /// Not an HTTP URL.
    Malformed,
    /// The server is not one of those named.
    OtherServer(String),
}

impl fmt::Display for NoTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("the url is none of HTTP"),
            Self::OtherServer(server) => {
                write!(
                    f,
                    "the url leads to {server}, which is not the server of the baseurl"
                )
            }
        }
    }
}

/// Resolves `url` against `base` (RFC 3986 section 5.2), and appends `params` to its query. The server must be that of
/// `base`, or one of `servers`.
pub fn target<'p>(
    base: &str,
    servers: &[String],
    url: &str,
    params: impl Iterator<Item = (&'p str, &'p str)>,
) -> Result<Uri, NoTarget> {
    // Rejects characters that servers or proxies may interpret differently.
    if url
        .bytes()
        .any(|byte| !byte.is_ascii_graphic() || byte == b'\\')
    {
        return Err(NoTarget::Malformed);
    }
    let url = url.split('#').next().unwrap_or_default();
    let home = parsed(base)?;
    let origin = origin(&home)?;
    let whole = if has_scheme(url) {
        url.to_owned()
    } else if url.starts_with("//") {
        format!("{}:{url}", home.scheme_str().unwrap_or("http"))
    } else if url.starts_with('/') {
        format!("{origin}{url}")
    } else if url.is_empty() {
        base.split('#').next().unwrap_or_default().to_owned()
    } else if url.starts_with('?') {
        format!("{origin}{}{url}", home.path())
    } else {
        let folder = home.path().rfind('/').map_or("/", |at| &home.path()[..=at]);
        format!("{origin}{folder}{url}")
    };
    let there = parsed(&whole)?;
    let server = self::origin(&there)?;
    let is_named =
        |named: &String| parsed(named).and_then(|uri| self::origin(&uri)).as_ref() == Ok(&server);
    if server != origin && !servers.iter().any(is_named) {
        return Err(NoTarget::OtherServer(server));
    }
    let mut whole = server;
    whole.push_str(&without_dots(there.path()));
    let mut separator = '?';
    if let Some(query) = there.query() {
        whole.push('?');
        whole.push_str(query);
        separator = '&';
    }
    for (name, value) in params {
        whole.push(separator);
        escape(name, &mut whole);
        whole.push('=');
        escape(value, &mut whole);
        separator = '&';
    }
    parsed(&whole)
}

fn parsed(url: &str) -> Result<Uri, NoTarget> {
    url.parse().map_err(|_| NoTarget::Malformed)
}

/// The server of a URL in canonical form.
fn origin(uri: &Uri) -> Result<String, NoTarget> {
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(NoTarget::Malformed);
    };
    let port = match (scheme, authority.port_u16()) {
        ("http", None) => 80,
        ("https", None) => 443,
        ("http" | "https", Some(port)) => port,
        _ => return Err(NoTarget::Malformed),
    };
    let host = authority.host().to_ascii_lowercase();
    // User information is sent to no server, and hides the actual host.
    if authority.as_str().contains('@') || host.is_empty() {
        return Err(NoTarget::Malformed);
    }
    Ok(format!("{scheme}://{host}:{port}"))
}

fn has_scheme(url: &str) -> bool {
    let Some((scheme, _)) = url.split_once(':') else {
        return false;
    };
    let is_letter = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    is_letter
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// Removes `.` and `..` from a path (RFC 3986 section 5.2.4).
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut is_folder = false;
    for part in path.split('/').skip(1) {
        is_folder = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut whole = String::with_capacity(path.len() + 1);
    for part in &parts {
        whole.push('/');
        whole.push_str(part);
    }
    if whole.is_empty() || is_folder {
        whole.push('/');
    }
    whole
}

fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                let digit = |nibble: u8| char::from(b"0123456789ABCDEF"[usize::from(nibble)]);
                out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "http://Host.example/a/b?c#d";

    #[test]
    fn targets_of_calls() {
        const HERE: &str = "http://host.example:80";
        for (url, expected) in [
            ("", "/a/b?c"),
            ("x", "/a/x"),
            ("x/y?z=1#f", "/a/x/y?z=1"),
            ("./x", "/a/x"),
            ("../x", "/x"),
            ("../../../x/..", "/"),
            ("/x/./y/../z/", "/x/z/"),
            ("?q", "/a/b?q"),
            ("//host.example/x", "/x"),
            ("HTTP://HOST.EXAMPLE:80/x", "/x"),
            ("http://host.example", "/"),
            ("x:y/z", "!"),
            ("./x:y/z", "/a/x:y/z"),
            ("//other.example/x", "!http://other.example:80"),
            ("http://host.example:81/", "!http://host.example:81"),
            ("https://host.example/", "!https://host.example:443"),
            ("http://host.example@other.example/", "!"),
            (
                "http://other.example#@host.example/",
                "!http://other.example:80",
            ),
            ("http:\\\\other.example", "!"),
            ("file:///etc/passwd", "!"),
            ("ftp://host.example/", "!"),
            ("http:///x", "!"),
            ("/a b", "!"),
            ("/a\r\nHost: x", "!"),
            ("/é", "!"),
            ("//", "!"),
            ("https://named.example/x", "+https://named.example:443/x"),
        ] {
            let servers = ["https://named.example".to_owned()];
            let found = target(BASE, &servers, url, std::iter::empty());
            let said = match found {
                Ok(uri) => match uri.to_string().strip_prefix(HERE) {
                    Some(path) => path.to_owned(),
                    None => format!("+{uri}"),
                },
                Err(NoTarget::Malformed) => "!".to_owned(),
                Err(NoTarget::OtherServer(server)) => format!("!{server}"),
            };
            assert_eq!(said, expected, "{url}");
        }
    }

    #[test]
    fn parameters() {
        for (url, expected) in [
            ("x", "/a/x?p=1%262&%C3%A9=%20"),
            ("x?y", "/a/x?y&p=1%262&%C3%A9=%20"),
        ] {
            let params = [("p", "1&2"), ("é", " ")];
            let uri = target(BASE, &[], url, params.into_iter()).expect("is one");
            assert_eq!(uri.path_and_query().map(|p| p.as_str()), Some(expected));
        }
    }
}
