//! The topic spaces of a router, by realm, and the way of connections into them.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use crosstie_config::Limits;
use crosstie_front::end_reason::EndReason;
use crosstie_front::listen::Listening;
use crosstie_front::serve::{Arrival, Endpoint, HandedOver, serve};
use crosstie_mqtt::{Auth, Connect, Packet, ReasonCode, Version};
use crosstie_realms::entrance::Entrance;
use crosstie_realms::mqtt::{Carrier, Mqtt, MqttEndpoint};
use crosstie_realms::realms::Realms;
use crosstie_topics::{Counts, SpaceLimits};
use crosstie_transport::Place;
use parking_lot::Mutex;

use crate::conversation::{Conversation, End, Step};
use crate::durable::{SpaceStore, SpaceStoreStatus};
use crate::frames::Frames;
use crate::ground::Ground;
use crate::home::Home;
use crate::login::LoggingIn;
use crate::open::Open;
use crate::space::{SharedSpace, limits_of};

/// The spaces of one router.
pub struct Spaces {
    realms: Arc<Realms>,
    limits: SpaceLimits,
    spaces: Arc<ByRealm>,
    /// That of the last connection: the connections of a listener share one.
    last_ground: Mutex<Weak<Ground>>,
}

type ByRealm = Mutex<BTreeMap<String, Arc<SharedSpace>>>;

/// MQTT on a listener of its own.
pub struct MqttListener {
    spaces: Arc<Spaces>,
    entrance: Arc<Entrance>,
    endpoint: Arc<MqttEndpoint>,
}

impl Spaces {
    pub fn new(realms: &Arc<Realms>, limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            realms: Arc::clone(realms),
            limits: limits_of(limits),
            spaces: Arc::default(),
            last_ground: Mutex::default(),
        })
    }

    /// Makes the space of a listener, before its first connection.
    pub fn open(&self, endpoint: &MqttEndpoint) {
        self.space(endpoint.options.realm());
    }

    /// Makes the space of a realm with its store, before the realm runs. Without a store, a space that had one is
    /// forgotten.
    pub fn restore(&self, realm: &str, store: Option<SpaceStore>) -> std::io::Result<()> {
        let Some(store) = store else {
            let mut spaces = self.spaces.lock();
            if spaces.get(realm).is_some_and(|space| space.is_over()) {
                spaces.remove(realm);
            }
            return Ok(());
        };
        let limits = self.limits.clone();
        let space = SharedSpace::new(&self.realms, realm, limits, Some(&store));
        let space = Arc::new(space);
        space.attach(store, self.realms.door.keeper().clone())?;
        let mut spaces = self.spaces.lock();
        spaces.insert(realm.to_owned(), space);
        Ok(())
    }

    /// Begins the space that was restored for a realm, which runs now.
    pub fn join(&self, realm: &str) {
        let space = self.spaces.lock().get(realm).cloned();
        if let Some(space) = space.filter(|space| space.store().is_some()) {
            self.begin(Arc::clone(&space));
            space.publish_restored();
        }
    }

    /// Closes the store of a realm that stops, if it has one. Clients are turned back until the realm begins anew, and its
    /// space with it. Returns whether all is written.
    pub fn close(&self, realm: &str) -> bool {
        let space = self.spaces.lock().get(realm).cloned();
        let stored = space.filter(|space| space.store().is_some());
        stored.is_none_or(|space| space.close())
    }

    /// Closes all stores, at the end of the router. Returns whether all is written.
    pub fn close_all(&self) -> bool {
        let realms: Vec<_> = self.spaces.lock().keys().cloned().collect();
        // Each of them is closed.
        let failed = realms.iter().filter(|realm| !self.close(realm));
        failed.count() == 0
    }

    /// The stores of spaces, by realm.
    pub fn stores(&self) -> Vec<(String, SpaceStoreStatus)> {
        let spaces: Vec<_> = self.spaces.lock().values().cloned().collect();
        let stores = spaces.iter().filter_map(|space| {
            let store = space.store().filter(|_| !space.is_over());
            let status = store?.status();
            Some((space.bridge.realm().to_owned(), status))
        });
        stores.collect()
    }

    /// MQTT on a listener of its own.
    pub fn listener(
        self: &Arc<Self>,
        entrance: &Arc<Entrance>,
        endpoint: &Arc<MqttEndpoint>,
    ) -> MqttListener {
        MqttListener {
            spaces: Arc::clone(self),
            entrance: Arc::clone(entrance),
            endpoint: Arc::clone(endpoint),
        }
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
        let space = self.space(endpoint.options.realm());
        let ground = Ground {
            entrance,
            endpoint,
            space,
        };
        let mut last = self.last_ground.lock();
        if let Some(last) = last.upgrade().filter(|last| last.is_same(&ground)) {
            return last;
        }
        let ground = Arc::new(ground);
        *last = Arc::downgrade(&ground);
        ground
    }

    /// The space of a realm, made with its first use.
    fn space(&self, realm: &str) -> Arc<SharedSpace> {
        let mut spaces = self.spaces.lock();
        if let Some(space) = spaces.get(realm) {
            return Arc::clone(space);
        }
        let space = Arc::new(SharedSpace::new(
            &self.realms,
            realm,
            self.limits.clone(),
            None,
        ));
        spaces.insert(realm.to_owned(), Arc::clone(&space));
        drop(spaces);
        self.begin(Arc::clone(&space));
        space
    }

    fn begin(&self, space: Arc<SharedSpace>) {
        space.bridge.join();
        let keeper = self.realms.door.keeper();
        keeper.spawn(keep(space, Arc::clone(&self.spaces)));
    }
}

/// Does a space's own work, until its realm has gone and no listener leads to it.
async fn keep(space: Arc<SharedSpace>, spaces: Arc<ByRealm>) {
    let is_unused = || {
        let mut spaces = spaces.lock();
        // Held by the map, by this task and by its two parts; clients would hold it, too.
        let is_unused = space.store().is_none() && Arc::strong_count(&space) <= 4;
        if is_unused {
            spaces.remove(space.bridge.realm());
        }
        is_unused
    };
    tokio::select! {
        () = Arc::clone(&space).keep_time() => {}
        () = Arc::clone(&space).receive(is_unused) => {}
    }
}

impl Home for Ground {
    type LoggingIn = LoggingIn;
    type Open = Open;

    fn listening(&self) -> &Arc<Listening> {
        &self.entrance.listening
    }

    fn packet_bytes_max(&self, open: &Open) -> u32 {
        open.packet_bytes_max
    }

    fn log_in(
        conversation: &mut Conversation<Self>,
        connect: &Connect<'_>,
        now: Instant,
    ) -> Result<bool, End> {
        conversation.log_in(connect, now)
    }

    fn is_login_due(login: &LoggingIn) -> bool {
        login.talk.client.mailbox.is_reading_paused()
    }

    fn awaits_auth(login: &LoggingIn) -> bool {
        login.awaits_auth()
    }

    fn auth_bytes(login: &LoggingIn) -> usize {
        login.auth_bytes()
    }

    fn authenticate(
        conversation: &mut Conversation<Self>,
        connect: &Connect<'_>,
        auth: (&Auth<'_>, usize),
        now: Instant,
    ) -> Result<bool, End> {
        conversation.authenticate(connect, auth, now)
    }

    fn abandon(mut login: LoggingIn, seen: EndReason) {
        login.talk.leave(seen);
    }

    fn version(open: &Open) -> Version {
        open.version()
    }

    fn handle(
        &self,
        open: &mut Open,
        packet: &Packet<'_>,
        consumed: usize,
        now: Instant,
    ) -> Result<Step, End> {
        open.handle(packet, consumed, self, now)
    }

    fn waits(open: &Open) -> bool {
        open.waits()
    }

    fn is_held_back(open: &Open) -> bool {
        open.client().is_held_back()
    }

    fn end(open: &Open, reason: ReasonCode) {
        open.client().end(reason);
    }

    fn leave(self: &Arc<Self>, open: Open, why: EndReason, is_stop: bool) {
        open.leave(self, why, is_stop);
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
        // The realm may have begun anew, and its space with it.
        let (entrance, endpoint) = (Arc::clone(&self.entrance), Arc::clone(&self.endpoint));
        let ground = self.spaces.ground(entrance, endpoint);
        serve(arrival, Place::Any, |connection, excess| {
            Conversation::new(ground, connection, None, excess)
        });
    }
}
