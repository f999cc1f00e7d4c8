//! Random packets of every type and version: read as they were written, of the size that was told before.

use crosstie_mqtt::{
    Ack, Auth, Codes, ConnAck, Connect, Decoded, Delivery, Disconnect, FiltersBuf, Head, Message,
    Options, Packet, PacketId, PacketType, Place, Properties, PropertiesBuf, Property, Publish,
    QoS, ReasonCode, RetainHandling, SubAck, Subscribe, SubscriptionsBuf, UnsubAck, Unsubscribe,
    Version, Will, decode, set_packet_id,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const SIZE_MAX: u32 = 1 << 20;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn connect(
        version in version(),
        (is_bridge, clean_start, retain) in any::<(bool, bool, bool)>(),
        keep_alive in any::<u16>(),
        client_id in text(),
        user in option::of(text()),
        password in option::of(data()),
        will in option::of((topic(), data(), qos())),
        properties in properties(Place::Packet(PacketType::Connect)),
        of_will in properties(Place::Will),
    ) {
        let v5 = version == Version::V5;
        let will = will.as_ref().map(|(topic, payload, qos)| Will {
            topic,
            payload,
            qos: *qos,
            retain,
            properties: for_version(&of_will, version),
        });
        check(version, Packet::Connect(Connect {
            version,
            is_bridge: is_bridge && !v5,
            clean_start,
            keep_alive,
            client_id: &client_id,
            will,
            user_name: user.as_deref(),
            password: password.as_deref().filter(|_| v5 || user.is_some()),
            properties: for_version(&properties, version),
        }))?;
    }

    #[test]
    fn connack(
        version in version(),
        session_present in any::<bool>(),
        reason in reason(PacketType::ConnAck),
        return_code in 0..6u8,
        properties in properties(Place::Packet(PacketType::ConnAck)),
    ) {
        let of_3 = ReasonCode::from_return_code(return_code).unwrap();
        check(version, Packet::ConnAck(ConnAck {
            session_present: session_present && version != Version::V31,
            reason: if version == Version::V5 { reason } else { of_3 },
            properties: for_version(&properties, version),
        }))?;
    }

    #[test]
    fn publish(
        version in version(),
        (dup, retain) in any::<(bool, bool)>(),
        delivery in delivery(),
        topic in topic(),
        payload in vec(any::<u8>(), 0..300),
        properties in properties(Place::Packet(PacketType::Publish)),
        is_aliased in any::<bool>(),
    ) {
        let properties = for_version(&properties, version);
        let is_aliased = is_aliased && properties.topic_alias().is_some();
        check(version, Packet::Publish(Publish {
            delivery,
            dup: dup && delivery != Delivery::AtMostOnce,
            retain,
            topic: if is_aliased { "" } else { &topic },
            properties,
            payload: &payload,
        }))?;
    }

    #[test]
    fn acknowledgements(
        version in version(),
        packet_id in packet_id(),
        reasons in (reason(PacketType::PubAck), reason(PacketType::PubRel), reason(PacketType::Disconnect), reason(PacketType::Auth)),
        properties in properties(Place::Packet(PacketType::PubAck)),
        of_disconnect in properties(Place::Packet(PacketType::Disconnect)),
        of_auth in properties(Place::Packet(PacketType::Auth)),
    ) {
        let v5 = version == Version::V5;
        let of = |reason| if v5 { reason } else { ReasonCode::Success };
        let ack = |reason| Ack { packet_id, reason: of(reason), properties: for_version(&properties, version) };
        check(version, Packet::PubAck(ack(reasons.0)))?;
        check(version, Packet::PubRec(ack(reasons.0)))?;
        check(version, Packet::PubRel(ack(reasons.1)))?;
        check(version, Packet::PubComp(ack(reasons.1)))?;
        let properties = for_version(&of_disconnect, version);
        check(version, Packet::Disconnect(Disconnect { reason: of(reasons.2), properties }))?;
        check(version, Packet::PingReq)?;
        check(version, Packet::PingResp)?;
        let properties = of_auth.as_properties();
        if properties.authentication_method().is_some() {
            check(Version::V5, Packet::Auth(Auth { reason: reasons.3, properties }))?;
        }
    }

    #[test]
    fn subscriptions(
        version in version(),
        packet_id in packet_id(),
        filters in vec((filter(), options()), 1..5),
        codes in vec(reason(PacketType::SubAck), 1..5),
        un_codes in vec(reason(PacketType::UnsubAck), 1..5),
        properties in properties(Place::Packet(PacketType::Subscribe)),
        others in properties(Place::Packet(PacketType::Unsubscribe)),
    ) {
        let v5 = version == Version::V5;
        let mut subscriptions = SubscriptionsBuf::new();
        let mut names = FiltersBuf::new();
        let mut expected = Vec::new();
        for (filter, options) in &filters {
            let mut options = if v5 { *options } else { Options::new(options.qos) };
            options.no_local &= !filter.starts_with("$share");
            subscriptions.push(filter, options);
            names.push(filter);
            expected.push((filter.as_str(), options));
        }
        let subscriptions = subscriptions.as_subscriptions();
        let found: Vec<_> = subscriptions.iter().map(|one| (one.filter, one.options)).collect();
        prop_assert_eq!(found, expected);
        let properties = for_version(&properties, version);
        check(version, Packet::Subscribe(Subscribe { packet_id, properties, subscriptions }))?;
        let filters = names.as_filters();
        let properties = for_version(&others, version);
        check(version, Packet::Unsubscribe(Unsubscribe { packet_id, properties, filters }))?;

        let octets: Vec<_> = codes.iter().map(|code| match v5 {
            true => code.octet(),
            false => code.octet().min(0x80),
        }).collect();
        let codes = Codes::from_octets(&octets);
        check(version, Packet::SubAck(SubAck { packet_id, properties, codes }))?;
        let octets: Vec<_> = un_codes.iter().map(|code| code.octet()).collect();
        let codes = if v5 { Codes::from_octets(&octets) } else { Codes::EMPTY };
        check(version, Packet::UnsubAck(UnsubAck { packet_id, properties, codes }))?;
    }

    /// A message that is passed on: its head and its rest are the whole, and the publisher's properties that are not
    /// for the receiver are gone.
    #[test]
    fn messages(
        version in version(),
        (dup, retain) in any::<(bool, bool)>(),
        delivery in delivery(),
        other_id in packet_id(),
        topic in topic(),
        payload in vec(any::<u8>(), 0..300),
        properties in properties(Place::Packet(PacketType::Publish)),
        expiry in option::of(any::<u32>()),
        ids in vec(1..=268_435_455u32, 0..4),
        topic_alias in option::of(1..=u16::MAX),
    ) {
        let properties = properties.as_properties();
        let message = Message { topic: &topic, properties, payload: &payload };
        let head = Head { delivery, dup, retain, expiry, subscription_ids: &ids, topic_alias };
        let mut whole = b"front".to_vec();
        message.encode(version, &head, &mut whole).unwrap();
        prop_assert_eq!(message.encoded_bytes(version, &head), Ok(whole.len() - 5));
        let mut parts = b"front".to_vec();
        message.encode_head(version, &head, &mut parts).unwrap();
        message.encode_rest(version, &mut parts);
        prop_assert_eq!(&parts, &whole);

        let Ok(Decoded::Packet { packet: Packet::Publish(found), .. }) = decode(&whole[5..], version, SIZE_MAX) else {
            panic!("a PUBLISH");
        };
        prop_assert_eq!((found.topic, found.payload), (topic.as_str(), payload.as_slice()));
        prop_assert_eq!((found.delivery, found.retain), (delivery, retain));
        prop_assert_eq!(found.dup, dup && delivery != Delivery::AtMostOnce);
        let v5 = version == Version::V5;
        prop_assert_eq!(found.properties.message_expiry(), expiry.filter(|_| v5));
        prop_assert_eq!(found.properties.topic_alias(), topic_alias.filter(|_| v5));
        let found_ids: Vec<_> = found.properties.subscription_ids().collect();
        prop_assert_eq!(found_ids, if v5 { ids.clone() } else { vec![] });
        let is_passed_on = |property: &Property<'_>| !matches!(
            property,
            Property::MessageExpiry(_) | Property::TopicAlias(_) | Property::SubscriptionId(_)
        );
        let expected: Vec<_> = properties.iter().filter(|_| v5).filter(is_passed_on).collect();
        let rest: Vec<_> = found.properties.iter().filter(is_passed_on).collect();
        prop_assert_eq!(rest, expected);

        let mut passed_on = Vec::new();
        properties.write_passed_on(&mut passed_on);
        prop_assert_eq!(properties.passed_on_bytes(), passed_on.len());
        let stored = Message { topic: &topic, properties: Properties::from_checked_bytes(&passed_on), payload: &payload };
        let mut again = b"front".to_vec();
        stored.encode(version, &head, &mut again).unwrap();
        prop_assert_eq!(&again, &whole);

        let changed = set_packet_id(&mut whole[5..], other_id, !dup);
        prop_assert_eq!(changed, delivery != Delivery::AtMostOnce);
        let delivery = match delivery {
            Delivery::AtMostOnce => Delivery::AtMostOnce,
            Delivery::AtLeastOnce(_) => Delivery::AtLeastOnce(other_id),
            Delivery::ExactlyOnce(_) => Delivery::ExactlyOnce(other_id),
        };
        let mut expected = b"front".to_vec();
        let head = Head { delivery, dup: !dup, ..head };
        message.encode(version, &head, &mut expected).unwrap();
        prop_assert_eq!(whole, expected);
    }

    #[test]
    fn no_octets_panic(version in version(), first in any::<u8>(), bytes in vec(any::<u8>(), 0..60)) {
        let mut input = vec![first, bytes.len() as u8];
        input.extend(bytes);
        if let Ok(Decoded::Packet { packet, .. }) = decode(&input, version, SIZE_MAX) {
            check(version, packet)?;
        }
    }
}

/// Written, told, and read again.
fn check(version: Version, packet: Packet<'_>) -> Result<(), TestCaseError> {
    let mut written = b"front".to_vec();
    packet.encode(version, &mut written).unwrap();
    let written = &written[5..];
    prop_assert_eq!(packet.encoded_bytes(version), Ok(written.len()));
    let consumed = written.len();
    let expected = Decoded::Packet { packet, consumed };
    prop_assert_eq!(decode(written, version, SIZE_MAX), Ok(expected));
    for end in [consumed - 1, consumed / 2] {
        let part = decode(&written[..end], version, SIZE_MAX);
        let is_wanted = matches!(part, Ok(Decoded::Incomplete { wanted }) if wanted > end);
        prop_assert!(is_wanted, "{:?}", part);
    }
    Ok(())
}

fn for_version(properties: &PropertiesBuf, version: Version) -> Properties<'_> {
    match version {
        Version::V5 => properties.as_properties(),
        _ => Properties::EMPTY,
    }
}

fn version() -> impl Strategy<Value = Version> {
    select(Version::ALL.to_vec())
}

fn qos() -> impl Strategy<Value = QoS> {
    select(vec![QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce])
}

fn packet_id() -> impl Strategy<Value = PacketId> {
    (1..=u16::MAX).prop_map(|id| PacketId::new(id).unwrap())
}

fn delivery() -> impl Strategy<Value = Delivery> {
    (qos(), packet_id()).prop_map(|(qos, id)| match qos {
        QoS::AtMostOnce => Delivery::AtMostOnce,
        QoS::AtLeastOnce => Delivery::AtLeastOnce(id),
        QoS::ExactlyOnce => Delivery::ExactlyOnce(id),
    })
}

fn reason(packet_type: PacketType) -> impl Strategy<Value = ReasonCode> {
    let all = ReasonCode::ALL.iter().copied();
    let allowed: Vec<_> = all.filter(|code| code.is_allowed_in(packet_type)).collect();
    select(allowed)
}

fn options() -> impl Strategy<Value = Options> {
    let handling = vec![
        RetainHandling::Always,
        RetainHandling::New,
        RetainHandling::Never,
    ];
    let all = (qos(), any::<bool>(), any::<bool>(), select(handling));
    all.prop_map(
        |(qos, no_local, retain_as_published, retain_handling)| Options {
            qos,
            no_local,
            retain_as_published,
            retain_handling,
        },
    )
}

fn text() -> impl Strategy<Value = String> {
    "[a-zä+#/ ]{0,20}"
}

fn topic() -> impl Strategy<Value = String> {
    "[a-zä$ ]{0,5}(/[a-z]{0,3}){0,5}x"
}

fn filter() -> impl Strategy<Value = String> {
    "(\\$share/[a-z]{1,3}/)?([a-zä]{1,3}/|\\+/|/){0,5}(#|\\+|[a-z]{1,3})"
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..20)
}

/// Properties that the place may have, in any order, each once but for user properties.
fn properties(place: Place) -> impl Strategy<Value = PropertiesBuf> {
    let values = (text(), topic(), data(), any::<u32>(), any::<bool>());
    (vec(values, 28), any::<usize>(), 0..4u8).prop_flat_map(move |(values, turn, share)| {
        let mut all: Vec<PropertiesBuf> = Vec::new();
        for (at, values) in values.iter().enumerate() {
            let property = property(at, values);
            if property.is_allowed_in(place) {
                all.push(PropertiesBuf::new().with(property));
            }
        }
        let count = all.len();
        all.rotate_left(turn % count.max(1));
        let wanted = count * usize::from(share) / 3;
        subsequence(all, wanted).prop_map(move |chosen| {
            let mut out = PropertiesBuf::new();
            let method = chosen
                .iter()
                .any(|one| one.as_properties().authentication_method().is_some());
            for one in &chosen {
                let is_data = one.as_properties().authentication_data().is_some();
                one.as_properties()
                    .iter()
                    .filter(|_| method || !is_data)
                    .for_each(|property| out.push(property));
            }
            out
        })
    })
}

fn property<'a>(at: usize, values: &'a (String, String, Vec<u8>, u32, bool)) -> Property<'a> {
    let (text, topic, data, number, flag) = values;
    let short = *number as u16;
    let all = [
        Property::PayloadFormat(*flag),
        Property::MessageExpiry(*number),
        Property::ContentType(text),
        Property::ResponseTopic(topic),
        Property::CorrelationData(data),
        Property::SubscriptionId((number % 268_435_455) + 1),
        Property::SessionExpiry(*number),
        Property::AssignedClientId(text),
        Property::ServerKeepAlive(short),
        Property::AuthenticationMethod(text),
        Property::AuthenticationData(data),
        Property::RequestProblemInformation(*flag),
        Property::WillDelay(*number),
        Property::RequestResponseInformation(*flag),
        Property::ResponseInformation(text),
        Property::ServerReference(text),
        Property::ReasonString(text),
        Property::ReceiveMaximum(short.max(1)),
        Property::TopicAliasMaximum(short),
        Property::TopicAlias(short.max(1)),
        Property::MaximumQoS(if *flag {
            QoS::AtLeastOnce
        } else {
            QoS::AtMostOnce
        }),
        Property::RetainAvailable(*flag),
        Property::User((text, topic)),
        Property::User((topic, text)),
        Property::MaximumPacketSize((*number).max(1)),
        Property::WildcardSubscriptionAvailable(*flag),
        Property::SubscriptionIdsAvailable(*flag),
        Property::SharedSubscriptionAvailable(*flag),
    ];
    all[at]
}
