//! The files of a TLS endpoint: which certificate a client is shown, which clients are refused, and which file an error
//! names.

use std::io::{Read, Write};
use std::sync::Arc;

use crosstie_transport::tls::{self, KeyFiles, TlsFiles};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::rig::run;
use crate::tls::{Papers, beside, echo, server};

#[test]
fn bad_files_are_named() {
    let papers = Papers::new();
    papers.write("empty.pem", "");
    papers.write(
        "broken.crl",
        "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n",
    );
    let with = |certificate: &str, key: &str, authority: Option<&str>| TlsFiles {
        own: KeyFiles {
            certificate: papers.path(certificate),
            chain: Vec::new(),
            key: papers.path(key),
        },
        client_authorities: authority
            .map(|name| papers.path(name))
            .into_iter()
            .collect(),
        ..papers.files()
    };
    #[rustfmt::skip]
    let cases = [
        (with("none.pem", "server.key", None), "none.pem", "certificates in PEM"),
        (with("empty.pem", "server.key", None), "empty.pem", "found none"),
        (with("server.pem", "none.key", None), "none.key", "a private key in PEM"),
        (with("server.pem", "empty.pem", None), "empty.pem", "a private key in PEM"),
        (with("server.pem", "client.key", None), "server.pem", "certificate and key"),
        (with("server.pem", "server.key", Some("none.pem")), "none.pem", "certificates in PEM"),
    ];
    for (files, name, what) in cases {
        assert_refused(&files, name, what);
    }
}

#[test]
fn bad_files_of_other_hosts_and_of_revocations_are_named() {
    let papers = Papers::new();
    papers.write("empty.pem", "");
    papers.write(
        "broken.crl",
        "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n",
    );
    let revoking = |list: &str| TlsFiles {
        revocation_lists: vec![papers.path(list)],
        ..papers.mutual()
    };
    let cases = [
        (
            TlsFiles {
                named: vec![papers.key_files("client"), papers.key_files("none")],
                ..papers.files()
            },
            "none.pem",
            "certificates in PEM",
        ),
        (
            revoking("missing.crl"),
            "missing.crl",
            "revocation lists in PEM",
        ),
        (revoking("empty.pem"), "empty.pem", "found none"),
        (revoking("broken.crl"), "broken.crl", "cRLNumber"),
    ];
    for (files, name, what) in cases {
        assert_refused(&files, name, what);
    }
}

fn assert_refused(files: &TlsFiles, name: &str, what: &str) {
    let e = tls::server_config(files)
        .expect_err("a bad file")
        .to_string();
    assert!(
        e.contains(name) && e.contains(what),
        "expected {name}: {what}; got {e}"
    );
}

/// The end of a handshake: the first certificate that the server presents, or both sides' errors.
async fn presented(files: &TlsFiles, host: &str, config: ClientConfig) -> Result<Vec<u8>, String> {
    let (connection, peer) = server(files);
    let name = ServerName::try_from(host.to_owned()).expect("a name");
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    let mut client = StreamOwned::new(session, peer);
    let asking = beside(move || {
        let mut byte = [0];
        let asked = client
            .write_all(b"?")
            .and_then(|()| client.read_exact(&mut byte));
        asked.map_err(|e| e.to_string())?;
        client.conn.send_close_notify();
        client.flush().expect("sent");
        let chain = client.conn.peer_certificates().expect("a certificate");
        Ok(chain[0].to_vec())
    });
    let ended = echo(&connection, usize::MAX).await;
    connection.close();
    let found: Result<_, String> = asking.await.expect("no panic");
    found.map_err(|why| format!("{why}; {ended:?}"))
}

#[test]
fn the_host_decides_which_certificate_is_presented() {
    let papers = Papers::new();
    let named = ["edwards", "one", "all"].map(|name| papers.key_files(name));
    let files = TlsFiles {
        named: named.to_vec(),
        ..papers.files()
    };
    let reordered = TlsFiles {
        named: vec![papers.key_files("one"), papers.key_files("edwards")],
        ..papers.files()
    };
    let signing = |schemes: &[SignatureScheme]| {
        let mut config = papers.client(true, false);
        let trusting = Arc::new(Signing {
            trusting: WebPkiServerVerifier::builder_with_provider(
                Arc::new(papers.roots()),
                Arc::new(rustls::crypto::ring::default_provider()),
            )
            .build()
            .expect("a verifier"),
            schemes: schemes.to_vec(),
        });
        config.dangerous().set_certificate_verifier(trusting);
        config
    };
    let any = || papers.client(true, false);
    let curve = || signing(&[SignatureScheme::ECDSA_NISTP256_SHA256]);
    let cases = [
        (&files, "localhost", any(), Ok("server")),
        (&files, "one.hosts.example", any(), Ok("edwards")),
        (&files, "one.hosts.example", curve(), Ok("one")),
        (&files, "ONE.hosts.EXAMPLE", curve(), Ok("one")),
        (&files, "two.hosts.example", curve(), Ok("all")),
        (&reordered, "one.hosts.example", any(), Ok("one")),
        (&reordered, "two.hosts.example", any(), Ok("edwards")),
        (&files, "a.two.hosts.example", any(), Err("NotValidForName")),
        (&files, "127.0.0.1", any(), Err("NotValidForName")),
    ];
    for (files, host, config, expected) in cases {
        let got = run(presented(files, host, config));
        match expected {
            Ok(name) => {
                let path = papers.path(&format!("{name}.pem"));
                let expected = CertificateDer::from_pem_file(path).expect("read");
                assert_eq!(got.as_deref(), Ok(&expected[..]), "{host}: not {name}");
            }
            Err(text) => {
                let why = got.expect_err(host);
                assert!(
                    why.contains("not valid for name") || why.contains(text),
                    "{why}"
                );
            }
        }
    }
}

#[test]
fn revoked_clients_are_refused() {
    let papers = Papers::new();
    let strangers = Papers::new();
    let with = |of: &Papers, list: &str, is_certificate_optional| TlsFiles {
        revocation_lists: vec![of.path(list)],
        is_certificate_optional,
        ..papers.mutual()
    };
    let cases = [
        (&papers, "none.crl", false, Ok(())),
        (&papers, "client.crl", false, Err("Revoked")),
        (&papers, "client.crl", true, Err("Revoked")),
        (&papers, "past.crl", false, Err("revocation list expired")),
        // It has the name of the clients' authority.
        (&strangers, "none.crl", false, Err("BadSignature")),
    ];
    for (of, list, is_optional, expected) in cases {
        let files = with(of, list, is_optional);
        let got = run(presented(&files, "localhost", papers.client(true, true)));
        match expected {
            Ok(()) => assert!(got.is_ok(), "{list}: {got:?}"),
            Err(text) => {
                let why = got.expect_err(list);
                assert!(why.contains(text), "{list}: {why}");
            }
        }
    }
    // Clients that show no certificate are not concerned.
    let files = with(&papers, "client.crl", true);
    let got = run(presented(&files, "localhost", papers.client(true, false)));
    assert!(got.is_ok(), "{got:?}");
}

/// A client that can check these signatures alone.
#[derive(Debug)]
struct Signing {
    trusting: Arc<WebPkiServerVerifier>,
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for Signing {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.trusting
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.trusting
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.trusting
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}
