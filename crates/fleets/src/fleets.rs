//! The fleets of a router, by vhost, and the way of connections into them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_broker::vhost::SharedVhost;
use crosstie_broker::{Broker, RetainedMax};
use crosstie_config::Limits;
use crosstie_front::serve::{Arrival, Endpoint, HandedOver, serve};
use crosstie_realms::entrance::Entrance;
use crosstie_realms::mqtt::{Carrier, Mqtt, MqttEndpoint};
use crosstie_spaces::{Conversation, Frames};
use crosstie_transport::Place;
use parking_lot::{Mutex, RwLock};

use crate::fleet::{Fleet, FleetCounts};
use crate::ground::Ground;

/// The place of a router's broker, which stops and starts while the router runs.
pub type BrokerPlace = Arc<RwLock<Option<Arc<Broker>>>>;

/// The fleets of one router.
pub struct Fleets {
    broker: BrokerPlace,
    pub(crate) bounds: Bounds,
    fleets: Mutex<BTreeMap<String, Arc<Fleet>>>,
}

/// The bounds of clients and of fleets.
pub(crate) struct Bounds {
    /// Maximum and default time for which the session of an absent client is kept, in seconds.
    pub(crate) expiry_s_max: u32,
    pub(crate) expiry_3_s: u32,
    retained_max: RetainedMax,
}

/// MQTT of a vhost, on a listener of its own.
pub struct VhostListener {
    ground: Arc<Ground>,
}

impl Fleets {
    pub fn new(broker: &BrokerPlace, limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            broker: Arc::clone(broker),
            bounds: Bounds {
                expiry_s_max: limits.mqtt_session_expiry_seconds_max,
                expiry_3_s: limits.mqtt_session_expiry_3_seconds,
                retained_max: RetainedMax {
                    messages: limits.mqtt_retained_messages_max,
                    bytes: limits.mqtt_retained_bytes_max,
                },
            },
            fleets: Mutex::default(),
        })
    }

    /// MQTT on a listener of its own.
    pub fn listener(
        self: &Arc<Self>,
        entrance: &Arc<Entrance>,
        endpoint: &Arc<MqttEndpoint>,
    ) -> VhostListener {
        VhostListener {
            ground: self.ground(Arc::clone(entrance), Arc::clone(endpoint)),
        }
    }

    /// The counters of each fleet, by vhost.
    pub fn counts(&self) -> Vec<(String, FleetCounts)> {
        // A count waits for its vhost's lock, and CONNECT needs the fleets meanwhile.
        let fleets = self.fleets.lock().clone();
        let present = fleets.into_iter().filter(|(_, fleet)| !fleet.is_gone());
        present
            .map(|(vhost, fleet)| (vhost, fleet.counts()))
            .collect()
    }

    /// The broker, unless AMQP is stopped.
    pub(crate) fn broker(&self) -> Option<Arc<Broker>> {
        self.broker.read().clone()
    }

    /// The fleet of a vhost, made with its first client.
    pub(crate) fn fleet(&self, vhost: &Arc<SharedVhost>) -> Arc<Fleet> {
        let mut fleets = self.fleets.lock();
        if let Some(found) = fleets
            .get(vhost.name().as_ref())
            .filter(|found| found.is_of(vhost))
        {
            return Arc::clone(found);
        }
        fleets.retain(|_, fleet| !fleet.is_gone());
        let fleet = Arc::new(Fleet::new(vhost, self.bounds.retained_max));
        fleets.insert(vhost.name().to_string(), Arc::clone(&fleet));
        fleet
    }

    fn ground(
        self: &Arc<Self>,
        entrance: Arc<Entrance>,
        endpoint: Arc<MqttEndpoint>,
    ) -> Arc<Ground> {
        Arc::new(Ground {
            fleets: Arc::clone(self),
            entrance,
            endpoint,
        })
    }
}

impl Mqtt for Fleets {
    fn serve(
        self: Arc<Self>,
        entrance: Arc<Entrance>,
        endpoint: Arc<MqttEndpoint>,
        carrier: Carrier,
        handed: HandedOver<'_>,
    ) {
        let frames = match carrier {
            Carrier::Stream => None,
            Carrier::WebSocket(config) => Some(Box::new(Frames::new(config))),
        };
        let ground = self.ground(entrance, endpoint);
        handed.serve(Place::Any, |connection, excess| {
            Conversation::new(ground, connection, frames, excess)
        });
    }
}

impl Endpoint for VhostListener {
    fn start(self: Arc<Self>, arrival: Arrival) {
        let ground = Arc::clone(&self.ground);
        serve(arrival, Place::Any, |connection, excess| {
            Conversation::new(ground, connection, None, excess)
        });
    }
}
