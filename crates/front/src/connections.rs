//! A set of connections.

use std::collections::HashMap;
use std::sync::Arc;

use crosstie_transport::Connection;

/// A set of connections. It keeps them alive, so that their addresses stay unique.
pub struct Connections(HashMap<usize, Arc<Connection>>);

impl Connections {
    pub fn has(&self, connection: &Arc<Connection>) -> bool {
        self.0.contains_key(&address(connection))
    }
}

impl<'c> FromIterator<&'c Arc<Connection>> for Connections {
    fn from_iter<I: IntoIterator<Item = &'c Arc<Connection>>>(connections: I) -> Self {
        let kept = connections.into_iter().map(Arc::clone);
        Self(kept.map(|c| (address(&c), c)).collect())
    }
}

fn address(connection: &Arc<Connection>) -> usize {
    Arc::as_ptr(connection).addr()
}
