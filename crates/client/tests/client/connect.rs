//! Connecting: the steps to a session, and their failures.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosstie_auth::wamp::scram::{AuthMessage, Function, Kdf, Reading};
use crosstie_client::{
    Authenticator, Challenge, Client, Config, ConnectError, Scram, Serializer, State, Ticket,
    Value, WampCra, args,
};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::framing::websocket::{self, HEAD_BYTES_MAX, accept_response, parse_request};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedKey, DistinguishedName, DnType,
    IsCa, KeyPair, date_time_ymd, generate_simple_self_signed,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::router::{Router, soon};

#[tokio::test]
async fn identities_from_the_welcome() {
    let router = Router::new();
    let welcome = r#"[2,7,{"realm":"r","authid":"joe","authrole":"user","authmethod":"anonymous","agent":"R","roles":{"dealer":{"features":{"call_timeout":true,"call_canceling":false}}}}]"#;
    let (client, _peer) = router.joined_as(router.config(), welcome).await;
    let State::Joined(welcome) = client.state().borrow().clone() else {
        panic!("not joined");
    };
    assert_eq!(welcome.session.0, 7);
    assert_eq!(welcome.realm, "r");
    assert_eq!(welcome.authid.as_deref(), Some("joe"));
    assert_eq!(welcome.authrole.as_deref(), Some("user"));
    assert_eq!(welcome.agent.as_deref(), Some("R"));
    assert!(welcome.announces("dealer", "call_timeout"));
    assert!(!welcome.announces("dealer", "call_canceling"));
    assert!(!welcome.announces("broker", "call_timeout"));
}

/// The error of a client whose router sends `message` after the handshake.
async fn refused(message: &str) -> String {
    let router = Router::new();
    let answering = async {
        let mut peer = router.accept().await;
        peer.expect_hello().await;
        peer.send(message).await;
        peer
    };
    let connecting = Client::connect(router.config());
    let (client, _peer) = soon(async { tokio::join!(connecting, answering) }).await;
    client.unwrap_err().to_string()
}

#[tokio::test]
async fn refusals() {
    let check = async |message: &str, expected: &str| {
        let error = refused(message).await;
        assert!(error.contains(expected), "{error}");
    };
    check(
        r#"[3,{"message":"who?"},"wamp.error.no_such_realm"]"#,
        r#"router refused realm "realm1": wamp.error.no_such_realm ["who?"]"#,
    )
    .await;
    check(
        "[50,1,{}]",
        "expected WELCOME, CHALLENGE or ABORT, got RESULT",
    )
    .await;
    check("[2,0,{}]", "the router broke the protocol").await;
    check("x", "the router broke the protocol").await;
    check(
        r#"[4,"ticket",{}]"#,
        r#"challenge "ticket": this client is anonymous"#,
    )
    .await;
}

#[tokio::test]
async fn challenges_are_answered() {
    async fn check(authenticator: Arc<dyn Authenticator>, challenge: &str, answer: &str) {
        let router = Router::new();
        let mut config = router.config();
        let method = authenticator.method().to_owned();
        config.authenticator = authenticator;
        let answering = async {
            let mut peer = router.accept().await;
            let hello = peer.receive().await.unwrap();
            let who = format!(r#""authmethods":["{method}"],"authid":"peter""#);
            assert!(hello.contains(&who), "{hello}");
            peer.send(challenge).await;
            peer.expect(answer).await;
            peer.send("[2,7,{}]").await;
            peer
        };
        let (client, _peer) =
            soon(async { tokio::join!(Client::connect(config), answering) }).await;
        client.unwrap();
    }
    let ticket = Ticket {
        authid: "peter".to_owned(),
        ticket: "secret".to_owned(),
    };
    check(Arc::new(ticket), r#"[4,"ticket",{}]"#, r#"[5,"secret",{}]"#).await;
    // The specification's own challenge, advanced profile, "Challenge Response Authentication".
    let challenge = r#"{\"authid\": \"peter\", \"authrole\": \"user\", \"authmethod\": \"wampcra\", \"authprovider\": \"static\", \"session\": 3251278072152162, \"nonce\": \"LHRTC9zeOIrt_9U3\", \"timestamp\": \"2014-06-22T16:36:25.448Z\"}"#;
    check(
        cra("secret1"),
        &format!(r#"[4,"wampcra",{{"challenge":"{challenge}"}}]"#),
        r#"[5,"JOQqv52DbVoN33KHjV2z1uYoFG/pwrPC4HXoJaNbOfg=",{}]"#,
    )
    .await;
    check(
        cra("secret2"),
        &format!(
            r#"[4,"wampcra",{{"challenge":"{challenge}","salt":"salt123","iterations":100,"keylen":16}}]"#
        ),
        r#"[5,"wtqIFvArT1FjhGPuijl6hJbZnoNdtlK2mLgnVyR3K48=",{}]"#,
    )
    .await;
}

fn cra(secret: &str) -> Arc<dyn Authenticator> {
    Arc::new(WampCra {
        authid: "peter".to_owned(),
        secret: secret.to_owned(),
    })
}

/// Challenges by which a router would overload a client, or that are invalid.
#[test]
fn challenges_that_cannot_be_answered() {
    let check = |extra: &str, expected: &str| {
        let extra = codec::decode_value(Serializer::Json, extra.as_bytes(), &Limits::default());
        let Ok(Value::Dict(extra)) = extra else {
            panic!("{extra:?}");
        };
        let challenge = Challenge {
            method: "wampcra".to_owned(),
            extra,
            hello_extra: Vec::new(),
        };
        let error = cra("secret").answer(&challenge).err().unwrap().to_string();
        assert_eq!(error, format!("challenge \"wampcra\": {expected}"));
    };
    check("{}", "expected a text as challenge");
    let salted = |more: &str| format!(r#"{{"challenge":"x","salt":"s",{more}}}"#);
    check(
        &salted(r#""iterations":4000000000"#),
        "iterations: expected 1 to 1000000",
    );
    check(&salted(r#""keylen":65"#), "keylen: expected 1 to 64");
    check(
        &salted(r#""keylen":"32""#),
        "keylen: expected a positive number",
    );
    check(
        &salted(r#""iterations":-1"#),
        "iterations: expected a positive number",
    );
}

#[tokio::test]
async fn messages_read_with_the_welcome_are_not_lost() {
    let router = Router::new();
    let answering = async {
        let mut peer = router.accept().await;
        peer.expect_hello().await;
        peer.send_all(&["[2,7,{}]", r#"[6,{},"wamp.close.system_shutdown"]"#])
            .await;
        peer.expect(r#"[6,{},"wamp.close.goodbye_and_out"]"#).await;
    };
    let connecting = Client::connect(router.config());
    let (client, ()) = soon(async { tokio::join!(connecting, answering) }).await;
    let cause = soon(client.unwrap().ended()).await;
    assert!(cause.to_string().contains("system_shutdown"), "{cause}");
}

#[tokio::test]
async fn unreachable_routers() {
    let router = Router::new();
    let config = router.config();
    drop(router);
    let error = Client::connect(config).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Dial { .. }), "{error}");
    let error = Client::connect("mailto:joe").await.unwrap_err();
    assert!(matches!(&error, ConnectError::Url(_)), "{error}");
}

#[tokio::test]
async fn a_router_that_says_nothing() {
    let router = Router::new();
    let mut config = router.config();
    config.connect_timeout = Duration::from_millis(20);
    let error = soon(Client::connect(config)).await.unwrap_err();
    assert!(matches!(&error, ConnectError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn rawsocket_handshakes_that_fail() {
    let check = async |reply: &[u8], expected: &str| {
        let router = Router::new();
        let answering = async {
            let mut stream = router.accept_raw().await;
            stream.read_exact(&mut [0; 4]).await.unwrap();
            stream.write_all(reply).await.unwrap();
        };
        let connecting = Client::connect(router.config());
        let (client, ()) = soon(async { tokio::join!(connecting, answering) }).await;
        let error = client.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&[0x7F, 0x10, 0, 0], "serializer unsupported").await;
    check(&[0x7F, 0x20, 0, 0], "maximum message length").await;
    check(&[0x7F, 0xF2, 0, 0], "serializer 2 unsupported").await;
    check(b"HTTP", "expected first byte").await;
    check(&[0x7F, 0xF1], "closed the connection").await;
}

/// Plays a WebSocket server for one client; `respond` answers its request.
async fn websocket_server<S>(
    mut stream: S,
    respond: impl FnOnce(&websocket::Upgrade<'_>) -> Vec<u8>,
) -> S
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut received = Vec::new();
    loop {
        assert!(stream.read_buf(&mut received).await.unwrap() > 0);
        if let Some((_, request)) = parse_request(&received, HEAD_BYTES_MAX).unwrap() {
            let response = respond(&request.upgrade().unwrap());
            stream.write_all(&response).await.unwrap();
            return stream;
        }
    }
}

#[tokio::test]
async fn websocket_handshakes_that_fail() {
    let check = async |respond: fn(&websocket::Upgrade<'_>) -> Vec<u8>, expected: &str| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/ws", listener.local_addr().unwrap());
        let answering = async {
            let (stream, _) = listener.accept().await.unwrap();
            websocket_server(stream, respond).await
        };
        let connecting = Client::connect(url.as_str());
        let (client, _) = soon(async { tokio::join!(connecting, answering) }).await;
        let error = client.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(|_| b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec(), "got 404").await;
    check(|_| b"SSH-2.0-OpenSSH\r\n\r\n".to_vec(), "HTTP").await;
    check(
        |upgrade| accept_response(upgrade.key, None, None, &[]),
        "the router speaks none of the subprotocols wamp.2.cbor, wamp.2.msgpack, wamp.2.json",
    )
    .await;
    check(
        |upgrade| accept_response(upgrade.key, Some("mqtt"), None, &[]),
        "Sec-WebSocket-Protocol",
    )
    .await;
    check(
        |_| accept_response("another", Some("wamp.2.json"), None, &[]),
        "Sec-WebSocket-Accept",
    )
    .await;
}

/// A WebSocket router behind TLS that welcomes one client.
async fn tls_router(listener: &TcpListener, acceptor: &TlsAcceptor) -> std::io::Result<()> {
    let (stream, _) = listener.accept().await?;
    let stream = acceptor.accept(stream).await?;
    let mut stream = websocket_server(stream, |upgrade| {
        accept_response(upgrade.key, Some("wamp.2.json"), None, &[])
    })
    .await;
    stream.read_u8().await?;
    let mut frame = Vec::new();
    websocket::message(true, None, b"[2,7,{}]", &mut frame);
    stream.write_all(&frame).await?;
    stream.flush().await?;
    // The client ends the connection.
    while stream.read_u8().await.is_ok() {}
    Ok(())
}

/// The outcome of a client's connection to the router at `host` with the certificate `cert`.
async fn connected_to(
    host: &str,
    cert: &Certificate,
    key: &KeyPair,
    adjust: impl FnOnce(&mut Config),
) -> Result<(), String> {
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut config = Config::new(&format!("wss://{host}:{port}/ws")).unwrap();
    config.serializers = vec![Serializer::Json];
    config.reconnect = None;
    config.leave_timeout = Duration::from_millis(50);
    config.tls.system_roots = false;
    adjust(&mut config);
    let connecting = async {
        match Client::connect(config).await {
            Ok(client) => {
                client.publish("a", args![1]).await.unwrap();
                client.leave().await;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    };
    let serving = tls_router(&listener, &acceptor);
    let (connected, _) = soon(async { tokio::join!(connecting, serving) }).await;
    connected
}

#[tokio::test]
async fn tls_trusts_configured_authorities() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, cert.pem()).unwrap();
    let trusting = |config: &mut Config| config.tls.ca_files = vec![file.clone()];
    let connected = connected_to("localhost", &cert, &signing_key, trusting).await;
    assert_eq!(connected, Ok(()));
    let connected = connected_to("127.0.0.1", &cert, &signing_key, trusting).await;
    let error = connected.unwrap_err();
    assert!(error.contains("certificate"), "{error}");
    let insecure = |config: &mut Config| config.tls.insecure = true;
    let connected = connected_to("127.0.0.1", &cert, &signing_key, insecure).await;
    assert_eq!(connected, Ok(()));
}

/// Certificates of `openssl req -x509`: an authority's and a server's at once.
#[tokio::test]
async fn a_named_authoritys_certificate_is_accepted_as_a_servers() {
    let key = KeyPair::generate().unwrap();
    let made = |names: &[&str], common_name: &str, last_year: i32| {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(last_year, 1, 1);
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        params.self_signed(&key).unwrap()
    };
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("ca.pem");
    let check = async |shown: &Certificate, named: &Certificate, expected: &str| {
        std::fs::write(&file, named.pem()).unwrap();
        let trusting = |config: &mut Config| config.tls.ca_files = vec![file.clone()];
        let connected = connected_to("localhost", shown, &key, trusting).await;
        match connected {
            Ok(()) => assert_eq!("", expected),
            Err(error) => assert!(!expected.is_empty() && error.contains(expected), "{error}"),
        }
    };
    let own = made(&["localhost"], "crosstie test", 2100);
    check(&own, &own, "").await;
    // Without names besides the subject's, as without `-addext`.
    let bare = made(&[], "localhost", 2100);
    check(&bare, &bare, "").await;
    let elsewhere = made(&[], "example.com", 2100);
    check(&elsewhere, &elsewhere, "not valid for name").await;
    let named_elsewhere = made(&["example.com"], "localhost", 2100);
    check(&named_elsewhere, &named_elsewhere, "not valid for name").await;
    let over = made(&["localhost"], "crosstie test", 2001);
    check(&over, &over, "expired").await;
    // With the same key and subject, but not the named one.
    let other = made(&["localhost", "example.com"], "crosstie test", 2100);
    check(&other, &own, "only if a CA file has this very certificate").await;
    let stranger = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    check(&own, &stranger.cert, "CA:TRUE").await;
}

#[tokio::test]
async fn ca_files_that_are_none() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("wss://{}/", listener.local_addr().unwrap());
    let directory = tempfile::TempDir::new().unwrap();
    let empty = directory.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let check = async |files: Vec<std::path::PathBuf>, expected: &str| {
        let mut config = Config::new(&url).unwrap();
        config.tls.system_roots = false;
        config.tls.ca_files = files;
        let error = Client::connect(config).await.unwrap_err();
        assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(vec![], "no certificate authority to trust").await;
    check(vec![empty], "expected certificates, found none").await;
    check(vec![directory.path().join("none.pem")], "none.pem").await;
}

/// WELCOME must have a proof that requires the password's derived keys.
#[tokio::test]
async fn a_router_proves_itself_with_scram() {
    async fn check(is_right: bool) -> Result<Client, ConnectError> {
        let router = Router::new();
        let mut config = router.config();
        config.authenticator = Arc::new(Scram {
            authid: "user1".to_owned(),
            password: "p4ssw0rd".to_owned(),
        });
        let answering = async {
            let mut peer = router.accept().await;
            let hello = peer.receive().await.unwrap();
            let Value::List(hello) = read(&hello) else {
                panic!("{hello}");
            };
            let extra = hello[2].get("authextra").unwrap();
            let client_nonce = extra.get("nonce").unwrap().as_str().unwrap();
            let both = [STANDARD.decode(client_nonce).unwrap(), vec![7; 16]].concat();
            let nonce = STANDARD.encode(both);
            let salt = "O8PKAd0dUByhwi4cXX0W/g==";
            peer.send(&format!(
                r#"[4,"scram",{{"nonce":"{nonce}","kdf":"argon2id-13","salt":"{salt}","iterations":1,"memory":8}}]"#
            ))
            .await;
            let kdf = Kdf {
                function: Function::Argon2id,
                iterations: 1,
                memory_kib: Some(8),
            };
            let salt_bytes = STANDARD.decode(salt).unwrap();
            let derived = kdf.derive("p4ssw0rd", &salt_bytes, Reading::Autobahn);
            let derived = derived.unwrap();
            let message = AuthMessage {
                name: "user1",
                client_nonce,
                nonce: &nonce,
                salt,
                iterations: 1,
                binding: AuthMessage::NO_BINDING,
            };
            let proof = derived.prove(&message);
            peer.expect(&format!(r#"[5,"{proof}",{{}}]"#)).await;
            let verifier = match is_right {
                true => derived.keys().verifier(&message.to_string()),
                false => "guessed".to_owned(),
            };
            let extra = format!(r#"{{"scram_server_signature":"{verifier}"}}"#);
            peer.send(&format!(
                r#"[2,7,{{"authmethod":"scram","authextra":{extra}}}]"#
            ))
            .await;
            peer
        };
        let (client, _peer) =
            soon(async { tokio::join!(Client::connect(config), answering) }).await;
        client
    }
    check(true).await.unwrap();
    let error = check(false).await.err().unwrap().to_string();
    assert!(error.contains("the router's own proof"), "{error}");
}

fn read(text: &str) -> Value {
    codec::decode_value(Serializer::Json, text.as_bytes(), &Limits::default()).unwrap()
}
