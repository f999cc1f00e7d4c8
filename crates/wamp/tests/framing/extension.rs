//! Agreeing on permessage-deflate: a server's responses to offers, a client's view of responses.

use crosstie_wamp::framing::websocket::{DeflateConfig, HandshakeError};

/// A server's response, or why there is none.
fn response(config: &DeflateConfig, offers: &[&str]) -> Result<Option<String>, HandshakeError> {
    let accepted = config.accept(offers)?;
    Ok(accepted.map(|(_, response)| response))
}

/// Offers, and the parameters that a server accepts by default.
#[rustfmt::skip]
const OFFERS: &[(&[&str], Option<&str>)] = &[
    (&[], None),
    (&[""], None),
    (&["x-webkit-deflate-frame"], None),
    (&["permessage-deflate"], Some("")),
    (&["foo; bar=1, Permessage-Deflate"], Some("")),
    (&["foo", "permessage-deflate"], Some("")),
    (&["permessage-deflate; client_max_window_bits"], Some("")),
    (&["permessage-deflate; client_max_window_bits=9"], Some("; client_max_window_bits=9")),
    (&["permessage-deflate; client_max_window_bits=\"9\""], Some("; client_max_window_bits=9")),
    (&["permessage-deflate; server_max_window_bits = 12"], Some("; server_max_window_bits=12")),
    (&["permessage-deflate; server_max_window_bits=15"], Some("; server_max_window_bits=15")),
    (
        &["permessage-deflate;server_no_context_takeover;client_no_context_takeover"],
        Some("; server_no_context_takeover; client_no_context_takeover"),
    ),
    // A window of 256 bytes is beyond the compressor: on to the next offer.
    (&["permessage-deflate; server_max_window_bits=8"], None),
    (&["permessage-deflate; server_max_window_bits=8, permessage-deflate"], Some("")),
];

/// Parameters that no offer may have (RFC 7692, section 7.1).
const WRONG_PARAMETERS: &[&str] = &[
    "server_max_window_bits",
    "server_max_window_bits=16",
    "server_max_window_bits=7",
    "server_max_window_bits=09",
    "server_max_window_bits=+9",
    "server_max_window_bits=abc",
    "client_max_window_bits=0",
    "client_max_window_bits=10; client_max_window_bits=10",
    "server_no_context_takeover; server_no_context_takeover",
    "server_no_context_takeover=1",
    "unknown",
    "unknown=1",
];

/// Headers that are not lists of extensions (RFC 6455, section 9.1).
const MALFORMED: &[&str] = &[
    "permessage-deflate;",
    "=",
    "a b",
    "permessage-deflate; a=",
    "a; b=\"c",
];

fn frugal() -> DeflateConfig {
    DeflateConfig {
        no_context_takeover: true,
        window_bits_max: 10,
        peer_no_context_takeover: true,
        peer_window_bits_max: 11,
        ..DeflateConfig::default()
    }
}

fn check(config: &DeflateConfig, offers: &[&str], parameters: Option<&str>) {
    let expected = parameters.map(|parameters| format!("permessage-deflate{parameters}"));
    assert_eq!(response(config, offers), Ok(expected), "{offers:?}");
}

#[test]
fn a_server_takes_the_first_offer_it_can_hold() {
    for (offers, parameters) in OFFERS {
        check(&DeflateConfig::default(), offers, *parameters);
    }
}

#[test]
fn a_frugal_server_asks_for_less() {
    check(
        &frugal(),
        &["permessage-deflate"],
        Some("; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=10"),
    );
    check(
        &frugal(),
        &["permessage-deflate; client_max_window_bits; server_max_window_bits=9"],
        Some(
            "; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=9; \
             client_max_window_bits=11",
        ),
    );
}

#[test]
fn an_offer_with_a_wrong_parameter_is_passed_over() {
    let plain = DeflateConfig::default();
    for wrong in WRONG_PARAMETERS {
        let offer = format!("permessage-deflate; {wrong}");
        check(&plain, &[&offer], None);
        let offer = format!("{offer}, permessage-deflate");
        check(&plain, &[&offer], Some(""));
    }
}

#[test]
fn a_malformed_offer_fails_the_handshake() {
    for malformed in MALFORMED {
        let name = "Sec-WebSocket-Extensions";
        let expected = Err(HandshakeError::Header { name });
        assert_eq!(
            response(&DeflateConfig::default(), &[malformed]),
            expected,
            "{malformed}"
        );
    }
}

#[test]
fn a_client_holds_the_server_to_its_offer() {
    let plain = DeflateConfig::default();
    let frugal = frugal();
    assert_eq!(plain.offer(), "permessage-deflate; client_max_window_bits");
    assert_eq!(
        frugal.offer(),
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover; \
         server_max_window_bits=11; client_max_window_bits=10"
    );
    let check = |config: &DeflateConfig, response: &[&str], expected: Result<bool, ()>| {
        let agreed = config.agree(response);
        let agreed = agreed.map(|agreed| agreed.is_some()).map_err(|_| ());
        assert_eq!(agreed, expected, "{response:?}");
    };
    check(&plain, &[], Ok(false));
    check(&plain, &["permessage-deflate"], Ok(true));
    check(
        &plain,
        &["permessage-deflate; server_max_window_bits=8"],
        Ok(true),
    );
    check(
        &plain,
        &["permessage-deflate; client_max_window_bits=9"],
        Ok(true),
    );
    check(
        &plain,
        &["permessage-deflate; server_no_context_takeover"],
        Ok(true),
    );
    check(
        &plain,
        &["permessage-deflate; client_max_window_bits=8"],
        Err(()),
    );
    check(
        &plain,
        &["permessage-deflate; client_max_window_bits"],
        Err(()),
    );
    check(&plain, &["permessage-deflate; other"], Err(()));
    check(
        &plain,
        &["permessage-deflate", "permessage-deflate"],
        Err(()),
    );
    check(&plain, &["permessage-deflate, foo"], Err(()));
    check(&plain, &["foo"], Err(()));
    check(&plain, &[";"], Err(()));
    check(&frugal, &["permessage-deflate"], Err(()));
    let kept = "permessage-deflate; server_no_context_takeover; server_max_window_bits";
    check(&frugal, &[&format!("{kept}=11")], Ok(true));
    check(&frugal, &[&format!("{kept}=12")], Err(()));
    check(
        &frugal,
        &[&format!("{kept}=9; client_max_window_bits=11")],
        Err(()),
    );
}

#[test]
fn a_server_and_a_client_of_this_project_agree() {
    for bits in 8..=16 {
        for flags in 0..16 {
            let server = DeflateConfig {
                no_context_takeover: flags & 1 != 0,
                peer_no_context_takeover: flags & 2 != 0,
                window_bits_max: bits,
                ..DeflateConfig::default()
            };
            let client = DeflateConfig {
                no_context_takeover: flags & 4 != 0,
                peer_no_context_takeover: flags & 8 != 0,
                peer_window_bits_max: 24 - bits,
                ..DeflateConfig::default()
            };
            let offer = client.offer();
            let (_, response) = server
                .accept(&[&offer])
                .expect("well-formed")
                .expect("acceptable");
            let agreed = client.agree(&[&response]);
            assert!(matches!(agreed, Ok(Some(_))), "{offer} -> {response}");
        }
    }
}
