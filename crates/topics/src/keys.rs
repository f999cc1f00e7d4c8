//! The keys by which the parts of a space name each other's values.

use crosstie_collections::Key;

/// Markers for the kinds of keys.
#[derive(Debug)]
pub(crate) enum OfSession {}
#[derive(Debug)]
pub(crate) enum OfNode {}
#[derive(Debug)]
pub(crate) enum OfGroup {}

pub(crate) type SessionKey = Key<OfSession>;
pub(crate) type NodeKey = Key<OfNode>;
pub(crate) type GroupKey = Key<OfGroup>;
