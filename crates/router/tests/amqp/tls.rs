//! Over TLS, the certificate authenticates a client.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use crosstie_amqp::{Method, PROTOCOL_HEADER};
use crosstie_config::{AmqpMechanism, AmqpPermission, AmqpUser, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::rig::{Client, Rig, Setting, connected};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(directory: &Path) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
    fs::write(directory.join("authority.pem"), authority.pem()).expect("written");
    authority
}

/// A key and a certificate with that common name, or else an alternative name.
fn sign(directory: &Path, authority: &Authority, file: &str, common: Option<&str>, other: &str) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(vec![other.to_owned()]).expect("parameters");
    params.distinguished_name = rcgen::DistinguishedName::new();
    if let Some(common) = common {
        params.distinguished_name.push(DnType::CommonName, common);
    }
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    let write = |suffix: &str, text: String| {
        fs::write(directory.join(format!("{file}.{suffix}")), text).expect("written");
    };
    write("pem", certificate.pem());
    write("key", key.serialize_pem());
}

fn connect(
    rig: &Rig,
    directory: &Path,
    file: &str,
) -> Client<StreamOwned<ClientConnection, TcpStream>> {
    let pem = |name: &str| directory.join(name);
    let authority = CertificateDer::from_pem_file(pem("authority.pem")).expect("a certificate");
    let own = CertificateDer::from_pem_file(pem(&format!("{file}.pem"))).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(pem(&format!("{file}.key"))).expect("a key");
    let mut roots = RootCertStore::empty();
    roots.add(authority).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![own], key)
        .expect("a certificate");
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    Client::over(StreamOwned::new(session, connected(rig.address)))
}

#[test]
fn a_certificate_authenticates_a_client() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let authority = authority(at);
    sign(at, &authority, "server", None, "localhost");
    sign(at, &authority, "common", Some("machine"), "elsewhere");
    sign(at, &authority, "alternative", None, "machine");
    sign(at, &authority, "stranger", Some("stranger"), "machine");

    let mut setting = Setting::default();
    setting.transport.mechanisms.push(AmqpMechanism::External);
    setting.tls = Some(Tls {
        key: "server.key".to_owned(),
        certificate: "server.pem".to_owned(),
        chain_certificates: Vec::new(),
        client_authorities: vec!["authority.pem".to_owned()],
        named: Vec::new(),
        revocation_lists: Vec::new(),
        is_certificate_optional: false,
    });
    setting.amqp.users.push(AmqpUser {
        name: "machine".to_owned(),
        password: None,
        tags: Vec::new(),
        is_remote_allowed: true,
        is_default: false,
    });
    setting.amqp.vhosts[0].permissions.push(AmqpPermission {
        user: "machine".to_owned(),
        configure: ".*".to_owned(),
        write: ".*".to_owned(),
        read: ".*".to_owned(),
    });
    let rig = Rig::start_with(at, &setting);

    for file in ["common", "alternative"] {
        let mut client = connect(&rig, at, file);
        client.write(&PROTOCOL_HEADER);
        let start = client.expect("0 connection.start");
        let Method::ConnectionStart(start) = start.method() else {
            panic!("is connection.start");
        };
        assert_eq!(start.mechanisms, b"PLAIN AMQPLAIN EXTERNAL");
        client.start_ok("EXTERNAL", b"");
        client.expect("0 connection.tune");
        client.tune_ok(10, 131_072, 0);
        client.open("/");
        client.expect("0 connection.open-ok");
        client.open_channel(1);
        client.declare("q", false);
        client.consume("q", true);
        // Larger than a TLS record, and than a frame.
        let body = vec![3; 300_000];
        client.publish("q", &body, 1);
        assert_eq!(client.expect_message("1 basic.deliver"), body);
    }

    let mut client = connect(&rig, at, "stranger");
    client.write(&PROTOCOL_HEADER);
    client.expect("0 connection.start");
    client.start_ok("EXTERNAL", b"");
    client.expect(
        "0 connection.close 403 ACCESS_REFUSED - Login was refused using authentication mechanism \
         EXTERNAL. For details see the broker logfile.",
    );
}
