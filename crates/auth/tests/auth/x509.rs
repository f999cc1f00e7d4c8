//! Certificates as clients have them, and odd ones: put together here value by value.

use std::net::{Ipv4Addr, Ipv6Addr};

use crosstie_auth::x509::{Alternative, Fields, read, revocations};

const CN: &[u8] = &[0x55, 4, 3];
const ALTERNATIVES: &[u8] = &[0x55, 0x1d, 17];

fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = content.len();
    let length = match u8::try_from(length) {
        Ok(short @ 0..0x80) => vec![short],
        Ok(long) => vec![0x81, long],
        Err(_) => vec![0x82, (length >> 8) as u8, length as u8],
    };
    [&[tag][..], &length, &content].concat()
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    value(0x30, parts)
}

fn attribute(identifier: &[u8], tag: u8, text: &[u8]) -> Vec<u8> {
    sequence(&[&value(6, &[identifier]), &value(tag, &[text])])
}

/// A name of sets of one attribute each.
fn name(attributes: &[Vec<u8>]) -> Vec<u8> {
    let sets: Vec<_> = attributes.iter().map(|each| value(0x31, &[each])).collect();
    let sets: Vec<_> = sets.iter().map(Vec::as_slice).collect();
    sequence(&sets)
}

fn extension(identifier: &[u8], critical: &[u8], content: &[u8]) -> Vec<u8> {
    let identifier = value(6, &[identifier]);
    sequence(&[&identifier, critical, &value(4, &[content])])
}

/// The parts of a certificate, each of which a test may replace.
struct Parts {
    version: Vec<u8>,
    serial: Vec<u8>,
    not_before: Vec<u8>,
    not_after: Vec<u8>,
    subject: Vec<u8>,
    extensions: Vec<Vec<u8>>,
    /// Behind the extensions.
    rest: Vec<u8>,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            version: value(0xa0, &[&value(2, &[&[2]])]),
            serial: value(2, &[&[0, 0xab, 1]]),
            not_before: value(0x17, &[b"500101000000Z"]),
            not_after: value(0x17, &[b"491231235959Z"]),
            subject: name(&[attribute(CN, 0x0c, b"alice")]),
            extensions: Vec::new(),
            rest: Vec::new(),
        }
    }
}

impl Parts {
    fn certificate(&self) -> Vec<u8> {
        let algorithm = sequence(&[&value(6, &[&[0x2b, 0x65, 0x70]])]);
        let key = sequence(&[&algorithm, &value(3, &[&[0], &[7; 32]])]);
        let list: Vec<_> = self.extensions.iter().map(Vec::as_slice).collect();
        let extensions = match list.is_empty() {
            true => Vec::new(),
            false => value(0xa3, &[&sequence(&list)]),
        };
        let fields = sequence(&[
            &self.version,
            &self.serial,
            &algorithm,
            &name(&[attribute(&[0x55, 4, 10], 0x13, b"Acme")]),
            &sequence(&[&self.not_before, &self.not_after]),
            &self.subject,
            &key,
            &extensions,
            &self.rest,
        ]);
        sequence(&[&fields, &algorithm, &value(3, &[&[0], &[9; 64]])])
    }
}

#[track_caller]
fn check(parts: &Parts, judge: impl FnOnce(Fields<'_>)) {
    let certificate = parts.certificate();
    judge(read(&certificate).expect("a certificate"));
    // What follows a certificate is no part of it.
    let longer = [&certificate[..], b"more"].concat();
    assert_eq!(read(&longer), read(&certificate));
    for end in 0..certificate.len() {
        assert_eq!(read(&certificate[..end]), None, "cut to {end} octets");
    }
}

#[track_caller]
fn is_refused(parts: &Parts) {
    assert_eq!(read(&parts.certificate()), None);
}

fn alternatives(names: &[Vec<u8>]) -> Vec<u8> {
    let names: Vec<_> = names.iter().map(Vec::as_slice).collect();
    extension(ALTERNATIVES, &[], &sequence(&names))
}

#[test]
fn fields_of_a_certificate() {
    let parts = Parts {
        extensions: vec![
            extension(&[0x55, 0x1d, 15], &[1, 1, 0xff], &[3, 2, 7, 0x80]),
            alternatives(&[
                value(0x82, &[b"a.example"]),
                value(0x81, &[b"a@b.example"]),
                value(0x86, &[b"urn:a"]),
                value(0x87, &[&[10, 0, 0, 1]]),
                value(0x87, &[&Ipv6Addr::LOCALHOST.octets()]),
            ]),
            extension(&[0x2a, 3], &[1, 1, 0], &[]),
        ],
        ..Parts::default()
    };
    check(&parts, |fields| {
        assert_eq!(fields.version, 2);
        assert_eq!(fields.serial, [0, 0xab, 1]);
        assert_eq!(fields.issuer, [("o".to_owned(), "Acme")]);
        assert_eq!(fields.subject, [("cn".to_owned(), "alice")]);
        assert_eq!(fields.not_before.to_string(), "19500101000000Z");
        assert_eq!(fields.not_after.to_string(), "20491231235959Z");
        let extensions = fields.extensions.iter();
        let shown: Vec<_> = extensions.map(|e| (&*e.name, e.is_critical)).collect();
        let expected = [
            ("keyUsage", true),
            ("subjectAltName", false),
            ("1.2.3", false),
        ];
        assert_eq!(shown, expected);
        let expected = [
            Alternative::Dns("a.example"),
            Alternative::Email("a@b.example"),
            Alternative::Uri("urn:a"),
            Alternative::Ip(Ipv4Addr::new(10, 0, 0, 1).into()),
            Alternative::Ip(Ipv6Addr::LOCALHOST.into()),
        ];
        assert_eq!(fields.alternatives(), expected);
    });
}

#[test]
fn a_certificate_of_version_1_has_neither_version_nor_extensions() {
    let parts = Parts {
        version: Vec::new(),
        ..Parts::default()
    };
    check(&parts, |fields| {
        assert_eq!(fields.version, 0);
        assert!(fields.extensions.is_empty() && fields.alternatives().is_empty());
    });
}

#[test]
fn unique_identifiers_are_passed_over() {
    let parts = Parts {
        rest: [value(0x81, &[&[0, 1]]), value(0x82, &[&[0, 2]])].concat(),
        ..Parts::default()
    };
    check(&parts, |fields| {
        assert_eq!(fields.common_name(), Some("alice"))
    });
}

#[test]
fn validity_ends_with_its_last_second() {
    let parts = Parts {
        not_before: value(0x18, &[b"20240229000000Z"]),
        not_after: value(0x18, &[b"20990101000000Z"]),
        ..Parts::default()
    };
    check(&parts, |fields| {
        let (first, last) = (1_709_164_800, 4_070_908_800);
        assert!(fields.is_valid_at(first) && fields.is_valid_at(last));
        assert!(!fields.is_valid_at(first - 1) && !fields.is_valid_at(last + 1));
    });
}

#[test]
fn attributes_without_a_text_are_left_out() {
    let subject = |attributes: &[Vec<u8>], expected: &[(&str, &str)]| {
        let parts = Parts {
            subject: name(attributes),
            ..Parts::default()
        };
        check(&parts, |fields| {
            let found: Vec<_> = fields
                .subject
                .iter()
                .map(|(k, v)| (k.as_str(), *v))
                .collect();
            assert_eq!(found, expected);
        });
    };
    subject(&[], &[]);
    subject(&[attribute(CN, 0x0c, "Zoë".as_bytes())], &[("cn", "Zoë")]);
    // A BMPString, a text that is not UTF-8, an attribute without a name.
    subject(&[attribute(CN, 0x1e, b"\0a")], &[]);
    subject(
        &[attribute(CN, 0x0c, b"\xff"), attribute(CN, 0x13, b"b")],
        &[("cn", "b")],
    );
    subject(&[attribute(&[0x2a, 3], 0x16, b"c")], &[("1.2.3", "c")]);
}

#[test]
fn a_set_may_have_several_attributes() {
    let parts = Parts {
        subject: sequence(&[&value(
            0x31,
            &[
                &attribute(&[0x55, 4, 11], 0x0c, b"a"),
                &attribute(CN, 0x0c, b"b"),
            ],
        )]),
        ..Parts::default()
    };
    check(&parts, |fields| {
        assert_eq!(
            fields.subject,
            [("ou".to_owned(), "a"), ("cn".to_owned(), "b")]
        );
    });
}

#[test]
fn alternative_names_that_cannot_be_read_are_left_out() {
    let names = |extensions: Vec<Vec<u8>>, expected: &[Alternative<'_>]| {
        let parts = Parts {
            extensions,
            ..Parts::default()
        };
        check(&parts, |fields| assert_eq!(fields.alternatives(), expected));
    };
    let a = || value(0x82, &[b"a"]);
    // A name that is not UTF-8, a registered identifier, an address of three octets.
    let odd = [
        value(0x82, &[b"\xff"]),
        value(0x88, &[&[0x2a]]),
        value(0x87, &[&[1, 2, 3]]),
        a(),
    ];
    names(vec![alternatives(&odd)], &[Alternative::Dns("a")]);
    // The extension twice, no list in it, something behind its list, a value that is no name.
    names(vec![alternatives(&[a()]), alternatives(&[a()])], &[]);
    names(vec![extension(ALTERNATIVES, &[], &[4, 0])], &[]);
    let more = [sequence(&[&a()]), vec![5, 0]].concat();
    names(vec![extension(ALTERNATIVES, &[], &more)], &[]);
    names(vec![alternatives(&[a(), vec![0x0c, 1, b'b']])], &[]);
}

#[test]
fn what_is_not_der_of_a_certificate_is_refused() {
    let usual = Parts::default;
    let time = |text: &[u8], tag| Parts {
        not_after: value(tag, &[text]),
        ..usual()
    };
    let subject = |subject: Vec<u8>| Parts { subject, ..usual() };
    let extension_of = |extension: Vec<u8>| Parts {
        extensions: vec![extension],
        ..usual()
    };
    // A day that is none, no seconds, another zone, a sign for a digit, one kind's form with the other's tag.
    is_refused(&time(b"230229000000Z", 0x17));
    is_refused(&time(b"2301010000Z", 0x17));
    is_refused(&time(b"230101000000+0000", 0x17));
    is_refused(&time(b"+30101000000Z", 0x17));
    is_refused(&time(b"20230101000000Z", 0x17));
    is_refused(&time(b"230101000000Z", 0x18));
    is_refused(&time(b"20230101000000.5Z", 0x18));
    // An empty set, and no set; an attribute with two values.
    is_refused(&subject(sequence(&[&value(0x31, &[])])));
    is_refused(&subject(sequence(&[&attribute(CN, 0x0c, b"a")])));
    let twice = sequence(&[&value(6, &[CN]), &[0x0c, 0], &[0x0c, 0]]);
    is_refused(&subject(name(&[twice])));
    // A boolean that is neither, an extension without a value, something behind the fields.
    is_refused(&extension_of(extension(CN, &[1, 1, 1], &[])));
    is_refused(&extension_of(sequence(&[&value(6, &[CN])])));
    is_refused(&Parts {
        rest: vec![5, 0],
        ..usual()
    });
    is_refused(&Parts {
        version: value(0xa0, &[&value(2, &[&[1, 0]])]),
        ..usual()
    });
    is_refused(&Parts {
        serial: vec![4, 1, 1],
        ..usual()
    });
}

#[test]
fn the_next_update_of_a_revocation_list_is_read() {
    let utc = |text: &str| value(0x17, &[text.as_bytes()]);
    let algorithm = sequence(&[&value(6, &[&[0x2a, 3]])]);
    let issuer = name(&[attribute(CN, 0x0c, b"authority")]);
    let list = |parts: &[&[u8]]| {
        let fields = sequence(parts);
        sequence(&[&fields, &algorithm, &value(3, &[&[0, 1]])])
    };
    let version = value(2, &[&[1]]);
    let (this, next) = (utc("260101000000Z"), utc("260102030405Z"));
    let revoked = sequence(&[&sequence(&[&value(2, &[&[7]]), &this])]);
    type Case<'c> = (&'c [&'c [u8]], Option<Option<&'c str>>);
    let cases: [Case<'_>; 5] = [
        (
            &[&version, &algorithm, &issuer, &this, &next, &revoked],
            Some(Some("20260102030405Z")),
        ),
        (
            &[&algorithm, &issuer, &this, &next],
            Some(Some("20260102030405Z")),
        ),
        (
            &[&version, &algorithm, &issuer, &this, &revoked],
            Some(None),
        ),
        (&[&version, &algorithm, &issuer, &this], Some(None)),
        (&[&version, &issuer, &this, &next], None),
    ];
    for (parts, expected) in cases {
        let der = list(parts);
        let got = revocations(&der).map(|list| {
            assert_eq!(value(0x30, &[list.issuer]), issuer);
            list.next_update.map(|time| time.to_string())
        });
        assert_eq!(
            got,
            expected.map(|next| next.map(str::to_owned)),
            "{der:02x?}"
        );
        for cut in 0..der.len() {
            assert_eq!(revocations(&der[..cut]), None, "{cut} octets");
        }
    }
}
