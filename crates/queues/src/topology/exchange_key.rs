//! The place of an exchange in its vhost.

use crosstie_collections::Key;

#[derive(Debug)]
pub(crate) enum OfExchange {}

/// Finds nothing once its exchange is deleted.
pub(crate) type ExchangeKey = Key<OfExchange>;
