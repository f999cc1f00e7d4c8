//! The packets, properties and reason codes that only one side of a connection sends.

use crate::error::{DecodeError, Fault};
use crate::packet::Packet;
use crate::packet_type::PacketType;
use crate::reason::ReasonCode;
use crate::values::{Side, Version};

impl PacketType {
    /// Whether the side may send it (section 2.1.2).
    pub fn is_sent_by(self, side: Side, version: Version) -> bool {
        match self {
            Self::Connect | Self::Subscribe | Self::Unsubscribe | Self::PingReq => {
                side == Side::Client
            }
            Self::ConnAck | Self::SubAck | Self::UnsubAck | Self::PingResp => side == Side::Server,
            Self::Disconnect => side == Side::Client || version.is_v5(),
            _ => true,
        }
    }
}

impl Packet<'_> {
    /// Checks that the side may send this packet, with these properties and this reason code.
    #[inline]
    pub fn check_sender(&self, side: Side, version: Version) -> Result<(), DecodeError> {
        let packet_type = self.packet_type();
        let fault = match packet_type.is_sent_by(side, version) {
            true => self.fault_of_sender(side),
            false => Some(Fault::Sender { side }),
        };
        match fault {
            Some(fault) => Err(DecodeError::new(packet_type, version, fault)),
            None => Ok(()),
        }
    }

    #[inline]
    fn fault_of_sender(&self, side: Side) -> Option<Fault> {
        let of_property = |name| Some(Fault::SenderProperty { side, name });
        let of_reason = |found| Some(Fault::SenderReason { side, found });
        match (self, side) {
            // Section 3.3.4.
            (Self::Publish(publish), Side::Client) if publish.properties.has_subscription_id() => {
                of_property("subscription identifier")
            }
            // Section 3.14.2.2.2.
            (Self::Disconnect(disconnect), Side::Server)
                if disconnect.properties.session_expiry().is_some() =>
            {
                of_property("session expiry interval")
            }
            (Self::Disconnect(disconnect), _) if !is_disconnect_of(disconnect.reason, side) => {
                of_reason(disconnect.reason)
            }
            // Section 3.15.2.1.
            (Self::Auth(auth), Side::Client) if auth.reason == ReasonCode::Success => {
                of_reason(auth.reason)
            }
            (Self::Auth(auth), Side::Server) if auth.reason == ReasonCode::Reauthenticate => {
                of_reason(auth.reason)
            }
            _ => None,
        }
    }
}

/// Whether the side may end the connection with this reason (section 3.14.2.1).
fn is_disconnect_of(reason: ReasonCode, side: Side) -> bool {
    match reason {
        ReasonCode::DisconnectWithWill => side == Side::Client,
        ReasonCode::Success
        | ReasonCode::UnspecifiedError
        | ReasonCode::MalformedPacket
        | ReasonCode::ProtocolError
        | ReasonCode::ImplementationSpecificError
        | ReasonCode::TopicNameInvalid
        | ReasonCode::ReceiveMaximumExceeded
        | ReasonCode::TopicAliasInvalid
        | ReasonCode::PacketTooLarge
        | ReasonCode::MessageRateTooHigh
        | ReasonCode::QuotaExceeded
        | ReasonCode::AdministrativeAction
        | ReasonCode::PayloadFormatInvalid => true,
        _ => side == Side::Server,
    }
}
