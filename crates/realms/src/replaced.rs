//! Principals that a replaced transport had, and its successor lacks.

use std::sync::Arc;

use crosstie_auth::wamp::Methods;
use crosstie_routing::Revocation;

use crate::entrance::Entrance;
use crate::live_methods::LiveMethods;

/// The revocations that follow from the replacement of transports.
pub struct Replaced {
    /// Principals that are gone: their sessions end.
    gone: Revocation,
    /// Principals with other credentials or another role, whose sessions end if the transport says so.
    ended: Revocation,
    changed: Revocation,
    count: usize,
}

impl Default for Replaced {
    fn default() -> Self {
        Self {
            gone: Revocation::new(true),
            ended: Revocation::new(true),
            changed: Revocation::new(false),
            count: 0,
        }
    }
}

impl Replaced {
    /// Adds the principals of `former` that `newer` has no more, or has otherwise. A principal that one of `present`
    /// still has stays.
    pub fn add(&mut self, former: &Entrance, newer: &Entrance, present: &[Arc<Entrance>]) {
        let nobody = Arc::<Methods>::default();
        for (was, is) in former.pairs(newer) {
            let (was, is) = (
                was.now(),
                is.map_or_else(|| Arc::clone(&nobody), |is| is.now()),
            );
            for (method, authid) in was.revoked_by(&is) {
                let has = |methods: &Methods| methods.stamp(method, &authid).is_some();
                let list = match (has(&is), is.ends_revoked) {
                    (false, _) if present.iter().any(|other| other.has_principal(&has)) => continue,
                    (false, _) => &mut self.gone,
                    (true, true) => &mut self.ended,
                    (true, false) => &mut self.changed,
                };
                list.insert(method.name(), &authid);
                self.count += 1;
            }
        }
    }

    /// Tells the realms by `revoke`. Returns the number of principals.
    pub fn revoke(self, revoke: impl Fn(&Revocation)) -> usize {
        if self.count > 0 {
            let all = [&self.gone, &self.ended, &self.changed];
            all.into_iter().for_each(revoke);
        }
        self.count
    }
}

impl Entrance {
    /// Connections of this replaced transport log in by the methods of its successor; those of an endpoint that is gone
    /// do so no more.
    pub fn follow(&self, newer: &Self) {
        for (was, is) in self.pairs(newer) {
            match is {
                Some(is) => was.follow(is),
                None => was.close(),
            }
        }
    }

    /// The methods of each endpoint here, and those of the same endpoint there, if any.
    fn pairs<'a>(
        &'a self,
        newer: &'a Self,
    ) -> impl Iterator<Item = (&'a Arc<LiveMethods>, Option<&'a Arc<LiveMethods>>)> {
        let rawsocket = self.rawsocket.iter().map(|was| {
            let is = newer.rawsocket.as_ref();
            (&was.auth, is.map(|is| &is.auth))
        });
        let websockets = self.websockets.iter().map(|was| {
            let mut there = newer.websockets.iter();
            let is = there.find(|is| is.path == was.path);
            (&was.auth, is.map(|is| &is.auth))
        });
        let mqtt = self.mqtt.iter().map(|was| {
            let is = newer.mqtt.as_ref();
            (&was.auth, is.map(|is| &is.auth))
        });
        let over = self.websockets.iter().filter_map(|was| {
            let mut there = newer.websockets.iter();
            let is = there.find(|is| is.path == was.path);
            let is = is.and_then(|is| is.mqtt.as_ref());
            Some((&was.mqtt.as_ref()?.auth, is.map(|is| &is.auth)))
        });
        rawsocket.chain(websockets).chain(mqtt).chain(over)
    }

    fn has_principal(&self, has: &dyn Fn(&Methods) -> bool) -> bool {
        let rawsocket = self.rawsocket.iter().map(|endpoint| &endpoint.auth);
        let websockets = self.websockets.iter().map(|endpoint| &endpoint.auth);
        let mqtt = self.mqtt_endpoints().map(|endpoint| &endpoint.auth);
        rawsocket
            .chain(websockets)
            .chain(mqtt)
            .any(|auth| has(&auth.now()))
    }
}
