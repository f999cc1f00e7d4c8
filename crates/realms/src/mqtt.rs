//! MQTT on a listener: an entrance knows its logins, and who serves its connections.

use std::sync::Arc;

use crosstie_config::MqttOptions;
use crosstie_front::serve::HandedOver;
use crosstie_wamp::framing::websocket::DecoderConfig;

use crate::entrance::Entrance;
use crate::live_methods::LiveMethods;

/// MQTT on a listener, alone or beside other protocols.
pub struct MqttEndpoint {
    pub options: MqttOptions,
    pub auth: Arc<LiveMethods>,
}

/// The carrier of packets.
pub enum Carrier {
    Stream,
    /// Binary frames, after the handshake.
    WebSocket(DecoderConfig),
}

/// Serves connections of MQTT. An entrance knows nothing more about the protocol; its clients reach realms as sessions.
pub trait Mqtt: Send + Sync {
    /// Serves a connection until it ends.
    fn serve(
        self: Arc<Self>,
        entrance: Arc<Entrance>,
        endpoint: Arc<MqttEndpoint>,
        carrier: Carrier,
        handed: HandedOver<'_>,
    );
}

/// The subprotocols over WebSocket.
pub(crate) const SUBPROTOCOLS: [&str; 2] = ["mqtt", "mqttv3.1"];
