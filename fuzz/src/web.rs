//! What web services make of a request and of a script's answer, of any bytes: it must not panic, and
//! nothing leads further than it may.

use std::net::IpAddr;
use std::time::Duration;

use crosstie_wamp::Serializer;
use crosstie_wamp::codec::{Limits, check_value};
use crosstie_wamp::framing::batched;
use crosstie_web::bridge::{Asked, Purpose, Refusal, Rules, answer, body, cors, webhook};
use crosstie_web::cgi;
use crosstie_web::condition::{Condition, Validators};
use crosstie_web::forward::{Client, forward, target};
use crosstie_web::longpoll::{Operation, Protocol};
use crosstie_web::path::{components, decoded};
use crosstie_web::range::{self, Range};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// A path: no component is one that leads anywhere else, and written as another server is asked for it
/// it is the same path.
pub fn path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = decoded(text);
    let Ok(found) = components(text) else {
        return;
    };
    for component in &found {
        assert!(component != "." && component != "..");
        assert!(!component.contains(|c: char| matches!(c, '/' | '\\') || c.is_control()));
    }
    let inner = found.len().saturating_sub(1);
    assert!(found[..inner].iter().all(|component| !component.is_empty()));
    let written = target("", &found, None);
    assert_eq!(components(&written), Ok(found.clone()));
    PathAndQuery::try_from(&written).expect("what another server is asked for");
    if let Some(operation) = Operation::of(&found) {
        assert!(matches!(operation, Operation::Open) || found.len() == 2);
    }
}

/// The first eight bytes are a file's length, the rest says which part of it is wanted: that is within it.
pub fn part(data: &[u8]) {
    let Some((length, text)) = data.split_first_chunk() else {
        return;
    };
    let (length, text) = (u64::from_be_bytes(*length), String::from_utf8_lossy(text));
    let found = range::parse(&text, length);
    if let Range::Part {
        first,
        length: part,
    } = found
    {
        let end = first.checked_add(part).expect("no wrap");
        assert!(part > 0 && end <= length);
        let said = format!("bytes={first}-{}", end - 1);
        assert_eq!(range::parse(&said, length), found);
    }
}

/// The first sixteen bytes are a file's time and length, the lines after them four conditions.
pub fn condition(data: &[u8]) {
    let Some((&[time, length], text)) = data.as_chunks::<8>().0.split_first_chunk::<2>() else {
        return;
    };
    let text = String::from_utf8_lossy(text.as_flattened()).into_owned();
    let modified = Duration::from_secs(u64::from_be_bytes(time));
    let validators = Validators::new(modified, u64::from_be_bytes(length));
    assert!(validators.are_those_of(validators.tag()));
    assert!(validators.are_those_of(&validators.modified_text()));
    let mut lines = text.lines();
    let mut line = || lines.next().filter(|line| !line.is_empty());
    let condition = Condition {
        matches: line(),
        unmodified_since: line(),
        none_matches: line(),
        modified_since: line(),
    };
    match condition.judge(&validators) {
        None => {}
        Some(412) => assert!(condition.matches.or(condition.unmodified_since).is_some()),
        Some(304) => assert!(
            condition
                .none_matches
                .or(condition.modified_since)
                .is_some()
        ),
        Some(other) => panic!("status {other}"),
    }
}

/// Lines are the fields of a request that goes on to another server, or to a script.
pub fn passed_on(data: &[u8]) {
    let mut headers = fields(data);
    told_a_script(&headers);
    // A length beside chunks says nothing that holds.
    let lengths = match headers.contains_key(TRANSFER_ENCODING) {
        true => 0,
        false => headers.get_all(CONTENT_LENGTH).iter().count(),
    };
    let client = Client {
        address: Some(IpAddr::from([127, 0, 0, 1])),
        port: 80,
        proto: "http",
    };
    forward(&mut headers, &HeaderValue::from_static("back"), client);
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        assert!(!headers.contains_key(name));
    }
    assert!(!headers.contains_key("forwarded"));
    assert_eq!(headers.get_all(CONTENT_LENGTH).iter().count(), lengths);
    let all = |name: &str| headers.get_all(name).iter().collect::<Vec<_>>();
    assert_eq!(all("host"), ["back"]);
    assert_eq!(all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(all("x-real-ip"), ["127.0.0.1"]);
    assert!(all("x-forwarded-host").len() <= 1);
}

fn told_a_script(headers: &HeaderMap) {
    let request = cgi::Request {
        method: &Method::GET,
        headers,
        query: "",
        script_name: "/s",
        script_file: "/srv/s",
        path_info: "",
        server_name: "h",
        server_port: 80,
        remote_address: "127.0.0.1",
        is_secure: false,
        body_bytes: None,
    };
    let mut names: Vec<String> = request
        .variables()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(
        !names
            .iter()
            .any(|name| name == "HTTP_PROXY" || name == "HTTPS")
    );
    assert!(names.iter().all(|name| !name.contains(['=', '\0'])));
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "each once");
}

/// What a script answers: a head that is read is the same one whatever comes after it, and none before its end.
pub fn script_answer(data: &[u8]) {
    match cgi::head(data) {
        Ok(None) => assert!(data.len() <= cgi::HEAD_BYTES_MAX),
        Ok(Some(head)) => {
            assert!((200..600).contains(&head.status.as_u16()));
            for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE] {
                assert!(!head.headers.contains_key(name));
            }
            assert!(head.headers.get_all(CONTENT_LENGTH).iter().count() <= 1);
            let bytes = head.bytes;
            assert_eq!(cgi::head(&data[..bytes]), Ok(Some(head)));
            assert_eq!(cgi::head(&data[..bytes - 1]), Ok(None));
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
}

/// A request to open a long-poll transport; messages that wait there, and as its client gets them.
pub fn longpoll(data: &[u8]) {
    let spoken = [Serializer::Json, Serializer::Cbor];
    match Protocol::negotiate(data, &spoken) {
        Ok(protocol) => assert!(spoken.contains(&protocol.serializer)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let Some((&flags, rest)) = data.split_first() else {
        return;
    };
    let protocol = Protocol {
        serializer: Serializer::ALL[usize::from(flags) % 3],
        is_batched: flags & 0x10 != 0,
    };
    let is_autobahn = flags & 0x20 != 0;
    // Whatever is queued.
    assert!(protocol.delivered(rest.to_vec(), is_autobahn).len() <= rest.len());
    // Messages, of which text has no separator in it.
    let is_end = |byte: &u8| [batched::SEPARATOR, batched::SEPARATOR_AUTOBAHN].contains(byte);
    let messages: Vec<&[u8]> = rest.split(is_end).filter(|one| !one.is_empty()).collect();
    let mut queued = Vec::new();
    for message in &messages {
        queued.extend_from_slice(&(message.len() as u32).to_be_bytes());
        queued.extend_from_slice(message);
    }
    if protocol.is_batched && !messages.is_empty() {
        let delivered = protocol.delivered(queued, is_autobahn);
        let found = batched::split(protocol.serializer, &delivered);
        let found: Vec<&[u8]> = found.map(|one| one.expect("a message")).collect();
        assert_eq!(found, messages);
    }
}

/// The body of a request to a bridge: what is called or published has arguments that are JSON, of the body.
pub fn bridge_body(data: &[u8]) {
    let limits = Limits { depth_max: 64 };
    let payloads = [
        body::call(data, &limits).map(|call| call.payload),
        body::publication(data, &limits).map(|publication| publication.payload),
    ];
    for payload in payloads {
        let payload = match payload {
            Ok(payload) => payload,
            Err(refusal) => {
                check_refusal(&refusal);
                continue;
            }
        };
        for (part, begin) in [(payload.args, b'['), (payload.kwargs, b'{')] {
            assert!(part.is_empty() || data.as_ptr_range().contains(&part.as_ptr()));
            assert!(part.is_empty() || part[0] == begin && is_json(part));
        }
        let answered = answer::result(payload.args, payload.kwargs);
        assert!(is_json(&answered.expect("a list")));
        assert!(is_json(&answer::error("a.b", payload.args, payload.kwargs)));
    }
}

/// A request to a bridge: its first line is the query, the fields are those of the lines up to an empty one, the
/// rest is the body.
pub fn bridge_request(data: &[u8]) {
    let end = data.windows(2).position(|two| two == b"\n\n");
    let (head, body) = match end {
        Some(end) => (&data[..end], &data[end + 2..]),
        None => (data, &b""[..]),
    };
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let query = String::from_utf8_lossy(first);
    let headers = fields(head.get(first.len() + 1..).unwrap_or_default());
    let asked = Asked {
        method: &Method::POST,
        headers: &headers,
        query: &query,
        peer: Some(IpAddr::from([10, 0, 0, 1])),
        is_tls: false,
        now: Duration::from_secs(1_318_611_591),
    };
    for purpose in [Purpose::Call, Purpose::Hook] {
        for is_signed in [false, true] {
            let rules = Rules {
                purpose,
                key: is_signed.then(|| ("myapp".to_owned(), "s3cret".to_owned())),
                require_tls: false,
                require_ip: vec![(IpAddr::from([10, 0, 0, 0]), 8)],
                body_bytes_max: 1_000,
                timestamp_delta_max: is_signed.then_some(Duration::from_secs(300)),
                github_secret: (purpose == Purpose::Hook && is_signed).then(|| "g".to_owned()),
            };
            match rules.admit(&asked).and_then(|_| rules.check(&asked, body)) {
                Ok(signature) => assert!(body.len() <= 1_000 && signature.is_some() == is_signed),
                Err(refusal) => check_refusal(&refusal),
            }
        }
    }
    assert!(cors::headers(&headers).len() <= 8);
    if let Ok(body) = std::str::from_utf8(body) {
        assert!(is_json(&webhook::arguments(&headers, body)));
    }
}

fn check_refusal(refusal: &Refusal) {
    assert!(refusal.status().is_client_error() || refusal.status().is_server_error());
    assert!(is_json(&answer::refusal(refusal)));
}

fn is_json(text: &[u8]) -> bool {
    check_value(Serializer::Json, text, &Limits { depth_max: 80 }).is_ok()
}

/// The fields that lines are; others are left out.
fn fields(lines: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n').take(100) {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let name = HeaderName::from_bytes(name);
        let value = HeaderValue::from_bytes(value.get(1..).unwrap_or_default().trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers.entry(HOST).or_insert(HeaderValue::from_static("h"));
    headers
}

pub fn path_seeds() -> Vec<Vec<u8>> {
    let seeds = [
        "/",
        "/files/a.html",
        "/%C3%A9/b%20c/",
        "//a///b",
        "/..%2f..%2fetc/passwd",
        "/a/%2e%2e/b",
        "/%2561%5c",
        "/0123456789abcdef0123456789abcdef/receive",
    ];
    seeds.map(|seed| seed.as_bytes().to_vec()).to_vec()
}

pub fn part_seeds() -> Vec<Vec<u8>> {
    let of = |length: u64, text: &str| [&length.to_be_bytes(), text.as_bytes()].concat();
    vec![
        of(10, "bytes=0-3"),
        of(u64::MAX, "bytes=3-18446744073709551615"),
        of(1 << 33, "bytes=-18446744073709551615"),
        of(0, "bytes=0-"),
        of(7, "Bytes = 1-2, 3-4"),
    ]
}

pub fn condition_seeds() -> Vec<Vec<u8>> {
    let of = |text: &str| {
        [
            &1_000_u64.to_be_bytes(),
            &10_u64.to_be_bytes(),
            text.as_bytes(),
        ]
        .concat()
    };
    vec![
        of("\"e8d4a51000-a\", W/\"x\"\n\n*\n\n      "),
        of("\nThu, 01 Jan 1970 00:16:40 GMT\n\nThu, 01 Jan 1970 00:16:40 GMT\n\n "),
        of("\nThursday, 01-Jan-70 00:16:40 GMT\nW/\"a\"\nThu Jan  1 00:16:40 1970 "),
    ]
}

pub fn passed_on_seeds() -> Vec<Vec<u8>> {
    let seeds: [&[u8]; 3] = [
        b"Host: a\nConnection: close, X-Own\nX-Own: 1\nTransfer-Encoding: chunked\nContent-Length: 3",
        b"Host: a\nHost: b\nX-Forwarded-For: 1\nForwarded: for=1\nUpgrade: h2c\nProxy: x\nX_A: 1\nX-A: 2",
        b"Connection: host, content-length, transfer-encoding\nTE: trailers\nCookie: a=1\nCookie: b=2",
    ];
    seeds.map(<[u8]>::to_vec).to_vec()
}

pub fn script_answer_seeds() -> Vec<Vec<u8>> {
    let seeds: [&[u8]; 4] = [
        b"Content-Type: text/plain\r\nX-A: 1\r\n\r\nbody",
        b"Status: 404 Not Found\nContent-Length: 3\n\nabc",
        b"Location: /a\nTransfer-Encoding: chunked\nConnection: X-B\nX-B: 1\n\n",
        b"HTTP/1.1 200 OK\nContent-Type: a/b\n\n",
    ];
    seeds.map(<[u8]>::to_vec).to_vec()
}

pub fn longpoll_seeds() -> Vec<Vec<u8>> {
    let seeds: [&[u8]; 4] = [
        br#"{"protocols": ["wamp.2.json.batched", "wamp.2.cbor"]}"#,
        b"\x10[1]\x1e[2,\"a\"]\x18[3]\x1e",
        b"\x12\x83\x01\x02\x1e\x90\x18",
        b"\x30\0\0\0\x03[1]\0\0\0\x02[]",
    ];
    seeds.map(<[u8]>::to_vec).to_vec()
}

pub fn bridge_body_seeds() -> Vec<Vec<u8>> {
    let seeds: [&[u8]; 4] = [
        br#"{"procedure": "com.add", "args": [1, 2.5, "\u00e9"], "kwargs": {"a": null}}"#,
        br#"{"topic": "a.b", "args": [], "options": {"exclude": 12, "eligible": [1], "retain": true, "acknowledge": null}}"#,
        br#"{"procedure": "p", "topic": "t", "args": null, "kwargs": 0, "options": {"timeout": 5, "x": []}}"#,
        br#"["procedure"]"#,
    ];
    seeds.map(<[u8]>::to_vec).to_vec()
}

pub fn bridge_request_seeds() -> Vec<Vec<u8>> {
    let seeds: [&[u8]; 3] = [
        b"key=myapp&timestamp=2011-10-14T16%3A59%3A51.123Z&seq=1&nonce=12345&signature=8eQMPzYFQaBXzah_o3CTLFkCJLu5AtWXTcTXvsr-uwY%3D\nContent-Type: application/json; charset=utf-8\nContent-Length: 36\n\n{\"procedure\":\"com.add\",\"args\":[1,2]}",
        b"seq=1_0&nonce=-5\nContent-Type: text/plain;a=b\nOrigin: null\nAccess-Control-Request-Headers: x\n\n{}",
        b"\nX-Hub-Signature: sha1=0123456789012345678901234567890123456789\nX-Hub-Signature-256: sha256=00\nETag: \xff\n\nbody",
    ];
    seeds.map(<[u8]>::to_vec).to_vec()
}
