//! The topic spaces of a router, by realm, and the way of connections into them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_config::Limits;
use crosstie_front::serve::{Arrival, Endpoint, HandedOver, serve};
use crosstie_realms::entrance::Entrance;
use crosstie_realms::mqtt::{Carrier, Mqtt, MqttEndpoint};
use crosstie_realms::realms::Realms;
use crosstie_topics::{Counts, SpaceLimits};
use crosstie_transport::Place;
use parking_lot::Mutex;

use crate::conversation::Conversation;
use crate::frames::Frames;
use crate::space::{SharedSpace, limits_of};

/// The spaces of one router.
pub struct Spaces {
    realms: Arc<Realms>,
    limits: SpaceLimits,
    spaces: Mutex<BTreeMap<String, Arc<SharedSpace>>>,
}

/// MQTT on a listener of its own.
pub struct MqttListener {
    ground: Arc<Ground>,
}

/// The state that the connections of a listener share.
pub(crate) struct Ground {
    pub(crate) entrance: Arc<Entrance>,
    pub(crate) endpoint: Arc<MqttEndpoint>,
    pub(crate) space: Arc<SharedSpace>,
}

impl Spaces {
    pub fn new(realms: &Arc<Realms>, limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            realms: Arc::clone(realms),
            limits: limits_of(limits),
            spaces: Mutex::default(),
        })
    }

    /// Makes the space of a listener, before its first connection.
    pub fn open(&self, endpoint: &MqttEndpoint) {
        self.space(&endpoint.options.realm);
    }

    /// MQTT on a listener of its own.
    pub fn listener(&self, entrance: &Arc<Entrance>, endpoint: &Arc<MqttEndpoint>) -> MqttListener {
        let ground = self.ground(Arc::clone(entrance), Arc::clone(endpoint));
        MqttListener { ground }
    }

    /// The counters of each space, by realm.
    pub fn counts(&self) -> Vec<(String, Counts)> {
        let spaces: Vec<_> = self.spaces.lock().values().cloned().collect();
        let counts = spaces.iter().map(|space| {
            let realm = space.bridge.realm().to_owned();
            (realm, space.counts())
        });
        counts.collect()
    }

    fn ground(&self, entrance: Arc<Entrance>, endpoint: Arc<MqttEndpoint>) -> Arc<Ground> {
        let space = self.space(&endpoint.options.realm);
        Arc::new(Ground {
            entrance,
            endpoint,
            space,
        })
    }

    /// The space of a realm, made with its first use.
    fn space(&self, realm: &str) -> Arc<SharedSpace> {
        let mut spaces = self.spaces.lock();
        if let Some(space) = spaces.get(realm) {
            return Arc::clone(space);
        }
        let space = Arc::new(SharedSpace::new(&self.realms, realm, self.limits.clone()));
        spaces.insert(realm.to_owned(), Arc::clone(&space));
        drop(spaces);
        space.bridge.join();
        let keeper = self.realms.door.keeper();
        keeper.spawn(Arc::clone(&space).keep_time());
        keeper.spawn(Arc::clone(&space).receive());
        space
    }
}

impl Mqtt for Spaces {
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

impl Endpoint for MqttListener {
    fn start(self: Arc<Self>, arrival: Arrival) {
        let ground = Arc::clone(&self.ground);
        serve(arrival, Place::Any, |connection, excess| {
            Conversation::new(ground, connection, None, excess)
        });
    }
}
