//! The keys by which a vhost and its owner name its entities.

use crosstie_collections::Key;

/// Markers for the kinds of keys.
#[derive(Debug)]
pub enum OfConnection {}
#[derive(Debug)]
pub enum OfChannel {}
#[derive(Debug)]
pub enum OfQueue {}
#[derive(Debug)]
pub(crate) enum OfConsumer {}
#[derive(Debug)]
pub(crate) enum OfGroup {}

pub type ConnectionKey = Key<OfConnection>;
pub type ChannelKey = Key<OfChannel>;
pub type QueueKey = Key<OfQueue>;
pub(crate) type ConsumerKey = Key<OfConsumer>;
pub(crate) type GroupKey = Key<OfGroup>;
