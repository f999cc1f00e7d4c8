//! The state that the connections of a transport share.

use std::sync::Arc;

use crosstie_front::certificate::Certificate;
use crosstie_front::listen::Listening;
use crosstie_front::serve::Endpoint;
use crosstie_realms::entrance::Entrance;

/// A transport whose connections have conversations.
#[derive(Clone)]
pub(crate) struct Conversing {
    pub(crate) listening: Arc<Listening>,
    /// Set if it leads to realms.
    pub(crate) entrance: Option<Arc<Entrance>>,
}

impl Conversing {
    /// Notes that every session is sent GOODBYE.
    pub(crate) fn note_goodbye(&self) {
        if let Some(entrance) = &self.entrance {
            entrance.note_goodbye();
        }
    }
}

/// What the connections of a transport share, and its certificate.
pub(crate) struct Opened {
    pub(crate) conversing: Conversing,
    pub(crate) endpoint: Arc<dyn Endpoint>,
    /// Whether Nagle's algorithm is off.
    pub(crate) nodelay: bool,
    pub(crate) certificate: Option<Arc<Certificate>>,
}
