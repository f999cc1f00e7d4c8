//! Rules for texts: as a check, as a regular expression and in words.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Each rule: in words, as a regular expression that JSON Schema and JavaScript understand, and as a check.
macro_rules! rules {
    ($($(#[$doc:meta])* $Name:ident: $words:expr, $pattern:expr, |$text:pat_param| $holds:expr;)*) => {
        /// A rule for a text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Rule {
            $($(#[$doc])* $Name,)*
        }

        impl Rule {
            /// The rule as a regular expression.
            pub fn pattern(self) -> Option<&'static str> {
                match self {
                    $(Self::$Name => $pattern,)*
                }
            }

            /// The rule in words, after "must be".
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$Name => $words,)*
                }
            }

            /// Whether a text fits the rule.
            pub fn holds(self, text: &str) -> bool {
                match self {
                    $(Self::$Name => {
                        let $text = text;
                        $holds
                    })*
                }
            }
        }
    };
}

rules! {
    Any: "text", None, |_| true;
    NotEmpty: "text that is not empty", Some("^."), |text| !text.is_empty();
    /// A name that fits AMQP's short strings.
    ShortText: "a name of 1 to 255 bytes", Some("^.{1,255}$"), |text| (1..=255).contains(&text.len());
    /// A text without U+0000, for programs.
    NoNul: "text (without U+0000)", Some("^[^\\u0000]*$"), |text| !text.contains('\0');
    /// The path of a file or directory.
    Path: "a path", Some("^[^\\u0000]+$"), |text| !text.is_empty() && !text.contains('\0');
    /// The path of a Unix socket, with variables of the environment anywhere in it.
    SocketPath: "a path", Some("^[^\\u0000]+$"), |text| !text.is_empty() && !text.contains('\0');
    /// The name of an environment variable.
    VariableName: "the name of an environment variable", Some("^[^=\\u0000]+$"),
        |text| !text.is_empty() && !text.contains(['=', '\0']);
    /// The full name of a class or function in a Python module, which may be a file whose name no
    /// `import` statement could have, such as `my-component.py`.
    PythonName: "a full name in Python, such as package.module.name", Some("^[^\\s./:]+(\\.[^\\s./:]+)+$"),
        |text| {
            let fits = |c: char| !c.is_whitespace() && !"/:\0".contains(c);
            let mut names = text.split('.');
            text.contains('.') && names.all(|name| !name.is_empty() && name.chars().all(fits))
        };
    /// A host's name or IP address.
    Host: "the name of a host or an IP address", Some("^[^\\s/]+$"),
        |text| !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '/');
    /// Crossbar.io's form of an id, where it has one.
    Id: "an id: 3 to 64 lower-case letters, digits and underscores, a letter first", Some("^[a-z][a-z0-9_]{2,63}$"),
        |text| (3..=64).contains(&text.len()) && is_lower_case_name(text);
    /// An id that stands in URIs as one component, and that Crossbar.io does not check.
    UriComponent: "an id: text that is not empty, without whitespace, . and #",
        Some("^[^\\s.#\\u0000-\\u001f\\u007f]+$"),
        |text| {
            let is_foreign = |c: char| c.is_whitespace() || ".#".contains(c);
            Rule::Name.holds(text) && !text.contains(is_foreign)
        };
    /// An id that stands in no URI, and that Crossbar.io does not check.
    Name: "an id: text that is not empty, without control characters", Some("^[^\\u0000-\\u001f\\u007f]+$"),
        |text| !text.is_empty() && !text.contains(char::is_control);
    /// A realm is a URI too; Crossbar.io does not check it, so only the grammar's least is asked.
    RealmName: "the name of a realm, without whitespace and #", Some("^[^\\s#]+$"),
        |text| !text.is_empty() && Rule::Uri.holds(text);
    /// A URI or a pattern of URIs, whose components may be empty.
    Uri: "a URI or a pattern of URIs, without whitespace and #", Some("^[^\\s#]*$"),
        |text| !text.contains(|c: char| c.is_whitespace() || c == '#');
    /// A URI that is no pattern.
    ExactUri: "a URI, without whitespace, # and empty components", Some("^[^\\s#.]+(\\.[^\\s#.]+)*$"),
        |text| Rule::Uri.holds(text) && text.split('.').all(|part| !part.is_empty());
    /// A segment of a web path, or `/`.
    WebPath: "one segment of a web path (letters, digits, - and _), or /", Some("^([A-Za-z0-9_-]+|/)$"),
        |text| text == "/" || is_segment(text);
    WebSocketUrl: "a URL that begins with ws:// or wss:// and names a host", Some("^wss?://[^/\\s]+"),
        |text| text
            .strip_prefix("ws://")
            .or_else(|| text.strip_prefix("wss://"))
            .is_some_and(|rest| rest.starts_with(|c: char| c != '/' && !c.is_whitespace()));
    HttpUrl: "a URL that begins with http:// or https:// and names a host", Some("^https?://[^/\\s]+"),
        |text| text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"))
            .is_some_and(|rest| rest.starts_with(|c: char| c != '/' && !c.is_whitespace()));
    /// A URL that a program adds a query to.
    BareHttpUrl: "a URL that begins with http:// or https:// and names a host, without credentials, ? and #",
        Some("^https?://[^/\\s@?#]+(/[^\\s@?#]*)?$"),
        |text| Rule::HttpUrl.holds(text) && !text.contains(|c: char| c.is_whitespace() || "@?#".contains(c));
    /// The name of an HTTP header.
    HeaderName: "the name of an HTTP header: letters, digits and !#$%&'*+-.^_`|~", Some("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"),
        |text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
    /// The value of an HTTP header.
    HeaderValue: "the value of an HTTP header: visible ASCII, with spaces inside", Some("^[!-~]([ -~]*[!-~])?$"),
        |text| text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && !text.is_empty() && text.trim() == text;
    /// The origin of a web page.
    Origin: "an origin such as https://app.example.com, without a path", Some("^https?://[^/\\s@?#*]+$"),
        |text| Rule::BareHttpUrl.holds(text) && text.matches('/').count() == 2 && !text.contains('*');
    NatsUrl: "nats://host:port or tls://host:port, without credentials", Some("^(nats|tls)://[^/@\\s]+:[0-9]+/?$"),
        |text| is_nats_url(text);
    /// The target of a redirection.
    Location: "a URL or a path, without whitespace and control characters", Some("^[^\\s\\u0000-\\u001f\\u007f]+$"),
        |text| !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    /// The beginning of a URL's path, or nothing.
    UrlPath: "a path that begins with a slash, without whitespace, ? and #",
        Some("^(/[^\\s?#\\u0000-\\u001f\\u007f]*)?$"),
        |text| {
            let foreign = |c: char| c.is_whitespace() || c.is_control() || c == '?' || c == '#';
            text.is_empty() || (text.starts_with('/') && !text.contains(foreign))
        };
    MediaType: "a media type, such as text/html", Some("^[!-~]+/[ -~]+$"),
        |text| {
            let (kind, rest) = text.split_once('/').unwrap_or_default();
            let printable = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            !kind.is_empty() && !kind.contains(' ') && !rest.is_empty() && printable(text)
        };
    /// An IP address, or a network with the length of its prefix or its mask.
    Network: "an IP address, or a network such as 192.168.0.0/16", Some("^[0-9A-Fa-f.:]+(/[0-9.]+)?$"),
        |text| network(text).is_some();
    /// An address of proxies.
    Proxy: "an IP address, a network such as 192.168.0.0/16, or unix", Some("^(unix|[0-9A-Fa-f.:]+(/[0-9.]+)?)$"),
        |text| text == "unix" || network(text).is_some();
    /// Crossbar.io's form of a cookie's name.
    CookieName: "two or more lower-case letters, digits and underscores, a letter first", Some("^[a-z][a-z0-9_]+$"),
        |text| text.len() >= 2 && is_lower_case_name(text);
    /// An Ed25519 key, or anything else of 32 bytes.
    Hexadecimal64: "64 hexadecimal digits", Some("^[0-9A-Fa-f]{64}$"),
        |text| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    /// An IP address, `localhost`, or nothing for all interfaces.
    Interface: "an IP address, localhost, or nothing for all interfaces", None,
        |text| text.is_empty() || text == "localhost" || text.parse::<IpAddr>().is_ok();
}

/// Lower-case letters, digits and underscores, a letter first.
fn is_lower_case_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(fits)
}

/// Letters, digits, `-` and `_`.
fn is_segment(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

/// The network's address, and how many bits of it count, as Python's `ip_network` reads it: `10.0.0.0/8`,
/// `10.0.0.0/255.0.0.0`, `10.0.0.0/0.255.255.255`, or one address. Bits behind those are zero.
pub(crate) fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let bits_max: u8 = if address.is_ipv4() { 32 } else { 128 };
    let bits = match (length, address) {
        (None, _) => bits_max,
        (Some(length), _) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().ok().filter(|bits| *bits <= bits_max)?
        }
        (Some(mask), IpAddr::V4(_)) => bits_of_mask(mask.parse().ok()?)?,
        _ => return None,
    };
    let behind = |address_bits: u8| u32::from(address_bits - bits);
    let network = match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(behind(32)).unwrap_or(0);
            Ipv4Addr::from(u32::from(address) & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(behind(128)).unwrap_or(0);
            Ipv6Addr::from(u128::from(address) & mask).into()
        }
    };
    Some((network, bits))
}

/// Of a mask with ones before its zeros, or the other way round.
fn bits_of_mask(mask: Ipv4Addr) -> Option<u8> {
    let mask = u32::from(mask);
    let ones = mask.leading_ones();
    let bits = match mask.checked_shl(ones).unwrap_or(0) {
        0 if ones > 0 || mask == 0 => ones,
        _ => {
            let zeros = mask.leading_zeros();
            (mask.trailing_ones() == 32 - zeros).then_some(zeros)?
        }
    };
    u8::try_from(bits).ok()
}

/// `nats://host:port` or `tls://host:port`.
fn is_nats_url(text: &str) -> bool {
    let rest = text.strip_prefix("nats://");
    let Some(rest) = rest.or_else(|| text.strip_prefix("tls://")) else {
        return false;
    };
    let is_odd = |c: char| c.is_whitespace() || c == '/' || c == '@';
    let address = rest.strip_suffix('/').unwrap_or(rest).rsplit_once(':');
    address.is_some_and(|(host, port)| {
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        !host.is_empty() && !host.contains(is_odd) && is_number
    })
}
