//! The place of an exchange in its vhost.

use crate::slab::Key;

#[derive(Debug)]
pub(crate) enum OfExchange {}

/// Finds nothing once its exchange is deleted.
pub(crate) type ExchangeKey = Key<OfExchange>;
