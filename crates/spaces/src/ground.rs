//! The state that the connections of a listener share.

use std::sync::Arc;

use crosstie_realms::entrance::Entrance;
use crosstie_realms::mqtt::MqttEndpoint;
use crosstie_wamp::codec::Limits;

use crate::space::SharedSpace;

/// The state that the connections of a listener share.
pub(crate) struct Ground {
    pub(crate) entrance: Arc<Entrance>,
    pub(crate) endpoint: Arc<MqttEndpoint>,
    pub(crate) space: Arc<SharedSpace>,
}

impl Ground {
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entrance, &other.entrance)
            && Arc::ptr_eq(&self.endpoint, &other.endpoint)
            && Arc::ptr_eq(&self.space, &other.space)
    }

    /// Those of payloads, which are nested in the arguments of a message.
    pub(crate) fn limits(&self) -> Limits {
        let depth_max = self.entrance.decoding.depth_max.saturating_sub(2);
        Limits { depth_max }
    }
}
