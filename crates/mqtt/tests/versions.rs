//! The same packets side by side in the three versions, sizes that no packet may have, and properties by name.

use crosstie_mqtt::{
    Ack, Auth, Codes, ConnAck, Connect, Decoded, Delivery, Disconnect, EncodeError, FiltersBuf,
    Head, Message, Options, Packet, PacketId, PacketType, Place, Properties, PropertiesBuf,
    Property, Publish, QoS, REMAINING_MAX, ReasonCode, SubAck, Subscribe, SubscriptionsBuf,
    UnsubAck, Unsubscribe, Version, decode, decode_connect,
};

const ID: PacketId = PacketId::FIRST;

/// A packet in each version.
fn check(packet: Packet<'_>, of_v31: &[u8], of_v311: &[u8], of_v5: &[u8]) {
    for (version, expected) in Version::ALL.into_iter().zip([of_v31, of_v311, of_v5]) {
        let mut written = Vec::new();
        packet.encode(version, &mut written).unwrap();
        let text = format!("{version}: {packet:?}: {}", written.escape_ascii());
        assert_eq!(written, expected, "{text}");
        assert_eq!(packet.encoded_bytes(version), Ok(expected.len()), "{text}");
        assert!(decode(&written, version, 100).is_ok(), "{text}");
    }
}

#[test]
fn answers_side_by_side() {
    let why = PropertiesBuf::new().with(Property::ReasonString("no"));
    let properties = why.as_properties();
    let reason = ReasonCode::NotAuthorized;
    let found = ConnAck {
        session_present: true,
        ..ConnAck::new(ReasonCode::Success)
    };
    check(
        Packet::ConnAck(found),
        b"\x20\x02\0\0",
        b"\x20\x02\x01\0",
        b"\x20\x03\x01\0\0",
    );
    let refused = ConnAck {
        properties,
        ..ConnAck::new(reason)
    };
    let of_3 = b"\x20\x02\0\x05";
    check(
        Packet::ConnAck(refused),
        of_3,
        of_3,
        b"\x20\x08\0\x87\x05\x1f\0\x02no",
    );
    let of_3 = b"\x40\x02\0\x01";
    check(Packet::PubAck(Ack::success(ID)), of_3, of_3, of_3);
    let of_3 = b"\x50\x02\0\x01";
    check(
        Packet::PubRec(Ack::with_reason(ID, reason)),
        of_3,
        of_3,
        b"\x50\x03\0\x01\x87",
    );
    let unknown = Ack {
        properties,
        ..Ack::with_reason(ID, ReasonCode::PacketIdentifierNotFound)
    };
    let of_3 = b"\x70\x02\0\x01";
    check(
        Packet::PubComp(unknown),
        of_3,
        of_3,
        b"\x70\x09\0\x01\x92\x05\x1f\0\x02no",
    );
    let of_3 = b"\x62\x02\0\x01";
    let explained = Ack {
        properties,
        ..Ack::success(ID)
    };
    check(
        Packet::PubRel(explained),
        of_3,
        of_3,
        b"\x62\x09\0\x01\0\x05\x1f\0\x02no",
    );
    let disconnect = Disconnect::new(ReasonCode::SessionTakenOver);
    check(
        Packet::Disconnect(disconnect),
        b"\xe0\0",
        b"\xe0\0",
        b"\xe0\x01\x8e",
    );
}

#[test]
fn publications_and_subscriptions_side_by_side() {
    let (packet_id, properties) = (ID, Properties::EMPTY);
    let publish = Publish {
        delivery: Delivery::AtLeastOnce(ID),
        dup: true,
        retain: true,
        topic: "t",
        properties,
        payload: b"p",
    };
    let of_3 = b"\x3b\x06\0\x01t\0\x01p";
    check(
        Packet::Publish(publish),
        of_3,
        of_3,
        b"\x3b\x07\0\x01t\0\x01\0p",
    );
    let options = Options {
        no_local: true,
        ..Options::new(QoS::ExactlyOnce)
    };
    let buf = SubscriptionsBuf::new().with("a", options);
    let subscriptions = buf.as_subscriptions();
    let subscribe = Packet::Subscribe(Subscribe {
        packet_id,
        properties,
        subscriptions,
    });
    let of_3 = b"\x82\x06\0\x01\0\x01a\x02";
    check(subscribe, of_3, of_3, b"\x82\x07\0\x01\0\0\x01a\x06");
    let codes = Codes::from_octets(&[0, 1, 2, 0x87, 0x97]);
    let suback = Packet::SubAck(SubAck {
        packet_id,
        properties,
        codes,
    });
    let of_3 = b"\x90\x07\0\x01\0\x01\x02\x80\x80";
    check(suback, of_3, of_3, b"\x90\x08\0\x01\0\0\x01\x02\x87\x97");
    let filters = FiltersBuf::new().with("a").with("b/#");
    let filters = filters.as_filters();
    let unsubscribe = Packet::Unsubscribe(Unsubscribe {
        packet_id,
        properties,
        filters,
    });
    let of_3 = b"\xa2\x0a\0\x01\0\x01a\0\x03b/#";
    check(unsubscribe, of_3, of_3, b"\xa2\x0b\0\x01\0\0\x01a\0\x03b/#");
    let codes = Codes::from_octets(&[0x11, 0]);
    let unsuback = Packet::UnsubAck(UnsubAck {
        packet_id,
        properties,
        codes,
    });
    let of_3 = b"\xb0\x02\0\x01";
    check(unsuback, of_3, of_3, b"\xb0\x05\0\x01\0\x11\0");
}

#[test]
fn connect_decides_the_version() {
    let check = |bytes: &[u8], expected: (Version, bool, &str)| {
        for version in Version::ALL {
            let Ok(Decoded::Packet {
                packet: Packet::Connect(connect),
                consumed,
            }) = decode(bytes, version, 100)
            else {
                panic!("a CONNECT: {}", bytes.escape_ascii());
            };
            let found = (connect.version, connect.is_bridge, connect.client_id);
            assert_eq!(found, expected, "{}", bytes.escape_ascii());
            assert_eq!(consumed, bytes.len());
            let mut written = Vec::new();
            Packet::Connect(connect)
                .encode(version, &mut written)
                .unwrap();
            assert_eq!(written, bytes);
        }
        assert!(matches!(
            decode_connect(bytes, 100),
            Ok(Decoded::Packet { .. })
        ));
    };
    check(
        b"\x10\x0f\0\x06MQIsdp\x03\x02\0\x3c\0\x01a",
        (Version::V31, false, "a"),
    );
    check(
        b"\x10\x0f\0\x06MQIsdp\x83\x02\0\x3c\0\x01a",
        (Version::V31, true, "a"),
    );
    check(
        b"\x10\x0d\0\x04MQTT\x04\x02\0\x3c\0\x01a",
        (Version::V311, false, "a"),
    );
    check(
        b"\x10\x0d\0\x04MQTT\x84\x02\0\x3c\0\x01a",
        (Version::V311, true, "a"),
    );
    check(
        b"\x10\x0e\0\x04MQTT\x05\x02\0\x3c\0\0\x01a",
        (Version::V5, false, "a"),
    );
}

#[test]
fn version_3_1_is_taken_as_it_was_meant() {
    // User name and password are announced and not there.
    for rest in [&b""[..], b"\0\x01u"] {
        let head = b"\0\x06MQIsdp\x03\xc2\0\x3c\0\x01a";
        let bytes = [&[0x10, (head.len() + rest.len()) as u8], &head[..], rest].concat();
        let Ok(Decoded::Packet { packet, .. }) = decode_connect(&bytes, 100) else {
            panic!("a CONNECT");
        };
        assert_eq!(packet.user_name, (!rest.is_empty()).then_some("u"));
        assert_eq!(packet.password, None);
    }
    // DUP on packets that are repeated, and on a PUBLISH with QoS 0.
    for bytes in [
        &b"\x6a\x02\0\x01"[..],
        b"\x8a\x06\0\x01\0\x01a\0",
        b"\xaa\x05\0\x01\0\x01a",
        b"\x38\x03\0\x01a",
    ] {
        let text = bytes.escape_ascii();
        assert!(decode(bytes, Version::V31, 100).is_ok(), "{text}");
        assert!(decode(bytes, Version::V311, 100).is_err(), "{text}");
    }
    // The first octet of a CONNACK is not used.
    let Ok(Decoded::Packet {
        packet: Packet::ConnAck(found),
        ..
    }) = decode(b"\x20\x02\x03\0", Version::V31, 100)
    else {
        panic!("a CONNACK");
    };
    assert_eq!(found, ConnAck::new(ReasonCode::Success));
}

#[test]
fn answers_may_leave_out_their_end() {
    let check = |bytes: &[u8], expected: Packet<'_>| {
        let consumed = bytes.len();
        let expected = Decoded::Packet {
            packet: expected,
            consumed,
        };
        assert_eq!(decode(bytes, Version::V5, 100), Ok(expected));
    };
    let plain = Packet::PubAck(Ack::success(ID));
    check(b"\x40\x02\0\x01", plain);
    check(b"\x40\x03\0\x01\0", plain);
    check(b"\x40\x04\0\x01\0\0", plain);
    check(b"\xe0\0", Packet::Disconnect(Disconnect::default()));
    check(b"\xe0\x02\0\0", Packet::Disconnect(Disconnect::default()));
    check(b"\xf0\0", Packet::Auth(Auth::default()));
}

#[test]
fn texts_have_a_longest_form() {
    let long = "x".repeat(65_536);
    let mut out = b"front".to_vec();
    let too_long = |field| {
        Err(EncodeError::TooLong {
            field,
            bytes: 65_536,
        })
    };
    let properties = Properties::EMPTY;
    let message = Message {
        topic: &long,
        properties,
        payload: b"",
    };
    let found = message.encode(Version::V311, &Head::PLAIN, &mut out);
    assert_eq!(found, too_long("topic name"));
    let packet = Packet::Connect(Connect {
        version: Version::V5,
        is_bridge: false,
        clean_start: true,
        keep_alive: 0,
        client_id: "",
        will: None,
        user_name: Some(&long),
        password: None,
        properties,
    });
    assert_eq!(packet.encode(Version::V5, &mut out), too_long("user name"));
    let size = packet.encoded_bytes(Version::V5);
    assert_eq!(size.map(|_| ()), too_long("user name"));
    assert_eq!(out, b"front");
    // A property or filter without a form is left out.
    let buf = PropertiesBuf::new().with(Property::ReasonString(&long));
    let buf = buf.with(Property::User(("a", &long)));
    assert!(buf.as_properties().is_empty());
    let filters = FiltersBuf::new().with(&long);
    assert!(filters.as_filters().iter().next().is_none());
}

#[test]
fn packets_without_a_form_are_refused() {
    let mut out = b"front".to_vec();
    let auth = Packet::Auth(Auth::default());
    let (packet_type, version) = (PacketType::Auth, Version::V311);
    let absent = EncodeError::Absent {
        packet_type,
        version,
    };
    assert_eq!(auth.encode(version, &mut out), Err(absent));
    assert_eq!(absent.to_string(), "MQTT 3.1.1 does not have AUTH");
    let most = vec![0; REMAINING_MAX as usize - 2];
    let message = |payload| Message {
        topic: "t",
        properties: Properties::EMPTY,
        payload,
    };
    let size = message(&most[1..]).encoded_bytes(version, &Head::PLAIN);
    assert_eq!(size, Ok(REMAINING_MAX as usize + 5));
    let bytes = REMAINING_MAX as usize + 1;
    let found = message(&most).encode(version, &Head::PLAIN, &mut out);
    assert_eq!(found, Err(EncodeError::TooLarge { bytes }));
    assert_eq!(out, b"front");
}

#[test]
fn properties_by_name() {
    let buf = PropertiesBuf::new()
        .with(Property::User(("a", "1")))
        .with(Property::MessageExpiry(60))
        .with(Property::SubscriptionId(268_435_455))
        .with(Property::User(("a", "2")))
        .with(Property::SubscriptionId(1))
        .with(Property::CorrelationData(b"\0\xff"));
    let place = Place::Packet(PacketType::Publish);
    let properties = Properties::from_bytes(buf.as_properties().bytes(), place).unwrap();
    assert_eq!(properties, buf.as_properties());
    assert_eq!(
        properties.user_properties().collect::<Vec<_>>(),
        [("a", "1"), ("a", "2")]
    );
    assert_eq!(
        properties.subscription_ids().collect::<Vec<_>>(),
        [268_435_455, 1]
    );
    assert_eq!(properties.message_expiry(), Some(60));
    assert_eq!(properties.correlation_data(), Some(&b"\0\xff"[..]));
    assert_eq!(properties.content_type(), None);
    assert_eq!(properties.topic_alias(), None);
    let names: Vec<_> = properties.iter().map(|one| one.name()).collect();
    assert_eq!(names[..2], ["user property", "message expiry interval"]);
    let mut passed_on = Vec::new();
    properties.write_passed_on(&mut passed_on);
    assert_eq!(
        passed_on,
        b"\x26\0\x01a\0\x011\x26\0\x01a\0\x012\x09\0\x02\0\xff"
    );
    assert_eq!(properties.passed_on_bytes(), passed_on.len());
    let copied = Properties::from_passed_on(&passed_on, properties.kinds());
    assert_eq!(copied, Properties::from_checked_bytes(&passed_on));
    assert_eq!(copied.message_expiry(), None);
    assert!(!Property::WillDelay(1).is_allowed_in(place));
    assert!(Property::WillDelay(1).is_allowed_in(Place::Will));
    // Octets that nobody checked: what is before the fault.
    let broken = Properties::from_checked_bytes(b"\x02\0\0\0\x07\x03\0\x09ab");
    assert_eq!(broken.message_expiry(), Some(7));
    assert_eq!(broken.content_type(), None);
}
