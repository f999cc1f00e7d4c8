//! Reason codes (section 2.4): their names, the packets that may have them, and the return codes of 3.x.

use std::fmt;

use crate::packet_type::PacketType;
use crate::values::QoS;

macro_rules! reason_codes {
    ($($octet:literal $(#[$attribute:meta])? $name:ident $text:literal [$($packet:ident)+];)+) => {
        /// A reason code of MQTT 5. A peer that speaks 3.x gets [`Self::return_code`] in CONNACK.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum ReasonCode {
            $($(#[$attribute])? $name = $octet,)+
        }

        impl ReasonCode {
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            pub fn from_octet(octet: u8) -> Option<Self> {
                match octet {
                    $($octet => Some(Self::$name),)+
                    _ => None,
                }
            }

            /// The name in the specification, in small letters.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// A bit for each type of packet that may have it.
            fn packets(self) -> u16 {
                match self {
                    $(Self::$name => $(PacketType::$packet.bit())|+,)+
                }
            }
        }
    };
}

reason_codes! {
    0x00 #[default] Success "success" [ConnAck PubAck PubRec PubRel PubComp SubAck UnsubAck Auth Disconnect];
    0x01 GrantedQoS1 "granted QoS 1" [SubAck];
    0x02 GrantedQoS2 "granted QoS 2" [SubAck];
    0x04 DisconnectWithWill "disconnect with will message" [Disconnect];
    0x10 NoMatchingSubscribers "no matching subscribers" [PubAck PubRec];
    0x11 NoSubscriptionExisted "no subscription existed" [UnsubAck];
    0x18 ContinueAuthentication "continue authentication" [Auth];
    0x19 Reauthenticate "re-authenticate" [Auth];
    0x80 UnspecifiedError "unspecified error" [ConnAck PubAck PubRec SubAck UnsubAck Disconnect];
    0x81 MalformedPacket "malformed packet" [ConnAck Disconnect];
    0x82 ProtocolError "protocol error" [ConnAck Disconnect];
    0x83 ImplementationSpecificError "implementation specific error" [ConnAck PubAck PubRec SubAck UnsubAck Disconnect];
    0x84 UnsupportedProtocolVersion "unsupported protocol version" [ConnAck];
    0x85 ClientIdentifierNotValid "client identifier not valid" [ConnAck];
    0x86 BadUserNameOrPassword "bad user name or password" [ConnAck];
    0x87 NotAuthorized "not authorized" [ConnAck PubAck PubRec SubAck UnsubAck Disconnect];
    0x88 ServerUnavailable "server unavailable" [ConnAck];
    0x89 ServerBusy "server busy" [ConnAck Disconnect];
    0x8A Banned "banned" [ConnAck];
    0x8B ServerShuttingDown "server shutting down" [Disconnect];
    0x8C BadAuthenticationMethod "bad authentication method" [ConnAck Disconnect];
    0x8D KeepAliveTimeout "keep alive timeout" [Disconnect];
    0x8E SessionTakenOver "session taken over" [Disconnect];
    0x8F TopicFilterInvalid "topic filter invalid" [SubAck UnsubAck Disconnect];
    0x90 TopicNameInvalid "topic name invalid" [ConnAck PubAck PubRec Disconnect];
    0x91 PacketIdentifierInUse "packet identifier in use" [PubAck PubRec SubAck UnsubAck];
    0x92 PacketIdentifierNotFound "packet identifier not found" [PubRel PubComp];
    0x93 ReceiveMaximumExceeded "receive maximum exceeded" [Disconnect];
    0x94 TopicAliasInvalid "topic alias invalid" [Disconnect];
    0x95 PacketTooLarge "packet too large" [ConnAck Disconnect];
    0x96 MessageRateTooHigh "message rate too high" [Disconnect];
    0x97 QuotaExceeded "quota exceeded" [ConnAck PubAck PubRec SubAck Disconnect];
    0x98 AdministrativeAction "administrative action" [Disconnect];
    0x99 PayloadFormatInvalid "payload format invalid" [ConnAck PubAck PubRec Disconnect];
    0x9A RetainNotSupported "retain not supported" [ConnAck Disconnect];
    0x9B QoSNotSupported "QoS not supported" [ConnAck Disconnect];
    0x9C UseAnotherServer "use another server" [ConnAck Disconnect];
    0x9D ServerMoved "server moved" [ConnAck Disconnect];
    0x9E SharedSubscriptionsNotSupported "shared subscriptions not supported" [SubAck Disconnect];
    0x9F ConnectionRateExceeded "connection rate exceeded" [ConnAck Disconnect];
    0xA0 MaximumConnectTime "maximum connect time" [Disconnect];
    0xA1 SubscriptionIdentifiersNotSupported "subscription identifiers not supported" [SubAck Disconnect];
    0xA2 WildcardSubscriptionsNotSupported "wildcard subscriptions not supported" [SubAck Disconnect];
}

impl ReasonCode {
    pub fn octet(self) -> u8 {
        self as u8
    }

    /// Whether it reports a failure: 0x80 and above (section 2.4).
    pub fn is_error(self) -> bool {
        self.octet() >= 0x80
    }

    pub fn is_allowed_in(self, packet_type: PacketType) -> bool {
        self.packets() & packet_type.bit() != 0
    }

    /// The code by which SUBACK grants a subscription.
    pub fn granted(qos: QoS) -> Self {
        match qos {
            QoS::AtMostOnce => Self::Success,
            QoS::AtLeastOnce => Self::GrantedQoS1,
            QoS::ExactlyOnce => Self::GrantedQoS2,
        }
    }

    /// The nearest return code of a CONNACK of 3.x (section 3.2.2.3 of 3.1.1). A refusal of which 3.x knows nothing is
    /// 3, server unavailable.
    pub fn return_code(self) -> u8 {
        match self {
            Self::UnsupportedProtocolVersion => 1,
            Self::ClientIdentifierNotValid => 2,
            Self::BadUserNameOrPassword => 4,
            Self::NotAuthorized | Self::Banned | Self::BadAuthenticationMethod => 5,
            _ if self.is_error() => 3,
            _ => 0,
        }
    }

    /// The meaning of a CONNACK's return code of 3.x.
    pub fn from_return_code(octet: u8) -> Option<Self> {
        match octet {
            0 => Some(Self::Success),
            1 => Some(Self::UnsupportedProtocolVersion),
            2 => Some(Self::ClientIdentifierNotValid),
            3 => Some(Self::ServerUnavailable),
            4 => Some(Self::BadUserNameOrPassword),
            5 => Some(Self::NotAuthorized),
            _ => None,
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x} ({})", self.octet(), self.name())
    }
}
