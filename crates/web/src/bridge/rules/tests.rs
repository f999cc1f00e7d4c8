//! Each check, and the precedence among them.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};

use super::*;

const BODY: &[u8] = br#"{"procedure":"com.add","args":[1,2]}"#;
/// The time of that signature.
const AT: u64 = 1_318_611_591;

fn rules() -> Rules {
    Rules {
        purpose: Purpose::Call,
        key: None,
        require_tls: false,
        require_ip: Vec::new(),
        body_bytes_max: 100,
        timestamp_delta_max: Some(Duration::from_secs(300)),
        github_secret: None,
    }
}

fn signed() -> Rules {
    Rules {
        key: Some(("myapp".to_owned(), "s3cret".to_owned())),
        ..rules()
    }
}

/// A status and a text.
type Said = Option<(u16, &'static str)>;
type Fields<'f> = &'f [(http::HeaderName, &'f str)];

fn headers(fields: Fields<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(name, value.parse().expect("a header"));
    }
    headers
}

fn asked<'r>(headers: &'r HeaderMap, query: &'r str) -> Asked<'r> {
    Asked {
        method: &Method::POST,
        headers,
        query,
        peer: Some([10, 1, 2, 3].into()),
        is_tls: false,
        now: Duration::from_secs(AT),
    }
}

macro_rules! invalid {
    ($reason:literal) => {
        Some((
            400,
            concat!("REST bridge signature was invalid (", $reason, ")."),
        ))
    };
}

fn owned(said: Said) -> Option<(u16, String)> {
    said.map(|(status, text)| (status, text.to_owned()))
}

/// A refusal's status and text.
fn said<T>(refused: Result<T, Refusal>) -> Option<(u16, String)> {
    let refusal = refused.err()?;
    Some((refusal.status().as_u16(), refusal.to_string()))
}

#[test]
fn heads() {
    let json = (CONTENT_TYPE, "application/json");
    let text = (CONTENT_TYPE, "text/plain");
    let rows: &[(Method, Fields<'_>, Said)] = &[
        (Method::POST, &[], None),
        (Method::PUT, std::slice::from_ref(&json), None),
        (
            Method::GET,
            std::slice::from_ref(&text),
            Some((
                405,
                "Method not accepted by the REST bridge. (b'GET' not allowed, only POST, PUT)",
            )),
        ),
        (
            Method::POST,
            std::slice::from_ref(&text),
            Some((
                400,
                "Non-accepted content type. (must be one of '[b'application/json']', not 'b'text/plain'')",
            )),
        ),
        (
            Method::POST,
            &[(CONTENT_TYPE, "application/json; charset=latin-1")],
            Some((400, "Non-accepted request encoding, must be UTF-8.")),
        ),
        (
            Method::POST,
            &[(CONTENT_LENGTH, "1"), (CONTENT_LENGTH, "1")],
            Some((400, "Multiple versions of the same header is not allowed.")),
        ),
        (Method::POST, &[(CONTENT_LENGTH, "100")], None),
        (
            Method::POST,
            &[(CONTENT_LENGTH, "329")],
            Some((413, "Request too long. (329 is longer than accepted 100)")),
        ),
    ];
    for (method, fields, expected) in rows {
        let headers = headers(fields);
        let asked = Asked {
            method,
            ..asked(&headers, "")
        };
        let expected = expected.map(|(status, text)| (status, text.to_owned()));
        assert_eq!(said(rules().admit(&asked)), expected, "{method} {fields:?}");
    }
    let none = HeaderMap::new();
    let preflight = Asked {
        method: &Method::OPTIONS,
        ..asked(&none, "")
    };
    assert_eq!(rules().admit(&preflight), Ok(false));
    // An event of plain text accepts any type.
    let hook = Rules {
        purpose: Purpose::Hook,
        ..rules()
    };
    assert_eq!(hook.admit(&asked(&headers(&[text]), "")), Ok(true));
}

#[test]
fn bodies() {
    let none = HeaderMap::new();
    let ask = asked(&none, "");
    let long = [b' '; 101];
    for (body, expected) in [
        (&long[..100], None),
        (
            &long,
            Some((413, "Request too long. (101 is longer than accepted 100)")),
        ),
        (
            b"\xff",
            Some((400, "Non-decodable request body, was not UTF-8.")),
        ),
    ] {
        let expected = expected.map(|(status, text)| (status, text.to_owned()));
        assert_eq!(said(rules().check(&ask, body)), expected);
    }
    let said_six = headers(&[(CONTENT_LENGTH, "6")]);
    assert_eq!(
        said(rules().check(&asked(&said_six, ""), b"12345")),
        Some((
            400,
            "Body length (5) is different to Content-Length header (6).".to_owned()
        ))
    );
    let github = Rules {
        github_secret: Some("gh".to_owned()),
        ..rules()
    };
    assert_eq!(
        said(github.check(&ask, b"{}")),
        Some((400, "Malformed request to the REST bridge.".to_owned()))
    );
}

const GOOD: &str = "key=myapp&timestamp=2011-10-14T16:59:51.123Z&seq=1&nonce=12345&signature=8eQMPzYFQaBXzah_o3CTLFkCJLu5AtWXTcTXvsr-uwY=";
const EXPIRED: Said = Some((400, "Request expired, too old timestamp."));
const NO_KEY: Said = invalid!("missing mandatory field - 'key' field missing");
const FORGED: Said = Some((401, "REST bridge signature secret not valid."));
const BAD_SEQ: Said = invalid!("invalid sequence number 'x' (must be an integer)");

/// Changes of a valid request, each with its result.
const CHANGES: &[(&str, &str, Said)] = &[
    ("", "", None),
    // The first of duplicate fields counts, and escapes are not part of the signed text.
    ("uwY=", "uwY=&key=other&x=y", None),
    ("uwY=", "uwY%3d", None),
    ("T16:59", "T16%3A59", None),
    (GOOD, "", NO_KEY),
    ("key=myapp&", "", NO_KEY),
    (
        "timestamp=2011-10-14T16:59:51.123Z&",
        "",
        invalid!(
            "missing mandatory field - signed request required, but mandatory 'timestamp' field missing"
        ),
    ),
    (
        "seq=1&",
        "",
        invalid!("missing mandatory field - 'seq' field missing"),
    ),
    (
        "nonce=12345&",
        "",
        invalid!("missing mandatory field - 'nonce' field missing"),
    ),
    (
        "&signature=",
        "&",
        invalid!("missing mandatory field - 'signature' field missing"),
    ),
    (
        "2011-10-14T16:59:51.123Z",
        "now",
        invalid!("invalid timestamp 'now' (must be UTC/ISO-8601, e.g. '2011-10-14T16:59:51.123Z')"),
    ),
    ("2011-10-14T16", "2011-10-14T15", EXPIRED),
    ("T16:59:51", "T17:04:52", EXPIRED),
    ("seq=1", "seq=x", BAD_SEQ),
    (
        "nonce=12345",
        "nonce=",
        invalid!("invalid nonce '' (must be an integer)"),
    ),
    (
        "key=myapp",
        "key=other",
        Some((401, "REST bridge signature key not valid.")),
    ),
    ("nonce=12345", "nonce=12346", FORGED),
    ("uwY=", "uwZ=", FORGED),
];

#[test]
fn signatures() {
    let none = HeaderMap::new();
    for (from, to, expected) in CHANGES {
        let query = GOOD.replacen(from, to, 1);
        let checked = signed().check(&asked(&none, &query), BODY);
        assert_eq!(said(checked), owned(*expected), "{query}");
    }
    let another = signed().check(&asked(&none, GOOD), b"{}");
    assert_eq!(said(another), owned(FORGED));
    // Valid at any time, if the time is not checked.
    let anytime = Rules {
        timestamp_delta_max: None,
        ..signed()
    };
    let much_later = Asked {
        now: Duration::from_secs(2 * AT),
        ..asked(&none, GOOD)
    };
    assert!(anytime.check(&much_later, BODY).is_ok_and(|s| s.is_some()));
}

/// Fields must be valid even if no signature is required, and are not verified then.
#[test]
fn unasked_signatures() {
    let none = HeaderMap::new();
    let old = "timestamp=2011-10-14T15:59:51.123Z";
    for (query, expected) in [
        ("", None),
        ("x=y", None),
        ("key=a&signature=b", None),
        (GOOD, None),
        (old, EXPIRED),
        ("seq=x", BAD_SEQ),
    ] {
        let checked = rules().check(&asked(&none, query), BODY);
        assert!(!matches!(checked, Ok(Some(_))));
        assert_eq!(said(checked), owned(expected), "{query}");
    }
}

#[test]
fn networks() {
    for (networks, peer, expected) in [
        (&[][..], "192.168.1.1", true),
        (&[("10.0.0.0", 8)], "10.255.0.1", true),
        (&[("10.0.0.0", 8)], "11.0.0.1", false),
        (&[("10.0.0.0", 8), ("11.0.0.1", 32)], "11.0.0.1", true),
        (&[("11.0.0.1", 32)], "11.0.0.2", false),
        (&[("0.0.0.0", 0)], "11.0.0.2", true),
        (&[("0.0.0.0", 0)], "::1", false),
        (&[("10.0.0.0", 8)], "::ffff:10.0.0.1", true),
        (&[("2001:db8::", 32)], "2001:db8:1::1", true),
        (&[("2001:db8::", 32)], "2001:db9::1", false),
        (&[("::1", 128)], "::1", true),
    ] {
        let rules = Rules {
            require_ip: networks
                .iter()
                .map(|(network, bits)| (network.parse().expect("an address"), *bits))
                .collect(),
            ..rules()
        };
        let none = HeaderMap::new();
        let asked = Asked {
            peer: peer.parse().ok(),
            ..asked(&none, "")
        };
        let expected = match expected {
            true => None,
            false => Some((400, "Request denied based on IP address.".to_owned())),
        };
        assert_eq!(
            said(rules.check(&asked, BODY)),
            expected,
            "{networks:?} {peer}"
        );
    }
    // A client without a network address is in no network.
    let near = Rules {
        require_ip: vec![([0, 0, 0, 0].into(), 0)],
        ..rules()
    };
    let none = HeaderMap::new();
    let local = Asked {
        peer: None,
        ..asked(&none, "")
    };
    assert!(near.check(&local, BODY).is_err());
    let secure = Rules {
        require_tls: true,
        ..rules()
    };
    assert_eq!(
        said(secure.check(&asked(&none, ""), BODY)),
        Some((400, "Malformed request to the REST bridge.".to_owned()))
    );
    let over_tls = Asked {
        is_tls: true,
        ..asked(&none, "")
    };
    assert_eq!(secure.check(&over_tls, BODY), Ok(None));
}
