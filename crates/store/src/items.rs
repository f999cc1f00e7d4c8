//! Items of a store as records of another one: messages and declarations with their places.

use std::collections::HashMap;
use std::sync::Arc;

use crosstie_queues::MessageContent;

use crate::segments::contents::Item;
use crate::segments::draft::Draft;
use crate::segments::entity::{self, Entity};
use crate::segments::message::{self, SHARED_BYTES_MIN};
use crate::segments::record::QueueKey;

/// Writes an item into a draft. Contents that messages share are written once.
pub(crate) fn write(
    draft: &mut Draft,
    shared: &mut HashMap<*const MessageContent, (Arc<MessageContent>, u32)>,
    (queue, place): (QueueKey, i64),
    item: &Item,
) {
    match item {
        Item::Message(Some(message)) => {
            let content = Arc::as_ptr(&message.content);
            let is_long = message.content.body().len() >= SHARED_BYTES_MIN;
            // The store of a content keeps its address.
            let shared_at = shared.get(&content).map(|(_, offset)| *offset);
            let offset = draft.store(queue, place, 0, |out| {
                message::encode(message, shared_at, out)
            });
            let is_shared = Arc::strong_count(&message.content) > 1;
            if is_long && is_shared && shared_at.is_none() {
                shared.insert(content, (Arc::clone(&message.content), offset));
            }
        }
        Item::Entity(Some(entity)) => {
            draft.store(queue, place, 0, |out| {
                match entity {
                    Entity::Vhost { number, name } => entity::encode_vhost(*number, name, out),
                    Entity::Declared { vhost, record } => entity::encode(*vhost, record, out),
                    Entity::Setting { key, value } => entity::encode_setting(key, value, out),
                }
                0
            });
        }
        Item::Message(None) | Item::Entity(None) => {}
    }
}
