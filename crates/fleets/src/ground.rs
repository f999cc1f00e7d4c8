//! A vhost as the home of a listener's clients.

use std::sync::Arc;
use std::time::Instant;

use crosstie_config::MqttOptions;
use crosstie_front::end_reason::EndReason;
use crosstie_front::listen::Listening;
use crosstie_mqtt::{Connect, Packet, ReasonCode, Version};
use crosstie_realms::entrance::Entrance;
use crosstie_realms::mqtt::MqttEndpoint;
use crosstie_spaces::{Conversation, End, Home, Step};

use crate::fleets::Fleets;
use crate::login::{self, LoggingIn};
use crate::open::Open;

/// The state that the connections of a listener share.
pub(crate) struct Ground {
    pub(crate) fleets: Arc<Fleets>,
    pub(crate) entrance: Arc<Entrance>,
    pub(crate) endpoint: Arc<MqttEndpoint>,
}

impl Ground {
    pub(crate) fn options(&self) -> &MqttOptions {
        &self.endpoint.options
    }
}

impl Home for Ground {
    type LoggingIn = LoggingIn;
    type Open = Open;

    fn listening(&self) -> &Arc<Listening> {
        &self.entrance.listening
    }

    fn packet_bytes_max(&self, _: &Open) -> u32 {
        u32::try_from(self.options().packet_bytes_max).unwrap_or(u32::MAX)
    }

    fn log_in(
        conversation: &mut Conversation<Self>,
        connect: &Connect<'_>,
        _: Instant,
    ) -> Result<bool, End> {
        login::log_in(conversation, connect)
    }

    fn is_login_due(login: &LoggingIn) -> bool {
        login.is_due()
    }

    fn abandon(login: LoggingIn, _: EndReason) {
        login.abandon();
    }

    fn version(open: &Open) -> Version {
        open.member.version
    }

    fn handle(
        &self,
        open: &mut Open,
        packet: &Packet<'_>,
        consumed: usize,
        _: Instant,
    ) -> Result<Step, End> {
        open.handle(packet, consumed, self)
    }

    fn waits(open: &Open) -> bool {
        open.waits()
    }

    fn is_held_back(_: &Open) -> bool {
        // A block of publishers may last.
        true
    }

    fn end(open: &Open, reason: ReasonCode) {
        open.member.end(reason);
    }

    fn leave(self: &Arc<Self>, open: Open, why: EndReason, is_stop: bool) {
        open.leave(self, why, is_stop);
    }
}
