//! A broker's store at its start.

use std::path::Path;

use crosstie_config as model;
use crosstie_metadata::{Layers, Metadata};
use crosstie_store::{Loaded, Restored, Store, StoreConfig};

use super::limits::SHALLOW_MESSAGES;
use super::metadata::{HeldSettings, LiveMetadata};

/// The messages that a start reads take no more than this part of the memory for messages.
const LOADED_PART: usize = 4;

/// Opens the store and reads its contents.
pub(super) fn open(
    amqp: &model::Amqp,
    accepts_loss: bool,
    directory: &Path,
) -> Result<(Store, Vec<Restored>), String> {
    let config = StoreConfig {
        accepts_loss,
        ..StoreConfig::new(directory.join(&amqp.store))
    };
    let loaded = Loaded {
        messages_max: SHALLOW_MESSAGES,
        bytes_max: (amqp.limits.memory_bytes_max / LOADED_PART) as u64,
    };
    let opened = Store::open_deep(config, loaded);
    let (mut store, restored) = opened.map_err(|e| e.to_string())?;
    store.wake().map_err(|e| e.to_string())?;
    report_damage(&store, accepts_loss);
    if let Some(obstacle) = store.obstacle() {
        // Several nodes on the embedded default may run in one directory, and most of them store nothing.
        if !is_embedded(&amqp.store) {
            return Err(obstacle.to_string());
        }
        tracing::warn!("durable messages will not be stored: {obstacle}");
    }
    Ok((store, restored))
}

/// The metadata of a configuration's layers and of a store, and what the store has of replicated vhosts.
pub(super) fn metadata(
    store: &mut Store,
    layers: Layers,
    accepts_loss: bool,
) -> Result<(Metadata, HeldSettings), String> {
    let settings = store.take_settings();
    let restored = LiveMetadata::restore(layers, &settings, accepts_loss);
    let restored = restored.map_err(|error| error.to_string())?;
    if !restored.deleted.is_empty() {
        let put = store.put_settings(&restored.deleted);
        put.map_err(|error| error.to_string())?;
    }
    Ok((restored.metadata, restored.held))
}

/// Names what is missing, or cannot be read.
fn report_damage(store: &Store, accepts_loss: bool) {
    for missing in store.accepted() {
        tracing::error!("the store lacks confirmed data, continuing without it: {missing}");
    }
    for damaged in store.damage() {
        match accepts_loss {
            true => tracing::error!("removed from the store, since it is damaged: {damaged}"),
            false => tracing::error!("the store is damaged, other queues are served: {damaged}"),
        }
    }
}

/// Whether this is the store of the embedded default configuration.
fn is_embedded(store: &str) -> bool {
    let workers = model::Config::embedded_default().workers;
    workers.iter().any(|worker| match worker {
        model::Worker::Router(router) => router.amqp.as_ref().is_some_and(|a| a.store == store),
        _ => false,
    })
}
