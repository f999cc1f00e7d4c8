//! The homes of MQTT clients on a listener with several protocols: topic spaces of realms, and AMQP vhosts.

use std::sync::Arc;

use crosstie_fleets::Fleets;
use crosstie_front::serve::HandedOver;
use crosstie_realms::entrance::Entrance;
use crosstie_realms::mqtt::{Carrier, Mqtt, MqttEndpoint};
use crosstie_spaces::Spaces;

use crate::registry::Registry;

/// Serves connections of MQTT in the home that their listener names.
pub(crate) struct MqttHomes {
    spaces: Arc<Spaces>,
    fleets: Arc<Fleets>,
}

impl MqttHomes {
    pub(crate) fn of(state: &Registry) -> Self {
        Self {
            spaces: Arc::clone(&state.spaces),
            fleets: Arc::clone(&state.fleets),
        }
    }
}

impl Mqtt for MqttHomes {
    fn serve(
        self: Arc<Self>,
        entrance: Arc<Entrance>,
        endpoint: Arc<MqttEndpoint>,
        carrier: Carrier,
        handed: HandedOver<'_>,
    ) {
        match endpoint.options.vhost {
            Some(_) => Arc::clone(&self.fleets).serve(entrance, endpoint, carrier, handed),
            None => Arc::clone(&self.spaces).serve(entrance, endpoint, carrier, handed),
        }
    }
}
