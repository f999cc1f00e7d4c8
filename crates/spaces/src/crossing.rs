//! The conversions of a space's payloads: by rules, by a mapping, by procedures.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crosstie_config::PayloadMapping;
use crosstie_realms::realms::Realms;
use crosstie_realms::resident::{Manner, Place, Rooms};
use crosstie_routing::{Identity, Role};
use crosstie_wamp::Serializer;
use crosstie_wamp::codec::Limits;
use parking_lot::{Mutex, RwLock};
use tokio::sync::mpsc;

use crate::event::Event;
use crate::figures::{Dropped, Figures};
use crate::payloads::Arguments;

/// The conversions of a space's payloads, and who calls the procedures among them.
#[derive(Default)]
pub(crate) struct Crossing {
    pub(crate) used: RwLock<Used>,
    places: Mutex<HashMap<String, Arc<Place>>>,
    /// To the task that has events converted, one after another.
    pub(crate) encoding: Mutex<Option<mpsc::Sender<Encoding>>>,
    /// The size of the events that wait there.
    pub(crate) encoding_bytes: AtomicUsize,
}

/// An event that a procedure converts.
pub(crate) struct Encoding {
    pub(crate) event: Event,
    pub(crate) topic: String,
    pub(crate) dynamic: Dynamic,
}

/// Prefixes of URIs with their conversions.
type Mapping = Vec<(String, PayloadMapping)>;

/// The conversions of events, which are the same for all clients of a space.
#[derive(Clone, Default)]
pub(crate) struct Used {
    /// The endpoints that they are of, by address: with a mapping, and without one.
    pub(crate) with: usize,
    pub(crate) without: usize,
    pub(crate) mapping: Arc<Mapping>,
}

/// The conversion for a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapped<'m> {
    /// There is no mapping: by the built-in rules.
    Natural,
    /// No prefix matches: the topic stays among MQTT clients.
    Not,
    By(&'m PayloadMapping),
}

/// The conversion of a payload.
pub(crate) enum Converted {
    Arguments(Arguments),
    /// The topic stays among MQTT clients.
    Stays,
    /// The payload does not fit its mapping.
    Unfit,
    /// A procedure converts it.
    Later(Dynamic),
}

/// Two procedures.
#[derive(Clone, Debug)]
pub(crate) struct Dynamic {
    pub(crate) realm: String,
    pub(crate) encoder: String,
    pub(crate) decoder: String,
}

/// The answer of a decoder, for a client whose reading is paused until then.
#[derive(Clone, Default)]
pub(crate) struct Decoding(pub(crate) Arc<Mutex<Option<Option<Arguments>>>>);

const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The conversion of the longest prefix of a URI.
pub(crate) fn mapped<'m>(mapping: &'m [(String, PayloadMapping)], uri: &str) -> Mapped<'m> {
    if mapping.is_empty() {
        return Mapped::Natural;
    }
    let fitting = mapping
        .iter()
        .filter(|(prefix, _)| uri.starts_with(prefix.as_str()));
    let longest = fitting.max_by_key(|(prefix, _)| prefix.len());
    longest.map_or(Mapped::Not, |(_, mapping)| Mapped::By(mapping))
}

/// Converts the payload of a publication, unless a procedure does. `realm` is that of the procedures, unless they name one.
pub(crate) fn converted(
    mapping: &[(String, PayloadMapping)],
    realm: &str,
    uri: &str,
    payload: &[u8],
    limits: &Limits,
) -> Converted {
    let mapping = match mapped(mapping, uri) {
        Mapped::Natural => return Converted::Arguments(Arguments::natural(payload, limits)),
        Mapped::Not => {
            Figures::get().count_dropped(Dropped::Unmapped);
            return Converted::Stays;
        }
        Mapped::By(mapping) => mapping,
    };
    let arguments = match mapping {
        PayloadMapping::Passthrough => Some(Arguments::passed_through(payload)),
        _ if payload.is_empty() => Some(Arguments::natural(payload, limits)),
        PayloadMapping::Native(serializer) => Arguments::native(*serializer, payload, limits),
        other => {
            let dynamic = Dynamic::of(other, realm);
            return dynamic.map_or(Converted::Unfit, Converted::Later);
        }
    };
    arguments.map_or(Converted::Unfit, Converted::Arguments)
}

impl Crossing {
    /// The session that calls the procedures of a realm.
    pub(crate) fn place(&self, realms: &Arc<Realms>, realm: &str) -> Arc<Place> {
        let mut places = self.places.lock();
        let place = places.entry(realm.to_owned()).or_insert_with(|| {
            let rooms = Arc::clone(realms) as Arc<dyn Rooms>;
            let manner = Manner {
                identity: Identity::new("crosstie.mqtt", Role::TRUSTED, "internal", "static"),
                is_shown: false,
                serializer: Serializer::Cbor,
                message_bytes_max: MESSAGE_BYTES_MAX,
                is_judged: false,
                runtime: realms.door.keeper().clone(),
            };
            Arc::new(Place::new(rooms, realm, manner))
        });
        Arc::clone(place)
    }
}

impl Dynamic {
    /// The procedures of a mapping, if it has some.
    pub(crate) fn of(mapping: &PayloadMapping, own_realm: &str) -> Option<Self> {
        match mapping {
            PayloadMapping::Dynamic {
                realm,
                encoder,
                decoder,
            } => Some(Self {
                realm: realm.clone().unwrap_or_else(|| own_realm.to_owned()),
                encoder: encoder.clone(),
                decoder: decoder.clone(),
            }),
            _ => None,
        }
    }
}

impl Decoding {
    pub(crate) fn is_there(&self) -> bool {
        self.0.lock().is_some()
    }

    /// The arguments, or nothing if the decoder has failed; `None` while it is called.
    pub(crate) fn take(&self) -> Option<Option<Arguments>> {
        self.0.lock().take()
    }
}
