//! MQTT on listeners.

use std::sync::Arc;

use crosstie_auth::wamp::Methods;

use crate::catalogue::mqtt::MqttOptions;

/// MQTT on a listener, and the logins of its clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Mqtt {
    pub options: MqttOptions,
    pub auth: Arc<Methods>,
}
