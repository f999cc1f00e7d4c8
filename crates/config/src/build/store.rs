//! Stores of a realm: histories, call queues and retained events.

use crosstie_routing::{CallQueue, Recording, Retention, WILDCARD_COMPONENTS_MAX};

use super::{Builder, bound};
use crate::model::{EventStore, MatchPolicy};
use crate::plain::{Plain, Section};
use crate::tree::quoted;
use crate::view::View;

impl Builder<'_> {
    pub(super) fn history(&mut self, realm: View<'_>) -> Vec<Recording> {
        let Some(store) = realm.object("store") else {
            return Vec::new();
        };
        if store.text("type") == Some("cfxdb") {
            let message =
                "events are kept in memory, and are gone when the node ends; a store of type \
                           \"sqlite\" keeps them"
                    .to_owned();
            self.warn(store, "type", message);
        }
        if realm.object("fabric").is_some() && store.objects("event-history").next().is_some() {
            let message = "each node of the realm records the events that reach it: events that other nodes \
                           publish while it is away are missing";
            self.warn(store, "event-history", message);
        }
        let mut recordings: Vec<Recording> = Vec::new();
        for history in store.objects("event-history") {
            let recording = self.recording(history, bound(store, "limit"));
            let same = |known: &Recording| {
                (&known.uri, known.match_policy) == (&recording.uri, recording.match_policy)
            };
            if recordings.iter().any(same) {
                let uri = quoted(&recording.uri);
                let message = format!("there is a history of {uri} already");
                self.error(history, "uri", message);
                continue;
            }
            recordings.push(recording);
        }
        recordings
    }

    pub(super) fn event_store(&mut self, realm: View<'_>) -> Option<EventStore> {
        let store = realm.object("store")?;
        if store.text("type") != Some("sqlite") {
            return None;
        }
        let event_store = EventStore::read(store);
        self.take_store(&event_store.path, store.span_of("path"));
        Some(event_store)
    }

    pub(super) fn mqtt_store(&mut self, realm: View<'_>) -> Option<String> {
        let path = realm.text("mqtt_store")?.to_owned();
        self.take_store(&path, realm.span_of("mqtt_store"));
        Some(path)
    }

    pub(super) fn retention(&mut self, realm: View<'_>) -> Vec<Retention> {
        let Some(store) = realm.object("store") else {
            return Vec::new();
        };
        let mut all: Vec<Retention> = Vec::new();
        for entry in store.objects("retained") {
            let retention = Retention::read(entry);
            let same = |known: &Retention| {
                known.uri == retention.uri && known.match_policy == retention.match_policy
            };
            if all.iter().any(same) {
                let message = format!("there is an age of {} already", quoted(&retention.uri));
                self.error(entry, "uri", message);
                continue;
            }
            all.push(retention);
        }
        all
    }

    pub(super) fn call_queues(&mut self, realm: View<'_>) -> Vec<CallQueue> {
        let Some(store) = realm.object("store") else {
            return Vec::new();
        };
        let mut queues: Vec<CallQueue> = Vec::new();
        for queue in store.objects("call-queue") {
            let (uri, match_policy) = pattern(queue);
            let wrong = if queues
                .iter()
                .any(|known| (&known.uri, known.match_policy) == (&uri, match_policy))
            {
                Some(format!("there is a queue of {} already", quoted(&uri)))
            } else if match_policy == MatchPolicy::Wildcard
                && uri.split('.').count() > WILDCARD_COMPONENTS_MAX
            {
                Some(format!(
                    "a wildcard pattern may have {WILDCARD_COMPONENTS_MAX} components"
                ))
            } else {
                None
            };
            if let Some(message) = wrong {
                self.error(queue, "uri", message);
                continue;
            }
            let own = queue.integer("limit");
            queues.push(CallQueue {
                uri,
                match_policy,
                calls_max: own.map_or_else(|| bound(store, "limit"), crate::plain::size),
            });
        }
        queues
    }

    fn recording(&mut self, history: View<'_>, events_max: usize) -> Recording {
        let (uri, match_policy) = pattern(history);
        let parts = uri.split('.');
        let wrong = match match_policy {
            MatchPolicy::Exact if uri.split('.').any(str::is_empty) => {
                Some("a topic has no empty components".to_owned())
            }
            MatchPolicy::Wildcard if parts.count() > WILDCARD_COMPONENTS_MAX => Some(format!(
                "a wildcard pattern may have {WILDCARD_COMPONENTS_MAX} components"
            )),
            MatchPolicy::Exact | MatchPolicy::Prefix if uri.starts_with("wamp.") => {
                Some("what the router says of itself is not recorded".to_owned())
            }
            _ => None,
        };
        if let Some(message) = wrong {
            self.error(history, "uri", message);
        }
        let own = history.integer("limit");
        Recording {
            uri,
            match_policy,
            events_max: own.map_or(events_max, crate::plain::size),
            age_ms_max: bound(history, "age_ms_max") as u64,
        }
    }
}

/// The pattern of an entry.
fn pattern(entry: View<'_>) -> (String, MatchPolicy) {
    let uri = entry.text("uri").unwrap_or_default().to_owned();
    (uri, MatchPolicy::read(entry, "match"))
}
