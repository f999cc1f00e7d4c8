//! A session of the node itself in a realm, for its meta API; the realm does not list it.

use std::sync::Arc;

use crosstie_realms::resident::{
    Event, Failed, Kept, Manner, Place, Resident, Rooms, Subscription,
};
use crosstie_routing::{Identity, Role};
use crosstie_wamp::{CallOptions, MatchPolicy, Payload, Serializer, SubscribeOptions};
use tokio::runtime::Handle;

/// One such session, which lives until its realm is stopped.
pub struct MetaSession {
    resident: Arc<Resident>,
    /// Dropping it ends the session.
    _place: Place,
}

/// The meta events of a realm.
pub struct MetaEvents {
    subscription: Subscription,
}

/// A meta event.
pub struct MetaEvent {
    event: Event,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetaFailure {
    /// An error from the realm.
    Error { uri: String, payload: MetaPayload },
    /// The realm was stopped.
    Lost(String),
}

/// The arguments of a result, an error or an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaPayload(Kept);

/// Maximum message size, as for any client.
const MESSAGE_BYTES_MAX: usize = 1 << 24;

/// The prefix of the topics.
const META: &str = "wamp.";

impl MetaSession {
    pub(crate) fn join(
        rooms: Arc<dyn Rooms>,
        realm: &str,
        runtime: Handle,
    ) -> Result<Self, String> {
        let manner = Manner {
            identity: Identity::new("crosstie.management", Role::TRUSTED, "internal", "static"),
            is_shown: false,
            serializer: Serializer::MsgPack,
            message_bytes_max: MESSAGE_BYTES_MAX,
            is_judged: false,
            runtime,
        };
        let place = Place::new(rooms, realm, manner);
        let resident = place.resident().map_err(|failed| failed.to_string())?;
        Ok(Self {
            resident,
            _place: place,
        })
    }

    /// Calls a procedure of the meta API.
    pub async fn call(
        &self,
        procedure: &str,
        arguments: &MetaPayload,
    ) -> Result<MetaPayload, MetaFailure> {
        let options = CallOptions::default();
        let called = self
            .resident
            .call(procedure, options, arguments.as_payload())
            .await;
        called.map(MetaPayload).map_err(MetaFailure::from)
    }

    /// Subscribes to all meta events.
    pub async fn events(&self) -> Result<MetaEvents, MetaFailure> {
        let options = SubscribeOptions::matching(MatchPolicy::Prefix);
        let subscription = self.resident.subscribe(META, options).await?;
        Ok(MetaEvents { subscription })
    }
}

impl MetaEvents {
    /// The next event; `None` after the realm was stopped.
    pub async fn next(&mut self) -> Option<MetaEvent> {
        let event = self.subscription.next().await?;
        Some(MetaEvent { event })
    }
}

impl MetaEvent {
    pub fn topic(&self) -> &str {
        self.event.topic.as_deref().unwrap_or(META)
    }

    pub fn payload(&self) -> Payload<'_> {
        payload(&self.event.payload)
    }
}

impl MetaPayload {
    pub fn of(payload: &Payload<'_>) -> Self {
        Self(Kept::of(payload))
    }

    pub fn as_payload(&self) -> Payload<'_> {
        payload(&self.0)
    }
}

impl From<Failed> for MetaFailure {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Error { uri, payload } => {
                let payload = MetaPayload(payload);
                Self::Error { uri, payload }
            }
            other => Self::Lost(other.to_string()),
        }
    }
}

fn payload(kept: &Kept) -> Payload<'_> {
    Payload::new(kept.serializer, &kept.args, &kept.kwargs)
}
