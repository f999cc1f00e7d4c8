//! TLS end to end, against a client that drives the same library with blocking IO.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use crosstie_transport::tls::{self, KeyFiles, TlsFiles, TlsStage};
use crosstie_transport::{Connection, ConnectionStream, Ended, Outcome, Protocol, pump};
use parking_lot::Mutex;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, IsCa,
    Issuer, KeyIdMethod, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, RevokedCertParams,
    SignatureAlgorithm, date_time_ymd,
};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::rig::{append, generous, pair_with, pattern, run};

/// The serial number of the client's certificate.
const SERIAL: u64 = 0x5e71a1;

type Client = StreamOwned<ClientConnection, UnixStream>;

/// An authority, and the certificates that it signed for server and client, in files.
pub(crate) struct Papers {
    directory: TempDir,
    authority: CertificateDer<'static>,
}

impl Papers {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let papers = Self {
            authority: authority.der().clone(),
            directory,
        };
        papers.write("authority.pem", &authority.pem());
        for name in ["server", "client"] {
            papers.sign(name, "localhost", &PKCS_ECDSA_P256_SHA256, &authority);
        }
        papers.sign(
            "one",
            "one.hosts.example",
            &PKCS_ECDSA_P256_SHA256,
            &authority,
        );
        papers.sign(
            "all",
            "*.hosts.example",
            &PKCS_ECDSA_P256_SHA256,
            &authority,
        );
        papers.sign("edwards", "*.hosts.example", &PKCS_ED25519, &authority);
        let revocations = [
            ("none.crl", 4096, 1),
            ("client.crl", 4096, SERIAL),
            ("past.crl", 2001, 1),
        ];
        for (name, year, serial) in revocations {
            papers.revoke(name, year, serial, &authority);
        }
        papers
    }

    fn sign(
        &self,
        name: &str,
        host: &str,
        algorithm: &'static SignatureAlgorithm,
        authority: &Issuer<'_, KeyPair>,
    ) {
        let key = KeyPair::generate_for(algorithm).expect("a key");
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("parameters");
        params.serial_number = (name == "client").then(|| SERIAL.into());
        let certificate = params.signed_by(&key, authority).expect("a certificate");
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    /// A list with one serial number, up to a year.
    fn revoke(&self, name: &str, year: i32, serial: u64, authority: &Issuer<'_, KeyPair>) {
        let revoked = RevokedCertParams {
            serial_number: serial.into(),
            revocation_time: date_time_ymd(2000, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2000, 1, 1),
            next_update: date_time_ymd(year, 1, 1),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(authority).expect("a list");
        self.write(name, &list.pem().expect("text"));
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn files(&self) -> TlsFiles {
        TlsFiles {
            own: self.key_files("server"),
            named: Vec::new(),
            client_authorities: Vec::new(),
            revocation_lists: Vec::new(),
            is_certificate_optional: false,
            protocols: &[],
        }
    }

    pub(crate) fn key_files(&self, name: &str) -> KeyFiles {
        KeyFiles {
            certificate: self.path(&format!("{name}.pem")),
            chain: Vec::new(),
            key: self.path(&format!("{name}.key")),
        }
    }

    /// Files that require client certificates.
    pub(crate) fn mutual(&self) -> TlsFiles {
        TlsFiles {
            client_authorities: vec![self.path("authority.pem")],
            ..self.files()
        }
    }

    /// Files that make client certificates optional.
    fn either(&self) -> TlsFiles {
        TlsFiles {
            is_certificate_optional: true,
            protocols: &[],
            ..self.mutual()
        }
    }

    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone()).expect("added");
        roots
    }

    /// A client that trusts the authority, or none, and may send a certificate.
    pub(crate) fn client(&self, trusts: bool, shows: bool) -> ClientConfig {
        self.client_of(trusts, shows.then_some(self))
    }

    /// The same, with the certificate of these or others.
    fn client_of(&self, trusts: bool, shows: Option<&Self>) -> ClientConfig {
        self.client_by(rustls::ALL_VERSIONS, trusts, shows)
    }

    fn client_by(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        trusts: bool,
        shows: Option<&Self>,
    ) -> ClientConfig {
        let roots = match trusts {
            true => self.roots(),
            false => RootCertStore::empty(),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(roots);
        let Some(papers) = shows else {
            return builder.with_no_client_auth();
        };
        let certificate = CertificateDer::from_pem_file(papers.path("client.pem"));
        let key = PrivateKeyDer::from_pem_file(papers.path("client.key"));
        builder
            .with_client_auth_cert(vec![certificate.expect("read")], key.expect("read"))
            .expect("they match")
    }
}

pub(crate) fn server(files: &TlsFiles) -> (Arc<Connection>, UnixStream) {
    let config = tls::server_config(files).expect("good files");
    let stage = TlsStage::server(config).expect("a session");
    let stage = Some(Box::new(Mutex::new(stage)) as Box<Mutex<dyn crosstie_transport::Stage>>);
    let (connection, peer) = pair_with(stage, &generous(), 1);
    peer.set_nonblocking(false).expect("blocking");
    (connection, peer)
}

fn client(config: ClientConfig, peer: UnixStream) -> Client {
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    StreamOwned::new(session, peer)
}

/// Runs a client on a thread that may block.
pub(crate) fn beside<T: Send + 'static>(
    action: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    spawn_blocking(action)
}

/// Echoes its input; says goodbye after so many bytes.
struct Echo {
    connection: Arc<Connection>,
    left: usize,
}

impl Protocol for Echo {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        if append(&self.connection, input).is_err() {
            return Outcome::Close;
        }
        self.left = self.left.saturating_sub(input.len());
        if self.left == 0 {
            self.connection.finish();
        }
        Outcome::consumed(input.len())
    }
}

/// Serves until the peer is done, then says goodbye as a node does.
pub(crate) async fn echo(connection: &Arc<Connection>, left: usize) -> Ended {
    let mut protocol = Echo {
        connection: Arc::clone(connection),
        left,
    };
    let ended = pump(connection, &mut protocol).await;
    if matches!(ended, Ended::ByPeer { .. }) {
        connection.finish();
    }
    ended
}

#[test]
fn bytes_come_back_and_both_say_goodbye() {
    let papers = Papers::new();
    for length in [1, 16_384, 16_385, 1_000_000] {
        for server_ends in [false, true] {
            run(async {
                let (connection, peer) = server(&papers.files());
                let mut client = client(papers.client(true, false), peer);
                let asking = beside(move || {
                    let bytes = pattern(length);
                    client.write_all(&bytes).expect("sent");
                    client.flush().expect("sent");
                    let mut echoed = vec![0; length];
                    client.read_exact(&mut echoed).expect("received");
                    assert!(echoed == bytes);
                    if !server_ends {
                        client.conn.send_close_notify();
                        client.flush().expect("sent");
                    }
                    // Without a goodbye this is an error.
                    let mut rest = Vec::new();
                    client.read_to_end(&mut rest).expect("a goodbye");
                    assert_eq!(rest, b"");
                    if server_ends {
                        client.conn.send_close_notify();
                        client.flush().expect("our side still receives");
                    }
                });
                let left = if server_ends { length } else { usize::MAX };
                let ended = echo(&connection, left).await;
                assert!(
                    matches!(ended, Ended::ByPeer { unconsumed: 0 }),
                    "{ended:?}"
                );
                asking.await.expect("no panic");
                connection.close();
            });
        }
    }
}

/// Bytes queued before the handshake, however many, are sent after it.
#[test]
fn bytes_wait_for_the_handshake() {
    let papers = Papers::new();
    for length in [1, 65_536, 500_000] {
        run(async {
            let (connection, peer) = server(&papers.files());
            assert_eq!(append(&connection, &pattern(length)), Ok(()));
            connection.flush();
            let mut client = client(papers.client(true, false), peer);
            let asking = beside(move || {
                let mut bytes = vec![0; length];
                client.read_exact(&mut bytes).expect("received");
                assert!(bytes == pattern(length));
                client.conn.send_close_notify();
                client.flush().expect("sent");
            });
            echo(&connection, usize::MAX).await;
            asking.await.expect("no panic");
        });
    }
}

/// The server must neither wait for nor fail on bytes behind a goodbye.
#[test]
fn bytes_behind_a_goodbye_are_not_read() {
    let papers = Papers::new();
    for behind in [1, 5000, 100_000] {
        run(async {
            let (connection, peer) = server(&papers.files());
            let mut client = client(papers.client(true, false), peer);
            let asking = beside(move || {
                client.write_all(b"last words").expect("sent");
                client.flush().expect("sent");
                let mut echoed = [0; 10];
                client.read_exact(&mut echoed).expect("received");
                client.conn.send_close_notify();
                let mut bytes = Vec::new();
                client.conn.write_tls(&mut bytes).expect("written");
                bytes.extend(pattern(behind));
                // The server may have closed before it has taken everything.
                let _ = client.sock.write_all(&bytes);
                client.sock.shutdown(Shutdown::Write).expect("shut down");
            });
            let ended = echo(&connection, usize::MAX).await;
            assert!(
                matches!(ended, Ended::ByPeer { unconsumed: 0 }),
                "{ended:?}"
            );
            connection.close();
            asking.await.expect("no panic");
        });
    }
}

/// Handshakes that fail, and the server's error.
#[test]
fn a_handshake_that_fails_ends_with_an_alert() {
    let papers = Papers::new();
    /// A record of this type is an alert.
    const ALERT: u8 = 21;
    let greetings: [&[u8]; 3] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0x7f, 0xf5, 0, 0, 0, 0, 0, 0],
        &[22, 3, 1, 0, 4, 1, 0, 0, 0],
    ];
    for greeting in greetings {
        run(async {
            let (connection, mut peer) = server(&papers.files());
            peer.write_all(greeting).expect("sent");
            let ended = echo(&connection, usize::MAX).await;
            assert!(
                matches!(ended, Ended::StageFailed(_)),
                "{greeting:?}: {ended:?}"
            );
            connection.close();
            let mut answer = Vec::new();
            peer.read_to_end(&mut answer).expect("received");
            assert_eq!(answer.first(), Some(&ALERT), "{greeting:?}: {answer:?}");
        });
    }
}

#[test]
fn untrusted_peers_get_an_alert() {
    let papers = Papers::new();
    // Their authority has the same name, and another key.
    let strangers = Papers::new();
    let [alone, mutual, either] = [papers.files(), papers.mutual(), papers.either()];
    // The server's files, whether the client trusts it, whose certificate the client sends, the client's error, and
    // whether the server has seen a certificate.
    let cases = [
        (&alone, true, None, Ok(false)),
        (&alone, false, None, Err("UnknownIssuer")),
        (&alone, true, Some(&papers), Ok(false)),
        (&mutual, true, Some(&papers), Ok(true)),
        (&mutual, true, None, Err("CertificateRequired")),
        (&mutual, true, Some(&strangers), Err("DecryptError")),
        (&either, true, Some(&papers), Ok(true)),
        (&either, true, None, Ok(false)),
        (&either, true, Some(&strangers), Err("DecryptError")),
    ];
    for (files, trusts, shows, expected) in cases {
        run(async {
            let (connection, peer) = server(files);
            assert_eq!(append(&connection, b"x"), Ok(()));
            let mut client = client(papers.client_of(trusts, shows), peer);
            let asking = beside(move || -> io::Result<()> {
                // Only reading: a write could find the socket closed before the alert is seen.
                client.read_exact(&mut [0])?;
                client.conn.send_close_notify();
                client.flush()
            });
            let ended = echo(&connection, usize::MAX).await;
            connection.close();
            let asked = asking.await.expect("no panic");
            match expected {
                Ok(is_seen) => {
                    asked.expect("is trusted");
                    assert_eq!(connection.peer_certificate().is_some(), is_seen);
                    assert!(matches!(ended, Ended::ByPeer { .. }), "{ended:?}");
                }
                Err(why) => {
                    let e = format!("{:?}", asked.expect_err("is not trusted"));
                    assert!(e.contains(why), "expected {why}, got {e}");
                    assert!(matches!(ended, Ended::StageFailed(_)), "{ended:?}");
                }
            }
        });
    }
}

/// RFC 9266: both ends have the same value, another connection has another, and none exists before the handshake.
#[test]
fn both_ends_export_the_same_secret() {
    let papers = Papers::new();
    let mut known = Vec::new();
    for (version, has_one) in [(&TLS13, true), (&TLS13, true), (&TLS12, false)] {
        run(async {
            let (connection, peer) = server(&papers.files());
            assert_eq!(connection.tls_exporter(), None);
            assert_eq!(append(&connection, b"x"), Ok(()));
            let mut client = client(papers.client_by(&[version], true, None), peer);
            let asking = beside(move || {
                client.read_exact(&mut [0]).expect("received");
                let label = b"EXPORTER-Channel-Binding";
                let exported = client
                    .conn
                    .export_keying_material([0; 32], label, Some(b""));
                client.conn.send_close_notify();
                client.flush().expect("sent");
                exported.expect("is exported")
            });
            echo(&connection, usize::MAX).await;
            let theirs: [u8; 32] = asking.await.expect("no panic");
            assert_eq!(connection.tls_exporter(), has_one.then_some(theirs));
            assert!(!known.contains(&theirs));
            known.push(theirs);
            connection.close();
        });
    }
}

#[test]
fn a_stream_over_tls() {
    let papers = Papers::new();
    run(async {
        let (connection, peer) = server(&papers.files());
        let mut client = client(papers.client(true, false), peer);
        let asking = beside(move || {
            client.write_all(b"question").expect("sent");
            client.conn.send_close_notify();
            client.flush().expect("sent");
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).expect("a goodbye");
            answer
        });
        let mut stream = ConnectionStream::new(connection, Vec::new()).expect("a stream");
        let mut question = Vec::new();
        stream.read_to_end(&mut question).await.expect("received");
        assert_eq!(question, b"question");
        stream.write_all(&pattern(300_000)).await.expect("queued");
        stream.shutdown().await.expect("sent");
        assert!(asking.await.expect("no panic") == pattern(300_000));
    });
}
