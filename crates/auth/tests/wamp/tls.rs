//! Clients identified by their certificates.

use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::{
    Authenticator, Certificate, CertificateHolder, CertificateHolders, Channel, ErrorTexts,
    Methods, Provider, Tls, fingerprint,
};

use crate::script::{GIVEN, check_over};

fn certificate(der: &[u8], subject: &[(&str, &str)], alternatives: &[&str]) -> Certificate {
    let subject = subject
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    let alternatives = alternatives.iter().map(|name| (*name).to_owned());
    Certificate::new(der, subject.collect(), alternatives.collect())
}

fn methods(error_texts: ErrorTexts) -> Methods {
    let known = certificate(b"one", &[], &[]);
    let subject = |entries: &[(&str, &str)]| {
        let entries = entries.iter();
        let entries = entries.map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        entries.collect::<Vec<_>>()
    };
    let mut principals = CertificateHolders::default();
    let mut insert = |authid: &str, holder: CertificateHolder| principals.insert(authid, holder);
    let of = || CertificateHolder {
        role: Some("user".into()),
        ..CertificateHolder::default()
    };
    insert("nobody", of());
    insert(
        "sha1",
        CertificateHolder {
            sha1: Some(known.sha1),
            ..of()
        },
    );
    insert(
        "sha256",
        CertificateHolder {
            sha256: Some(known.sha256),
            role: None,
            ..of()
        },
    );
    insert(
        "cn",
        CertificateHolder {
            subject: subject(&[("cn", "joe"), ("o", "Acme")]),
            ..of()
        },
    );
    insert(
        "san",
        CertificateHolder {
            alternative: Some("DNS:joe.example".into()),
            ..of()
        },
    );
    insert(
        "both",
        CertificateHolder {
            sha256: Some([0; 32]),
            subject: subject(&[("cn", "both")]),
            ..of()
        },
    );
    Methods {
        tls: Some(Tls::Static {
            principals: Arc::new(principals),
            default_role: Some("member".into()),
        }),
        error_texts,
        ..Methods::default()
    }
}

fn over(certificate: Option<&Certificate>) -> Channel<'_> {
    Channel {
        is_tls: true,
        certificate,
        ..Channel::default()
    }
}

const NOT_VALID: &str = "the authid or its credentials are not valid";

#[test]
fn a_certificate_of_the_configuration() {
    let accept = |authid: &str| format!("accept realm1 {authid} user tls static {{}}");
    let refuse =
        |cause: &str, text: &str| format!("refuse wamp.error.not_authorized ({cause}): {text}");
    let unknown = refuse("unknown_certificate", NOT_VALID);
    let several =
        "HELLO.Details.authid: expected one of several principals that have this certificate";
    let acme = [("o", "Acme"), ("cn", "joe")];
    for (words, shown, outcome) in [
        (
            "",
            certificate(b"one", &[], &[]),
            refuse("ambiguous_key", several),
        ),
        (
            "authid=zed",
            certificate(b"one", &[], &[]),
            refuse("ambiguous_key", several),
        ),
        ("authid=sha1", certificate(b"one", &[], &[]), accept("sha1")),
        (
            "authid=sha256",
            certificate(b"one", &[], &[]),
            "accept realm1 sha256 member tls static {}".to_owned(),
        ),
        (
            "authid=nobody",
            certificate(b"two", &[], &[]),
            unknown.clone(),
        ),
        ("", certificate(b"two", &acme, &[]), accept("cn")),
        ("authid=zed", certificate(b"two", &acme, &[]), accept("cn")),
        (
            "",
            certificate(b"two", &[("cn", "joe")], &[]),
            unknown.clone(),
        ),
        (
            "",
            certificate(b"two", &[("cn", "joe, o=Acme")], &[]),
            unknown.clone(),
        ),
        // The choice between the two would be arbitrary.
        (
            "",
            certificate(b"two", &[("cn", "joe"), ("cn", "ann"), ("o", "Acme")], &[]),
            unknown.clone(),
        ),
        (
            "",
            certificate(b"two", &[], &["DNS:a.example", "DNS:joe.example"]),
            accept("san"),
        ),
        (
            "",
            certificate(b"two", &[], &["URI:joe.example"]),
            unknown.clone(),
        ),
        ("", certificate(b"two", &[("cn", "both")], &[]), unknown),
    ] {
        let text = format!("> hello methods=tls {words}\n< {outcome}");
        check_over(
            &methods(ErrorTexts::Neutral),
            GIVEN,
            over(Some(&shown)),
            &text,
        );
    }
}

#[test]
fn missing_certificates_and_crossbars_texts() {
    let none = "> hello methods=tls authid=sha1
        < refuse wamp.error.not_authorized (no_certificate): client did not send a TLS client certificate";
    check_over(&methods(ErrorTexts::Neutral), GIVEN, over(None), none);
    let two = certificate(b"two", &[], &[]);
    let sha1 = two.sha1.map(|byte| format!("{byte:02X}")).join(":");
    let text = format!(
        "> hello methods=tls
         < refuse wamp.error.not_authorized (unknown_certificate): no principal with authid \"{sha1}\" exists"
    );
    check_over(
        &methods(ErrorTexts::Crossbar),
        GIVEN,
        over(Some(&two)),
        &text,
    );
}

#[test]
fn a_certificate_for_an_authenticator() {
    let methods = Methods {
        tls: Some(Tls::Dynamic(Authenticator {
            procedure: "com.auth".into(),
            authprovider: Provider::Dynamic,
            realm: None,
            role: "trusted".into(),
            default_role: None,
            timeout: Duration::from_secs(5),
        })),
        ..Methods::default()
    };
    let shown = certificate(b"one", &[], &[]);
    let text = "> hello methods=tls authid=joe
        < call com.auth in realm1 by trusted: realm1 Some(\"joe\") {\"session\":1978051601041160,\"authmethod\":\"tls\",\"authextra\":null,\"authid\":\"joe\",\"authrole\":null}
        > answer \"user\"
        < accept realm1 joe user tls dynamic {}";
    check_over(&methods, GIVEN, over(Some(&shown)), text);
    let none = "> hello methods=tls
        < refuse wamp.error.not_authorized (no_certificate): client did not send a TLS client certificate";
    check_over(&methods, GIVEN, over(None), none);
}

#[test]
fn fingerprints() {
    for (text, expected) in [
        ("0aFF", Some([10, 255])),
        ("0A:ff", Some([10, 255])),
        ("0A:ff:", None),
        ("0A:f", None),
        ("0A", None),
        ("0A:ff:00", None),
        (":0A:ff", None),
        ("0Aff0", None),
        ("0Afg", None),
        ("", None),
    ] {
        assert_eq!(fingerprint(text), expected, "{text}");
    }
}
