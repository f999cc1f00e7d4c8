//! All cookies of a router: a principal that another session logs out must not return by a cookie.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Jar;

/// The jars of a router's transports.
#[derive(Default)]
pub(crate) struct Jars(Mutex<Vec<Weak<Jar>>>);

/// The principals whose logins are forgotten.
#[derive(Clone, Debug)]
pub enum Whose {
    Authid(String),
    Authrole(String),
    All,
}

impl Jars {
    pub(crate) fn add(&self, jar: Option<&Arc<Jar>>) {
        let mut jars = self.0.lock();
        jars.retain(|jar| jar.strong_count() > 0);
        jars.extend(jar.map(Arc::downgrade));
    }

    /// Forgets a realm's cookies of these principals.
    pub(crate) fn forget(&self, realm: &str, whose: &Whose) {
        let whose = match whose {
            Whose::Authid(authid) => (Some(authid.as_str()), None),
            Whose::Authrole(role) => (None, Some(role.as_str())),
            Whose::All => (None, None),
        };
        let jars: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        let forgotten: usize = jars.iter().map(|jar| jar.forget_of(realm, whose)).sum();
        if forgotten > 0 {
            tracing::info!(realm, "{forgotten} cookies were forgotten with a logout");
        }
    }
}
