//! The place of a session of the router's own, whether the session exists or not.

use std::sync::Arc;

use parking_lot::Mutex;

use super::reply::Failed;
use super::room::{NotLetIn, Rooms};
use super::session::{Manner, Resident, send};

/// A realm, and the properties of a session there.
pub struct Place {
    rooms: Arc<dyn Rooms>,
    realm: String,
    manner: Manner,
    resident: Mutex<Option<Arc<Resident>>>,
}

impl Place {
    /// Creates no session before the first use.
    pub fn new(rooms: Arc<dyn Rooms>, realm: &str, manner: Manner) -> Self {
        Self {
            rooms,
            realm: realm.to_owned(),
            manner,
            resident: Mutex::new(None),
        }
    }

    pub fn realm(&self) -> &str {
        &self.realm
    }

    pub fn role(&self) -> &str {
        &self.manner.identity.authrole
    }

    /// The present session, which joins now if necessary.
    pub fn resident(&self) -> Result<Arc<Resident>, Failed> {
        let mut resident = self.resident.lock();
        if let Some(there) = &*resident
            && !there.is_over()
        {
            return Ok(Arc::clone(there));
        }
        let joined = self.join().map_err(Failed::NotLetIn)?;
        *resident = Some(Arc::clone(&joined));
        Ok(joined)
    }

    /// The same, after waiting for its realm and its role.
    pub async fn awaited(&self) -> Arc<Resident> {
        let mut comings = self.rooms.comings();
        loop {
            comings.mark_unchanged();
            if let Ok(resident) = self.resident() {
                return resident;
            }
            if comings.changed().await.is_err() {
                // The router has gone, so that no session can join any more.
                return std::future::pending().await;
            }
        }
    }

    /// Ends the present session, if any.
    pub fn leave(&self, why: &str) {
        let resident = self.resident.lock().take();
        if let Some(resident) = resident {
            resident.end(why);
            send();
        }
    }

    fn join(&self) -> Result<Arc<Resident>, NotLetIn> {
        let room = self.rooms.room(&self.realm);
        let room = room.ok_or_else(|| NotLetIn::NoSuchRealm {
            realm: self.realm.clone(),
        })?;
        Resident::join(room, &self.rooms.limits(), &self.manner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let resident = self.resident.get_mut().take();
        if let Some(resident) = resident {
            resident.end("the service that used it has gone");
        }
    }
}
